import * as z from 'zod';
import { affiliateRow } from './affiliates.ts';
import { commission } from './commissions.ts';
import { cents, count, epochMs } from './common.ts';
import { linkRow } from './links.ts';

const funnel = z.object({
  clicks: count,
  installs: count,
  identified: count,
  paid: count.describe('users with at least one attributed payment'),
});

const earnings = z
  .object({ pending: cents, matured: cents, paid: cents, lifetime: cents })
  .describe('net of reversals; lifetime is the sum of the other three');

export const appOverview = z.object({
  funnel,
  revenueCents: cents.describe('attributed production revenue net of refunds, USD cents'),
  commissions: earnings,
  affiliates: z.array(affiliateRow).describe('the ten that earned most'),
  links: z.array(linkRow).describe('the ten with the most clicks'),
  recentCommissions: z.array(commission).describe('the latest twenty'),
});

export const affiliateOverview = z.object({
  funnel,
  earnings,
  links: z.array(linkRow).describe('the fifty with the most clicks'),
  nextPayoutAt: epochMs.nullable().describe('the earliest dueAt of an earning that is not paid yet'),
  carriedBalanceCents: cents.describe('what is owed back and taken off the next payout: zero or less'),
});
