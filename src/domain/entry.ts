/** What an entry is for. `opening_balance`: what was owed when the app began to use the service. `write_off`: a debt that nobody collects. */
export const ENTRY_CATEGORIES = [
  'bonus',
  'fixed_fee',
  'unreported_refund',
  'opening_balance',
  'write_off',
  'other',
] as const;
export type EntryCategory = (typeof ENTRY_CATEGORIES)[number];

/** Categories that only add, or only deduct. The others do either. */
export const ENTRY_SIGNS: Readonly<Partial<Record<EntryCategory, 1 | -1>>> = {
  bonus: 1,
  fixed_fee: 1,
  unreported_refund: -1,
};

/** The kinds of commissions that entries have: money that was added, and money that was deducted. */
export const ENTRY_KINDS = ['bonus', 'deduction'] as const;
export type EntryKind = (typeof ENTRY_KINDS)[number];

/** Returns the kind of an entry of an amount, US cents, not zero. */
export function kindOfEntry(amountCents: number): EntryKind {
  return amountCents > 0 ? 'bonus' : 'deduction';
}
