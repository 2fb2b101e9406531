import { Button, Group, Stack, Text } from '@mantine/core';
import { useIsMutating } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { Dialog } from '../dialog.tsx';
import { formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { AskToPay } from '../payouts/raise-form.tsx';
import { AttributeForm } from './attribute-form.tsx';
import type { Draft } from './attribute-form.tsx';
import { ConfirmEarlier } from './confirm-earlier.tsx';
import { PAYERS } from './queries.ts';
import type { ManualAttribution, UnattributedPayment } from './queries.ts';

/** Says what was written. */
function Written({
  appId,
  attribution,
  payer,
  onClose,
}: {
  readonly appId: string;
  readonly attribution: ManualAttribution;
  readonly payer: UnattributedPayment['payer'];
  readonly onClose: () => void;
}) {
  const { customerUserId, affiliateId, affiliateName, effectiveFrom, payments, earnedCents } = attribution;
  const isFromNow = effectiveFrom >= attribution.createdAt;
  return (
    <Stack>
      <Text size="sm" role="status">
        {isFromNow ? 'Payments from now on of ' : `Payments since ${formatInstant(effectiveFrom)} of `}
        {payer === 'user' ? <b>{customerUserId}</b> : `this ${PAYERS[payer]}`} belong to{' '}
        <Link to={`/apps/${appId}/creators/${affiliateId}`}>{affiliateName}</Link>.{' '}
        {isFromNow
          ? 'Earlier ones stay as they are.'
          : `${formatCountOf(payments, 'payment')} earned ${formatMoney(earnedCents)}.`}
      </Text>
      <Text size="sm">
        <Link to={`/apps/${appId}/unattributed/manual`}>All manual attributions</Link>
      </Text>
      <Group justify="flex-end">
        <Button data-autofocus onClick={onClose}>
          Done
        </Button>
      </Group>
    </Stack>
  );
}

/** The steps: who and why; for earlier payments a key that may pay and the sum; what was written. */
function Steps({
  appId,
  payment,
  onClose,
}: {
  readonly appId: string;
  readonly payment: UnattributedPayment;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState<Draft>({ creator: null, reason: '', since: 'payment' });
  const [isConfirming, setIsConfirming] = useState(false);
  const [written, setWritten] = useState<ManualAttribution | null>(null);
  if (written !== null)
    return <Written appId={appId} attribution={written} payer={payment.payer} onClose={onClose} />;
  if (isConfirming && draft.creator !== null) {
    const { creator, reason } = draft;
    return (
      <AskToPay onCancel={() => setIsConfirming(false)}>
        {(onNotRaised) => (
          <ConfirmEarlier
            appId={appId}
            payment={payment}
            creator={creator}
            reason={reason}
            onNotRaised={onNotRaised}
            onBack={() => setIsConfirming(false)}
            onWritten={setWritten}
          />
        )}
      </AskToPay>
    );
  }
  return (
    <AttributeForm
      appId={appId}
      payment={payment}
      draft={draft}
      onDraft={(changed) => setDraft((before) => ({ ...before, ...changed }))}
      onEarlier={() => setIsConfirming(true)}
      onWritten={setWritten}
      onClose={onClose}
    />
  );
}

const titleOf = ({ payer, customerUserId }: UnattributedPayment): string =>
  `Attribute ${payer === 'user' ? customerUserId : `this ${PAYERS[payer]}`}`;

/** Gives the user of `payment`, or what stands for one, to a creator. Closed without one. */
export function AttributeDialog({
  appId,
  payment,
  onClose,
}: {
  readonly appId: string;
  readonly payment: UnattributedPayment | null;
  readonly onClose: () => void;
}) {
  // What is being booked says how it ended.
  const isBooking = useIsMutating() > 0;
  return (
    <Dialog
      isOpen={payment !== null}
      isHeld={isBooking}
      onClose={onClose}
      title={payment === null ? '' : titleOf(payment)}
    >
      {payment !== null && <Steps appId={appId} payment={payment} onClose={onClose} />}
    </Dialog>
  );
}
