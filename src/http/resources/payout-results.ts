import * as z from 'zod';
import { listReturned } from '../../db/payout-resends.ts';
import { findFiledItems, stateTransfers } from '../../db/payout-run-transfers.ts';
import type { FiledItem, SettledItems } from '../../db/payout-run-transfers.ts';
import type { AccountId } from '../../domain/ids.ts';
import { MOST_TRANSFERS } from '../../domain/payout-transfer.ts';
import { ApiError, foundOrThrow } from '../errors.ts';
import { count } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { assess, readPayoutReport, reportsOf, statedCount } from './payout-reports.ts';
import {
  LISTED,
  newReport,
  presentResults,
  reportPreview,
  returnedPayouts,
  runResults,
  sentMark,
} from './payout-results-views.ts';

/** Whether nothing was stated of a payout since its file, and can be. */
const isUnmarked = ({ isStated, isSentAgain, position }: FiledItem) =>
  !isStated && !isSentAgain && position < MOST_TRANSFERS;

/** Returns the items of a settled run. Throws a 404 for an unknown run, and a 409 for one that is not settled. */
function settledOrThrow(items: SettledItems): readonly FiledItem[] {
  const found = foundOrThrow(items);
  if (found === 'not_settled') throw new ApiError('payout_run_not_settled');
  return found;
}

/** Reading a report costs more than other calls. */
const REPORTS_OF_ACCOUNT = {
  name: 'reports' as const,
  caller: ({ caller }: { readonly caller: { readonly accountId: AccountId } }) => caller.accountId,
};

export const payoutResultRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/payouts/returned',
    caller: accountApp('read'),
    operationId: 'listReturnedPayouts',
    summary: 'Lists payouts whose money came back and was not sent again, the largest first.',
    description: 'A payout run of the kind `resend` sends them again.',
    response: { status: 200, schema: returnedPayouts },
    handler: async ({ deps, app }) => {
      const { rows, count: all, totalCents, contradicted } = await listReturned(deps.sql, app.id, LISTED);
      return {
        count: all,
        totalCents,
        rows: [...rows],
        contradicted: { ...contradicted, rows: [...contradicted.rows] },
      };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/transfers',
    caller: accountApp('payout'),
    operationId: 'addPayoutRunTransfers',
    summary:
      'States that the money of the payouts of a run was sent: of all, or of those in the files of one method.',
    description:
      'Of payouts about which something was stated since their file, nothing is stated. Calling it again states nothing more.',
    ids: { runId: 'payoutRun' },
    body: sentMark,
    errors: ['payout_run_not_settled'],
    response: {
      status: 200,
      schema: z
        .object({ sentCount: count('The number of payouts of which it was stated.') })
        .meta({ id: 'PayoutRunTransfers', description: 'What was stated about the payouts of a run.' }),
    },
    handler: async ({ deps, caller, app, ids, body }) => {
      const { accountId, keyId } = caller;
      const isMeant = (item: FiledItem) =>
        isUnmarked(item) && (body.method === undefined || item.method === body.method);
      const items = await stateTransfers<never>(
        deps.patientSql,
        { appId: app.id, runId: ids.runId, accountId, keyId },
        (all) =>
          new Map(
            all
              .filter(isMeant)
              .map(({ id }) => [id, { statements: ['sent'], others: [], reference: body.reference ?? null }]),
          ),
      );
      return { sentCount: settledOrThrow(items).filter(isMeant).length };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/results/preview',
    caller: accountApp('payout'),
    operationId: 'previewPayoutRunResults',
    summary: 'Reads a report of a payment service, and says what it would state. Changes nothing.',
    ids: { runId: 'payoutRun' },
    body: reportPreview,
    rateLimit: REPORTS_OF_ACCOUNT,
    errors: ['payout_run_not_settled'],
    response: { status: 200, schema: runResults },
    handler: async ({ deps, app, ids, body }) => {
      const items = settledOrThrow(await findFiledItems(deps.sql, app.id, ids.runId));
      const opened = await readPayoutReport(body, items);
      return presentResults(opened, assess(opened, items));
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/results',
    caller: accountApp('payout'),
    operationId: 'addPayoutRunResults',
    summary: 'States what a report of a payment service says: which payouts were sent, and which came back.',
    description:
      'Rows count for the payouts of this run alone. A payout that came back without having been stated as sent gets both statements. Sending a report again states nothing more.',
    ids: { runId: 'payoutRun' },
    body: newReport,
    rateLimit: REPORTS_OF_ACCOUNT,
    errors: ['payout_run_not_settled', 'payout_report_changed'],
    response: { status: 200, schema: runResults },
    handler: async ({ deps, caller, app, ids, body }) => {
      const filed = settledOrThrow(await findFiledItems(deps.sql, app.id, ids.runId));
      const opened = await readPayoutReport(body, filed);
      const { accountId, keyId } = caller;
      const items = await stateTransfers(
        deps.patientSql,
        { appId: app.id, runId: ids.runId, accountId, keyId },
        (all) => {
          const assessment = assess(opened, all);
          // A repetition after an answer that was lost states less, or nothing, and succeeds.
          const isExpected =
            statedCount(assessment, 'sent') <= body.expected.sentCount &&
            statedCount(assessment, 'returned') <= body.expected.returnedCount;
          return isExpected ? reportsOf(assessment) : 'payout_report_changed';
        },
      );
      if (items === 'payout_report_changed') throw new ApiError('payout_report_changed');
      return presentResults(opened, assess(opened, settledOrThrow(items)));
    },
  }),
];
