/** What somebody stated about the money of a payout: it left, it came back, or the statement before was a mistake. */
export const TRANSFER_STATES = ['sent', 'returned', 'withdrawn', 'return_withdrawn'] as const;
export type TransferState = (typeof TRANSFER_STATES)[number];

/** Where the money of a payout is: what the last statement says that was not withdrawn. */
export const MONEY_STATES = ['sent', 'returned'] as const;
export type MoneyState = (typeof MONEY_STATES)[number];

/** The statements that a payout has room for. */
export const MOST_TRANSFERS = 100;

/** An item of a payout run whose payout was made, and what was stated about the payout since the item's file. */
export interface StatedItem {
  /** Where the money is. Null: nothing was stated since, or it was withdrawn. */
  readonly state: MoneyState | null;
  /** The number of all statements about the payout. */
  readonly position: number;
  /** Whether it was stated since that the money came back, also by mistake. What was sent later was sent by hand. */
  readonly cameBack: boolean;
  /** Whether a later run sends the money again: what is said of this one counts no more. */
  readonly isSentAgain: boolean;
}

/**
 * Returns what has to be stated so that a payout is what its payment service says: nothing if that was stated. Money that came back was
 * sent before, and comes back once: an old report says nothing of what was sent after that, and nothing against a founder who has withdrawn
 * a return.
 */
export function statementsFor(
  reported: MoneyState,
  { state, position, cameBack, isSentAgain }: StatedItem,
): readonly MoneyState[] {
  if (isSentAgain || cameBack || state === reported) return [];
  const missing: readonly MoneyState[] =
    reported === 'sent' ? ['sent'] : state === 'sent' ? ['returned'] : ['sent', 'returned'];
  return position + missing.length <= MOST_TRANSFERS ? missing : [];
}
