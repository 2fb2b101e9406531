import * as z from 'zod';
import { COMMISSION_STATUSES } from '../../db/commissions.ts';
import { MATCH_METHODS } from '../../domain/attribution.ts';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import { cents, epochMs, fromTo, givenId, idOf, pageOf, pageQuery, rateBps, textLike } from './common.ts';

const status = z.enum(COMMISSION_STATUSES);

export const commission = z.object({
  id: idOf('commission'),
  affiliateId: idOf('affiliate'),
  affiliateName: textLike('First creator'),
  linkId: idOf('link').nullable(),
  eventId: idOf('event'),
  kind: z.enum(['earning', 'reversal']),
  reversesCommissionId: idOf('commission').nullable(),
  status,
  rateBps,
  baseCents: cents,
  amountCents: cents,
  currency: z.literal('USD'),
  source: z.enum(PROVIDER_NAMES),
  customerUserId: textLike('user-4711'),
  matchMethod: z.enum(MATCH_METHODS),
  occurredAt: epochMs,
  dueAt: epochMs,
  maturedAt: epochMs.nullable(),
  paidAt: epochMs.nullable(),
  payoutId: idOf('payout').nullable(),
  createdAt: epochMs,
});

export const commissionsQuery = z.object({
  ...pageQuery,
  affiliateId: givenId('affiliate').optional(),
  status: status.optional(),
  ...fromTo('earliest `occurredAt`, included', 'latest `occurredAt`, not included'),
});

export const commissionsPage = pageOf(commission);
