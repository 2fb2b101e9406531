import type { AlertFacts, AlertRule } from './alerts.ts';
import { DAY_MS, HOUR_MS } from './time.ts';

/** A message about an alert, as the database has it. */
interface AlertMessage {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What a text says besides its message. */
export interface AlertTextContext {
  readonly appName: string;
  /** The address of the page with the alerts of the app. Null if the address of the service is not known. */
  readonly pageUrl: string | null;
  /** Returns the name of a provider as people know it. */
  readonly titleOf: (provider: string) => string;
}

/** Returns a text in which Slack finds no mention and no link. */
const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const numberOf = (facts: AlertFacts, name: string): number => {
  const value = facts[name];
  return typeof value === 'number' ? value : 0;
};

/** Returns a span of at least two hours in whole hours, or in whole days from two days on. */
const span = (ms: number): string =>
  ms >= 2 * DAY_MS ? `${Math.floor(ms / DAY_MS)} days` : `${Math.floor(ms / HOUR_MS)} hours`;

const percent = (bps: number) => `${Math.round(bps / 10) / 10} %`;
const dollars = (cents: number) => `$${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;

type Sentence = (
  subject: string,
  facts: AlertFacts,
  at: number,
  titleOf: (provider: string) => string,
) => string;

/** What each rule says when an alert opens: what is so, and what to do. */
const OPENED: Readonly<Record<AlertRule, Sentence>> = {
  provider_silent: (provider, facts, at, titleOf) =>
    `No webhook of ${titleOf(provider)} was accepted for ${span(at - numberOf(facts, 'lastAcceptedAt'))}. Look at the page of webhooks in its dashboard.`,
  deliveries_failing: (provider, facts, _, titleOf) =>
    `${numberOf(facts, 'failing')} webhooks of ${titleOf(provider)} failed or cannot be processed. Look at the deliveries.`,
  webhooks_refused: (provider, facts, _, titleOf) =>
    `${numberOf(facts, 'refused')} requests in the name of ${titleOf(provider)} were refused. Compare the secret with that of its dashboard.`,
  draft_waiting: (_, facts) =>
    `${facts['scheduledMonth'] === undefined ? 'A payout run' : 'The payout run of the schedule'} of ${dollars(numberOf(facts, 'totalCents'))} waits for your approval. Approve it or cancel it.`,
  run_stalled: (_, facts) =>
    `A payout run of ${dollars(numberOf(facts, 'totalCents'))} is approved, and was not paid any further for an hour. Ask the operator of the service.`,
  many_refunds: (_, facts) =>
    `${percent(numberOf(facts, 'refundBps'))} of the revenue of the last 7 days was refunded, and ${percent(numberOf(facts, 'usualBps'))} of that of 28 days. Look at the events, and at the creators who brought the payments.`,
  ledger_violated: (_, facts) =>
    `A check of the ledger found rows that break a rule: ${numberOf(facts, 'violations')}. Pay nobody before the operator of the service has looked at it.`,
  endpoint_failing: (_, facts) => {
    const [what, repair] =
      facts['kind'] === 'slack'
        ? ['The Slack URL', 'Set it again.']
        : ['An endpoint of your webhooks', 'Repair it, then activate it again.'];
    return facts['deactivatedAt'] === null
      ? `${what} does not accept messages. Look at the attempts.`
      : `${what} did not accept messages and was deactivated. ${repair}`;
  },
};

/** What each rule says when an alert closes. */
const CLOSED: Readonly<
  Record<AlertRule, (subject: string, titleOf: (provider: string) => string) => string>
> = {
  provider_silent: (provider, titleOf) => `${titleOf(provider)} sends webhooks again, or was disconnected.`,
  deliveries_failing: (provider, titleOf) =>
    `No webhook of ${titleOf(provider)} failed within the last hour.`,
  webhooks_refused: (provider, titleOf) =>
    `No request in the name of ${titleOf(provider)} was refused any more.`,
  draft_waiting: () => 'The payout run does not wait for your approval any more.',
  run_stalled: () => 'The payout run goes on, or has ended.',
  endpoint_failing: () => 'It accepts messages again, or somebody changed or deleted it.',
  many_refunds: () => 'Of the revenue of the last 7 days, at most 2.5 % was refunded, or no more than usual.',
  ledger_violated: () => 'The ledger was checked again, and no row breaks a rule.',
};

/** Returns what an alert says when it opens: what is so, and what to do. `subject` is the name of a provider as people know it, or an id. */
export function openedText(
  {
    rule,
    subject,
    facts,
  }: { readonly rule: AlertRule; readonly subject: string; readonly facts: AlertFacts },
  at: number,
): string {
  return OPENED[rule](subject, facts, at, (name) => name);
}

/** Returns what an alert says when it closes. `subject` is the name of a provider as people know it, or an id. */
export function closedText({
  rule,
  subject,
}: {
  readonly rule: AlertRule;
  readonly subject: string;
}): string {
  return CLOSED[rule](subject, (name) => name);
}

/**
 * Returns the text of a message about an alert, or of a test message, as Slack shows it. It depends on nothing else, so that each attempt
 * at a message has the same.
 */
export function alertText({ type, data }: AlertMessage, context: AlertTextContext): string {
  const { appName, pageUrl, titleOf } = context;
  const { rule, subject, facts, openedAt } = data as {
    readonly rule: AlertRule;
    readonly subject: string;
    readonly facts: AlertFacts;
    readonly openedAt: number;
  };
  const sentence =
    type === 'alert.opened'
      ? OPENED[rule](subject, facts, openedAt, titleOf)
      : type === 'alert.closed'
        ? `Resolved: ${CLOSED[rule](subject, titleOf)}`
        : 'This is a test message. Alerts will appear here.';
  const link = pageUrl === null ? '' : ` ${pageUrl}`;
  return `${escaped(`${appName}: ${sentence}`)}${link}`;
}
