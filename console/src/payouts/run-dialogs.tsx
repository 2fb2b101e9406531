import { Alert, Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatCount, formatCountOf, formatInstant, formatMoney } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { PAYOUT_KEYS } from './keys.ts';
import { AskToPay, watchRaise } from './raise-form.tsx';
import { useMoneyChanged } from './runs.ts';
import { progressOf } from './words.ts';
import type { Run } from './words.ts';

/** What became of a call about a run that was refused, and what to do next. */
const REFUSALS: Readonly<Record<string, { readonly title: string; readonly next: string }>> = {
  total_changed: {
    title: 'Nothing was paid: the draft has another total',
    next: 'The total above is the present one. Look at who is paid again, then approve it.',
  },
  payout_run_not_possible: {
    title: 'Nothing was paid: this run cannot be approved any more',
    next: 'It was cancelled, replaced by a later draft, or not approved in time. Approve the latest draft, or draft a new one.',
  },
  another_approver_needed: {
    title: 'Nothing was paid: another key has to approve this run',
    next: 'Who drafted it, or lately set the schedule, a payee or the address of a creator in it, cannot approve it. Ask somebody with a key of their own, or change that in the settings.',
  },
  payout_run_in_progress: {
    title: 'Nothing was drafted: another draft is being made, or a run is being paid',
    next: 'Try again in a moment. If a run is being paid, draft again when it has ended. To end it now, open it and choose “Pay nobody further”.',
  },
  payout_run_not_settled: {
    title: 'Nothing was marked: the run is not settled',
    next: 'Wait until it has ended.',
  },
  payout_report_changed: {
    title: 'Nothing was marked: somebody has marked some of these payouts since',
    next: 'Choose the file again to see what it states now.',
  },
  payouts_stopped: {
    title: 'Nothing was paid: payouts are stopped',
    next: 'The operator of the service stopped them, or its database was restored. Ask the operator to allow payouts again, then approve this draft. It stays until then, or until it expires.',
  },
};

function Refusal({ appId, error }: { readonly appId: string; readonly error: Error }) {
  const refusal =
    error instanceof Problem && Object.hasOwn(REFUSALS, error.code) ? REFUSALS[error.code] : undefined;
  if (refusal === undefined) return <ErrorBox error={error} />;
  return (
    <Alert color="red" variant="light" role="alert" title={refusal.title}>
      <Text size="sm">{refusal.next}</Text>
      {error instanceof Problem && error.status === 409 && (
        <Anchor component={Link} to={`/apps/${appId}/payouts/runs`} size="sm">
          All payout runs
        </Anchor>
      )}
    </Alert>
  );
}

/** The steps of a dialog that calls the API about a run: what it does, its error, and the two buttons. */
export function Steps({
  appId,
  change: { error, isPending },
  keep,
  action,
  color,
  isOver = false,
  onSend,
  onClose,
  children,
}: {
  readonly appId: string;
  readonly change: { readonly error: Error | null; readonly isPending: boolean };
  /** The text of the button that changes nothing. */
  readonly keep: string;
  /** The text of the button that sends the call. */
  readonly action: string;
  readonly color?: 'red.9';
  /** Whether another call would be refused, too. */
  readonly isOver?: boolean;
  readonly onSend: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onSend();
      }}
    >
      <Stack>
        {children}
        {error !== null && <Refusal appId={appId} error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} disabled={isPending}>
            {isOver ? 'Close' : keep}
          </Button>
          {!isOver && (
            <Button type="submit" loading={isPending} {...(color === undefined ? {} : { color })}>
              {action}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}

interface StepProps {
  readonly appId: string;
  readonly run: Run;
  readonly onNotRaised: () => void;
  readonly onClose: () => void;
}

/** Returns a call about a run. Whatever comes of it, the run is read again. The dialog closes, unless the answer is `isTooLate`. */
function useRunCall(
  { appId, run, onNotRaised, onClose }: StepProps,
  call: () => Promise<Run>,
  isTooLate: (changed: Run) => boolean = () => false,
) {
  const client = useQueryClient();
  const moneyChanged = useMoneyChanged(appId);
  const change = useChange(call);
  const send = () =>
    change.mutate(undefined, {
      onSuccess: (changed) => {
        client.setQueryData(PAYOUT_KEYS.run(appId, run.id), changed);
        void moneyChanged();
        if (!isTooLate(changed)) onClose();
      },
      onError: (error) => {
        watchRaise(onNotRaised)(error);
        void moneyChanged();
      },
    });
  return { change, send };
}

function ApproveSteps(props: StepProps) {
  const { appId, run, onClose } = props;
  const { kind, itemCount, totalCents, asOf } = run;
  const isResend = kind === 'resend';
  const { change, send } = useRunCall(
    props,
    async () =>
      await read(
        api.POST('/apps/{appId}/payout-runs/{runId}/approve', {
          params: { path: { appId, runId: run.id } },
          body: { expectedTotalCents: totalCents },
        }),
      ),
  );
  // A call whose answer was lost, or another tab, has approved it.
  const isApproved = run.approvedAt !== null;
  useEffect(() => {
    if (isApproved) onClose();
  }, [isApproved, onClose]);
  const isOver = change.error instanceof Problem && change.error.code === 'payout_run_not_possible';
  return (
    <Steps
      appId={appId}
      change={change}
      keep="Cancel"
      action={
        isResend
          ? `Send ${formatCountOf(itemCount, 'payout')} again, ${formatMoney(totalCents)}`
          : `Pay ${formatCountOf(itemCount, 'creator')} ${formatMoney(totalCents)}`
      }
      isOver={isOver}
      onSend={send}
      onClose={onClose}
    >
      <dl className="facts">
        <dt>{isResend ? 'Payouts' : 'Creators'}</dt>
        <dd>{formatCount(itemCount)}</dd>
        <dt>Total</dt>
        <dd>
          <b>{formatMoney(totalCents)}</b>
        </dd>
        <dt>As of</dt>
        <dd>{formatInstant(asOf)}</dd>
      </dl>
      {isResend ? (
        <Text size="sm">
          The payouts are put into new files, which you upload at your payment services. The commissions stay
          as they are. Payouts that were sent meanwhile are left out.
        </Text>
      ) : (
        <>
          <Text size="sm">
            Each creator gets a payout, in which the commissions are booked. <b>This cannot be undone.</b> The
            service moves no money: you transfer it.
          </Text>
          <Text size="sm">
            Each creator is paid exactly the amount of the draft, or nothing. Creators who had a refund, a
            deduction or a payout after the draft are not paid by this run: they are in the next draft.
          </Text>
        </>
      )}
    </Steps>
  );
}

/** Whether a run goes on although it was to be cancelled: all of its money is in new files already. */
const goesOn = ({ status, stoppedAt }: Run) => status === 'approved' && stoppedAt === null;

function CancelSteps(props: StepProps) {
  const { appId, run, onClose } = props;
  const { change, send } = useRunCall(
    props,
    async () =>
      await read(
        api.POST('/apps/{appId}/payout-runs/{runId}/cancel', {
          params: { path: { appId, runId: run.id } },
        }),
      ),
    goesOn,
  );
  const isDraft = run.status === 'draft';
  const isTooLate = change.data !== undefined && goesOn(change.data);
  return (
    <Steps
      appId={appId}
      change={change}
      keep={isDraft ? 'Keep the draft' : 'Go on paying'}
      action={isDraft ? 'Cancel the draft' : 'Pay nobody further'}
      color="red.9"
      isOver={isTooLate}
      onSend={send}
      onClose={onClose}
    >
      <Text size="sm" role={isTooLate ? 'alert' : undefined}>
        {isTooLate
          ? 'Too late: the money is in new files already. Do not upload them, and ask your payment service where the money is.'
          : isDraft
            ? 'It has paid nobody. What is due stays due, and you can draft again at any time.'
            : `${progressOf(run)}. Payouts that were made stay, and those that have begun are finished. What is due to all others stays due and is in the next draft.`}
      </Text>
    </Steps>
  );
}

/** Approves or cancels a run. Asks for a key first if the session may not pay. */
export function RunDialog({
  appId,
  run,
  step,
  onClose,
}: {
  readonly appId: string;
  readonly run: Run;
  /** Null: closed. */
  readonly step: 'approve' | 'cancel' | null;
  readonly onClose: () => void;
}) {
  const title =
    step === 'approve'
      ? 'Approve the payout run'
      : run.status === 'draft'
        ? 'Cancel the draft?'
        : 'Pay nobody further?';
  const Step = step === 'approve' ? ApproveSteps : CancelSteps;
  return (
    <Dialog isOpen={step !== null} onClose={onClose} title={title}>
      {step !== null && (
        <AskToPay onCancel={onClose}>
          {(onNotRaised) => <Step appId={appId} run={run} onNotRaised={onNotRaised} onClose={onClose} />}
        </AskToPay>
      )}
    </Dialog>
  );
}
