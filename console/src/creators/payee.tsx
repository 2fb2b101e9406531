import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { Schemas } from '../api/client.ts';
import { formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { PayeeDialog } from './payee-dialogs.tsx';
import type { Opened, OpenPayee, PayeeVersion } from './payee-dialogs.tsx';
import { countsText, PROBLEMS } from './payee-words.ts';
import { payeeText, usePayee } from './use-payee.ts';

type Creator = Schemas['ListedAffiliate'];

function Latest({ payee }: { readonly payee: PayeeVersion }) {
  const { recipientProblem, countsFrom, setAt, setBy } = payee;
  return (
    <Stack gap={2}>
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {payeeText(payee)} · {countsText(countsFrom)}
      </Text>
      <Text size="xs" className="quiet">
        Set {formatInstant(setAt)} by {setBy === null ? 'the creator' : (setBy.label ?? setBy.display)}
      </Text>
      {recipientProblem !== null && (
        <Text size="sm" role="status">
          {PROBLEMS[recipientProblem]}
          {recipientProblem === 'unreadable' &&
            ' Set it again, or ask who runs the service to restore the encryption key.'}
        </Text>
      )}
    </Stack>
  );
}

/** Where the money of a creator goes, and what sets, shows, removes and erases it. */
export function Payee({ appId, creator }: { readonly appId: string; readonly creator: Creator }) {
  const [open, setOpen] = useState<Opened | null>(null);
  const versions = usePayee(appId, creator.id);
  const latest = versions.data?.items[0] ?? null;
  const hasPayee = latest !== null && latest.method !== 'none';
  const button = (kind: OpenPayee, words: string) => (
    <Button variant="default" size="xs" onClick={() => setOpen({ kind, version: latest?.version ?? 0 })}>
      {words}
    </Button>
  );
  const content = () => {
    if (versions.error !== null)
      return <ErrorBox error={versions.error} retry={() => void versions.refetch()} />;
    if (versions.data === undefined) return <Waiting what="the payee" />;
    return (
      <div className="surface" style={{ padding: '16px 20px' }}>
        {latest === null ? (
          <Stack gap={2}>
            <Text size="sm" fw={600}>
              No payee yet
            </Text>
            <Text size="sm" className="quiet">
              Note where you send the money of this creator.
            </Text>
          </Stack>
        ) : (
          <Latest payee={latest} />
        )}
        {creator.emailConfirmed === false && (
          <Group gap="xs" mt="sm">
            <Text size="sm" role="status">
              The creator’s address was changed by somebody who may not pay, so no code to change the payee is
              mailed to it.
            </Text>
            {button('address', 'Confirm the address …')}
          </Group>
        )}
      </div>
    );
  };
  return (
    <Section
      id="payee"
      title="Payee"
      hint="Where the money of the creator goes. To change it here, or to see all of it, takes the permission “payout”."
      aside={
        versions.data !== undefined && (
          <Group gap="xs">
            {button('set', hasPayee ? 'Change payee' : 'Set payee')}
            {hasPayee && latest.maskedRecipient !== null && button('show', 'Show payee')}
            {hasPayee && button('remove', 'Remove payee')}
            {latest !== null && button('erase', 'Erase …')}
          </Group>
        )
      }
    >
      {content()}
      <PayeeDialog
        appId={appId}
        creator={creator}
        open={open}
        onClose={() => {
          setOpen(null);
          // Another tab may have been faster.
          void versions.refetch();
        }}
      />
    </Section>
  );
}
