import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Problem } from '../api/client.ts';
import { formatInstant, formatMoney } from '../format.ts';
import { ErrorBox, Waiting } from '../parts.tsx';
import type { ChosenCreator } from '../parts/creator-select.tsx';
import { watchRaise } from '../payouts/raise-form.tsx';
import { earnsText, OwnedNote } from './attribute-form.tsx';
import { useAttribute, usePreview } from './queries.ts';
import type { ManualAttribution, Preview, UnattributedPayment } from './queries.ts';

const isChanged = (error: Error | null) => error instanceof Problem && error.code === 'total_changed';

/** Shows what a payer's earlier payments earn, and books exactly that. Asks again if it has changed meanwhile. */
export function ConfirmEarlier({
  appId,
  payment: { customerUserId, payer, occurredAt: from },
  creator,
  reason,
  onNotRaised,
  onBack,
  onWritten,
}: {
  readonly appId: string;
  readonly payment: UnattributedPayment;
  readonly creator: ChosenCreator;
  readonly reason: string;
  readonly onNotRaised: () => void;
  readonly onBack: () => void;
  readonly onWritten: (attribution: ManualAttribution) => void;
}) {
  const preview = usePreview(appId, { customerUserId, affiliateId: creator.id, from });
  /** What was refused, because it is not the sum any more. */
  const [refused, setRefused] = useState<Preview | null>(null);
  const { data } = preview;
  const { change, onError } = useAttribute(appId, {
    customerUserId,
    affiliateId: creator.id,
    reason,
    since: { from, expectedCents: data?.earnedCents ?? 0 },
  });
  if (data === undefined)
    return preview.error === null ? (
      <Waiting what="what the payments earn" />
    ) : (
      <ErrorBox error={preview.error} retry={() => void preview.refetch()} />
    );
  const back = (
    <Button variant="default" disabled={change.isPending} onClick={onBack}>
      Back
    </Button>
  );
  if (data.owner !== null)
    return (
      <Stack>
        <OwnedNote payer={payer} affiliateName={data.owner.affiliateName} />
        <Group justify="flex-end">{back}</Group>
      </Stack>
    );
  const book = () =>
    change.mutate(undefined, {
      onSuccess: onWritten,
      onError: (error) => {
        onError(error);
        if (isChanged(error)) setRefused(data);
        // Somebody else may have given the user away, or a payment may have come.
        if (error instanceof Problem && error.status === 409) void preview.refetch();
        watchRaise(onNotRaised)(error);
      },
    });
  return (
    <Stack>
      {refused !== null && (
        <Alert color="yellow" variant="light" role="alert" title="The sum has changed">
          <Text size="sm">
            You agreed to {formatMoney(refused.earnedCents)}. Payments or refunds have come since, and it is{' '}
            {preview.isFetching ? '…' : formatMoney(data.earnedCents)} now. Nothing was booked.
          </Text>
        </Alert>
      )}
      <dl className="facts">
        <dt>{payer === 'user' ? 'User' : 'Customer without a user'}</dt>
        <dd>{customerUserId}</dd>
        <dt>Creator</dt>
        <dd>{creator.name}</dd>
        <dt>Since</dt>
        <dd>{formatInstant(from)}</dd>
        <dt>Until now</dt>
        <dd>
          <b>{earnsText(data)}</b>, net of refunds
        </dd>
      </dl>
      <Text size="sm">
        The commissions are booked at once, by the policy at the time of each payment, or by the present rate.
        Their hold period began with the payment, so they may be due now. This cannot be undone: later, only
        payments from then on can be given to somebody else.
      </Text>
      {change.error !== null && !isChanged(change.error) && <ErrorBox error={change.error} />}
      <Group justify="flex-end">
        {back}
        <Button loading={change.isPending || preview.isFetching} onClick={book}>
          {data.payments === 0 ? 'Attribute' : `Attribute and book ${formatMoney(data.earnedCents)}`}
        </Button>
      </Group>
    </Stack>
  );
}
