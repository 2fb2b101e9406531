import * as z from 'zod';
import { COMMISSION_STATUSES, CORRECTION_REASONS, listCommissions } from '../../db/commissions.ts';
import type { CommissionListRow } from '../../db/commissions.ts';
import { MATCH_METHODS } from '../../domain/attribution.ts';
import { COMMISSION_KINDS } from '../../domain/evaluate-payment.ts';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import { cents, epochMs, filterId, idOf, inputId, rateBps, textField } from '../fields.ts';
import { fromTo } from '../instants.ts';
import { decodeCursor, EMPTY_PAGE, millisKey, pageOf, pageQuery, presentPage } from '../pagination.ts';
import { appRoute } from '../route.ts';

const status = z.enum(COMMISSION_STATUSES);

/** A row of the ledger. */
export const commission = z.object({
  id: idOf('commission'),
  affiliateId: idOf('affiliate'),
  affiliateName: textField('First creator'),
  linkId: idOf('link').nullable(),
  eventId: idOf('event'),
  kind: z.enum(COMMISSION_KINDS),
  reversesCommissionId: idOf('commission').nullable(),
  reason: z
    .enum(CORRECTION_REASONS)
    .nullable()
    .meta({ description: 'Why a correction was appended. Null for other kinds.' }),
  status,
  rateBps,
  baseCents: cents,
  amountCents: cents,
  currency: z.literal('USD'),
  source: z.enum(PROVIDER_NAMES),
  customerUserId: textField('user-4711'),
  matchMethod: z.enum(MATCH_METHODS),
  occurredAt: epochMs,
  dueAt: epochMs,
  maturedAt: epochMs.nullable(),
  paidAt: epochMs.nullable(),
  payoutId: idOf('payout').nullable(),
  createdAt: epochMs,
});

const commissionsQuery = z.object({
  ...pageQuery,
  affiliateId: inputId('affiliate').optional(),
  status: status.optional(),
  ...fromTo('Earliest `occurredAt`, inclusive.', 'Latest `occurredAt`, exclusive.'),
});

export function presentCommission(row: CommissionListRow) {
  return {
    id: row.id,
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
    linkId: row.linkId,
    eventId: row.eventId,
    kind: row.kind,
    reversesCommissionId: row.reversesCommissionId,
    reason: row.reason,
    status: row.status,
    rateBps: row.rateBps,
    baseCents: row.baseCents,
    amountCents: row.amountCents,
    currency: 'USD' as const,
    source: row.source,
    customerUserId: row.customerUserId,
    matchMethod: row.matchMethod,
    occurredAt: row.occurredAt,
    dueAt: row.dueAt,
    maturedAt: row.maturedAt,
    paidAt: row.paidAt,
    payoutId: row.payoutId,
    createdAt: row.createdAt,
  };
}

export const commissionRoutes = [
  appRoute({
    method: 'GET',
    path: '/apps/:appId/commissions',
    permission: 'read',
    operationId: 'listCommissions',
    summary: 'Lists commissions, reversals and corrections, latest purchase first.',
    query: commissionsQuery,
    response: { status: 200, schema: pageOf(commission) },
    handler: async ({ deps, app, query }) => {
      const filter = { status: query.status ?? null, from: query.from ?? null, to: query.to ?? null };
      const filters = { ...filter, affiliateId: query.affiliateId ?? null };
      const key = { list: 'commissions', appId: app.id, filters };
      const after = decodeCursor(key, millisKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listCommissions(deps.sql, app.id, { ...filter, affiliateId }, after, query.limit);
      return presentPage(key, page, presentCommission);
    },
  }),
];
