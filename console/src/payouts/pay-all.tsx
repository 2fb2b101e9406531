import { Alert, Anchor, Button, Group, Progress, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { Link } from 'react-router';
import { KEYS } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { formatCount, formatCountOf, formatMoney, formatNames } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { useCurrentSession } from '../session.ts';
import { findAttempt } from './attempts.ts';
import type { Scope } from './attempts.ts';
import { SaveLink } from './pay-dialog.tsx';
import type { Payment } from './pay-dialog.tsx';
import { pay } from './pay.ts';
import type { Outcome } from './pay.ts';
import { isRaised, RaiseForm } from './raise-form.tsx';

type Outcomes = ReadonlyMap<string, Outcome>;

/** Whether the outcome of a payment is known, so that it is not sent again. */
const isSettled = (outcome: Outcome | undefined): boolean =>
  outcome?.kind === 'paid' || outcome?.kind === 'not_paid' || outcome?.kind === 'other_waits';

/** Whether the next payment would have no other outcome, so that the run ends. */
const endsRun = ({ kind }: Outcome): boolean =>
  kind === 'not_raised' || kind === 'unknown' || kind === 'refused';

function Result({
  appId,
  outcome,
  isPaying,
  isWaiting,
}: {
  readonly appId: string;
  readonly outcome: Outcome | undefined;
  readonly isPaying: boolean;
  /** Whether the payment was sent before and has no answer. */
  readonly isWaiting: boolean;
}) {
  if (isPaying) return <Tag tone="wait">Paying …</Tag>;
  switch (outcome?.kind) {
    case undefined:
    case 'not_raised':
      return isWaiting ? (
        <Text size="xs">Sent before, without an answer. Sending it again pays it once.</Text>
      ) : (
        <span className="quiet">not paid yet</span>
      );
    case 'paid':
      return (
        <>
          <Tag tone="good">Paid</Tag> {outcome.payout.moreDue && `${formatMoney(outcome.payout.totalCents)} `}
          <Anchor component={Link} to={`/apps/${appId}/payouts/${outcome.payout.payoutId}`} size="sm">
            Open
          </Anchor>{' '}
          <SaveLink file={outcome.payout.csv} name={`${outcome.payout.payoutId}.csv`}>
            CSV
          </SaveLink>
          {outcome.payout.moreDue && (
            <Text size="xs" className="quiet">
              More is due than one payout takes: pay again.
            </Text>
          )}
        </>
      );
    case 'refused':
    case 'not_paid':
      return (
        <>
          <Tag tone="bad">Not paid</Tag>
          <Text size="xs">{outcome.error.message}</Text>
        </>
      );
    case 'other_waits':
      return (
        <>
          <Tag tone="wait">Not sent</Tag>
          <Text size="xs">
            A payment of {formatMoney(outcome.attempt.expectedTotalCents)} was sent before, without an answer.
            Finish it first.
          </Text>
        </>
      );
    case 'unknown':
      return (
        <>
          <Tag tone="wait">Not known yet</Tag>
          <Text size="xs">{outcome.error.message} Go on to send it again: it is paid at most once.</Text>
        </>
      );
  }
}

function Payments({
  scope,
  payments,
  outcomes,
  paying,
}: {
  readonly scope: Scope;
  readonly payments: readonly Payment[];
  readonly outcomes: Outcomes;
  /** The creator who is being paid. */
  readonly paying: string | null;
}) {
  return (
    <table className="rows">
      <thead>
        <tr>
          <th scope="col">Creator</th>
          <th scope="col" className="number">
            Rows
          </th>
          <th scope="col" className="number">
            Total
          </th>
          <th scope="col">Result</th>
        </tr>
      </thead>
      <tbody>
        {payments.map((payment) => (
          <tr key={payment.affiliateId}>
            <td>{payment.affiliateName}</td>
            <td className="number" data-name="Rows">
              {formatCount(payment.count)}
            </td>
            <td className="number" data-name="Total">
              {formatMoney(payment.expectedTotalCents)}
            </td>
            <td>
              <Result
                appId={scope.appId}
                outcome={outcomes.get(payment.affiliateId)}
                isPaying={paying === payment.affiliateId}
                isWaiting={findAttempt(scope, payment.affiliateId) !== null}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Done({ outcomes }: { readonly outcomes: Outcomes }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => ref.current?.focus(), []);
  const results = [...outcomes.values()];
  const paid = results.filter((outcome) => outcome.kind === 'paid');
  const total = paid.reduce((sum, { payout }) => sum + payout.totalCents, 0);
  const unfinished = paid.filter(({ payout }) => payout.moreDue).map(({ attempt }) => attempt.affiliateName);
  const others = results.length - paid.length;
  return (
    <Alert
      ref={ref}
      tabIndex={-1}
      role="status"
      color={others === 0 && unfinished.length === 0 ? 'teal' : 'yellow'}
      variant="light"
      title={`${formatMoney(total)} are marked as paid to ${formatCountOf(paid.length, 'creator')}`}
    >
      <Text size="sm">
        {others > 0 && `${formatCountOf(others, 'creator')} not paid: the list says why. `}Now transfer the
        money yourself, with the CSV files as the statements. They stay on the pages of the payouts.
      </Text>
      {unfinished.length > 0 && (
        <Text size="sm" mt={6}>
          More is due to {formatNames(unfinished)} than one payout takes: pay again until nothing remains.
        </Text>
      )}
    </Alert>
  );
}

/**
 * Pays several creators one after the other, each by a request of its own that is stored before it is sent. A reload or a
 * lost answer leaves at most one of them without an outcome; those that were not sent are still due.
 */
function PayAllSteps({
  scope,
  payments: asked,
  onClose,
  onRunning,
}: {
  readonly scope: Scope;
  readonly payments: readonly Payment[];
  readonly onClose: () => void;
  readonly onRunning: (isRunning: boolean) => void;
}) {
  const client = useQueryClient();
  const session = useCurrentSession();
  const [needsKey, setNeedsKey] = useState(() => !isRaised(session));
  // What was sent without an answer is what is sent again, whatever is due by now. What is shown is what is paid.
  const [payments] = useState(() => asked.map((row) => findAttempt(scope, row.affiliateId) ?? row));
  const [outcomes, setOutcomes] = useState<Outcomes>(new Map());
  const [paying, setPaying] = useState<string | null>(null);
  const [failure, setFailure] = useState<Error | null>(null);
  const [stopsNext, setStopsNext] = useState(false);
  const [waitSeconds, setWaitSeconds] = useState(0);
  useEffect(() => {
    if (waitSeconds === 0) return;
    const timer = setTimeout(() => setWaitSeconds(waitSeconds - 1), 1_000);
    return () => clearTimeout(timer);
  }, [waitSeconds]);
  const list = useRef<HTMLDivElement>(null);
  // A second press comes before the page is drawn again.
  const isRunning = useRef(false);
  const isStopping = useRef(false);
  // A closed dialog sends no further payment.
  useEffect(
    () => () => {
      isStopping.current = true;
    },
    [],
  );

  const run = async () => {
    if (isRunning.current) return;
    isRunning.current = true;
    isStopping.current = false;
    setStopsNext(false);
    setFailure(null);
    onRunning(true);
    const known = new Map(outcomes);
    try {
      for (const payment of payments) {
        if (isStopping.current) break;
        if (isSettled(known.get(payment.affiliateId))) continue;
        setPaying(payment.affiliateId);
        // One after the other: the first answer that is lost ends the run.
        // oxlint-disable-next-line no-await-in-loop
        const outcome = await pay(scope, payment);
        known.set(payment.affiliateId, outcome);
        setOutcomes(new Map(known));
        if (outcome.kind === 'not_raised') {
          setNeedsKey(true);
          // oxlint-disable-next-line no-await-in-loop
          await client.invalidateQueries({ queryKey: KEYS.session });
        }
        if (outcome.kind === 'refused') setWaitSeconds(outcome.retryAfterSeconds);
        if (endsRun(outcome)) break;
      }
    } catch (error) {
      setFailure(error as Error);
    } finally {
      isRunning.current = false;
      setPaying(null);
      onRunning(false);
    }
    // Everything that shows money of this app.
    await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey.includes(scope.appId) });
  };

  const settled = payments.filter(({ affiliateId }) => isSettled(outcomes.get(affiliateId))).length;
  const isOver = settled === payments.length;
  const isPaying = paying !== null;
  let step = isOver ? 'over' : 'idle';
  if (isPaying) step = 'paying';
  if (needsKey) step = 'key';
  const lastStep = useRef(step);
  useEffect(() => {
    if (lastStep.current === step) return;
    lastStep.current = step;
    // The button that was pressed is gone or waits. `RaiseForm` and `Done` take the focus themselves.
    if (step === 'idle' || step === 'paying') list.current?.focus();
  }, [step]);

  if (needsKey) return <RaiseForm onRaised={() => setNeedsKey(false)} onCancel={onClose} />;
  const rest = payments.filter(({ affiliateId }) => !isSettled(outcomes.get(affiliateId)));
  const total = formatMoney(rest.reduce((sum, row) => sum + row.expectedTotalCents, 0));
  return (
    <Stack>
      {outcomes.size === 0 && (
        <Text size="sm">
          The commissions are marked as paid, one creator after the other. <b>This cannot be undone.</b> The
          service moves no money: you transfer it.
        </Text>
      )}
      {isOver && <Done outcomes={outcomes} />}
      {paying !== null && (
        <div role="status">
          <Text size="sm" mb={6}>
            {formatCount(settled)} of {formatCount(payments.length)} done. Keep this page open.
          </Text>
          <Progress value={(100 * settled) / payments.length} aria-label="Creators done" />
        </div>
      )}
      {failure !== null && <ErrorBox error={failure} />}
      <div className="surface" ref={list} tabIndex={-1} role="group" aria-label="Payments">
        <Payments scope={scope} payments={payments} outcomes={outcomes} paying={paying} />
      </div>
      <Group justify="flex-end">
        {paying !== null && (
          <Button
            variant="default"
            onClick={() => {
              isStopping.current = true;
              setStopsNext(true);
            }}
          >
            {stopsNext ? 'Stops after this one' : 'Stop after this one'}
          </Button>
        )}
        {paying === null && !isOver && (
          <Button variant="default" onClick={onClose} data-autofocus>
            {outcomes.size === 0 ? 'Cancel' : 'Close'}
          </Button>
        )}
        {isOver ? (
          <Button onClick={onClose}>Done</Button>
        ) : (
          <Button loading={isPaying} disabled={waitSeconds > 0} onClick={() => void run()}>
            {outcomes.size === 0
              ? `Pay ${formatCountOf(rest.length, 'creator')} ${total}`
              : waitSeconds > 0
                ? `Go on in ${formatCount(waitSeconds)} s`
                : `Go on with ${formatCount(rest.length)}`}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

/** Pays all creators of the preview after one confirmation. */
export function PayAllDialog({
  scope,
  payments,
  onClose,
}: {
  readonly scope: Scope;
  readonly payments: readonly Payment[] | null;
  readonly onClose: () => void;
}) {
  const [isRunning, setIsRunning] = useState(false);
  return (
    <Dialog
      isOpen={payments !== null}
      onClose={onClose}
      title="Pay all creators"
      size="lg"
      isHeld={isRunning}
    >
      {payments !== null && (
        <PayAllSteps scope={scope} payments={payments} onClose={onClose} onRunning={setIsRunning} />
      )}
    </Dialog>
  );
}
