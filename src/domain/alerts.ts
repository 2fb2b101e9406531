import type { AlertId, PayoutRunId, WebhookEndpointId } from './ids.ts';
import type { DeactivationReason } from './outgoing-webhooks.ts';
import { DAY_MS, HOUR_MS } from './time.ts';

/** What an alert can be about. */
export const ALERT_RULES = [
  'provider_silent',
  'deliveries_failing',
  'webhooks_refused',
  'draft_waiting',
  'run_stalled',
  'endpoint_failing',
  'many_refunds',
  'ledger_violated',
] as const;
export type AlertRule = (typeof ALERT_RULES)[number];

/** The types of the messages about alerts. */
export const ALERT_TYPES = ['alert.opened', 'alert.closed'] as const;

/** What was found, by name. Instants are epoch ms and end in `At`, spans in `Ms`, money in `Cents`, shares in `Bps`. */
export type AlertFacts = Readonly<Record<string, string | number | null>>;

/** Something that an alert is to be open for. */
export interface Finding {
  readonly rule: AlertRule;
  /** The name of a provider, the id of a payout run or endpoint, `refunds`, or `ledger`. */
  readonly subject: string;
  readonly facts: AlertFacts;
}

export interface OpenAlert extends Finding {
  readonly id: AlertId;
}

/** How the webhooks of a provider arrive. */
export interface ProviderFacts {
  readonly provider: string;
  /** Whether a secret is set, so that webhooks can be accepted. */
  readonly isConfigured: boolean;
  /** When the latest webhook was accepted, epoch ms, without the self-test and what was fed back from an export. Null without any. */
  readonly lastAcceptedAt: number | null;
  /** The rhythm of its webhooks up to the latest one. Null if nobody asked for it. */
  readonly rhythm: Rhythm | null;
  /** Deliveries of the last hour that failed, and those at which an attempt has failed and that have no outcome yet. */
  readonly failing: number;
  /** Requests that were refused since the beginning of the hour before this one. */
  readonly refused: number;
  /** When the latest request was refused, also before that. */
  readonly lastRefusedAt: number | null;
}

/** The webhooks that a provider sent in the 28 days up to the latest one. */
export interface Rhythm {
  /** At most `MOST_ACCEPTED` are counted. */
  readonly accepted: number;
  /** The 95th percentile of the gaps between them, ms. Null for fewer than two. */
  readonly usualGapMs: number | null;
}

/** A payout run that is a draft or approved. */
export interface RunFacts {
  readonly id: PayoutRunId;
  readonly status: 'draft' | 'approved';
  readonly totalCents: number;
  readonly itemCount: number;
  /** The month whose run the payout schedule has drafted. Null: a person has drafted it. */
  readonly scheduledMonth: string | null;
  readonly createdAt: number;
  /** When a draft can't be approved any more. */
  readonly expiresAt: number;
  /** Null for a draft. */
  readonly approvedAt: number | null;
  /** When a payout of it was last requested or settled. Null before the first. */
  readonly advancedAt: number | null;
}

/** An endpoint of outgoing webhooks that was not deleted. */
export interface EndpointFacts {
  readonly id: WebhookEndpointId;
  /** Whether it gets text about alerts. */
  readonly isSlack: boolean;
  readonly deactivatedAt: number | null;
  readonly deactivatedReason: DeactivationReason | null;
  /** Since when every attempt has failed. */
  readonly failingSince: number | null;
}

/** What an app took and gave back in the last 7 and 28 days. US cents. */
export interface RefundFacts {
  readonly weekRefundedCents: number;
  readonly weekGrossCents: number;
  readonly monthRefundedCents: number;
  readonly monthGrossCents: number;
  /** Commissions of the 7 days, counted up to `LEAST_PAYMENTS`; 0 without a refund. */
  readonly weekPayments: number;
}

/** What the last checks of the ledger found in an app: at least one rule that rows break. */
export interface LedgerFacts {
  /** The rules that rows break, and the rows. */
  readonly rules: number;
  readonly violations: number;
  /** The first of the rules, by its name. */
  readonly rule: string;
  readonly foundAt: number;
}

/** What the rules need to know of an app. */
export interface AlertInputs {
  readonly providers: readonly ProviderFacts[];
  readonly runs: readonly RunFacts[];
  readonly endpoints: readonly EndpointFacts[];
  /** Null if nobody asked for it. */
  readonly refunds: RefundFacts | null;
  /** Null if no row breaks a rule, as far as it was checked. */
  readonly ledger: LedgerFacts | null;
}

/** A provider is never silent before that, ms. */
export const LEAST_SILENCE_MS = 6 * HOUR_MS;
/** The time whose gaps count, ms. A provider that has been silent for longer when that is first seen opens no alert. */
export const RHYTHM_MS = 28 * DAY_MS;
/** A provider that has sent fewer has no rhythm. */
export const LEAST_ACCEPTED = 20;
/** A provider is silent after so many usual gaps. */
const USUAL_GAPS = 4;
/**
 * The most webhooks whose gaps are read. A provider that sent as many is silent after the least silence: for longer, a twentieth of the gaps
 * would have to be above an hour and a half each, which is twelve of the 28 days without a webhook.
 */
export const MOST_ACCEPTED = 4_000;

/** So many failing deliveries of a provider open an alert. */
const FAILING = 5;
/** So many refused requests of a provider, within this hour and the one before, open an alert. */
const REFUSED = 3;
/** How long a refused request keeps an alert open while nothing was accepted since, ms. */
const REFUSAL_COUNTS_MS = 7 * DAY_MS;
/** A draft that a person has made waits after that, ms. Nobody looks at one of the schedule, which waits at once. */
const DRAFT_WAITS_MS = DAY_MS;
/** A payout run that is paid advances within that, ms. */
const RUN_ADVANCES_MS = HOUR_MS;
/** An endpoint that fails for as long as that, ms, has failed several attempts. */
const ENDPOINT_FAILS_MS = HOUR_MS;

/** With fewer payments in 7 days, the share of refunds says nothing. */
export const LEAST_PAYMENTS = 20;
/** Refunds above this share of revenue, in 7 days, open an alert, if it is also above so many times the share of 28 days. */
const REFUND_BPS = 500;
const USUAL_REFUNDS = 2;
/** Down to this share an alert stays open, as long as it is above that of 28 days. */
const REFUND_ENDS_BPS = 250;

/** A finding, and whether it opens an alert or only keeps one open. */
interface Sign extends Finding {
  readonly opens: boolean;
}

/** Returns how long a provider may be silent, ms. Null if it has no rhythm. */
export function silenceMs({ accepted, usualGapMs }: Rhythm): number | null {
  if (accepted < LEAST_ACCEPTED || usualGapMs === null) return null;
  return accepted >= MOST_ACCEPTED ? LEAST_SILENCE_MS : Math.max(LEAST_SILENCE_MS, USUAL_GAPS * usualGapMs);
}

/** Whether the rhythm of a provider decides if it is silent: its alert is not open, and nothing came for some time. */
export function mayBeSilent(
  { isConfigured, lastAcceptedAt }: Pick<ProviderFacts, 'isConfigured' | 'lastAcceptedAt'>,
  now: number,
): boolean {
  if (!isConfigured || lastAcceptedAt === null) return false;
  const silentMs = now - lastAcceptedAt;
  return silentMs > LEAST_SILENCE_MS && silentMs <= RHYTHM_MS;
}

/**
 * Whether what a provider sends may still be refused: it was the last thing that it sent. A provider with few purchases sends nothing for
 * hours, and its secret is as wrong as before.
 */
function isStillRefused(
  { isConfigured, lastAcceptedAt, lastRefusedAt }: ProviderFacts,
  now: number,
): boolean {
  if (!isConfigured || lastRefusedAt === null) return false;
  return now - lastRefusedAt <= REFUSAL_COUNTS_MS && (lastAcceptedAt ?? 0) < lastRefusedAt;
}

function* signsOfProvider(facts: ProviderFacts, now: number): Generator<Sign> {
  const { provider, isConfigured, lastAcceptedAt, rhythm, failing, refused, lastRefusedAt } = facts;
  if (isConfigured && lastAcceptedAt !== null) {
    const allowedMs = rhythm === null ? null : silenceMs(rhythm);
    yield {
      rule: 'provider_silent',
      subject: provider,
      facts: { lastAcceptedAt, allowedMs },
      opens: mayBeSilent(facts, now) && allowedMs !== null && now - lastAcceptedAt > allowedMs,
    };
  }
  if (failing > 0)
    yield {
      rule: 'deliveries_failing',
      subject: provider,
      facts: { failing },
      opens: failing >= FAILING,
    };
  if (refused > 0 || isStillRefused(facts, now))
    yield {
      rule: 'webhooks_refused',
      subject: provider,
      facts: { refused, lastRefusedAt },
      opens: refused >= REFUSED,
    };
}

function* signsOfRun(run: RunFacts, now: number): Generator<Sign> {
  const { id, status, totalCents, itemCount, scheduledMonth, createdAt, expiresAt, approvedAt, advancedAt } =
    run;
  const waitsMs = scheduledMonth === null ? DRAFT_WAITS_MS : 0;
  // Nobody can approve an empty one.
  if (status === 'draft' && itemCount > 0 && now - createdAt > waitsMs && now < expiresAt)
    yield {
      rule: 'draft_waiting',
      subject: id,
      facts: {
        totalCents,
        itemCount,
        ...(scheduledMonth === null ? {} : { scheduledMonth }),
        draftedAt: createdAt,
        expiresAt,
      },
      opens: true,
    };
  if (approvedAt !== null) {
    const lastAt = Math.max(approvedAt, advancedAt ?? 0);
    if (now - lastAt > RUN_ADVANCES_MS)
      yield {
        rule: 'run_stalled',
        subject: id,
        facts: { totalCents, itemCount, approvedAt, advancedAt },
        opens: true,
      };
  }
}

function* signsOfEndpoint(endpoint: EndpointFacts, now: number): Generator<Sign> {
  const { id, isSlack, deactivatedAt, deactivatedReason, failingSince } = endpoint;
  const wasTurnedOff = deactivatedReason === 'failing' || deactivatedReason === 'gone';
  const isFailing = deactivatedAt === null && failingSince !== null;
  if (!wasTurnedOff && !isFailing) return;
  yield {
    rule: 'endpoint_failing',
    subject: id,
    facts: { kind: isSlack ? 'slack' : 'webhook', failingSince, deactivatedAt, deactivatedReason },
    opens: wasTurnedOff || (isFailing && now - failingSince >= ENDPOINT_FAILS_MS),
  };
}

/** Returns the share of refunds, basis points. */
const shareBps = (refundedCents: number, grossCents: number): number =>
  grossCents <= 0 ? 0 : (refundedCents / grossCents) * 10_000;

function* signsOfRefunds(facts: RefundFacts): Generator<Sign> {
  const { weekRefundedCents, weekGrossCents, weekPayments } = facts;
  const refundBps = shareBps(weekRefundedCents, weekGrossCents);
  const usualBps = shareBps(facts.monthRefundedCents, facts.monthGrossCents);
  if (refundBps <= REFUND_ENDS_BPS || refundBps <= usualBps) return;
  yield {
    rule: 'many_refunds',
    subject: 'refunds',
    facts: {
      refundedCents: weekRefundedCents,
      grossCents: weekGrossCents,
      refundBps: Math.round(refundBps),
      usualBps: Math.round(usualBps),
    },
    opens: weekPayments >= LEAST_PAYMENTS && refundBps > REFUND_BPS && refundBps > USUAL_REFUNDS * usualBps,
  };
}

function* signsOfLedger({ rules, violations, rule, foundAt }: LedgerFacts): Generator<Sign> {
  yield {
    rule: 'ledger_violated',
    subject: 'ledger',
    facts: { rules, violations, rule, foundAt },
    opens: true,
  };
}

function* signsOf(
  { providers, runs, endpoints, refunds, ledger }: AlertInputs,
  now: number,
): Generator<Sign> {
  for (const provider of providers) yield* signsOfProvider(provider, now);
  for (const run of runs) yield* signsOfRun(run, now);
  for (const endpoint of endpoints) yield* signsOfEndpoint(endpoint, now);
  if (refunds !== null) yield* signsOfRefunds(refunds);
  if (ledger !== null) yield* signsOfLedger(ledger);
}

/** Whether what opened an alert goes on. A provider that has sent something since is not silent any more. */
function goesOn(alert: OpenAlert, sign: Sign): boolean {
  return alert.rule !== 'provider_silent' || alert.facts['lastAcceptedAt'] === sign.facts['lastAcceptedAt'];
}

/** What to change so that the alerts of an app are what the rules say. */
export interface AlertDecision {
  readonly open: readonly Finding[];
  readonly close: readonly AlertId[];
}

const nameOf = ({ rule, subject }: Pick<Finding, 'rule' | 'subject'>) => `${rule} ${subject}`;

/**
 * Decides which alerts of an app open and close at `now`, epoch ms, with its facts and its open alerts. An alert opens when its rule
 * holds, and closes only when nothing of it is left, so that one that changes around a limit opens once.
 */
export function decideAlerts(inputs: AlertInputs, alerts: readonly OpenAlert[], now: number): AlertDecision {
  const signs = new Map([...signsOf(inputs, now)].map((sign) => [nameOf(sign), sign]));
  const close = alerts.filter((alert) => {
    const sign = signs.get(nameOf(alert));
    return sign === undefined || !goesOn(alert, sign);
  });
  const open = new Set(alerts.map(nameOf));
  return {
    open: [...signs.values()]
      .filter((sign) => sign.opens && !open.has(nameOf(sign)))
      .map(({ rule, subject, facts }) => ({ rule, subject, facts })),
    close: close.map(({ id }) => id),
  };
}
