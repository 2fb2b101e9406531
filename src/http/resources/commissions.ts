import * as z from 'zod';
import { readFilteredTotal } from '../../db/commission-totals.ts';
import { listCommissions } from '../../db/commissions.ts';
import type { CommissionFilter, CommissionListRow } from '../../db/commissions.ts';
import { PAGE_EXAMINES } from '../../db/page.ts';
import { findMoneyOfRows } from '../../db/payout-transfers.ts';
import type { Money } from '../../db/payout-transfers.ts';
import type { PayoutId } from '../../domain/ids.ts';
import * as enums from '../enum-fields.ts';
import {
  nameOfAffiliate,
  cents,
  currency,
  customerUserId,
  entryReason,
  epochMs,
  filterId,
  idOf,
  inputId,
  orNull,
  presentedUserId,
  rateBps,
} from '../fields.ts';
import { fromTo } from '../instants.ts';
import { CSV_LIST } from '../list-csv.ts';
import {
  decodeCursor,
  EMPTY_PAGE,
  givenFilters,
  MAY_BE_SHORT,
  millisKey,
  pageSchema,
  pageQuery,
  presentPage,
} from '../pagination.ts';
import { shownPolicy } from '../policy-fields.ts';
import { moneyOfPayout, presentMoney } from './payouts-views.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const NO_PAYMENT = 'Null for an entry.';

/** The entry that a commission results from. */
const entryOfCommission = z
  .object({
    id: idOf('entry'),
    category: enums.entryCategory,
    reason: entryReason,
    undoesEntryId: orNull(idOf('entry', 'The id of the entry that it undoes.'), 'Null unless it undoes one.'),
  })
  .describe('The entry that the row results from. Absent for what results from a payment.');

/** A row of the ledger. */
export const commission = z
  .object({
    id: idOf('commission'),
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    linkId: orNull(idOf('link'), "Null if the user entered an affiliate's id as the code."),
    eventId: orNull(idOf('event', 'The id of the event that the row results from.'), NO_PAYMENT),
    entry: entryOfCommission.optional(),
    kind: enums.commissionKind,
    reversesCommissionId: orNull(
      idOf('commission', 'The id of the earning that a reversal or correction takes back.'),
      'Null for an earning.',
    ),
    reason: orNull(enums.correctionReason, 'Null for other kinds.'),
    status: enums.commissionStatus,
    rateBps: rateBps(
      'The rate of the earning, fixed when it was written. 0 for an entry, and for a fixed amount of a policy.',
    ),
    policy: shownPolicy.optional(),
    baseCents: cents('The part of the payment, refund or dispute that the rate applies to. 0 for an entry.'),
    amountCents: cents('The commission. Negative if it takes back.'),
    currency,
    source: orNull(enums.provider, NO_PAYMENT),
    customerUserId: orNull(presentedUserId, NO_PAYMENT),
    matchMethod: orNull(enums.attributionMethod, NO_PAYMENT),
    occurredAt: epochMs(
      'When the customer paid, as the provider states it (a renewal may be dated up to a day ahead), or the time of the refund, dispute or entry.',
    ),
    dueAt: epochMs(
      'When it can be paid: the time of the payment plus the hold period, or what the entry states.',
    ),
    maturedAt: orNull(epochMs('When it became due.'), 'Null while it is `pending`.'),
    paidAt: orNull(epochMs('When a payout paid it.'), 'Null until then.'),
    payoutId: orNull(idOf('payout'), 'Null until a payout contains it.'),
    money: moneyOfPayout.optional(),
    createdAt: epochMs('When the row was written.'),
  })
  .meta({
    id: 'Commission',
    description: 'A row of the ledger. Rows are only appended; their status and payout change.',
  });

const commissionsQuery = z.object({
  ...pageQuery,
  affiliateId: inputId('affiliate').optional(),
  linkId: inputId('link').optional(),
  payoutId: inputId('payout').optional(),
  status: enums.commissionStatus.optional(),
  kind: enums.commissionKind.optional(),
  source: enums.provider.optional(),
  customerUserId: customerUserId.optional(),
  ...fromTo('Earliest `occurredAt`, inclusive.', 'Latest `occurredAt`, exclusive.'),
});

/** Presents rows of the ledger, given where the money of their payouts is. */
export const commissionPresenter = (money: ReadonlyMap<PayoutId, Money>) => (row: CommissionListRow) => {
  return {
    id: row.id,
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
    linkId: row.linkId,
    eventId: row.eventId,
    ...(row.entry === null ? {} : { entry: row.entry }),
    kind: row.kind,
    reversesCommissionId: row.reversesCommissionId,
    reason: row.reason,
    status: row.status,
    rateBps: row.rateBps,
    ...(row.policy === null ? {} : { policy: row.policy }),
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
    ...presentMoney(money, row),
    createdAt: row.createdAt,
  };
};

const totalsQuery = commissionsQuery.omit({ limit: true, cursor: true });

/** Returns the filters of a query, as they were given. */
const filtersOf = (query: z.infer<typeof totalsQuery>) => ({
  status: query.status ?? null,
  kind: query.kind ?? null,
  source: query.source ?? null,
  from: query.from ?? null,
  to: query.to ?? null,
  affiliateId: query.affiliateId ?? null,
  linkId: query.linkId ?? null,
  payoutId: query.payoutId ?? null,
  customerUserId: query.customerUserId ?? null,
});

/** Returns what a query selects. Null for none: a filter has a malformed id. */
function selectedBy(query: z.infer<typeof totalsQuery>): CommissionFilter | null {
  const affiliateId = filterId('affiliate', query.affiliateId);
  const linkId = filterId('link', query.linkId);
  const payoutId = filterId('payout', query.payoutId);
  if (affiliateId === 'none' || linkId === 'none' || payoutId === 'none') return null;
  return { ...filtersOf(query), affiliateId, linkId, payoutId };
}

const SUM = 'The sum of `amountCents`: earnings net of reversals and corrections.';

/** The sum of a range. */
export const totals = z
  .object({
    from: orNull(epochMs('The beginning of the range, inclusive.'), 'Null: no beginning.'),
    to: orNull(epochMs('The end of the range, exclusive.'), 'Null: no end.'),
    totalCents: cents(SUM),
  })
  .meta({ id: 'CommissionTotals', description: 'The range, and the sum of its commissions.' });

const filteredTotals = totals
  .extend({ totalCents: orNull(cents(SUM), 'Null if too many rows would have to be read.') })
  .meta({
    id: 'FilteredCommissionTotals',
    description: 'The range, and the sum of the commissions that the filters select.',
  });

export const commissionRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/commissions',
    caller: accountApp('read'),
    operationId: 'listCommissions',
    summary: 'Lists commissions, reversals, corrections and entries, latest purchase first.',
    description: `${MAY_BE_SHORT} ${CSV_LIST}`,
    query: commissionsQuery,
    response: { status: 200, schema: pageSchema(commission), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const { customerUserId: userId, ...first } = filtersOf(query);
      const filters = { ...first, ...givenFilters({ customerUserId: userId }) };
      const key = { list: 'commissions', appId: app.id, filters };
      const after = decodeCursor(key, millisKey, query.cursor);
      const selected = selectedBy(query);
      if (selected === null) return EMPTY_PAGE;
      const page = await listCommissions(deps.sql, app.id, selected, after, query.limit);
      return presentPage(key, page, commissionPresenter(await findMoneyOfRows(deps.sql, page.rows)));
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/commissions/totals',
    caller: accountApp('read'),
    operationId: 'getCommissionTotals',
    summary: 'Adds up the commissions of a range of time.',
    description:
      'Returns the sum of `amountCents` of the rows that `GET /apps/:appId/commissions` lists for the same parameters, to ' +
      'the millisecond and cent. By affiliate, link and time, by affiliate and status, and by payout it reads stored sums. With other filters it reads rows, ' +
      `at most ${PAGE_EXAMINES}: of as many and of more the sum is null.`,
    query: totalsQuery,
    response: { status: 200, schema: filteredTotals },
    handler: async ({ deps, app, query }) => {
      const range = { from: query.from ?? null, to: query.to ?? null };
      const selected = selectedBy(query);
      if (selected === null) return { ...range, totalCents: 0 };
      return { ...range, totalCents: (await readFilteredTotal(deps.sql, app.id, selected)) ?? null };
    },
  }),
];
