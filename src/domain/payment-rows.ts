import type { BindingSnapshot, EarningTerms } from './payment-snapshot.ts';
import type { BindingId, CommissionId, PaymentId } from './ids.ts';

/** A row of a payment. A payment has one row for each reference under which an event reported its money. */
export interface PaymentRow {
  readonly paymentId: PaymentId;
  /**
   * Whether its reference is no alias of another one. An invoice is a root; the payment intents that paid it are aliases of the
   * invoice.
   */
  readonly isRoot: boolean;
  readonly currency: string;
  readonly amountMinor: number;
  /** Whether a correction has taken back what it earned. */
  readonly isDuplicate: boolean;
  /** Through which it was attributed. Null if it is not attributed. */
  readonly attribution: { readonly customerUserId: string; readonly binding: BindingSnapshot } | null;
  readonly earning: ({ readonly commissionId: CommissionId } & EarningTerms) | null;
  /** Its place among the payments of its customer. Null in an app without policies. */
  readonly numbered: (PaymentNumber & { readonly countsAs: PaymentId | null }) | null;
}

/** The place of a payment among those of its customer, from 1. */
export interface PaymentNumber {
  /** The binding with which the payments are numbered. */
  readonly subjectId: BindingId;
  readonly number: number;
  /** The time of the customer's first payment, epoch ms. */
  readonly firstPaidAt: number;
}

/** What an attributed part passes on to the row that counts instead. */
export interface InheritedAttribution {
  readonly customerUserId: string;
  readonly binding: BindingSnapshot;
  /** The terms on which the part earned. Null if it earned nothing. */
  readonly terms: EarningTerms | null;
  /** The number of the part, which the row takes over. Null if it has none. */
  readonly numbered: (PaymentNumber & { readonly countsAs: PaymentId }) | null;
}

/** The place of a row among the rows of its payment. */
export interface RowStanding {
  /** Whether the row is a part of the payment, such as one of two payment intents that paid an invoice. */
  readonly isPart: boolean;
  /** Whether the row must not be attributed, because another row of the payment counts. */
  readonly countedElsewhere: boolean;
  /** The row that counts, if this one was attributed, too. */
  readonly duplicateOf: { readonly paymentId: PaymentId; readonly commissionId: CommissionId | null } | null;
  /** The attribution of the part that this row replaces. Null if there is none. */
  readonly inherited: InheritedAttribution | null;
}

/**
 * Returns the place of `own` among all `rows` of its payment. The rule: a payment earns once, on what was paid in all.
 *
 * - The whole is the root with the largest amount. Rows of the same currency with a smaller amount are its parts.
 * - A part is not attributed beside the whole. One that was attributed before counts until the whole is; the whole then
 *   inherits its attribution.
 * - Of several other attributed rows the one that earned first counts. A row that earned nothing counts beside none that earned:
 *   there would be no earning to name in the correction.
 */
export function standingOf(own: PaymentRow, rows: readonly PaymentRow[]): RowStanding {
  const whole = wholeOf(rows);
  const isPart = (row: PaymentRow) =>
    whole !== undefined && row.currency === whole.currency && row.amountMinor < whole.amountMinor;
  const attributed = rows
    .filter((row) => row.attribution !== null)
    .toSorted(
      (a, b) =>
        Number(a.isDuplicate) - Number(b.isDuplicate) ||
        Number(a.earning === null) - Number(b.earning === null) ||
        Number(isPart(a)) - Number(isPart(b)) ||
        compareIds(earningId(a), earningId(b)) ||
        compareIds(a.paymentId, b.paymentId),
    );
  const [kept] = attributed;
  const isAttributed = own.attribution !== null;
  const isReplaced = isAttributed && kept !== undefined && kept.paymentId !== own.paymentId;
  const countedElsewhere =
    isPart(own) || attributed.some((row) => row.paymentId !== own.paymentId && !isPart(row));
  const before = isAttributed || countedElsewhere ? undefined : kept;
  return {
    isPart: isPart(own),
    countedElsewhere,
    duplicateOf: isReplaced
      ? { paymentId: kept.paymentId, commissionId: kept.earning?.commissionId ?? null }
      : null,
    inherited:
      before?.attribution == null
        ? null
        : {
            ...before.attribution,
            terms: termsOf(before),
            numbered: before.numbered && {
              ...before.numbered,
              // The row that the number was given to: the part may itself have replaced another one.
              countsAs: before.numbered.countsAs ?? before.paymentId,
            },
          },
  };
}

function termsOf({ earning }: PaymentRow): EarningTerms | null {
  return earning && { rateBps: earning.rateBps, rateSource: earning.rateSource, rule: earning.rule };
}

/** Returns the row of the whole payment. A row that was corrected in favour of a part never counts again. */
function wholeOf(rows: readonly PaymentRow[]): PaymentRow | undefined {
  return rows
    .filter(({ isRoot, isDuplicate }) => isRoot && !isDuplicate)
    .toSorted((a, b) => b.amountMinor - a.amountMinor || compareIds(a.paymentId, b.paymentId))[0];
}

/** Returns the id of an earning. Rows that earned are never compared with others by it. */
const earningId = (row: PaymentRow): string => row.earning?.commissionId ?? '';
const compareIds = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
