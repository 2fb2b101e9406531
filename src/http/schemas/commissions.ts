import * as z from 'zod';
import { COMMISSION_STATUSES } from '../../db/commissions.ts';
import { MATCH_METHODS } from '../../domain/attribution.ts';
import { anyId, cents, epochMs, epochMsText, pageOf, pageQuery, rateBps } from './common.ts';

const status = z.enum(COMMISSION_STATUSES);

export const commission = z.object({
  id: anyId,
  affiliateId: anyId,
  affiliateName: z.string(),
  linkId: anyId.nullable(),
  eventId: anyId,
  kind: z.enum(['earning', 'reversal']),
  reversesCommissionId: anyId.nullable(),
  status,
  rateBps,
  baseCents: cents,
  amountCents: cents,
  currency: z.literal('USD'),
  source: z.string(),
  customerUserId: z.string(),
  matchMethod: z.enum(MATCH_METHODS),
  occurredAt: epochMs,
  dueAt: epochMs,
  maturedAt: epochMs.nullable(),
  paidAt: epochMs.nullable(),
  payoutId: anyId.nullable(),
  createdAt: epochMs,
});

export const commissionsQuery = z.object({
  ...pageQuery,
  affiliateId: z.string().optional(),
  status: status.optional(),
  from: epochMsText.optional(),
  to: epochMsText.optional(),
});

export const commissionsPage = pageOf(commission);
