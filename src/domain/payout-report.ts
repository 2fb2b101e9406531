import type { PayoutRunItemId } from './ids.ts';
import { wiseKeyOf } from './payout-run-files.ts';
import { consequenceOf, MOST_OTHERS, tellsTransfer } from './payout-transfer.ts';
import type { Consequence, StatedItem } from './payout-transfer.ts';

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
  /** Of all its transfers: money that arrived or may still arrive has not come back. */
  readonly state: ReportedState;
  /** The word of the payment service for that state. */
  readonly status: string;
  /** Its reference. Null without one. */
  readonly reference: string | null;
  /** The references that tell transfers apart, of those that arrived. */
  readonly arrived: readonly string[];
  /** The same of those that are under way. */
  readonly underWay: readonly string[];
  /** The same of those that came back. */
  readonly cameBack: readonly string[];
  /** Whether one transfer arrived and another one came back, or several arrived. */
  readonly isContradictory: boolean;
  /** Whether several arrived, one of which has no reference that tells it apart. */
  readonly hasUnnamedArrival: boolean;
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
 * to Wise may be sent on, so it has not come back yet; nor has money that nobody has claimed at PayPal. `charged_back` is about what the
 * founder has paid to Wise, and says nothing of the money of the creator: what it means, a person decides.
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

/**
 * Finds the columns of a report in its header line, but for those that are given. A reference that is given as null is none. Null: no column
 * is known to have the status, and the caller has to say which one does.
 */
export function findColumns(
  header: readonly string[],
  given: { readonly status?: string; readonly reference?: string | null | undefined } = {},
): ReportColumns | null {
  const find = (names: readonly string[]) =>
    names.flatMap((name) => header.filter((column) => plain(column) === name)).at(0) ?? null;
  const status = given.status ?? find(STATUS_COLUMNS);
  return status === null
    ? null
    : { status, reference: given.reference === undefined ? find(REFERENCE_COLUMNS) : given.reference };
}

/** Ids of items, and what files for Wise have of them (`wiseKeyOf`). Case does not matter: banks change it. */
const KEYS = /(?<![0-9a-z])(?:pit_[0-9a-z]{26}|[0-9a-z]{16})(?![0-9a-z])/g;

/** The longest reference that a transfer keeps. */
const LONGEST_REFERENCE = 200;

/** Rank by how final a state is: of two rows about one transfer, the later step of its way counts. */
const RANKS: Readonly<Record<ReportedState, number>> = { unknown: 0, pending: 1, sent: 2, returned: 3 };

/** Rank of the transfers of one item: the payout came back only if all of them did. */
const TRANSFER_RANKS: Readonly<Record<ReportedState, number>> = {
  returned: 0,
  pending: 1,
  unknown: 2,
  sent: 3,
};

/** A row of a report about an item. */
interface ReportRow {
  readonly state: ReportedState;
  readonly status: string;
  readonly reference: string | null;
}

/** How a report is read. */
export interface ReportTerms {
  readonly header: readonly string[];
  readonly columns: ReportColumns;
  readonly meanings: ReadonlyMap<string, ReportedState>;
  readonly itemIds: readonly PayoutRunItemId[];
}

/**
 * Reads a report about the items of a run, in parts. A row is found by the key that the file of the run gave to the payment service, in
 * whatever column, and never by its amount. Rows of one item with different references are different transfers: a file that was uploaded
 * again makes a second one.
 */
export class ReportReader {
  readonly #terms: ReportTerms;
  readonly #ofStatus: number;
  readonly #ofReference: number;
  readonly #byKey: ReadonlyMap<string, PayoutRunItemId>;
  readonly #rows = new Map<PayoutRunItemId, ReportRow[]>();
  /** The items that each reference is given for. */
  readonly #itemsOfReference = new Map<string, PayoutRunItemId | 'several'>();
  readonly #unmatched: UnmatchedRow[] = [];
  /** The header is the first row. */
  #row = 1;

  constructor(terms: ReportTerms) {
    this.#terms = terms;
    this.#ofStatus = terms.header.indexOf(terms.columns.status);
    const { reference } = terms.columns;
    // A column without a name, as a comma at the end of the lines makes it, is none.
    this.#ofReference = reference === null ? -1 : terms.header.indexOf(reference);
    this.#byKey = new Map(terms.itemIds.map((id) => [wiseKeyOf(id), id]));
  }

  /** Reads the next rows, as cells. */
  read(records: readonly (readonly string[])[]): void {
    for (const record of records) {
      this.#row += 1;
      const status = (record[this.#ofStatus] ?? '').trim();
      const itemId = itemOf(record, this.#byKey);
      if (itemId === null) this.#unmatched.push({ row: this.#row, status });
      else this.#add(itemId, status, referenceOf(record[this.#ofReference] ?? ''));
    }
  }

  #add(itemId: PayoutRunItemId, status: string, reference: string | null): void {
    const row = { state: meaningOf(status, this.#terms.meanings), status, reference };
    const rows = this.#rows.get(itemId);
    if (rows === undefined) this.#rows.set(itemId, [row]);
    else rows.push(row);
    if (reference === null) return;
    const named = this.#itemsOfReference.get(reference) ?? itemId;
    this.#itemsOfReference.set(reference, named === itemId ? itemId : 'several');
  }

  /** Returns what was read. */
  report(): PayoutReport {
    return {
      items: [...this.#rows].map(([itemId, rows]) => this.#itemOf(itemId, rows)),
      unmatched: this.#unmatched,
    };
  }

  #itemOf(itemId: PayoutRunItemId, rows: readonly ReportRow[]): ReportedItem {
    const transfers = new Map<string | ReportRow, ReportRow>();
    for (const row of rows) {
      const key = this.#tells(itemId, row.reference) ? row.reference : row;
      const before = transfers.get(key);
      if (before === undefined || RANKS[before.state] < RANKS[row.state]) transfers.set(key, row);
    }
    const referencesOf = (...states: readonly ReportedState[]) =>
      [...transfers]
        .flatMap(([key, { state }]) => (typeof key === 'string' && states.includes(state) ? [key] : []))
        .slice(0, MOST_OTHERS);
    const said = [...transfers.values()].reduce((one, other) =>
      TRANSFER_RANKS[other.state] > TRANSFER_RANKS[one.state] ? other : one,
    );
    const arrived = referencesOf('sent');
    // Those without a reference that tells them apart, too, and those after the first hundred.
    const arrivals = [...transfers.values()].filter(({ state }) => state === 'sent').length;
    const hasReturn = [...transfers.values()].some(({ state }) => state === 'returned');
    return {
      itemId,
      ...said,
      arrived,
      underWay: referencesOf('pending', 'unknown'),
      cameBack: referencesOf('returned'),
      isContradictory: said.state === 'sent' && (hasReturn || arrivals > 1),
      hasUnnamedArrival: arrivals > Math.max(arrived.length, 1),
    };
  }

  /** Whether a reference tells a transfer apart: not the key of the item, a word such as "none", or what other items have, too. */
  #tells(itemId: PayoutRunItemId, reference: string | null): reference is string {
    return (
      reference !== null &&
      tellsTransfer(reference, itemId) &&
      this.#itemsOfReference.get(reference) === itemId
    );
  }
}

/**
 * Returns the reference of a cell, as a transfer can keep it. Null without one, and for an e-mail address: that of the recipient is erased
 * with the creator, and a transfer is kept.
 */
function referenceOf(cell: string): string | null {
  const text = cell.replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ').trim();
  return text.includes('@') ? null : Array.from(text).slice(0, LONGEST_REFERENCE).join('') || null;
}

/** The shortest cell that has a key. */
const SHORTEST_KEY = 16;

/** Returns the item that a row names. Null for none, and for several. */
function itemOf(
  cells: readonly string[],
  byKey: ReadonlyMap<string, PayoutRunItemId>,
): PayoutRunItemId | null {
  let named: PayoutRunItemId | null = null;
  for (const cell of cells) {
    if (cell.length < SHORTEST_KEY) continue;
    for (const [key] of cell.toLowerCase().matchAll(KEYS)) {
      const itemId = byKey.get(wiseKeyOf(key));
      if (itemId === undefined || itemId === named) continue;
      if (named !== null) return null;
      named = itemId;
    }
  }
  return named;
}

/**
 * What a report does to an item: what is stated of its payout, or why nothing is. `conflict`: it contradicts itself or what is stated, and
 * a person has to look at it.
 */
export const REPORT_OUTCOMES = ['sent', 'returned', 'conflict', 'unchanged', 'pending', 'unknown'] as const;
export type ReportOutcome = (typeof REPORT_OUTCOMES)[number];

/** What a report does to an item. */
export interface AssessedItem extends Consequence {
  readonly outcome: ReportOutcome;
}

/** Returns what follows from a report about an item. `unchanged`: it was stated before, or counts no more. */
export function assessReport(said: ReportedItem, item: StatedItem): AssessedItem {
  const consequence = consequenceOf(said, item);
  const { isConflict, statements } = consequence;
  const stated = statements.at(-1) ?? 'unchanged';
  const outcome = said.state === 'pending' || said.state === 'unknown' ? said.state : stated;
  return { ...consequence, outcome: isConflict ? 'conflict' : outcome };
}
