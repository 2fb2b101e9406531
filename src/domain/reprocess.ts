import type { Environment, EventKind, NormalizedEvent } from './events.ts';
import type { Evaluation, LikelyCause, PaymentSnapshot } from './evaluate-payment.ts';

/** What an event says, as it was stored, or as today's code reads it. */
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
  /** In USD cents: what the provider says, else (stored only) what was converted. Compared where both are known. */
  readonly usdCents: number | null;
}

/**
 * One thing that a reprocessed delivery would change. `append`: it is missing and is added. `keep`: it differs, and what is
 * stored stays, for nothing that was written is ever edited.
 */
export interface ReprocessChange {
  /**
   * A row of facts (`event`, `payment`, `adjustment`, `users`, `userKeys`, `userLinks`, `aliases`, `transfers`), a field
   * (`event.kind`, …), the delivery's `status`, what an evaluation appends (`commission`, `revenue`) or says (`cause`), or
   * `refused` where the database refused it.
   */
  readonly what: string;
  readonly stored: string | null;
  readonly today: string | null;
  readonly action: 'append' | 'keep';
  /** Signed USD cents, of a commission or of revenue. */
  readonly amountCents?: number;
  readonly affiliateId?: string;
}

/** The reading of an event as today's code reads its body. */
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

/** Fields that say which money an event speaks of: where one of them differs, another event would be appended. */
const MONEY_FIELDS: ReadonlySet<string> = new Set([
  'kind',
  'store',
  'paymentRef',
  'currency',
  'amountMinor',
  'usdCents',
]);

/** How today's reading of an event differs from the stored one. */
export interface ReadingDifference {
  readonly changes: readonly ReprocessChange[];
  /**
   * Whether what is missing may be appended. Not when the event is another one by today's reading, or speaks of other
   * money than it was booked for: appending would count it twice.
   */
  readonly mayAppend: boolean;
}

function shown(value: string | number | null): string | null {
  return value === null ? null : String(value);
}

/** Compares the stored reading of an event with today's, field by field. */
export function compareReadings(stored: EventReading, today: EventReading): ReadingDifference {
  const spokeOfMoney = stored.paymentRef !== null;
  const differing = FIELDS.filter(
    (field) =>
      stored[field] !== today[field] &&
      !(field === 'usdCents' && (stored.usdCents === null || today.usdCents === null)),
  );
  const isFilled = (field: keyof EventReading) =>
    !spokeOfMoney && MONEY_FIELDS.has(field) && stored[field] === null;
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
        field !== 'sourceEventId' && field !== 'environment' && !(spokeOfMoney && MONEY_FIELDS.has(field)),
    ),
  };
}

/** Whether an evaluation finds the ledger of its payment as it should be. */
export function isSettled(payment: PaymentSnapshot, evaluation: Evaluation): boolean {
  return (
    payment.evaluatedAt !== null &&
    evaluation.binding === null &&
    evaluation.earning === null &&
    evaluation.reversals.length === 0 &&
    evaluation.revenue.length === 0 &&
    evaluation.booked.length === 0 &&
    evaluation.likelyCause === payment.likelyCause &&
    evaluation.baseCents === payment.baseCents
  );
}

function appended(what: string, today: string, amountCents: number): ReprocessChange {
  return { what, stored: null, today, action: 'append', amountCents };
}

/** What an evaluation appends to the ledger of a payment whose cause for earning nothing was `storedCause`. */
export function ledgerChanges(evaluation: Evaluation, storedCause: LikelyCause | null): ReprocessChange[] {
  const { earning, reversals, revenue, likelyCause } = evaluation;
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
    ...revenue.map((entry) =>
      appended('revenue', entry.adjustmentId === null ? 'payment' : 'money back', entry.amountCents),
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

/** Outcomes of a delivery, the least worth first: a reprocess raises a delivery's outcome and never lowers it. */
const OUTCOMES = ['failed', 'ignored', 'duplicate', 'processed'] as const;
export type DeliveryOutcomeStatus = (typeof OUTCOMES)[number];

/** Whether `today` tells more of a delivery than `stored`. */
export function isBetterOutcome(stored: string, today: DeliveryOutcomeStatus): boolean {
  return OUTCOMES.findIndex((outcome) => outcome === stored) < OUTCOMES.indexOf(today);
}
