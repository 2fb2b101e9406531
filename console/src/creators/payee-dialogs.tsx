import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { AskToPay, watchRaise } from '../payouts/raise-form.tsx';
import { EMPTY, isComplete, PAYEE_LABELS, PayeeFields, payeeOf, RECEIVERS } from './payee-fields.tsx';
import type { Draft } from './payee-fields.tsx';
import { METHODS, PROBLEMS } from './payee-words.ts';
import { sayDone } from '../parts/toast.tsx';

type Creator = Schemas['ListedAffiliate'];
export type PayeeVersion = Schemas['PayeeVersion'];
type NewPayee = Schemas['NewPayee'];

/** What is open: a form, a question, or what is stored. */
export type OpenPayee = 'set' | 'remove' | 'erase' | 'show' | 'address';

/** What was opened, and the version that the page showed then. 0: none. It stays the same when the page learns of another one. */
export interface Opened {
  readonly kind: OpenPayee;
  readonly version: number;
}

interface Place {
  readonly appId: string;
  readonly creator: Creator;
}

/** The names of the answers that a change of the payee makes outdated. */
const outdatedBy = ({ appId, creator }: Place) =>
  [
    ['payee', appId, creator.id],
    ['creator', appId, creator.id],
  ] as const;

function useSetPayee(place: Place) {
  return useChange(
    async (body: NewPayee) =>
      await read(
        api.PUT('/apps/{appId}/affiliates/{affiliateId}/payee', {
          params: { path: { appId: place.appId, affiliateId: place.creator.id } },
          body,
        }),
      ),
    ...outdatedBy(place),
  );
}

interface StepProps extends Place {
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}

function SetForm({
  draft,
  onDraft,
  version,
  onNotRaised,
  onClose,
  ...place
}: StepProps & {
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
  readonly version: number;
}) {
  const change = useSetPayee(place);
  const errors = useFieldErrors(change.error, PAYEE_LABELS);
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(
          { ...payeeOf(draft), expectedVersion: version },
          {
            onSuccess: () => {
              sayDone('The payee is set. It counts after its wait.');
              onClose();
            },
            onError: watchRaise(onNotRaised),
          },
        );
      }}
    >
      <Stack>
        <PayeeFields draft={draft} onDraft={onDraft} errorAt={errors.at} />
        <Text size="sm" className="quiet">
          It does not count at once: the creator has time to notice a change. Until then, runs of payouts
          leave the creator out.
        </Text>
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" disabled={change.isPending} onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={change.isPending} disabled={!isComplete(draft)}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Remove({ version, onNotRaised, onClose, ...place }: StepProps & { readonly version: number }) {
  const change = useSetPayee(place);
  return (
    <Confirm
      action="Remove the payee"
      color="red.9"
      change={change}
      onConfirm={() =>
        change.mutate(
          { method: 'none', expectedVersion: version },
          { onSuccess: onClose, onError: watchRaise(onNotRaised) },
        )
      }
      onClose={onClose}
    >
      Payout runs leave the creator out for three days. After that, a run pays the creator without a
      recipient, if its terms include creators without a payee. To stop all payouts, block them. The creator
      goes on to earn. What was stored until now stays, and can be erased.
    </Confirm>
  );
}

function Erase({ onNotRaised, onClose, ...place }: StepProps) {
  const change = useChange(
    async () =>
      await read(
        api.DELETE('/apps/{appId}/affiliates/{affiliateId}/payees', {
          params: { path: { appId: place.appId, affiliateId: place.creator.id } },
        }),
      ),
    ...outdatedBy(place),
    ['payout-run-files', place.appId],
  );
  return (
    <Confirm
      action="Erase all recipients"
      color="red.9"
      change={change}
      onConfirm={() => change.mutate(undefined, { onSuccess: onClose, onError: watchRaise(onNotRaised) })}
      onClose={onClose}
    >
      Addresses, names and references of this creator are erased, those of earlier payees, too. The creator
      has no payee then. The files of payout runs that contain them are erased as a whole, also for the other
      creators in them: download these files first. This cannot be undone.
    </Confirm>
  );
}

function Show({ appId, creator, onNotRaised, onClose }: StepProps) {
  const payee = useQuery({
    queryKey: ['payee', appId, creator.id, 'whole'],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/affiliates/{affiliateId}/payee', {
          params: { path: { appId, affiliateId: creator.id } },
        }),
      ),
    // Kept no longer than it is shown.
    gcTime: 0,
    staleTime: 0,
  });
  const { data } = payee;
  const isHidden = data !== undefined && data.recipient === undefined && data.maskedRecipient !== null;
  useEffect(() => {
    if (isHidden) onNotRaised();
  }, [isHidden, onNotRaised]);
  if (payee.error !== null) return <ErrorBox error={payee.error} retry={() => void payee.refetch()} />;
  if (data === undefined) return <Waiting what="the payee" />;
  const { email, name, receiverType, reference } = data.recipient ?? {};
  const facts = [
    ['Method', METHODS[data.method]],
    ['Name', name],
    ['E-mail address', email],
    ['Receiver', receiverType && RECEIVERS[receiverType]],
    ['Reference', reference],
    ['Problem', data.recipientProblem && PROBLEMS[data.recipientProblem]],
  ] as const;
  return (
    <Stack>
      <dl className="facts">
        {facts.map(
          ([title, value]) =>
            typeof value === 'string' && (
              <div key={title} style={{ display: 'contents' }}>
                <dt>{title}</dt>
                <dd style={{ overflowWrap: 'anywhere' }}>{value}</dd>
              </div>
            ),
        )}
      </dl>
      <Group justify="flex-end">
        <Button variant="default" data-autofocus onClick={onClose}>
          Close
        </Button>
      </Group>
    </Stack>
  );
}

/** Lets codes go to an address that somebody has changed who may not pay. */
function ConfirmAddress({ onNotRaised, onClose, ...place }: StepProps) {
  const { appId, creator } = place;
  const change = useChange(
    async () => {
      const params = { path: { appId, affiliateId: creator.id } };
      const at = '/apps/{appId}/affiliates/{affiliateId}';
      await read(api.PATCH(at, { params, body: { email: creator.email } }));
      const { emailConfirmed } = await read(api.GET(at, { params }));
      if (emailConfirmed === false) onNotRaised();
      else onClose();
    },
    ...outdatedBy(place),
  );
  return (
    <Confirm
      action="Confirm the address"
      change={change}
      onConfirm={() => change.mutate(undefined)}
      onClose={onClose}
    >
      Ask the creator whether {creator.email} is theirs, in a way that you know. With codes that are mailed to
      it, the creator sets the own payee, seven days after the address was set at the earliest.
    </Confirm>
  );
}

const TITLES: Readonly<Record<OpenPayee, string>> = {
  set: 'Payee of',
  show: 'Payee of',
  remove: 'Remove the payee of',
  erase: 'Erase the payees of',
  address: 'Confirm the address of',
};

/** Sets, shows, removes or erases the payee of a creator, with a key that may pay. */
export function PayeeDialog({
  open,
  onClose,
  ...place
}: Place & {
  /** Null: closed. */
  readonly open: Opened | null;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(EMPTY);
  const close = () => {
    setDraft(EMPTY);
    onClose();
  };
  const step = ({ kind, version }: Opened, onNotRaised: () => void) => {
    const props = { ...place, onNotRaised, onClose: close };
    switch (kind) {
      case 'set':
        return <SetForm {...props} draft={draft} onDraft={setDraft} version={version} />;
      case 'remove':
        return <Remove {...props} version={version} />;
      case 'erase':
        return <Erase {...props} />;
      case 'show':
        return <Show {...props} />;
      case 'address':
        return <ConfirmAddress {...props} />;
    }
  };
  return (
    <Dialog
      isOpen={open !== null}
      onClose={close}
      title={`${open === null ? '' : TITLES[open.kind]} ${place.creator.name}`}
    >
      {open !== null && <AskToPay onCancel={close}>{(onNotRaised) => step(open, onNotRaised)}</AskToPay>}
    </Dialog>
  );
}
