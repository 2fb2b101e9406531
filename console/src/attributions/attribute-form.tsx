import { Button, Group, Radio, Stack, Text } from '@mantine/core';
import { formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { CreatorSelect } from '../parts/creator-select.tsx';
import type { ChosenCreator } from '../parts/creator-select.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { ATTRIBUTION_LABELS, ReasonField } from './fields.tsx';
import { PAYERS, useAttribute, usePreview } from './queries.ts';
import type { ManualAttribution, Preview, UnattributedPayment } from './queries.ts';

export interface Draft {
  readonly creator: ChosenCreator | null;
  readonly reason: string;
  /** Which payments belong to the creator: from the unattributed one on, or from now on. */
  readonly since: 'payment' | 'now';
}

const DAY_MS = 86_400_000;
const MOST_DAYS_BACK = 365;
/** How far behind that of the service the clock of the browser may be, ms. */
const CLOCKS_MS = 3_600_000;

/** Whether the service attributes payments from that instant on. */
const canReachBack = (at: number) => at > Date.now() - MOST_DAYS_BACK * DAY_MS + CLOCKS_MS;

/** Returns an instant that the service accepts: the preview also says whether the user belongs to somebody. The same on every call of a day. */
const previewedFrom = (occurredAt: number): number =>
  canReachBack(occurredAt) ? occurredAt : Math.floor(Date.now() / DAY_MS - 1) * DAY_MS;

/** Returns what payments would earn: "3 payments earn $6.00". */
export const earnsText = ({ payments, earnedCents }: Preview): string =>
  payments === 0
    ? 'no payment earns anything'
    : `${formatCountOf(payments, 'payment')} ${payments === 1 ? 'earns' : 'earn'} ${formatMoney(earnedCents)}`;

/** Says what can still be done for a payer who belongs to somebody. */
export function OwnedNote({
  payer,
  affiliateName,
}: Pick<UnattributedPayment, 'payer'> & { readonly affiliateName: string | null }) {
  return (
    <Text size="sm" role="status">
      {affiliateName === null ? (
        <>
          This {PAYERS[payer]} <b>belongs to a creator already</b>, or did before.
        </>
      ) : (
        <>
          This {PAYERS[payer]} belongs to <b>{affiliateName}</b>.
        </>
      )}{' '}
      Only payments from now on can be given to another creator. What was earned stays, and earlier payments
      without a commission stay without one. To settle those, add a bonus for one creator, and a deduction for
      the other, on their pages.
    </Text>
  );
}

/** Asks from which payment on the user belongs to the creator. */
function SinceField({
  occurredAt,
  creator,
  preview,
  since,
  onChange,
}: {
  readonly occurredAt: number;
  readonly creator: ChosenCreator | null;
  readonly preview: Preview | undefined;
  readonly since: Draft['since'];
  readonly onChange: (since: Draft['since']) => void;
}) {
  const isOld = !canReachBack(occurredAt);
  const sum =
    creator === null || preview === undefined
      ? 'You see what they earn before anything is booked.'
      : `So far, ${earnsText(preview)} for ${creator.name}.`;
  return (
    <Radio.Group
      label="Which payments"
      value={isOld ? 'now' : since}
      onChange={(value) => onChange(value === 'now' ? 'now' : 'payment')}
    >
      <Stack gap="sm" mt={6}>
        <Radio
          value="payment"
          disabled={isOld}
          label={`This payment and those after it, since ${formatInstant(occurredAt)}`}
          description={
            isOld
              ? `The payment is more than ${MOST_DAYS_BACK} days old. Settle it with a bonus on the page of the creator.`
              : `${sum} Needs a key that may pay.`
          }
        />
        <Radio
          value="now"
          label="Only payments from now on"
          description="Earlier ones, also this one, stay without a commission."
        />
      </Stack>
    </Radio.Group>
  );
}

/** Asks to whom the payer belongs, from when on, and why. */
export function AttributeForm({
  appId,
  payment: { customerUserId, payer, occurredAt },
  draft: { creator, reason, since },
  onDraft,
  onEarlier,
  onWritten,
  onClose,
}: {
  readonly appId: string;
  readonly payment: UnattributedPayment;
  readonly draft: Draft;
  readonly onDraft: (changed: Partial<Draft>) => void;
  /** Called to go on with earlier payments. */
  readonly onEarlier: () => void;
  readonly onWritten: (attribution: ManualAttribution) => void;
  readonly onClose: () => void;
}) {
  const preview = usePreview(appId, {
    customerUserId,
    affiliateId: creator?.id,
    from: previewedFrom(occurredAt),
  });
  const owner = preview.data?.owner ?? null;
  const isEarlier = since === 'payment' && owner === null && canReachBack(occurredAt);
  const { change, onError } = useAttribute(appId, {
    customerUserId,
    affiliateId: creator?.id ?? null,
    reason,
  });
  const errors = useFieldErrors(change.error, ATTRIBUTION_LABELS);
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        if (isEarlier) onEarlier();
        else change.mutate(undefined, { onSuccess: onWritten, onError });
      }}
    >
      <Stack>
        {payer !== 'user' && (
          <Text size="sm">
            No user is known. Instead, this {PAYERS[payer]} belongs to the creator, with all its payments,
            also once its user signs in: <span className="code-text">{customerUserId}</span>
          </Text>
        )}
        <CreatorSelect appId={appId} value={creator} onChange={(chosen) => onDraft({ creator: chosen })} />
        {owner === null ? (
          <SinceField
            occurredAt={occurredAt}
            creator={creator}
            preview={preview.data}
            since={since}
            onChange={(chosen) => onDraft({ since: chosen })}
          />
        ) : (
          <OwnedNote payer={payer} affiliateName={owner.affiliateName} />
        )}
        <ReasonField
          field={errors.at('reason')}
          value={reason}
          onChange={(text) => onDraft({ reason: text })}
        />
        {preview.error !== null && change.error === null && (
          <ErrorBox error={preview.error} retry={() => void preview.refetch()} />
        )}
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            loading={change.isPending}
            disabled={creator === null || reason.trim() === '' || (preview.data === undefined && isEarlier)}
          >
            {owner !== null ? 'Give later payments' : isEarlier ? 'Continue' : 'Attribute'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
