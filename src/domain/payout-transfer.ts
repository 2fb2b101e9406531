import { wiseKeyOf } from './payout-run-files.ts';

/** What somebody stated about the money of a payout: it left, it came back, or the statement before was a mistake. */
export const TRANSFER_STATES = ['sent', 'returned', 'withdrawn', 'return_withdrawn'] as const;
export type TransferState = (typeof TRANSFER_STATES)[number];

/** Where the money of a payout is: what the last statement says that was not withdrawn. */
export const MONEY_STATES = ['sent', 'returned'] as const;
export type MoneyState = (typeof MONEY_STATES)[number];

/** The statements that a payout has room for. */
export const MOST_TRANSFERS = 100;

/** The other transfers of a payout that are kept, and those of one item that are read of a report: more are a mistake, which a person sees. */
export const MOST_OTHERS = 100;

/** A transfer that a report names beside what is stated, and that has not come back. */
export interface LiveTransfer {
  /** Empty: the report has none. */
  readonly reference: string;
  /** Whether it arrived, as the report says. Otherwise it may still arrive. */
  readonly hasArrived: boolean;
}

/** Such a transfer that is kept. */
export interface OtherTransfer extends LiveTransfer {
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
  /** The other transfers of the payout that reports have named, in their order. */
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
  /** Whether several arrived, one of which has no reference that tells it apart. */
  readonly hasUnnamedArrival: boolean;
}

/** What follows from a report about an item. */
export interface Consequence {
  readonly statements: readonly MoneyState[];
  /** The transfers to keep. */
  readonly others: readonly LiveTransfer[];
  /** Whether a person has to look at it. */
  readonly isConflict: boolean;
}

/** The numbers of rows: another report has the same ones for other transfers. */
const ROW_NUMBER = /^\d{1,5}$/;

/**
 * Whether a reference can tell a transfer of an item apart: not the number of a row, not the key of the item, and not a word such as
 * "none".
 */
export const tellsTransfer = (reference: string, itemId: string): boolean =>
  !ROW_NUMBER.test(reference) &&
  /[1-9]/.test(reference) &&
  !reference.toLowerCase().includes(wiseKeyOf(itemId));

/** Returns items of a run without the references that tell no transfer apart: those of several items, as of a whole batch, among them. */
export function withTransferReferences<T extends StatedItem & { readonly id: string }>(
  items: readonly T[],
): readonly T[] {
  const counts = new Map<string | null, number>();
  for (const { statedReference } of items)
    counts.set(statedReference, (counts.get(statedReference) ?? 0) + 1);
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
 * is under way, beside the one that is stated, is kept. A return that such a transfer contradicts is not answered by a run. What there is no
 * room to keep is a conflict, too.
 */
export function consequenceOf(reported: ReportedTransfers, item: StatedItem): Consequence {
  if (reported.state === 'returned') return ofReturn(reported, item);
  const { statements, others, isConflict } = ofLive(reported, item);
  const room = Math.max(0, MOST_OTHERS - item.others.length);
  return { statements, others: others.slice(0, room), isConflict: isConflict || others.length > room };
}

/** Of a payout whose transfers have all come back, as the report says. */
function ofReturn({ cameBack }: ReportedTransfers, item: StatedItem): Consequence {
  if (item.isSentAgain || item.cameBack) return NOTHING;
  const isOneOut = item.others.some(({ reference }) => !cameBack.includes(reference));
  const isStatedOut =
    item.state === 'sent' && cameBack.every((reference) => reference !== item.statedReference);
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
    const others = unkept(liveOf(reported), item).filter(
      ({ reference }) => statements.length === 0 || reference !== stated,
    );
    return { statements, others, isConflict: reported.isContradictory };
  }
  const open = otherThanStated(reported, item).filter((transfer) => !isDecided(transfer, item));
  const ofMark = arrivedSinceMark(reported, item).filter(
    ({ reference }) => !open.some((transfer) => transfer.reference === reference),
  );
  return { statements: [], others: [...unkept(open, item), ...ofMark], isConflict: open.length > 0 };
}

/**
 * The transfers that arrived, and are not kept yet since the money was stated as sent without a reference that tells one apart: the payment
 * is one of them. It is kept, so that a second one in another report is seen.
 */
function arrivedSinceMark(reported: ReportedTransfers, item: StatedItem): readonly LiveTransfer[] {
  if (item.state !== 'sent' || item.isSentAgain || item.statedReference !== null) return [];
  const since = keptSince(item);
  return liveOf(reported).filter(
    (transfer) =>
      transfer.hasArrived &&
      transfer.reference !== item.returnedReference &&
      !since.some((other) => covers(other, transfer)),
  );
}

const keptSince = ({ others, statedPosition }: StatedItem) =>
  others.filter(({ position }) => position >= (statedPosition ?? 0));

/** One that arrived, and for which the report has no reference. */
const UNNAMED: LiveTransfer = { reference: '', hasArrived: true };

const liveOf = ({ arrived, underWay, hasUnnamedArrival }: ReportedTransfers): readonly LiveTransfer[] => [
  ...arrived.map((reference) => ({ reference, hasArrived: true })),
  ...underWay.map((reference) => ({ reference, hasArrived: false })),
  ...(hasUnnamedArrival ? [UNNAMED] : []),
];

/** The transfers of a report that are not the one that is stated, or that came back before the money was sent again. */
function otherThanStated(reported: ReportedTransfers, item: StatedItem): readonly LiveTransfer[] {
  const live = liveOf(reported);
  const isSent = reported.state === 'sent';
  if (item.state === 'returned' && !item.isSentAgain) {
    // Whichever arrived contradicts the return. What is under way may be how an old report has the transfer that came back.
    const others = live.filter(
      ({ reference, hasArrived }) => hasArrived || reference !== item.returnedReference,
    );
    return isSent && others.every(({ hasArrived }) => !hasArrived) ? [...others, UNNAMED] : others;
  }
  const others = live.filter(({ reference }) => reference !== item.returnedReference);
  if (item.isSentAgain) return isSent && live.length === 0 ? [UNNAMED] : others;
  // A mark by hand has no reference, or one of its own, and is about one of the transfers: the first one that a report has named since.
  const stated = item.statedReference ?? firstArrived(item);
  const isKnown = stated !== null || live.length > 1 || reported.hasUnnamedArrival;
  return isKnown ? others.filter(({ reference }) => reference !== stated) : [];
}

/** Returns the transfer that is kept as the one of a mark by hand. Null before a report has named one. */
const firstArrived = (item: StatedItem): string | null =>
  keptSince(item).find(({ reference, hasArrived }) => reference !== '' && hasArrived)?.reference ?? null;

/**
 * Whether something was stated after a transfer had been kept, on which the state of the money rests. Who states something while the
 * transfer is under way does not know yet that it arrives.
 */
function isDecided(
  transfer: LiveTransfer,
  { others, state, isSentAgain, statedPosition, position }: StatedItem,
): boolean {
  const since = state === 'returned' && !isSentAgain ? (statedPosition ?? position) : position;
  return others.some((other) => covers(other, transfer) && other.position < since);
}

/** The transfers that are not kept yet. */
const unkept = (transfers: readonly LiveTransfer[], { others }: StatedItem) =>
  transfers.filter((transfer) => others.every((other) => !covers(other, transfer)));

/** Whether what is kept says all that a report says of a transfer. */
const covers = (kept: OtherTransfer, { reference, hasArrived }: LiveTransfer) =>
  kept.reference === reference && (kept.hasArrived || !hasArrived);
