import { Button, Group, Menu } from '@mantine/core';
import { Ban, Ellipsis, LogOut, Pause, Pencil, Play, UserMinus } from 'lucide-react';
import { useRef, useState } from 'react';
import type { Schemas } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { ICON } from '../parts/icon.ts';
import { usePermission } from '../session.ts';
import { CreatorForm } from './creator-form.tsx';
import { InvitePopover } from './invite-popover.tsx';
import { PayoutBlockDialog } from './payout-block.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { StatusDialog } from './status-dialog.tsx';

type Creator = Schemas['ListedAffiliate'];

/** What can be done with a creator: the invite, the creator's own page, and the rest in a menu. */
export function CreatorActions({ appId, creator }: { readonly appId: string; readonly creator: Creator }) {
  const canWrite = usePermission('write');
  const canInvite = usePermission('setup');
  const more = useRef<HTMLButtonElement>(null);
  const [shown, setShown] = useState<'edit' | 'revoke' | 'blocked' | Creator['status'] | null>(null);
  const close = () => setShown(null);
  const show = (dialog: typeof shown) => () => {
    // The item is gone when the dialog closes, so that the focus returns to the button of the menu.
    more.current?.focus({ preventScroll: true });
    setShown(dialog);
  };
  const { status } = creator;
  return (
    <Group gap="xs">
      <InvitePopover appId={appId} creator={creator} isDisabled={!canInvite} />
      <Button variant="default" component="a" href={`creator/as/${appId}/${creator.id}/`}>
        See as creator
      </Button>
      <Menu position="bottom-end" width={250} withinPortal={false} withInitialFocusPlaceholder={false}>
        <Menu.Target>
          <Button ref={more} variant="default" leftSection={<Ellipsis {...ICON} />}>
            More
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<Pencil {...ICON} />} disabled={!canWrite} onClick={show('edit')}>
            Edit
          </Menu.Item>
          {status === 'active' ? (
            <Menu.Item leftSection={<Pause {...ICON} />} disabled={!canWrite} onClick={show('paused')}>
              Pause
            </Menu.Item>
          ) : (
            <Menu.Item leftSection={<Play {...ICON} />} disabled={!canWrite} onClick={show('active')}>
              Make active
            </Menu.Item>
          )}
          {creator.payoutBlock === undefined && (
            <Menu.Item leftSection={<Ban {...ICON} />} onClick={show('blocked')}>
              Block payouts
            </Menu.Item>
          )}
          <Menu.Item leftSection={<LogOut {...ICON} />} disabled={!canInvite} onClick={show('revoke')}>
            Revoke sign-in links
          </Menu.Item>
          {status !== 'removed' && (
            <>
              <Menu.Divider />
              <Menu.Item
                leftSection={<UserMinus {...ICON} />}
                c="var(--mantine-color-error)"
                disabled={!canWrite}
                onClick={show('removed')}
              >
                Remove
              </Menu.Item>
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      <Dialog isOpen={shown === 'edit'} onClose={close} title={`Edit ${creator.name}`}>
        <CreatorForm appId={appId} creator={creator} onCancel={close} onDone={close} />
      </Dialog>
      <RevokeDialog appId={appId} creator={creator} isOpen={shown === 'revoke'} onClose={close} />
      <PayoutBlockDialog
        appId={appId}
        creator={creator}
        state={shown === 'blocked' ? 'blocked' : null}
        onClose={close}
      />
      <StatusDialog
        appId={appId}
        creator={creator}
        status={shown === 'active' || shown === 'paused' || shown === 'removed' ? shown : null}
        onClose={close}
      />
    </Group>
  );
}
