import { Alert, Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client.ts';
import { KEYS } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { isNewPayee, payeeText, usePayee } from '../creators/use-payee.ts';
import { formatAgo, formatCount, formatInstant, formatMoney } from '../format.ts';
import { ErrorBox } from '../parts.tsx';
import { useCurrentSession } from '../session.ts';
import { closeAttempt, findAttempt } from './attempts.ts';
import type { Attempt, Scope } from './attempts.ts';
import { pay } from './pay.ts';
import type { Outcome, PaidPayout } from './pay.ts';
import { isRaised, RaiseForm } from './raise-form.tsx';

/** What a dialog pays: a row of the preview, or an attempt without an answer. */
export type Payment = Pick<Attempt, 'affiliateId' | 'affiliateName' | 'count' | 'expectedTotalCents'>;

/** Returns the payment of what is due to a creator. */
export const paymentOf = (row: Schemas['PayoutPreview']['rows'][number]): Payment => ({
  affiliateId: row.affiliateId,
  affiliateName: row.affiliateName,
  count: row.count,
  expectedTotalCents: row.totalCents,
});

/** A link that saves a file that the page holds. */
export function SaveLink({
  file,
  name,
  children,
}: {
  readonly file: Blob;
  readonly name: string;
  readonly children: ReactNode;
}) {
  const url = useMemo(() => URL.createObjectURL(file), [file]);
  useEffect(() => () => URL.revokeObjectURL(url), [url]);
  return (
    <Anchor href={url} download={name} size="sm">
      {children}
    </Anchor>
  );
}

/** Where the money of a payment goes. Nothing until it is known, and for who may not see it. */
function To({ appId, affiliateId }: { readonly appId: string; readonly affiliateId: string }) {
  const payee = usePayee(appId, affiliateId);
  if (payee.data === undefined) return null;
  const [latest] = payee.data.items;
  return (
    <>
      <dt>To</dt>
      <dd>
        {latest === undefined || latest.method === 'none' ? (
          <span className="quiet">
            No payee is noted. You can <Link to={`/apps/${appId}/creators/${affiliateId}`}>note one</Link>, or
            pay without.
          </span>
        ) : (
          <>
            {payeeText(latest)}
            {isNewPayee(latest) && (
              <Text size="xs" role="status">
                Set {formatAgo(latest.setAt)}, so no payout run pays it before{' '}
                {formatInstant(latest.countsFrom)}. Ask{' '}
                {latest.setBy === null ? 'the creator' : 'the one who set it'} before you transfer money.
              </Text>
            )}
          </>
        )}
      </dd>
    </>
  );
}

function Paid({
  payment,
  payout,
  appId,
  onClose,
}: {
  readonly payment: Payment;
  readonly payout: PaidPayout;
  readonly appId: string;
  readonly onClose: () => void;
}) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => ref.current?.focus(), []);
  return (
    <Stack>
      <Alert
        ref={ref}
        tabIndex={-1}
        role="status"
        color="teal"
        variant="light"
        title={
          payout.moreDue
            ? `${formatMoney(payout.totalCents)}, a first part, are booked for ${payment.affiliateName}`
            : `${formatMoney(payout.totalCents)} are booked for ${payment.affiliateName}`
        }
      >
        <Stack gap={6}>
          <Text size="sm">
            Now transfer the money yourself, with the CSV as the statement. Then mark the payout as sent on
            its page.
          </Text>
          {payout.moreDue && (
            <Text size="sm">More is due than one payout takes: pay again until nothing remains.</Text>
          )}
          <Group gap="md">
            <SaveLink file={payout.csv} name={`${payout.payoutId}.csv`}>
              Download the CSV
            </SaveLink>
            <Anchor component={Link} to={`/apps/${appId}/payouts/${payout.payoutId}`} size="sm">
              Open the payout
            </Anchor>
          </Group>
        </Stack>
      </Alert>
      <Group justify="flex-end">
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}

function Confirm({
  appId,
  payment,
  outcome,
  isPending,
  isWaiting,
  onPay,
  onClose,
}: {
  readonly appId: string;
  readonly payment: Payment;
  readonly outcome: Outcome | null;
  readonly isPending: boolean;
  /** Whether a request was sent before and has no answer. */
  readonly isWaiting: boolean;
  readonly onPay: () => void;
  readonly onClose: () => void;
}) {
  const total = formatMoney(payment.expectedTotalCents);
  return (
    <Stack>
      <dl className="facts">
        <dt>Creator</dt>
        <dd>{payment.affiliateName}</dd>
        <To appId={appId} affiliateId={payment.affiliateId} />
        <dt>Rows</dt>
        <dd>
          {payment.count === 1 ? '1 row of the ledger' : `${formatCount(payment.count)} rows of the ledger`}
        </dd>
        <dt>Total</dt>
        <dd>
          <b>{total}</b>
        </dd>
      </dl>
      <Text size="sm">
        The commissions are booked in a payout. <b>This cannot be undone.</b> The service moves no money: you
        transfer it.
      </Text>
      {isWaiting && outcome === null && !isPending && (
        <Alert color="yellow" variant="light" title="This payment was sent before, without an answer">
          <Text size="sm">
            Sending it again pays it once: if it was paid then, you get that payout. If it was not, it is paid
            now.
          </Text>
        </Alert>
      )}
      {outcome?.kind === 'other_waits' && (
        <Alert color="yellow" variant="light" role="alert" title="Another payment waits for its answer">
          <Text size="sm">
            Nothing was sent now. {formatMoney(outcome.attempt.expectedTotalCents)} to{' '}
            {outcome.attempt.affiliateName} were sent before, without an answer. Finish this payment first,
            then pay what is still due.
          </Text>
        </Alert>
      )}
      {outcome?.kind === 'unknown' && (
        <Alert color="yellow" variant="light" role="alert" title="It is not known yet whether this was paid">
          <Text size="sm">
            {outcome.error.message} Send it again: it is paid at most once, and you get the payout if there is
            one.
          </Text>
        </Alert>
      )}
      {(outcome?.kind === 'not_paid' || outcome?.kind === 'refused') && <ErrorBox error={outcome.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} data-autofocus>
          {outcome?.kind === 'not_paid' ? 'Close' : 'Cancel'}
        </Button>
        {outcome?.kind !== 'not_paid' && (
          <Button onClick={onPay} loading={isPending}>
            {outcome?.kind === 'unknown' || isWaiting ? 'Send it again' : `Pay ${total}`}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

/** Pays one creator after a confirmation. Asks for a key first if the session may not pay. */
export function PayDialog({
  scope,
  payment,
  onClose,
}: {
  readonly scope: Scope;
  readonly payment: Payment | null;
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      isOpen={payment !== null}
      onClose={onClose}
      title={payment === null ? '' : `Pay ${payment.affiliateName}`}
    >
      {payment !== null && (
        <PaySteps key={payment.affiliateId} scope={scope} payment={payment} onClose={onClose} />
      )}
    </Dialog>
  );
}

function PaySteps({
  scope,
  payment: asked,
  onClose,
}: {
  readonly scope: Scope;
  readonly payment: Payment;
  readonly onClose: () => void;
}) {
  const client = useQueryClient();
  const session = useCurrentSession();
  const [mustStepUp, setMustStepUp] = useState(() => !isRaised(session));
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [isPending, setIsPending] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  // A second press comes before the page is drawn again.
  const isSending = useRef(false);
  // What was sent without an answer is what is sent again, whatever is due by now.
  const waiting = findAttempt(scope, asked.affiliateId);
  const payment = waiting ?? asked;

  const send = async () => {
    if (isSending.current) return;
    isSending.current = true;
    setIsPending(true);
    setFailure(null);
    try {
      const result = await pay(scope, payment);
      setOutcome(result);
      if (result.kind === 'other_waits') return;
      if (result.kind === 'not_raised') {
        setMustStepUp(true);
        await client.invalidateQueries({ queryKey: KEYS.session });
      } else {
        // Everything that shows money of this app.
        await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey.includes(scope.appId) });
      }
    } catch (error) {
      setFailure(error as Error);
    } finally {
      isSending.current = false;
      setIsPending(false);
    }
  };

  if (outcome?.kind === 'paid')
    return <Paid payment={outcome.attempt} payout={outcome.payout} appId={scope.appId} onClose={onClose} />;
  if (mustStepUp) {
    return (
      <RaiseForm
        onRaised={() => {
          setMustStepUp(false);
          setOutcome(null);
        }}
        onCancel={onClose}
      />
    );
  }
  return (
    <>
      {failure !== null && <ErrorBox error={failure} />}
      <Confirm
        appId={scope.appId}
        payment={payment}
        outcome={outcome}
        isPending={isPending}
        isWaiting={waiting !== null}
        onPay={() => void send()}
        onClose={onClose}
      />
    </>
  );
}

/** How long after it was sent the service no longer pays a request, with room for slow clocks, ms. */
const SETTLED_AFTER_MS = 120_000;
const isOver = ({ startedAt }: Attempt) => Date.now() - startedAt > SETTLED_AFTER_MS;

/** The payments whose answer was lost. */
export function WaitingPayments({
  scope,
  attempts,
  onOpen,
}: {
  readonly scope: Scope;
  readonly attempts: readonly Attempt[];
  readonly onOpen: (payment: Payment) => void;
}) {
  if (attempts.length === 0) return null;
  return (
    <Alert color="yellow" variant="light" title="Payments without an answer" mb="lg">
      <Stack gap="xs">
        {attempts.map((attempt) => (
          <Group key={attempt.idempotencyKey} justify="space-between" gap="xs">
            <Text size="sm">
              {formatMoney(attempt.expectedTotalCents)} to {attempt.affiliateName}
            </Text>
            <Group gap={6}>
              <Button
                size="compact-sm"
                onClick={() => onOpen(attempt)}
                aria-label={`Finish the payment to ${attempt.affiliateName}`}
              >
                Finish
              </Button>
              {isOver(attempt) && (
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={`Forget the payment to ${attempt.affiliateName}`}
                  onClick={() => closeAttempt(scope, attempt)}
                >
                  Forget
                </Button>
              )}
            </Group>
          </Group>
        ))}
        <Text size="sm">
          If it was paid, it is in the history below. “Finish” sends the same request again, which pays it at
          most once.
        </Text>
      </Stack>
    </Alert>
  );
}
