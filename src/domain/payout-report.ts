import type { PayoutRunItemId } from './ids.ts';
import { wiseKeyOf } from './payout-file.ts';
import { statementsFor } from './payout-transfer.ts';
import type { StatedItem } from './payout-transfer.ts';

/** What a payment service says of a payment. `pending`: neither yet. `unknown`: its word is not known. */
export const REPORTED_STATES = ['sent', 'returned', 'pending', 'unknown'] as const;
export type ReportedState = (typeof REPORTED_STATES)[number];

/** The columns of a report, by their names in its header line. */
export interface ReportColumns {
  readonly status: string;
  /** Null: none has the reference of the payment service. */
  readonly reference: string | null;
}

/** What a report says of an item of a run. */
export interface ReportedItem {
  readonly itemId: PayoutRunItemId;
  readonly state: ReportedState;
  /** The word of the payment service. */
  readonly status: string;
  /** Its reference. Null without one. */
  readonly reference: string | null;
}

/** A row that is not about an item of the run. */
export interface UnmatchedRow {
  /** From 2: the header is the first. */
  readonly row: number;
  readonly status: string;
}

export interface PayoutReport {
  readonly items: readonly ReportedItem[];
  readonly unmatched: readonly UnmatchedRow[];
}

/**
 * The words of PayPal (https://developer.paypal.com/payouts/use-payouts/track-payout-item-status) and Wise
 * (https://docs.wise.com/guides/product/send-money/tracking/transfer-statuses), and those that other services use. Money that bounced back
 * to Wise may be sent on, so it has not come back yet; nor has money that nobody has claimed at PayPal.
 */
const WORDS: Readonly<Record<Exclude<ReportedState, 'unknown'>, readonly string[]>> = {
  sent: ['success', 'completed', 'outgoing_payment_sent', 'sent', 'paid'],
  returned: [
    'returned',
    'refunded',
    'failed',
    'blocked',
    'reversed',
    'denied',
    'canceled',
    'cancelled',
    'funds_refunded',
    'charged_back',
    'rejected',
  ],
  pending: [
    'pending',
    'unclaimed',
    'onhold',
    'on_hold',
    'new',
    'processing',
    'incoming_payment_waiting',
    'incoming_payment_initiated',
    'funds_converted',
    'bounced_back',
  ],
};

const STATES = new Map(
  Object.entries(WORDS).flatMap(([state, words]) =>
    words.map((word) => [word, state as Exclude<ReportedState, 'unknown'>]),
  ),
);

/** Returns what a word of a payment service means, in any case and with spaces or underscores. `meanings` are those of the caller. */
export function meaningOf(status: string, meanings: ReadonlyMap<string, ReportedState>): ReportedState {
  return (
    meanings.get(status) ??
    STATES.get(
      status
        .trim()
        .toLowerCase()
        .replaceAll(/[\s-]+/g, '_'),
    ) ??
    'unknown'
  );
}

/** The names of columns, as PayPal, Wise and others write them, in the order in which they are looked for. */
const STATUS_COLUMNS = ['transaction status', 'payout status', 'transfer status', 'status', 'state'];
const REFERENCE_COLUMNS = ['transaction id', 'transfer id', 'payout item id', 'id'];

const plain = (name: string) =>
  name
    .trim()
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, ' ');

/** Finds the columns of a report in its header line. Null: none is known to have the status, and the caller has to say which one does. */
export function findColumns(header: readonly string[]): ReportColumns | null {
  const find = (names: readonly string[]) =>
    names.flatMap((name) => header.filter((column) => plain(column) === name)).at(0) ?? null;
  const status = find(STATUS_COLUMNS);
  return status === null ? null : { status, reference: find(REFERENCE_COLUMNS) };
}

/** Ids of items, and what files for Wise have of them (`wiseKeyOf`). Case does not matter: banks change it. */
const KEYS = /(?<![0-9a-z])(?:pit_[0-9a-z]{26}|[0-9a-z]{16})(?![0-9a-z])/g;

/** The longest reference that a transfer keeps. */
const LONGEST_REFERENCE = 200;

/** Rank by how final a state is: of two rows about an item, the later step of its way counts. */
const RANKS: Readonly<Record<ReportedState, number>> = { unknown: 0, pending: 1, sent: 2, returned: 3 };

/**
 * Reads a report about the items of a run. A row is found by the key that the file of the run gave to the payment service, in whatever
 * column, and never by its amount.
 *
 * @param records The lines after the header, as cells.
 */
export function readReport(
  records: readonly (readonly string[])[],
  {
    header,
    columns,
    meanings,
    itemIds,
  }: {
    readonly header: readonly string[];
    readonly columns: ReportColumns;
    readonly meanings: ReadonlyMap<string, ReportedState>;
    readonly itemIds: readonly PayoutRunItemId[];
  },
): PayoutReport {
  const [ofStatus, ofReference] = [header.indexOf(columns.status), header.indexOf(columns.reference ?? '')];
  const byKey = new Map(itemIds.map((id) => [wiseKeyOf(id), id]));
  const items = new Map<PayoutRunItemId, ReportedItem>();
  const unmatched: UnmatchedRow[] = [];
  for (const [n, record] of records.entries()) {
    const status = (record[ofStatus] ?? '').trim();
    const itemId = itemOf(record, byKey);
    if (itemId === null) {
      unmatched.push({ row: n + 2, status });
      continue;
    }
    const state = meaningOf(status, meanings);
    const before = items.get(itemId);
    if (before !== undefined && RANKS[before.state] >= RANKS[state]) continue;
    items.set(itemId, { itemId, state, status, reference: referenceOf(record[ofReference] ?? '') });
  }
  return { items: [...items.values()], unmatched };
}

/**
 * Returns the reference of a cell, as a transfer can keep it. Null without one, and for an e-mail address: that of the recipient is erased
 * with the creator, and a transfer is kept.
 */
function referenceOf(cell: string): string | null {
  const text = cell.replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ').trim();
  return text.includes('@') ? null : Array.from(text).slice(0, LONGEST_REFERENCE).join('') || null;
}

/** Returns the item that a row names. Null for none, and for several. */
function itemOf(
  cells: readonly string[],
  byKey: ReadonlyMap<string, PayoutRunItemId>,
): PayoutRunItemId | null {
  const named = new Set(
    cells.flatMap((cell) =>
      [...cell.toLowerCase().matchAll(KEYS)].flatMap(([key]) => byKey.get(wiseKeyOf(key)) ?? []),
    ),
  );
  const [itemId] = named;
  return named.size === 1 && itemId !== undefined ? itemId : null;
}

/** What a report does to an item: what is stated of its payout, or why nothing is. */
export const REPORT_OUTCOMES = ['sent', 'returned', 'unchanged', 'pending', 'unknown'] as const;
export type ReportOutcome = (typeof REPORT_OUTCOMES)[number];

/** Returns what is stated of the payout of an item that a report is about. `unchanged`: it was stated before, or counts no more. */
export function outcomeOfReport(state: ReportedState, item: StatedItem): ReportOutcome {
  if (state === 'pending' || state === 'unknown') return state;
  return statementsFor(state, item).length === 0 ? 'unchanged' : state;
}
