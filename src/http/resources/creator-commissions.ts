import * as z from 'zod';
import type { CommissionEntry, CommissionListRow } from '../../db/commissions.ts';
import type { Money } from '../../db/payout-transfers.ts';
import type { AttributionMethod } from '../../domain/attribution.ts';
import type { EntryCategory } from '../../domain/entry.ts';
import type { PayoutId } from '../../domain/ids.ts';
import * as enums from '../enum-fields.ts';
import { cents, currency, epochMs, idOf, orNull, rateBps, textField } from '../fields.ts';
import { shownPolicy } from '../policy-fields.ts';
import { moneyOfPayout, presentMoney } from './payouts-views.ts';

const { base, baseEstimated, flatCents } = shownPolicy.shape;

const computedFrom = z
  .object({
    base: base.optional(),
    baseEstimated: baseEstimated.optional(),
    baseCents: cents('The part of the payment, refund or dispute that the rate applies to.').optional(),
    flatCents,
  })
  .describe(
    'What a policy computed the earning from: `flatCents` of a fixed amount, else `rateBps` of the base. Absent for another rate.',
  );

/** A commission as its creator sees it. */
export const creatorCommission = z
  .object({
    id: idOf('commission'),
    linkId: orNull(idOf('link'), 'Null if the user entered another code.'),
    kind: enums.commissionKind,
    reason: textField('A purchase of a user who came by your link.', 'Why, a sentence for people.'),
    reversesCommissionId: orNull(
      idOf('commission', 'The id of the earning that a reversal or correction takes back.'),
      'Null for an earning.',
    ),
    status: enums.commissionStatus,
    rateBps: rateBps('The rate of the earning, fixed when it was written. 0 for a bonus or deduction.'),
    computedFrom: computedFrom.optional(),
    amountCents: cents('The commission. Negative if it takes back or deducts.'),
    currency,
    occurredAt: epochMs('When the customer paid, or the time of the refund, dispute, bonus or deduction.'),
    dueAt: epochMs(
      'When it can be paid: the time of the payment plus the hold period, or that of the bonus or deduction.',
    ),
    paidAt: orNull(epochMs('When a payout paid it.'), 'Null until then.'),
    payoutId: orNull(idOf('payout'), 'Null until a payout contains it.'),
    money: moneyOfPayout.optional(),
  })
  .meta({ id: 'CreatorCommission', description: 'A commission of the creator.' });

/** What an entry is for, for the creator. */
const ENTRY_TITLES: Readonly<Record<EntryCategory, string>> = {
  bonus: 'Bonus',
  fixed_fee: 'Fixed fee',
  unreported_refund: 'Refund that was not reported',
  opening_balance: 'Opening balance',
  write_off: 'Write-off',
  other: 'Other',
};

function reasonOfEntry({ category, reason, undoesEntryId }: CommissionEntry): string {
  return `${ENTRY_TITLES[category]}${undoesEntryId === null ? '' : ', undone'}: ${reason}`;
}

/** How a user came to the creator. */
const HOW: Readonly<Record<AttributionMethod, string>> = {
  claim_token: 'came by your link',
  code: 'entered your link code',
  deferred: 'came by your link',
  purchase_code: 'bought with your purchase code',
  manual: 'was attributed to you',
};

/** Returns why a commission was written, for people. */
function reasonOf({ kind, matchMethod, amountCents, entry }: CommissionListRow): string {
  switch (kind) {
    case 'earning':
      return `A purchase of a user who ${HOW[matchMethod ?? 'claim_token']}.`;
    case 'reversal':
      return amountCents < 0
        ? 'The purchase was refunded or disputed.'
        : 'The refund was undone, or the dispute was won.';
    case 'correction':
      return 'The purchase had earned twice, under two references of the store.';
    case 'bonus':
    case 'deduction':
      return entry === null ? '' : reasonOfEntry(entry);
  }
}

/** The base of a fixed amount is left out: it would state the price, which the amount does not depend on. */
function presentComputedFrom({ policy, baseCents }: CommissionListRow) {
  if (policy === null) return {};
  const { base: kind, baseEstimated: isEstimated, flatCents: flat } = policy;
  return {
    computedFrom:
      flat === undefined ? { base: kind, baseEstimated: isEstimated, baseCents } : { flatCents: flat },
  };
}

/** Presents rows of the ledger to their creator, given where the money of their payouts is. */
export const creatorCommissionPresenter =
  (money: ReadonlyMap<PayoutId, Money>) => (row: CommissionListRow) => {
    return {
      id: row.id,
      linkId: row.linkId,
      kind: row.kind,
      reason: reasonOf(row),
      reversesCommissionId: row.reversesCommissionId,
      status: row.status,
      rateBps: row.rateBps,
      ...presentComputedFrom(row),
      amountCents: row.amountCents,
      currency: 'USD' as const,
      occurredAt: row.occurredAt,
      dueAt: row.dueAt,
      paidAt: row.paidAt,
      payoutId: row.payoutId,
      ...presentMoney(money, row),
    };
  };
