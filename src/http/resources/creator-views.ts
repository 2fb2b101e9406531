import * as z from 'zod';
import type { CreatorPayout } from '../../db/creator-statements.ts';
import type { Money } from '../../db/payout-transfers.ts';
import { PAYEE_EXCLUSIONS } from '../../domain/payee.ts';
import * as enums from '../enum-fields.ts';
import { cents, count, currency, epochMs, idOf, orNull, rateBps, textField } from '../fields.ts';
import { BRAND_COLOR } from './apps-views.ts';
import { workingCodes } from './codes.ts';
import { creatorPolicy } from './creator-policy.ts';
import { linkRow } from './links.ts';
import { earnings, funnel, nextDueAt } from './overviews.ts';
import { codeAddress } from './own-payees.ts';
import { creatorPayee } from './payees.ts';
import { payoutMoney } from './payouts-views.ts';
import { seriesOf, seriesPoint } from './timeseries.ts';

export const REFUNDS =
  'If a purchase is refunded or disputed, its commission is taken back. What was paid already reduces the next payout.';

export const creator = z
  .object({
    name: textField('First creator', 'The name of the creator.'),
    status: enums.affiliateStatus,
    appName: textField('Lantern Notes', 'The name of the app.'),
    brandColor: textField('#0b7285', `${BRAND_COLOR} Absent: none was chosen.`).optional(),
    rules: z
      .object({
        rateBps: rateBps(
          'The part of a payment that the creator earns from now on. With a policy, the rate that it replaces.',
        ),
        policy: creatorPolicy
          .describe('The policy that the creator earns by. Absent without one.')
          .optional(),
        windowDays: count('Days from a click to the first opening of the app: a later one does not count.'),
        holdDays: count('Days after the payment until its commission can be paid: until then it is held.'),
        refunds: textField(REFUNDS, 'What happens after a refund or dispute, a sentence for people.'),
      })
      .describe('The rules by which the creator earns.'),
    codes: workingCodes.optional(),
    payoutsUnderReview: z
      .literal(true)
      .describe('No payout is made at present. Absent otherwise.')
      .optional(),
    payee: creatorPayee.optional(),
    payeeCodes: codeAddress.optional(),
  })
  .meta({ id: 'Creator', description: 'The creator, and the rules.' });

export const overview = z
  .object({
    funnel,
    earnings,
    nextDueAt,
    nextDueCents: orNull(
      cents('The net amount that becomes due at `nextDueAt`.'),
      'Null without `nextDueAt`.',
    ),
    heldUntil: orNull(epochMs('When the last of the held commissions becomes due.'), 'Null if none is held.'),
    carriedBalanceCents: cents('The negative balance that the next payout deducts: zero or less.'),
    nextRun: z
      .object({
        date: textField('2026-12-01', "The date of the run, by the wall clock of the app's payout schedule."),
        estimatedCents: cents(
          'What is due now, and what becomes due until then. Refunds and purchases can change it. Never negative.',
        ),
        minimumCents: cents('Less than this is not paid then. It is kept for a later run.'),
        exclusionReason: z
          .enum(PAYEE_EXCLUSIONS)
          .describe(
            'Why the run would leave you out: `no_payee`, there is none; `payee_changed`, the new one does not count yet then. Absent if the payee is no reason to leave you out.',
          )
          .optional(),
      })
      .describe(
        'The next run of the payout schedule, which somebody approves. Absent if the app has no schedule, and while payouts are under review.',
      )
      .optional(),
  })
  .meta({ id: 'CreatorOverview', description: "The creator's totals of all time." });

export const series = seriesOf(seriesPoint).meta({
  id: 'CreatorTimeseries',
  description: "The creator's counts and earnings per hour, day, week or month.",
});

export const link = linkRow
  .pick({ id: true, slug: true, url: true, directUrl: true, destinationUrl: true, active: true })
  .extend({
    clicks: linkRow.shape.clicks,
    earnedCents: cents('What its commissions have earned in all time, net of refunds and disputes.'),
    createdAt: linkRow.shape.createdAt,
  })
  .meta({ id: 'CreatorLink', description: 'A link of the creator.' });

export const payout = z
  .object({
    id: idOf('payout'),
    itemCount: count('The number of commissions of all kinds in it.'),
    totalCents: cents('The amount of the payout.'),
    currency,
    createdAt: epochMs('When the payout was made.'),
    money: payoutMoney.describe('Where the money is. Absent until it is stated.').optional(),
  })
  .meta({ id: 'CreatorPayout', description: 'A payout to the creator.' });

export const statement = payout
  .extend({
    creatorName: textField('First creator', 'The name of the creator at the time of the payout.'),
    appName: textField('Lantern Notes', 'The name of the app.'),
    earnedCents: cents(
      'The sum of commissions, bonuses and what was given back: a dispute that was won, a deduction that was undone.',
    ),
    earnedCount: count('The number of these.'),
    takenBackCents: cents(
      'The sum of what refunds, disputes, corrections and deductions took back: zero or less.',
    ),
    takenBackCount: count('The number of these.'),
    from: epochMs('The time of the first purchase, refund, dispute, bonus or deduction.'),
    to: epochMs('The time of the last one.'),
  })
  .meta({ id: 'CreatorStatement', description: 'The statement of a payout.' });

export function presentPayout(
  { id, itemCount, totalCents, createdAt }: CreatorPayout,
  money: Money | undefined,
) {
  return {
    id,
    itemCount,
    totalCents,
    currency: 'USD' as const,
    createdAt,
    ...(money !== undefined && { money }),
  };
}
