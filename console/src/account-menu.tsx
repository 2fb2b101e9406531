import { Menu, useMantineColorScheme } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { Link } from 'react-router';
import { AccountButton } from './account-button.tsx';
import { api } from './api/client.ts';
import type { Session } from './api/client.ts';
import { askToLeave } from './leave/entries.ts';
import { startAnew } from './leave/start-anew.ts';
import { forgetViews } from './parts/saved-views.ts';

/** Forgets every answer and the saved views, so that nothing of the last session remains, and shows the sign-in page. */
async function signOut(): Promise<void> {
  await api.POST('/session/end', {}).catch(() => {});
  forgetViews();
  startAnew();
}

const SCHEMES = { light: 'Light', dark: 'Dark', auto: 'As the system' } as const;

export interface AccountMenuProps {
  readonly session: Session;
  /** Opens the list of the shortcuts. */
  readonly onShortcuts: () => void;
}

/** What belongs to the session: its keys, the appearance, the end. It takes the place of the button that was pressed, and opens. */
export function AccountMenu({ session, onShortcuts }: AccountMenuProps) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // Somebody who has gone on meanwhile is left there.
    if (document.activeElement !== document.body) return;
    button.current?.focus();
    button.current?.click();
  }, []);
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Menu position="bottom-end" width={250} withinPortal>
      <Menu.Target>
        <AccountButton ref={button} name={session.account.name} />
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {session.member === null
            ? `Key: ${session.key.label ?? session.key.display}`
            : `${session.member.email}, ${session.member.role}`}
        </Menu.Label>
        <Menu.Item component={Link} to="/access">
          {session.member === null ? 'Keys and sessions' : 'Passkeys and sessions'}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>Appearance</Menu.Label>
        {(Object.keys(SCHEMES) as (keyof typeof SCHEMES)[]).map((scheme) => (
          <Menu.Item
            key={scheme}
            onClick={() => setColorScheme(scheme)}
            rightSection={colorScheme === scheme ? <span aria-label="chosen">✓</span> : null}
          >
            {SCHEMES[scheme]}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item onClick={onShortcuts}>Keyboard shortcuts</Menu.Item>
        <Menu.Item onClick={() => askToLeave(() => void signOut())}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
