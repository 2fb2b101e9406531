/** What somebody stated about the money of a payout: it left, it came back, or the statement before was a mistake. */
export const TRANSFER_STATES = ['sent', 'returned', 'withdrawn', 'return_withdrawn'] as const;
export type TransferState = (typeof TRANSFER_STATES)[number];

/** Where the money of a payout is, as its creator sees it. */
export type MoneyState = 'sent' | 'returned';

/** Returns what the latest statement about a payout says to its creator. Null: nothing, or a mistake was withdrawn. */
export function moneyStateAfter(state: TransferState): MoneyState | null {
  if (state === 'withdrawn') return null;
  return state === 'return_withdrawn' ? 'sent' : state;
}

/** The statements that a payout has room for. */
export const MOST_TRANSFERS = 100;

/** An item of a payout run whose payout was made, and what was stated about the payout since the item's file. */
export interface StatedItem {
  /** The latest statement. Null: nothing was stated since. */
  readonly state: TransferState | null;
  /** The number of all statements about the payout. */
  readonly position: number;
  /** Whether it was stated since that the money came back, and that was not withdrawn. What was sent later was sent by hand. */
  readonly cameBack: boolean;
  /** Whether a later run sends the money again: what is said of this one counts no more. */
  readonly isSentAgain: boolean;
}

/**
 * Returns what has to be stated so that a payout is what its payment service says: nothing if that was stated. Money that came back was
 * sent before, and comes back once: an old report says nothing of what was sent after that.
 */
export function statementsFor(
  reported: 'sent' | 'returned',
  { state, position, cameBack, isSentAgain }: StatedItem,
): readonly ('sent' | 'returned')[] {
  const isSent = state === 'sent' || state === 'return_withdrawn';
  if (isSentAgain || cameBack || (isSent && reported === 'sent')) return [];
  const missing: readonly ('sent' | 'returned')[] = isSent
    ? ['returned']
    : reported === 'sent'
      ? ['sent']
      : ['sent', 'returned'];
  return position + missing.length <= MOST_TRANSFERS ? missing : [];
}
