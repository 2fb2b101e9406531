import { Problem } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { atLeast, formatCount, formatDuration } from '../format.ts';

type InstallationState = Schemas['InstallationState'];

/** Whether the installation works, and what to do first. */
export interface Verdict {
  readonly tone: 'good' | 'wait' | 'bad';
  readonly word: 'Well' | 'Degraded' | 'Down';
  /** A sentence. */
  readonly text: string;
  /** How many other things need somebody. */
  readonly others: number;
}

/** Counts of the service end here. */
const MOST = 10_000;
const MINUTE = 60;

const counted = (number: number) => atLeast(formatCount(number), number >= MOST);

/** Returns a cause of the service as a sentence. */
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

const late = (seconds: number, minutes: number, text: (time: string) => string): string[] =>
  seconds > minutes * MINUTE ? [text(formatDuration(seconds))] : [];

/** Returns what waits too long, by the limits of deploy/prometheus/alerts.yaml, each with what to do first. */
function lateWork(backlog: InstallationState['backlog']): string[] {
  return [
    ...(backlog.stuckDeliveries > 0
      ? [
          `${backlog.stuckDeliveries === 1 ? '1 delivery is' : `${counted(backlog.stuckDeliveries)} deliveries are`} retried because a step fails: look at the cause under “Stuck deliveries”.`,
        ]
      : []),
    ...late(
      backlog.oldestUnfinishedSeconds,
      5,
      (time) =>
        `A delivery has had no outcome for ${time}: look at whether a process with a worker runs, and at its log.`,
    ),
    ...late(
      backlog.oldestPayoutRequestSeconds,
      5,
      (time) => `An export of a payout has been open for ${time}: look at the workflow “sweep” in Temporal.`,
    ),
    ...late(
      backlog.oldestOverdueSeconds,
      10,
      (time) => `A commission is ${time} overdue: look at the workflow “sweep” in Temporal.`,
    ),
    ...late(
      backlog.oldestUnhealedSeconds,
      15,
      (time) =>
        `Earlier payments of a user have waited for ${time}: look at the “heal” workflows in Temporal.`,
    ),
    ...late(
      backlog.oldestDueWebhookSeconds,
      15,
      (time) => `A webhook to an endpoint has been due for ${time}: look at the log of the workers.`,
    ),
  ];
}

/** Returns whether the installation works, from its state. */
export function verdictOf({ readiness, backlog, rateGaps }: InstallationState): Verdict {
  const missing = (isOptional: boolean) =>
    readiness
      .filter(({ ok, optional }) => !ok && optional === isOptional)
      .map(({ name, detail }) => sentence(detail ?? `${name} is not available`));
  const down = missing(false);
  const currencies = rateGaps.map(({ currency }) => currency).join(', ');
  const degraded = [
    ...missing(true),
    ...lateWork(backlog),
    ...(currencies === ''
      ? []
      : [`Payments in ${currencies} wait for an exchange rate: import it with “tributary rates import”.`]),
  ];
  const [first, ...others] = [...down, ...degraded];
  if (first === undefined)
    return {
      tone: 'good',
      word: 'Well',
      text: 'Everything that the service needs is available, and nothing waits too long.',
      others: 0,
    };
  return down.length > 0
    ? { tone: 'bad', word: 'Down', text: first, others: others.length }
    : { tone: 'wait', word: 'Degraded', text: first, others: others.length };
}

/** Returns what a failed query of the state says about the installation. Null if it says nothing. */
export function verdictOfError(error: Error): Verdict | null {
  if (!(error instanceof Problem) || (error.status !== 0 && error.status < 500)) return null;
  return {
    tone: 'bad',
    word: 'Down',
    text:
      error.status === 0
        ? 'The service does not respond: look at whether its process runs, and at your connection.'
        : 'The service cannot read its state: look at its log, and at GET /readyz on METRICS_PORT.',
    others: 0,
  };
}
