import { Problem } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { lateWork } from './late-work.ts';

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

/** Returns a cause of the service as a sentence. */
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** Returns what waits for exchange rates, as the start of a sentence. */
function waiting(gaps: InstallationState['rateGaps']): string {
  const hasPayments = gaps.some(({ payments }) => payments > 0);
  const hasOthers = gaps.some(({ refundsAndDisputes }) => refundsAndDisputes > 0);
  const others = hasPayments ? 'Payments, refunds and disputes' : 'Refunds and disputes';
  return `${hasOthers ? others : 'Payments'} in ${gaps.map(({ currency }) => currency).join(', ')}`;
}

/** Returns whether the installation works, from its state. */
export function verdictOf({ readiness, backlog, rateGaps }: InstallationState): Verdict {
  const missing = (isOptional: boolean) =>
    readiness
      .filter(({ ok, optional }) => !ok && optional === isOptional)
      .map(({ name, detail }) => sentence(detail ?? `${name} is not available`));
  const down = missing(false);
  const degraded = [
    ...missing(true),
    ...lateWork(backlog),
    ...(rateGaps.length === 0
      ? []
      : [`${waiting(rateGaps)} wait for an exchange rate: import it with “tributary rates import”.`]),
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
