import type { Environment, EventKind, NormalizedEvent } from './events.ts';
import type { Evaluation } from './evaluation.ts';
import type { LikelyCause } from './likely-causes.ts';
import type { PaymentSnapshot } from './payment-snapshot.ts';

/** The most deliveries that a reprocess run examines that is requested over the API. */
export const MAX_REQUESTED_DELIVERIES = 10_000;

/** The contents of an event, as stored or as the current code reads it. */
export interface EventReading {
  readonly sourceEventId: string;
  readonly kind: EventKind;
  readonly environment: Environment;
  /** Epoch ms. */
  readonly occurredAt: number;
  readonly productId: string | null;
  readonly store: string | null;
  readonly paymentRef: string | null;
  readonly currency: string | null;
  readonly amountMinor: number | null;
  /**
   * US cents stated by the provider, otherwise (stored events only) the converted amount. Compared if both are known.
   */
  readonly usdCents: number | null;
}

/**
 * One change that a reprocessed delivery would make. `append`: the value is missing and is added. `keep`: the value
 * differs, and the stored one stays, since stored facts are never edited.
 */
export interface ReprocessChange {
  /**
   * Facts (`event`, `payment`, `components`, `adjustment`, `users`, `userKeys`, `userLinks`, `aliases`, `codes`, `transfers`), a field
   * (`event.kind`, …), the delivery's `status`, the result of an evaluation (`commission`, `revenue`, `cause`), or
   * `refused` when the database refused the change.
   */
  readonly what: string;
  readonly stored: string | null;
  readonly today: string | null;
  readonly action: 'append' | 'keep';
  /** Signed USD cents, of a commission or of revenue. */
  readonly amountCents?: number;
  readonly affiliateId?: string;
}

/** Returns the comparable contents of an event as the current code reads its body. */
export function readingOf(event: NormalizedEvent, environment: Environment): EventReading {
  const money = event.payment ?? event.adjustment;
  return {
    sourceEventId: event.sourceEventId,
    kind: event.kind,
    environment,
    occurredAt: event.occurredAt,
    productId: event.productId,
    store: money?.store ?? null,
    paymentRef: event.payment?.ref ?? event.adjustment?.paymentRef ?? null,
    currency: money?.currency ?? null,
    amountMinor: money?.amountMinor ?? null,
    usdCents: money?.usdCents ?? null,
  };
}

const FIELDS = [
  'sourceEventId',
  'kind',
  'environment',
  'occurredAt',
  'productId',
  'store',
  'paymentRef',
  'currency',
  'amountMinor',
  'usdCents',
] as const satisfies readonly (keyof EventReading)[];

/** Fields that identify the money of an event. If one of them differs, appending would add different money. */
const MONEY_FIELDS: ReadonlySet<string> = new Set([
  'kind',
  'store',
  'paymentRef',
  'currency',
  'amountMinor',
  'usdCents',
]);

/** The difference between the current reading of an event and the stored one. */
export interface ReadingDifference {
  readonly changes: readonly ReprocessChange[];
  /**
   * Whether missing facts may be appended. Not if the current code reads another event or other money than was booked:
   * appending would count the money twice.
   */
  readonly mayAppend: boolean;
}

function shown(value: string | number | null): string | null {
  return value === null ? null : String(value);
}

/** Compares the stored reading of an event with the current one, field by field. */
export function compareReadings(stored: EventReading, today: EventReading): ReadingDifference {
  const hadMoney = stored.paymentRef !== null;
  const differing = FIELDS.filter(
    (field) =>
      stored[field] !== today[field] &&
      !(field === 'usdCents' && (stored.usdCents === null || today.usdCents === null)),
  );
  // An event that was ignored is stored as `other`, for which a policy finds neither its product nor its tax.
  const isFilled = (field: keyof EventReading) =>
    !hadMoney &&
    ((MONEY_FIELDS.has(field) && stored[field] === null) ||
      (today.paymentRef !== null &&
        ((field === 'kind' && stored.kind === 'other') ||
          (field === 'productId' && stored.productId === null))));
  return {
    changes: differing
      .filter((field) => !isFilled(field))
      .map((field) => ({
        what: `event.${field}`,
        stored: shown(stored[field]),
        today: shown(today[field]),
        action: 'keep',
      })),
    mayAppend: differing.every(
      (field) =>
        field !== 'sourceEventId' && field !== 'environment' && !(hadMoney && MONEY_FIELDS.has(field)),
    ),
  };
}

/** Whether an evaluation changes nothing about its payment. What waits for a rate is to be listed, so that an import of rates finds it. */
export function isSettled(payment: PaymentSnapshot, evaluation: Evaluation): boolean {
  return (
    payment.evaluatedAt !== null &&
    evaluation.binding === null &&
    evaluation.earning === null &&
    evaluation.reversals.length === 0 &&
    evaluation.correction === null &&
    evaluation.revenue.length === 0 &&
    evaluation.booked.length === 0 &&
    evaluation.unconverted.length === 0 &&
    evaluation.likelyCause === payment.likelyCause &&
    evaluation.baseCents === payment.baseCents
  );
}

function appended(what: string, today: string, amountCents: number): ReprocessChange {
  return { what, stored: null, today, action: 'append', amountCents };
}

/** Returns the changes that an evaluation makes to the ledger of a payment whose stored cause is `storedCause`. */
export function ledgerChanges(evaluation: Evaluation, storedCause: LikelyCause | null): ReprocessChange[] {
  const { earning, reversals, correction, revenue, likelyCause } = evaluation;
  return [
    ...(earning === null
      ? []
      : [
          {
            ...appended('commission', `earning at ${earning.rateBps} bps`, earning.amountCents),
            affiliateId: earning.binding.affiliateId,
          },
        ]),
    ...reversals.map((reversal) => appended('commission', 'reversal', reversal.amountCents)),
    ...(correction === null ? [] : [appended('commission', 'correction', correction.amountCents)]),
    ...revenue.map((entry) =>
      appended('revenue', entry.adjustmentId === null ? 'payment' : 'refund or dispute', entry.amountCents),
    ),
    ...(likelyCause === storedCause
      ? []
      : [
          {
            what: 'cause',
            stored: storedCause,
            today: likelyCause,
            action: 'append' as const,
          },
        ]),
  ];
}

/** Returns each change that a plan appends as a comparable text. */
function appendedTexts(changes: readonly ReprocessChange[]): string[] {
  return changes
    .filter(({ action }) => action === 'append')
    .map(({ what, stored, today, amountCents = null, affiliateId = null }) =>
      JSON.stringify([what, stored, today, amountCents, affiliateId]),
    );
}

/** Whether two plans for a delivery append the same. Differences that stay as they are do not count. */
export function appendsTheSame(one: readonly ReprocessChange[], other: readonly ReprocessChange[]): boolean {
  return appendedTexts(one).join() === appendedTexts(other).join();
}

/**
 * Whether a plan appends no money but what another one does, each amount once at most. So it is with what is left of a plan, of which a part
 * or all was appended.
 */
export function appendsNoOtherMoney(
  changes: readonly ReprocessChange[],
  than: readonly ReprocessChange[],
): boolean {
  const moneyOf = (plan: readonly ReprocessChange[]) =>
    appendedTexts(plan.filter(({ amountCents = null }) => amountCents !== null));
  const left = moneyOf(than);
  return moneyOf(changes).every((text) => {
    const at = left.indexOf(text);
    if (at === -1) return false;
    left.splice(at, 1);
    return true;
  });
}

/** Outcomes of a delivery, in ascending order. A reprocess run raises the outcome of a delivery and never lowers it. */
export const DELIVERY_OUTCOMES = ['failed', 'ignored', 'duplicate', 'processed'] as const;
export type DeliveryOutcomeStatus = (typeof DELIVERY_OUTCOMES)[number];

/** Whether the outcome `today` is higher than `stored`. */
export function isBetterOutcome(stored: string, today: DeliveryOutcomeStatus): boolean {
  return DELIVERY_OUTCOMES.findIndex((outcome) => outcome === stored) < DELIVERY_OUTCOMES.indexOf(today);
}
