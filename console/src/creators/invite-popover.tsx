import { Button, Popover, Stack, Text } from '@mantine/core';
import { Copy, Mail, QrCode } from 'lucide-react';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { formatInstant } from '../format.ts';
import { copyText, ErrorBox, Secret } from '../parts.tsx';
import { ICON } from '../parts/icon.ts';
import { isLoopback } from '../parts/loopback.ts';
import { useCurrentSession } from '../session.ts';
import { QrImage } from '../setup/qr.tsx';

type Creator = Schemas['ListedAffiliate'];

/** Invites a creator to the own page by mail, with a link to copy, or with a QR code for the phone beside it. */
function Invite({
  appId,
  creator,
  onCreated,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  /** Called when there is a link that is shown once. */
  readonly onCreated: () => void;
  readonly onClose: () => void;
}) {
  const path = { appId, affiliateId: creator.id };
  const link = useChange(
    async () =>
      await read(api.POST('/apps/{appId}/affiliates/{affiliateId}/sign-in-links', { params: { path } })),
  );
  const mail = useChange(
    async () =>
      await read(api.POST('/apps/{appId}/affiliates/{affiliateId}/sign-in-links/send', { params: { path } })),
  );
  const [wanted, setWanted] = useState<'copy' | 'qr'>('copy');
  const [isCopied, setIsCopied] = useState(false);
  const { sendsMail = false } = useCurrentSession();
  const canMail = sendsMail && creator.email !== null;
  const isPending = link.isPending || mail.isPending;
  const create = (what: 'copy' | 'qr') => {
    setWanted(what);
    link.mutate(undefined, {
      onSuccess: ({ url }) => {
        onCreated();
        // Some browsers copy only at the moment of a press. The link has a button of its own for them.
        if (what === 'copy') void copyText(url).then(setIsCopied);
      },
    });
  };
  if (mail.data !== undefined || link.data !== undefined)
    return (
      <Stack gap="sm">
        {mail.data !== undefined && (
          <Text size="sm" role="status">
            A link is on its way to {mail.data.maskedRecipient}. It signs in up to {mail.data.uses} browsers
            until {formatInstant(mail.data.expiresAt)}.
          </Text>
        )}
        {link.data !== undefined && (
          <>
            <Secret text={link.data.url} what="the link">
              {isCopied && 'It is copied. '}It signs in up to {link.data.uses} browsers until{' '}
              {formatInstant(link.data.expiresAt)}.
            </Secret>
            <QrImage url={link.data.url} what="QR code of the link" />
            <Text size="sm" className="quiet">
              {isLoopback(link.data.url)
                ? 'Only this computer can open it: the service has no PUBLIC_URL, the address at which others reach it.'
                : 'The phone of the creator can scan it.'}
            </Text>
          </>
        )}
        <Button variant="default" onClick={onClose}>
          Done
        </Button>
      </Stack>
    );
  return (
    <Stack gap="sm">
      <Text size="sm">
        A link opens a page with the creator’s own earnings, links and payouts, and nothing else.{' '}
        {canMail ? `It can be sent to ${creator.email}.` : 'Send it to them yourself.'}
        {sendsMail && creator.email === null && ' With an e-mail address here, it could be mailed.'}
      </Text>
      {link.error !== null && <ErrorBox error={link.error} />}
      {mail.error !== null && <ErrorBox error={mail.error} />}
      {canMail && (
        <Button
          leftSection={<Mail {...ICON} />}
          loading={mail.isPending}
          disabled={isPending}
          onClick={() => mail.mutate(undefined)}
        >
          Send by mail
        </Button>
      )}
      <Button
        {...(canMail ? { variant: 'default' as const } : {})}
        leftSection={<Copy {...ICON} />}
        loading={link.isPending && wanted === 'copy'}
        disabled={isPending}
        onClick={() => create('copy')}
      >
        Copy a link
      </Button>
      <Button
        variant="default"
        leftSection={<QrCode {...ICON} />}
        loading={link.isPending && wanted === 'qr'}
        disabled={isPending}
        onClick={() => create('qr')}
      >
        Show a QR code
      </Button>
    </Stack>
  );
}

/** The button that invites a creator, and what opens below it. */
export function InvitePopover({
  appId,
  creator,
  isDisabled,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly isDisabled: boolean;
}) {
  const [isOpen, setIsOpen] = useState(false);
  // A link that is shown once is not lost by a press beside it.
  const [isHeld, setIsHeld] = useState(false);
  const close = () => setIsOpen(false);
  return (
    <Popover
      opened={isOpen}
      onChange={setIsOpen}
      position="bottom-end"
      width={340}
      trapFocus
      returnFocus
      closeOnClickOutside={!isHeld}
      closeOnEscape={!isHeld}
      onExitTransitionEnd={() => setIsHeld(false)}
    >
      <Popover.Target>
        <Button disabled={isDisabled} onClick={() => setIsOpen(!isOpen)}>
          Invite
        </Button>
      </Popover.Target>
      <Popover.Dropdown maw="calc(100vw - 16px)">
        <Invite appId={appId} creator={creator} onCreated={() => setIsHeld(true)} onClose={close} />
      </Popover.Dropdown>
    </Popover>
  );
}
