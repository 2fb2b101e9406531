import * as z from 'zod';
import { readCommissionTotal } from '../../db/commission-totals.ts';
import { ALL_COMMISSIONS, listCommissions } from '../../db/commissions.ts';
import { findCreatorPayout, readStatementCsv, readStatementSums } from '../../db/creator-statements.ts';
import { listLinks } from '../../db/links.ts';
import { readAffiliateTotals, readDueBefore, readHeldDates } from '../../db/overviews.ts';
import { isRefusedValue } from '../../db/errors.ts';
import { arePayoutsBlocked } from '../../db/payout-blocks.ts';
import { findPayee, findPayeesAt } from '../../db/payees.ts';
import { listPayouts } from '../../db/payout-lists.ts';
import { isMonthOver } from '../../db/payout-run-drafts.ts';
import { findMoney, findMoneyOfRows } from '../../db/payout-transfers.ts';
import type { Sql } from '../../db/sql.ts';
import type { AffiliateId, AppId } from '../../domain/ids.ts';
import { payeeAt } from '../../domain/payee.ts';
import type { PayeeExclusion } from '../../domain/payee.ts';
import { exclusionByPayee } from '../../domain/payout-run.ts';
import { nextRunDate } from '../../domain/payout-schedule.ts';
import type { PayoutSchedule } from '../../domain/payout-schedule.ts';
import { listWorkingCodes } from '../../db/codes.ts';
import { readCreatorTerms } from '../../db/terms.ts';
import * as enums from '../enum-fields.ts';
import { foundOrThrow } from '../errors.ts';
import { filterId, inputId } from '../fields.ts';
import { fromTo } from '../instants.ts';
import {
  decodeCursor,
  EMPTY_PAGE,
  MAY_BE_SHORT,
  millisKey,
  pageSchema,
  pageQuery,
  presentPage,
  timeKey,
} from '../pagination.ts';
import { CSV_LIST } from '../list-csv.ts';
import { creatorPageRoutes } from '../routing/creator-page.ts';
import { totals as rangeTotals } from './commissions.ts';
import { creatorCommission, creatorCommissionPresenter } from './creator-commissions.ts';
import { presentCreatorPolicy } from './creator-policy.ts';
import { linkPresenter } from './links.ts';
import { presentEarnings, presentFunnel } from './overviews.ts';
import { CSV_HEADERS, presentCsv } from './payouts-views.ts';
import { presentCodeAddress } from './own-payees.ts';
import { presentCreatorPayee } from './payees.ts';
import { presentSeriesPoint, readSeries, seriesQuery } from './timeseries.ts';
import {
  creator,
  link,
  overview,
  payout,
  presentPayout,
  REFUNDS,
  series,
  statement,
} from './creator-views.ts';

// What a creator sees: the own numbers only, and nothing about customers, other creators or the app as a whole. The founder sees
// the same with routes of their own.

/**
 * Returns the next run of the payout schedule with what it would pay a creator. Null without a schedule, while payouts are blocked, and where
 * Postgres or this process does not know its time zone: they have lists of their own.
 */
async function findNextRun(
  sql: Sql,
  scope: { readonly appId: AppId; readonly affiliateId: AffiliateId },
  schedule: PayoutSchedule | null,
  { maturedCents }: { readonly maturedCents: number },
  now: number,
) {
  if (schedule === null || (await arePayoutsBlocked(sql, scope.affiliateId))) return null;
  const { timezone, minimumCents } = schedule;
  try {
    const due = nextRunDate(schedule, now);
    const isOver = await isMonthOver(sql, scope.appId, due.slice(0, 'YYYY-MM'.length));
    const date = nextRunDate(schedule, now, isOver);
    const { cents, beginsAt } = await readDueBefore(sql, scope, { date, timezone }, now);
    const reason = await readExclusion(sql, scope, schedule, Math.max(beginsAt, now));
    return {
      date,
      estimatedCents: Math.max(maturedCents + cents, 0),
      minimumCents,
      ...(reason === null ? {} : { exclusionReason: reason }),
    };
  } catch (error) {
    if (error instanceof RangeError || isRefusedValue(error)) return null;
    throw error;
  }
}

/** Returns why a run of the payout schedule at an instant, epoch ms, would leave a creator out because of the payee. */
async function readExclusion(
  sql: Sql,
  { appId, affiliateId }: { readonly appId: AppId; readonly affiliateId: AffiliateId },
  { withoutPayee }: PayoutSchedule,
  at: number,
): Promise<PayeeExclusion | null> {
  const versions = (await findPayeesAt(sql, appId, [affiliateId], at)).get(affiliateId) ?? [];
  return exclusionByPayee(payeeAt(versions, at).excludedAs, withoutPayee === 'include');
}

export const creatorRoutes = [
  creatorPageRoutes({
    method: 'GET',
    path: '/creator',
    operationId: 'getCreator',
    summary: 'Retrieves the creator and the rules.',
    response: { status: 200, schema: creator },
    handler: async ({ deps, creator: shown, app }) => {
      const { affiliateId, ownRateBps } = shown;
      const rates = { ownRateBps, appRateBps: app.commissionRateBps };
      const policy = presentCreatorPolicy(
        await readCreatorTerms(deps.sql, app.id, affiliateId, ownRateBps),
        rates,
      );
      const codes = app.purchaseCodes === 'off' ? [] : await listWorkingCodes(deps.sql, app.id, affiliateId);
      return {
        name: shown.name,
        status: shown.status,
        appName: app.name,
        ...(app.brandColor === null ? {} : { brandColor: app.brandColor }),
        rules: {
          rateBps: ownRateBps ?? app.commissionRateBps,
          ...(policy === null ? {} : { policy }),
          windowDays: app.attributionWindowDays,
          holdDays: app.holdPeriodDays,
          refunds: REFUNDS,
        },
        ...(codes.length === 0 ? {} : { codes }),
        ...presentCreatorPayee(await findPayee(deps, app.id, affiliateId)),
        ...(await presentCodeAddress(deps, shown)),
        ...((await arePayoutsBlocked(deps.sql, affiliateId)) && { payoutsUnderReview: true as const }),
      };
    },
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/overview',
    operationId: 'getCreatorOverview',
    summary: "Retrieves the creator's totals of all time.",
    response: { status: 200, schema: overview },
    handler: async ({ deps, creator: { appId, affiliateId }, app, now }) => {
      const [found, held] = await Promise.all([
        readAffiliateTotals(deps.sql, appId, affiliateId, now),
        readHeldDates(deps.sql, appId, affiliateId, now),
      ]);
      const totals = foundOrThrow(found);
      const nextRun = await findNextRun(deps.sql, { appId, affiliateId }, app.payoutSchedule, totals, now);
      return {
        funnel: presentFunnel(totals),
        earnings: presentEarnings(totals),
        nextDueAt: held.nextDueAt,
        nextDueCents: held.nextDueCents,
        heldUntil: held.heldUntil,
        carriedBalanceCents: totals.carriedBalanceCents,
        ...(nextRun === null ? {} : { nextRun }),
      };
    },
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/timeseries',
    operationId: 'getCreatorTimeseries',
    summary: "Retrieves the creator's counts and earnings per hour, day, week or month.",
    query: seriesQuery,
    response: { status: 200, schema: series },
    handler: async ({ deps, creator: { appId, affiliateId }, query, now }) =>
      await readSeries(
        deps.sql,
        appId,
        query,
        { affiliateId, linkId: null },
        { now, present: presentSeriesPoint },
      ),
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/links',
    operationId: 'listCreatorLinks',
    summary: "Lists the creator's links with their clicks and earnings, oldest first.",
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(link) },
    handler: async ({ deps, creator: { appId, affiliateId }, app, query }) => {
      const key = { list: 'creator links', appId, filters: { affiliateId } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const page = await listLinks(
        deps.sql,
        appId,
        { affiliateId, active: null, text: null },
        after,
        query.limit,
      );
      const { row } = linkPresenter(deps, app);
      return presentPage(key, page, (one) => {
        const { id, slug, url, directUrl, destinationUrl, active, clicks, createdAt } = row(one);
        const earnedCents = one.commissionCents;
        return { id, slug, url, directUrl, destinationUrl, active, clicks, earnedCents, createdAt };
      });
    },
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/commissions',
    operationId: 'listCreatorCommissions',
    summary:
      "Lists the creator's commissions, reversals, corrections, bonuses and deductions, latest purchase first.",
    description: `${MAY_BE_SHORT} ${CSV_LIST}`,
    errors: ['unavailable'],
    query: z.object({
      ...pageQuery,
      status: enums.commissionStatus.optional(),
      payoutId: inputId('payout').optional(),
      ...fromTo('Earliest `occurredAt`, inclusive.', 'Latest `occurredAt`, exclusive.'),
    }),
    response: { status: 200, schema: pageSchema(creatorCommission), asCsv: true },
    handler: async ({ deps, creator: { appId, affiliateId }, query }) => {
      const filter = { status: query.status ?? null, from: query.from ?? null, to: query.to ?? null };
      const filters = { ...filter, affiliateId, payoutId: query.payoutId ?? null };
      const key = { list: 'creator commissions', appId, filters };
      const after = decodeCursor(key, millisKey, query.cursor);
      const payoutId = filterId('payout', query.payoutId);
      // The rows of another creator's payout must not even be examined: a short page would show that it exists.
      const isOwn =
        payoutId === null ||
        (payoutId !== 'none' &&
          (await findCreatorPayout(deps.sql, { appId, affiliateId }, payoutId)) !== undefined);
      if (!isOwn || payoutId === 'none') return EMPTY_PAGE;
      const selected = { ...ALL_COMMISSIONS, ...filter, affiliateId, payoutId };
      const page = await listCommissions(deps.sql, appId, selected, after, query.limit);
      return presentPage(key, page, creatorCommissionPresenter(await findMoneyOfRows(deps.sql, page.rows)));
    },
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/commissions/totals',
    operationId: 'getCreatorCommissionTotals',
    summary: "Adds up the creator's commissions of a range of time.",
    description:
      "Returns the sum of `amountCents` of the rows that the list of the creator's commissions has for the same range.",
    query: z.object(fromTo('Earliest `occurredAt`, inclusive.', 'Latest `occurredAt`, exclusive.')),
    response: { status: 200, schema: rangeTotals },
    handler: async ({ deps, creator: { appId, affiliateId }, query }) => {
      const range = { from: query.from ?? null, to: query.to ?? null };
      const totalCents = await readCommissionTotal(deps.sql, appId, { affiliateId, linkId: null, ...range });
      return { ...range, totalCents };
    },
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/payouts',
    operationId: 'listCreatorPayouts',
    summary: "Lists the creator's payouts, latest first.",
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(payout) },
    handler: async ({ deps, creator: { appId, affiliateId }, query }) => {
      const key = { list: 'creator payouts', appId, filters: { affiliateId } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const page = await listPayouts(deps.sql, appId, { affiliateId }, after, query.limit);
      const money = await findMoney(
        deps.sql,
        page.rows.map(({ id }) => id),
      );
      return presentPage(key, page, (row) => presentPayout(row, money.get(row.id)));
    },
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/payouts/:id/statement',
    operationId: 'getCreatorStatement',
    summary: 'Retrieves the statement of a payout.',
    description: "The list of the creator's commissions with this `payoutId` is what the payout consists of.",
    errors: ['unavailable'],
    makesFile: true,
    ids: { id: 'payout' },
    response: { status: 200, schema: statement },
    handler: async ({ deps, creator: shown, app, ids }) => {
      const found = foundOrThrow(await findCreatorPayout(deps.sql, shown, ids.id));
      const sums = await readStatementSums(deps.sql, shown, ids.id);
      const { earnedCents, earnedCount, takenBackCents, takenBackCount, from, to } = sums;
      return {
        ...presentPayout(found, (await findMoney(deps.sql, [ids.id])).get(ids.id)),
        creatorName: found.affiliateName,
        appName: app.name,
        earnedCents,
        earnedCount,
        takenBackCents,
        takenBackCount,
        from,
        to,
      };
    },
  }),

  creatorPageRoutes({
    method: 'GET',
    path: '/creator/payouts/:id/csv',
    operationId: 'getCreatorPayoutCsv',
    summary: 'Retrieves the statement of a payout as CSV.',
    description:
      'One line for each commission, reversal and correction, and a last line, whose `commission_id` is `total`.',
    errors: ['unavailable'],
    makesFile: true,
    ids: { id: 'payout' },
    response: { status: 200, contentType: 'text/csv', headers: CSV_HEADERS },
    handler: async ({ deps, creator: shown, ids }) => {
      const found = foundOrThrow(await findCreatorPayout(deps.sql, shown, ids.id));
      return presentCsv(await readStatementCsv(deps.sql, shown, found), found.id);
    },
  }),
].flat();
