import { useLocalStorage } from '@mantine/hooks';
import { lazy } from 'react';
import { Extra } from '../parts.tsx';
import { useShortcuts } from './use-shortcuts.ts';

const ShortcutList = lazy(async () => await import('./shortcut-list.tsx'));

/** The shortcuts of the pages, and their list while it is open. */
export function Shortcuts({
  appId,
  isListed,
  onListed,
}: {
  readonly appId: string | null;
  readonly isListed: boolean;
  readonly onListed: (isListed: boolean) => void;
}) {
  const [isOn, setIsOn] = useLocalStorage({ key: 'tributary-shortcuts', defaultValue: true });
  useShortcuts({ isOn, appId, onHelp: () => onListed(true) });
  return (
    isListed && (
      <Extra>
        <ShortcutList isOn={isOn} onSwitched={setIsOn} onClosed={() => onListed(false)} />
      </Extra>
    )
  );
}
