/* What can be broken, and what the service must say meanwhile. How each is done is in the folder `faults`. */

/** What the service says while a fault lasts, and which processes say it. */
export type Sign =
  /** One of these checks of `/readyz` fails, within that time of the start. */
  | {
      readonly kind: 'check';
      readonly checks: readonly string[];
      readonly at: 'each process' | 'one process';
      readonly withinMs: number;
      /** True if `/readyz` must be 503, so that a balancer leaves the process out. */
      readonly isNotReady: boolean;
      /** True if the fault may miss a process, which then accepts webhooks as usual and says nothing. */
      readonly mayMiss?: true;
    }
  /** A process does not answer its health check, so a balancer leaves it out. */
  | { readonly kind: 'away'; readonly at: 'each process' | 'one process' }
  /**
   * Requests of one app get 503 with `Retry-After`, and the metric of requests counts them: `TributaryOverloaded`. Most of
   * those of another app succeed at each process.
   */
  | { readonly kind: 'fair refusals' }
  /** It is slower than usual or refuses, and the metrics of requests and of the event loop show it. */
  | { readonly kind: 'slow' }
  /** Nothing: each process that runs accepts webhooks as usual. */
  | { readonly kind: 'serves' };

export interface KindOfFault {
  readonly says: Sign;
  /** How long it lasts, from and to, ms. */
  readonly lastsMs: readonly [number, number];
  /** How much longer than after other faults the service may need to be back, ms. */
  readonly extraMs?: number;
  /** Short runs do not try it: it takes long, takes the whole machine, or needs a program or right that may be missing. */
  readonly isOnlyInLongRuns?: true;
}

const SOME_SECONDS = [2_000, 10_000] as const;
/** A server that answers nothing is noticed within 6 s (docs/reliability.md). */
const NOTICED_MS = 6_000;
/** The same with the start of the process, on a busy machine. */
const START_MS = 10_000;
/**
 * The SDK notices a connection that the network has forgotten after 30 s without an answer and 15 s more. Neither time can be set
 * in TypeScript.
 */
const LOST_CONNECTION_MS = 45_000;
/** How long an export waits that began before: it ends with a 503, and the next one is paid. */
const EXPORT_WAIT_MS = 20_000;
const NO_DATABASE = {
  kind: 'check',
  checks: ['database'],
  at: 'each process',
  withinMs: NOTICED_MS,
  isNotReady: true,
} as const;
const NO_TEMPORAL = {
  kind: 'check',
  checks: ['temporal'],
  at: 'each process',
  withinMs: NOTICED_MS,
  isNotReady: false,
} as const;
/** Postgres responds, and refuses statements or ends them at their time limit. */
const STATEMENTS_REFUSED = {
  kind: 'check',
  checks: ['database', 'database_statements'],
  at: 'each process',
  withinMs: NOTICED_MS,
  isNotReady: false,
} as const;
const CLOCK_WRONG = {
  kind: 'check',
  checks: ['clock'],
  at: 'one process',
  withinMs: START_MS,
  isNotReady: false,
} as const;
const ONE_AWAY = { kind: 'away', at: 'one process' } as const;
const SERVES = { kind: 'serves' } as const;

const usual = (says: Sign): KindOfFault => ({ says, lastsMs: SOME_SECONDS });

/** Every kind of fault by its name. */
export const KINDS = {
  'service killed': usual(ONE_AWAY),
  'service stopped': usual(ONE_AWAY),
  'service frozen': usual(ONE_AWAY),
  'all services killed': usual({ kind: 'away', at: 'each process' }),
  'Postgres killed': usual(NO_DATABASE),
  'Postgres stopped': usual(NO_DATABASE),
  'Postgres killed while paying': usual(NO_DATABASE),
  'connections ended': usual(SERVES),
  'database cut': usual(NO_DATABASE),
  'database silent': usual(NO_DATABASE),
  'database slow': usual(SERVES),
  'statements cut': usual(SERVES),
  'answers swallowed': usual(SERVES),
  'disk slow': usual(SERVES),
  'restart loop': usual(ONE_AWAY),
  'wrong secrets key': {
    says: { kind: 'check', checks: ['secrets'], at: 'one process', withinMs: START_MS, isNotReady: true },
    lastsMs: [12_000, 15_000],
  },
  'clock ahead': { says: CLOCK_WRONG, lastsMs: [12_000, 15_000], isOnlyInLongRuns: true },
  'clock behind': { says: CLOCK_WRONG, lastsMs: [12_000, 15_000], isOnlyInLongRuns: true },
  'database read-only': { says: NO_DATABASE, lastsMs: [7_000, 10_000] },
  'connections exhausted': { says: { ...NO_DATABASE, mayMiss: true }, lastsMs: [7_000, 10_000] },
  'primary demoted': { says: NO_DATABASE, lastsMs: [7_000, 12_000], isOnlyInLongRuns: true },
  'disk full': { says: STATEMENTS_REFUSED, lastsMs: [8_000, 15_000], isOnlyInLongRuns: true },
  'PgBouncer between': { says: SERVES, lastsMs: [6_000, 15_000], isOnlyInLongRuns: true },
  'tables locked': { says: STATEMENTS_REFUSED, lastsMs: [8_000, 12_000] },
  'processors starved': { says: { kind: 'slow' }, lastsMs: [15_000, 30_000], isOnlyInLongRuns: true },
  'noisy tenant': { says: { kind: 'fair refusals' }, lastsMs: [8_000, 15_000], isOnlyInLongRuns: true },
  'Temporal killed': usual(NO_TEMPORAL),
  'Temporal stopped': usual(NO_TEMPORAL),
  'Temporal cut': usual(NO_TEMPORAL),
  'Temporal silent': { ...usual(NO_TEMPORAL), extraMs: LOST_CONNECTION_MS + EXPORT_WAIT_MS },
  'Temporal slow': usual(SERVES),
  'Temporal without database': usual(SERVES),
  'Temporal wiped': usual(NO_TEMPORAL),
  'mail server cut': { says: SERVES, lastsMs: [8_000, 15_000] },
} as const satisfies Readonly<Record<string, KindOfFault>>;

export type FaultKind = keyof typeof KINDS;
export const FAULT_KINDS = Object.keys(KINDS) as FaultKind[];
/** From this length on, a run tries every kind of fault. */
export const LONG_RUN_MS = 300_000;

/** The kinds that a run of that length tries when nobody names others. */
export function kindsOfRun(lastsMs: number): readonly FaultKind[] {
  if (lastsMs >= LONG_RUN_MS) return FAULT_KINDS;
  return FAULT_KINDS.filter((name) => {
    const kind: KindOfFault = KINDS[name];
    return kind.isOnlyInLongRuns !== true;
  });
}

/** Returns what the service says meanwhile, in words. */
export function inWords(says: Sign): string {
  switch (says.kind) {
    case 'check':
      return `${says.isNotReady ? 'not ready' : 'at least degraded'}: ${says.checks.map((check) => `\`${check}\``).join(' or ')}, at ${says.at}, within ${says.withinMs / 1_000} s${says.mayMiss === true ? ', unless it has got a connection' : ''}`;
    case 'away':
      return `${says.at} does not answer its health check`;
    case 'fair refusals':
      return '503 with `Retry-After` for that app, which the metric of requests counts; most webhooks of others succeed';
    case 'slow':
      return 'the metrics show slow requests, refusals or a busy event loop';
    case 'serves':
      return 'nothing: webhooks are accepted as usual';
  }
}
