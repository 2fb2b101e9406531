import { Checkbox, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useRetryKey } from '../api/idempotency.ts';
import { KEYS, useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { DollarField } from '../parts/number-field.tsx';
import type { Entered } from '../parts/number-field.tsx';
import { useCurrentSession } from '../session.ts';
import { AskToPay, isRaised, RaiseForm, watchRaise } from './raise-form.tsx';
import { Steps } from './run-dialogs.tsx';
import { useMoneyChanged } from './runs.ts';
import type { Run } from './words.ts';

const CENTS = 100;
/** The largest minimum that the service takes, dollars. */
const MOST_DOLLARS = 1_000_000;

/** What a draft is asked for. */
interface DraftTerms {
  readonly dollars: Entered;
  /** Whether it pays creators without a payee, too. */
  readonly isEverybody: boolean;
}

const NO_TERMS: DraftTerms = { dollars: '', isEverybody: true };

/** A run of everybody to whom something is due. */
const OF_EVERYBODY = { kind: 'pay', minimumCents: 0, withoutPayee: 'include' } as const;

/** Returns the call that drafts a run, and opens its page. */
export function useDraft(appId: string, body: Schemas['NewPayoutRun'], onNotRaised: () => void) {
  const navigate = useNavigate();
  const moneyChanged = useMoneyChanged(appId);
  const { key, onError } = useRetryKey(body);
  const draft = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/payout-runs', {
          params: { path: { appId }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
  );
  const send = () =>
    draft.mutate(undefined, {
      onSuccess: (run) => {
        void moneyChanged();
        void navigate(`/apps/${appId}/payouts/runs/${run.id}`);
      },
      onError: (error) => {
        onError(error);
        watchRaise(onNotRaised)(error);
        void moneyChanged();
      },
    });
  return { draft, send };
}

function DraftForm({
  appId,
  replaced,
  terms: { dollars, isEverybody },
  onTerms,
  onNotRaised,
  onClose,
}: {
  readonly appId: string;
  readonly replaced: Run | null;
  readonly terms: DraftTerms;
  readonly onTerms: (terms: DraftTerms) => void;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}) {
  const { draft, send } = useDraft(
    appId,
    {
      kind: 'pay',
      minimumCents: Math.round(Number(dollars) * CENTS),
      withoutPayee: isEverybody ? 'include' : 'exclude',
    },
    onNotRaised,
  );
  return (
    <Steps appId={appId} change={draft} keep="Cancel" action="Draft it" onSend={send} onClose={onClose}>
      <Text size="sm">
        A draft pays nothing. It lists who is paid how much, and who is left out and why. Then you approve it,
        or not.
      </Text>
      {replaced?.status === 'draft' && (
        <Text size="sm">
          It takes the place of the draft of {formatInstant(replaced.createdAt)}, which is then cancelled.
        </Text>
      )}
      <DollarField
        label="Leave out creators to whom less than this is due"
        description="In US dollars. Empty: leave out nobody for that."
        max={MOST_DOLLARS}
        placeholder="$0"
        data-autofocus
        value={dollars}
        onChange={(next) => onTerms({ dollars: next, isEverybody })}
      />
      <Checkbox
        label="Also pay creators without a payee"
        description="They are in a file of their own: you know how to reach them. A payee is set on the page of the creator."
        checked={isEverybody}
        onChange={(event) => onTerms({ dollars, isEverybody: event.currentTarget.checked })}
      />
    </Steps>
  );
}

/**
 * Returns what drafts a payout run of everybody and opens its page. A draft pays nothing, so it asks for nothing but a key, if the session
 * may not pay. `window` asks for it and says what failed; it must stay while `isShown`. If another run is open by then, `onOther` is called
 * instead: a draft would take its place.
 */
export function useDraftAtOnce(appId: string, hasOther: boolean, onOther: () => void) {
  const client = useQueryClient();
  const session = useCurrentSession();
  const [step, setStep] = useState<'asking' | 'failed' | null>(null);
  const { draft, send } = useDraft(appId, OF_EVERYBODY, () => {
    setStep('asking');
    void client.invalidateQueries({ queryKey: KEYS.session });
  });
  if (draft.error !== null && step === null) setStep('failed');
  const close = () => {
    setStep(null);
    draft.reset();
  };
  return {
    begin: () => {
      if (isRaised(session)) send();
      else setStep('asking');
    },
    isPending: draft.isPending,
    isShown: step !== null || draft.isPending,
    window: (
      <Dialog isOpen={step !== null} onClose={close} title="Draft a payout run">
        {step === 'asking' ? (
          <RaiseForm
            onRaised={() => {
              close();
              if (hasOther) onOther();
              else send();
            }}
            onCancel={close}
          />
        ) : (
          <Steps appId={appId} change={draft} keep="Cancel" action="Draft it" onSend={send} onClose={close}>
            <Text size="sm">A draft pays nothing. It lists who is paid how much.</Text>
          </Steps>
        )}
      </Dialog>
    ),
  };
}

/** Drafts a payout run and opens its page. Asks for a key first if the session may not pay. */
export function DraftDialog({
  appId,
  replaced,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  /** The draft that a new one replaces. */
  readonly replaced: Run | null;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const [terms, setTerms] = useState(NO_TERMS);
  const close = () => {
    setTerms(NO_TERMS);
    onClose();
  };
  return (
    <Dialog isOpen={isOpen} onClose={close} title="Draft a payout run">
      {isOpen && (
        <AskToPay onCancel={close}>
          {(onNotRaised) => (
            <DraftForm
              appId={appId}
              replaced={replaced}
              terms={terms}
              onTerms={setTerms}
              onNotRaised={onNotRaised}
              onClose={close}
            />
          )}
        </AskToPay>
      )}
    </Dialog>
  );
}
