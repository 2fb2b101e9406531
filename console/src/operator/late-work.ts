import { atLeast, formatCount, formatDuration } from '../format.ts';

/** What is looked at of the backlog in `GET /operator/state`. */
interface Backlog {
  readonly stuckDeliveries: number;
  readonly oldestUnfinishedSeconds: number;
  readonly oldestPayoutRequestSeconds: number;
  readonly oldestOverdueSeconds: number;
  readonly oldestUnhealedSeconds: number;
  readonly oldestDueWebhookSeconds: number;
}

/** Counts of the service end here. */
const MOST = 10_000;
const MINUTE = 60;

const counted = (number: number) => atLeast(formatCount(number), number >= MOST);

const late = (seconds: number, minutes: number, text: (time: string) => string): string[] =>
  seconds > minutes * MINUTE ? [text(formatDuration(seconds))] : [];

/** Returns what waits too long, by the limits of deploy/prometheus/alerts.yaml, each with what to do first. */
export function lateWork(backlog: Backlog): string[] {
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
