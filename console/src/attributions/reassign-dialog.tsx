import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { Dialog } from '../dialog.tsx';
import { CreatorSelect } from '../parts/creator-select.tsx';
import type { ChosenCreator } from '../parts/creator-select.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { ATTRIBUTION_LABELS, ReasonField } from './fields.tsx';
import { useAttribute } from './queries.ts';
import type { ManualAttribution } from './queries.ts';

/** A user whose later payments are given to another creator, or to nobody. */
export interface Reassigning {
  readonly attribution: ManualAttribution;
  readonly isTaken: boolean;
}

function Form({
  appId,
  reassigning: { attribution, isTaken },
  onClose,
}: {
  readonly appId: string;
  readonly reassigning: Reassigning;
  readonly onClose: () => void;
}) {
  const { customerUserId, affiliateId, affiliateName } = attribution;
  const [creator, setCreator] = useState<ChosenCreator | null>(null);
  const [reason, setReason] = useState('');
  const { change, onError } = useAttribute(appId, {
    customerUserId,
    affiliateId: isTaken ? null : (creator?.id ?? null),
    reason,
  });
  const errors = useFieldErrors(change.error, ATTRIBUTION_LABELS);
  const isSame = creator !== null && creator.id === affiliateId;
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(undefined, { onSuccess: onClose, onError });
      }}
    >
      <Stack>
        <Text size="sm">
          {isTaken ? 'Payments from now on belong to nobody.' : 'Only payments from now on change.'}{' '}
          {affiliateName !== null &&
            `What ${affiliateName} earned stays, and a refund of it is taken back from ${affiliateName}.`}
        </Text>
        {!isTaken && <CreatorSelect appId={appId} value={creator} onChange={setCreator} />}
        {isSame && (
          <Text size="sm" role="alert">
            The user belongs to {affiliateName} already.
          </Text>
        )}
        <ReasonField field={errors.at('reason')} value={reason} onChange={setReason} />
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            {...(isTaken ? { color: 'red.9' } : {})}
            loading={change.isPending}
            disabled={reason.trim() === '' || (!isTaken && (creator === null || isSame))}
          >
            {isTaken ? 'Take away' : 'Give later payments'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Gives the later payments of a user to another creator, or to nobody. Closed without one. */
export function ReassignDialog({
  appId,
  reassigning,
  onClose,
}: {
  readonly appId: string;
  readonly reassigning: Reassigning | null;
  readonly onClose: () => void;
}) {
  const title = () => {
    if (reassigning === null) return '';
    const { attribution, isTaken } = reassigning;
    return isTaken
      ? `Take ${attribution.customerUserId} from ${attribution.affiliateName}`
      : `Give ${attribution.customerUserId} to ${attribution.affiliateId === null ? 'a' : 'another'} creator`;
  };
  return (
    <Dialog isOpen={reassigning !== null} onClose={onClose} title={title()}>
      {reassigning !== null && <Form appId={appId} reassigning={reassigning} onClose={onClose} />}
    </Dialog>
  );
}
