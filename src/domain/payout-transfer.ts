import { wiseKeyOf } from './payout-run-files.ts';

/** What somebody stated about the money of a payout: it left, it came back, or the statement before was a mistake. */
export const TRANSFER_STATES = ['sent', 'returned', 'withdrawn', 'return_withdrawn'] as const;
export type TransferState = (typeof TRANSFER_STATES)[number];

/** Where the money of a payout is: what the last statement says that was not withdrawn. */
export const MONEY_STATES = ['sent', 'returned'] as const;
export type MoneyState = (typeof MONEY_STATES)[number];

/** The statements that a payout has room for. */
export const MOST_TRANSFERS = 100;

/** A transfer that a report named beside what is stated, and that had not come back. */
export interface OtherTransfer {
  /** Empty: the report had none. */
  readonly reference: string;
  /** The number of statements about the payout at that time. */
  readonly position: number;
}

/** An item of a payout run whose payout was made, and what was stated about the payout since the item's file. */
export interface StatedItem {
  /** Where the money is. Null: nothing was stated since, or it was withdrawn. */
  readonly state: MoneyState | null;
  /** The position of the statement that says so. Null without one. */
  readonly statedPosition: number | null;
  /** Its reference. Null without one. */
  readonly statedReference: string | null;
  /** The number of all statements about the payout. */
  readonly position: number;
  /** Whether it was stated since that the money came back, also by mistake. What was sent later was sent by hand. */
  readonly cameBack: boolean;
  /** The reference of that statement. Null without one. */
  readonly returnedReference: string | null;
  /** Whether a later run sends the money again: what is said of this one states nothing more. */
  readonly isSentAgain: boolean;
  /** The other transfers of the payout that reports have named. */
  readonly others: readonly OtherTransfer[];
}

/** What a report says of the transfers of an item: their references, where these tell transfers apart. */
export interface ReportedTransfers {
  readonly state: MoneyState | 'pending' | 'unknown';
  readonly arrived: readonly string[];
  readonly underWay: readonly string[];
  readonly cameBack: readonly string[];
  /** Whether one transfer arrived and another one came back, or several arrived. */
  readonly isContradictory: boolean;
}

/** What follows from a report about an item. */
export interface Consequence {
  readonly statements: readonly MoneyState[];
  /** References to keep: of transfers beside what is stated that had not come back. Empty text: one without a reference. */
  readonly others: readonly string[];
  /** Whether a person has to look at it. */
  readonly isConflict: boolean;
}

/** Whether a reference can tell a transfer of an item apart: not the key of the item, and not a word such as "none". */
export const tellsTransfer = (reference: string, itemId: string): boolean =>
  /[1-9]/.test(reference) && !reference.toLowerCase().includes(wiseKeyOf(itemId));

/** Returns items of a run without the references that tell no transfer apart: those of several items, as of a whole batch, among them. */
export function withTransferReferences<T extends StatedItem & { readonly id: string }>(
  items: readonly T[],
): readonly T[] {
  const counts = new Map<string, number>();
  for (const { statedReference } of items)
    if (statedReference !== null) counts.set(statedReference, (counts.get(statedReference) ?? 0) + 1);
  return items.map((item) => {
    const { id, statedReference } = item;
    const tells =
      statedReference !== null && counts.get(statedReference) === 1 && tellsTransfer(statedReference, id);
    return tells ? item : { ...item, statedReference: null };
  });
}

const NOTHING: Consequence = { statements: [], others: [], isConflict: false };

/**
 * Returns what has to be stated so that a payout is what its payment service says: nothing if that was stated. Money that came back was
 * sent before, and comes back once: an old report says nothing of what was sent after that, and nothing against a founder who has withdrawn
 * a return.
 *
 * Money is sent again after a return alone, so a report states none while another transfer may have arrived: each transfer that arrived or
 * is under way, beside the one that is stated, is kept. A return that such a transfer contradicts is not answered by a run.
 */
export function consequenceOf(reported: ReportedTransfers, item: StatedItem): Consequence {
  return reported.state === 'returned' ? ofReturn(reported, item) : ofLive(reported, item);
}

/** Of a payout whose transfers have all come back, as the report says. */
function ofReturn({ cameBack }: ReportedTransfers, item: StatedItem): Consequence {
  if (item.isSentAgain || item.cameBack) return NOTHING;
  const isOneOut = item.others.some(({ reference }) => !cameBack.includes(reference));
  const isStatedOut =
    item.state === 'sent' && (item.statedReference === null || !cameBack.includes(item.statedReference));
  if (isOneOut || isStatedOut) return { ...NOTHING, isConflict: true };
  return {
    ...NOTHING,
    statements: withRoom(item.state === 'sent' ? ['returned'] : ['sent', 'returned'], item),
  };
}

const withRoom = (statements: readonly MoneyState[], { position }: StatedItem) =>
  position + statements.length <= MOST_TRANSFERS ? statements : [];

/** Of a payout with a transfer that arrived, or that may still arrive. */
function ofLive(reported: ReportedTransfers, item: StatedItem): Consequence {
  const isSent = reported.state === 'sent';
  const { state, isSentAgain, cameBack } = item;
  if (state === null && !isSentAgain) {
    if (cameBack) return NOTHING;
    const statements = isSent ? withRoom(['sent'], item) : [];
    const [stated] = reported.arrived;
    const others = unkept([...reported.arrived, ...reported.underWay], item).filter(
      (reference) => statements.length === 0 || reference !== stated,
    );
    return { statements, others, isConflict: reported.isContradictory };
  }
  const open = otherThanStated(reported, item).filter((reference) => !isDecided(reference, item));
  return { statements: [], others: unkept(open, item), isConflict: open.length > 0 };
}

/** The transfers of a report that are not the one that is stated, or that came back before the money was sent again. */
function otherThanStated(
  { state, arrived, underWay }: ReportedTransfers,
  item: StatedItem,
): readonly string[] {
  const live = [...arrived, ...underWay];
  if (item.state === 'returned' && !item.isSentAgain) {
    // Whichever arrived contradicts the return. What is under way may be how an old report has the transfer that came back.
    const others = [...arrived, ...underWay.filter((reference) => reference !== item.returnedReference)];
    return state === 'sent' && arrived.length === 0 ? [...others, ''] : others;
  }
  if (item.isSentAgain) {
    const others = live.filter((reference) => reference !== item.returnedReference);
    return state === 'sent' && live.length === 0 ? [''] : others;
  }
  // A mark by hand has no reference, or one of its own, and is about one of the transfers.
  const isKnown = item.statedReference !== null;
  const others = live.filter(
    (reference) => reference !== item.statedReference && reference !== item.returnedReference,
  );
  return isKnown || live.length > 1 ? others : [];
}

/** Whether something was stated after a transfer had been kept, on which the state of the money rests. */
function isDecided(
  reference: string,
  { others, state, isSentAgain, statedPosition, position }: StatedItem,
): boolean {
  const since = state === 'returned' && !isSentAgain ? (statedPosition ?? position) : position;
  return others.some((other) => other.reference === reference && other.position < since);
}

/** The references that are not kept yet. */
const unkept = (references: readonly string[], { others }: StatedItem) =>
  references.filter((reference) => others.every((other) => other.reference !== reference));
