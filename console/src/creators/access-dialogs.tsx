import { Button, Group, Stack, Text } from '@mantine/core';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { ErrorBox, Secret } from '../parts.tsx';
import { useCurrentSession } from '../session.ts';

type Creator = Schemas['ListedAffiliate'];

/** Creates a link that signs the creator in to their own page. */
export function InviteDialog({
  appId,
  creator,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const invite = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/sign-in-links', {
          params: { path: { appId, affiliateId: creator.id } },
        }),
      ),
  );
  const mail = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/sign-in-links/send', {
          params: { path: { appId, affiliateId: creator.id } },
        }),
      ),
  );
  const { sendsMail = false } = useCurrentSession();
  const canMail = sendsMail && creator.email !== null;
  const close = () => {
    invite.reset();
    mail.reset();
    onClose();
  };
  const isDone = invite.data !== undefined || mail.data !== undefined;
  return (
    <Dialog isOpen={isOpen} onClose={close} title={`Invite ${creator.name}`}>
      <Stack>
        {!isDone && (
          <Text size="sm">
            The link opens a page with the creator’s own earnings, links and payouts, and nothing else.{' '}
            {canMail ? `It can be sent to ${creator.email}.` : 'Send it to them yourself.'}
            {sendsMail && creator.email === null && ' With an e-mail address here, it could be mailed.'}
          </Text>
        )}
        {mail.data !== undefined && (
          <Text size="sm" role="status">
            A link is on its way to {mail.data.maskedRecipient}. It signs in up to {mail.data.uses} browsers
            until {formatInstant(mail.data.expiresAt)}.
          </Text>
        )}
        {invite.data !== undefined && (
          <Secret text={invite.data.url} what="the link">
            It signs in up to {invite.data.uses} browsers until {formatInstant(invite.data.expiresAt)}.
          </Secret>
        )}
        {invite.error !== null && <ErrorBox error={invite.error} />}
        {mail.error !== null && <ErrorBox error={mail.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {isDone ? 'Done' : 'Cancel'}
          </Button>
          {!isDone && (
            <Button
              {...(canMail ? { variant: 'default' as const } : {})}
              loading={invite.isPending}
              disabled={mail.isPending}
              onClick={() => invite.mutate(undefined)}
            >
              Create the link
            </Button>
          )}
          {!isDone && canMail && (
            <Button
              loading={mail.isPending}
              disabled={invite.isPending}
              onClick={() => mail.mutate(undefined)}
            >
              Send by mail
            </Button>
          )}
        </Group>
      </Stack>
    </Dialog>
  );
}

/** Ends the access of the creator to their own page, until there is a new link. */
export function RevokeDialog({
  appId,
  creator,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const revoke = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/affiliates/{affiliateId}/sign-in-links/revoke', {
          params: { path: { appId, affiliateId: creator.id } },
        }),
      ),
  );
  const close = () => {
    revoke.reset();
    onClose();
  };
  return (
    <Dialog isOpen={isOpen} onClose={close} title={`Revoke the links of ${creator.name}`}>
      <Confirm
        action="Revoke and sign out"
        color="red.9"
        change={revoke}
        onConfirm={() => revoke.mutate(undefined, { onSuccess: close })}
        onClose={close}
      >
        All invite links of the creator stop working. Every browser of the creator is signed out at once. The
        tracking links do not change. A new invite link lets the creator sign in again.
      </Confirm>
    </Dialog>
  );
}
