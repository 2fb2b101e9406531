import * as z from 'zod';
import {
  approveRun,
  cancelRun,
  findPayoutRun,
  listPayoutRuns,
  listRunExclusions,
  listRunItems,
} from '../../db/payout-runs.ts';
import { draftRun } from '../../db/payout-run-drafts.ts';
import { downloadFile, listRunFiles } from '../../db/payout-run-files.ts';
import { arePayoutsStopped } from '../../db/payout-stops.ts';
import { ApiError, foundOrThrow, payoutsStopped } from '../errors.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, integerKey, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import {
  approval,
  newPayoutRun,
  payoutFile,
  payoutRun,
  payoutRunExclusion,
  payoutRunItem,
  presentExclusion,
  presentFile,
  presentItem,
  presentPayoutRun,
} from './payout-runs-views.ts';

export const payoutRunRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/payout-runs',
    caller: accountApp('read'),
    operationId: 'listPayoutRuns',
    summary: 'Lists payout runs, latest first.',
    description: CSV_LIST,
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(payoutRun), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'payout-runs', appId: app.id, filters: {} };
      const after = decodeCursor(key, timeKey, query.cursor);
      return presentPage(key, await listPayoutRuns(deps.sql, app.id, after, query.limit), presentPayoutRun);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs',
    caller: accountApp('payout'),
    operationId: 'draftPayoutRun',
    summary: 'Drafts a payout run: who would be paid, and who is left out.',
    description:
      'A draft pays nothing. It takes the place of a draft before it. Webhooks and hold periods go on and change nobody’s sum: the run pays what was due when it was drafted. A `resend` run has every payout whose money came back and was not sent again, whatever its amount, to the payees of today.',
    body: newPayoutRun,
    response: { status: 201, schema: payoutRun },
    errors: ['payout_run_in_progress'],
    handler: async ({ deps, caller, app, body, idGenerator }) => {
      const { accountId, keyId } = caller;
      const run = await draftRun(deps.patientSql, {
        id: idGenerator.id('payoutRun'),
        appId: app.id,
        accountId,
        keyId,
        kind: body.kind,
        minimumCents: body.kind === 'pay' ? body.minimumCents : 0,
        includesWithoutPayee: body.withoutPayee === 'include',
      });
      if (run === null) throw new ApiError('payout_run_in_progress');
      return presentPayoutRun(run);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payout-runs/:runId',
    caller: accountApp('read'),
    operationId: 'getPayoutRun',
    summary: 'Retrieves a payout run, and how far it is.',
    ids: { runId: 'payoutRun' },
    response: { status: 200, schema: payoutRun },
    handler: async ({ deps, app, ids }) =>
      presentPayoutRun(foundOrThrow(await findPayoutRun(deps.sql, app.id, ids.runId))),
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/approve',
    caller: accountApp('payout'),
    operationId: 'approvePayoutRun',
    summary: 'Approves a draft: each of its creators is paid, once.',
    description:
      'The creators are paid in the background, each by a payout of their own. Approving again with the same total changes nothing. Whoever has a refund, a deduction or an export after the draft is not paid by the run: their total has changed.',
    ids: { runId: 'payoutRun' },
    body: approval,
    response: { status: 202, schema: payoutRun },
    errors: ['total_changed', 'payout_run_not_possible', 'another_approver_needed', 'payouts_stopped'],
    handler: async ({ deps, caller, app, ids, body }) => {
      if (await arePayoutsStopped(deps.sql)) throw payoutsStopped('Approve');
      const { accountId, keyId } = caller;
      const { runId } = ids;
      const { expectedTotalCents } = body;
      const approved = foundOrThrow(
        await approveRun(deps.patientSql, { appId: app.id, accountId, keyId, runId, expectedTotalCents }),
      );
      if (approved === 'total_changed') {
        throw new ApiError('total_changed', {
          detail: 'The draft has another total. Nothing was paid. Read the draft again.',
        });
      }
      if (approved === 'not_possible') throw new ApiError('payout_run_not_possible');
      if (approved === 'another_approver_needed') throw new ApiError(approved);
      deps.workflows.startPayoutRun({ runId, appId: app.id });
      return presentPayoutRun(approved);
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/cancel',
    caller: accountApp('payout'),
    operationId: 'cancelPayoutRun',
    summary: 'Cancels a draft, or pays no further creator of a run.',
    description:
      'Payouts that have been made stay, and those that have begun are finished. A run that has ended stays as it is.',
    ids: { runId: 'payoutRun' },
    response: { status: 200, schema: payoutRun },
    handler: async ({ deps, app, ids }) =>
      presentPayoutRun(foundOrThrow(await cancelRun(deps.patientSql, app.id, ids.runId))),
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payout-runs/:runId/items',
    caller: accountApp('read'),
    operationId: 'listPayoutRunItems',
    summary: 'Lists the creators whom a run pays, and what became of each, the largest amount first.',
    description: CSV_LIST,
    ids: { runId: 'payoutRun' },
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(payoutRunItem), asCsv: true },
    handler: async ({ deps, app, ids, query }) => {
      const key = { list: 'payout-run-items', appId: app.id, filters: { runId: ids.runId } };
      const after = decodeCursor(key, integerKey, query.cursor);
      const page = await listRunItems(deps.sql, app.id, ids.runId, after, query.limit);
      return presentPage(key, foundOrThrow(page), presentItem);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payout-runs/:runId/excluded',
    caller: accountApp('read'),
    operationId: 'listPayoutRunExclusions',
    summary: 'Lists the creators with unpaid commissions whom a run leaves out, and why.',
    description: `Those to whom most is due first. ${CSV_LIST}`,
    ids: { runId: 'payoutRun' },
    query: z.object(pageQuery),
    response: { status: 200, schema: pageSchema(payoutRunExclusion), asCsv: true },
    handler: async ({ deps, app, ids, query }) => {
      const key = { list: 'payout-run-exclusions', appId: app.id, filters: { runId: ids.runId } };
      const after = decodeCursor(key, integerKey, query.cursor);
      const page = await listRunExclusions(deps.sql, app.id, ids.runId, after, query.limit);
      return presentPage(key, foundOrThrow(page), presentExclusion);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payout-runs/:runId/files',
    caller: accountApp('read'),
    operationId: 'listPayoutRunFiles',
    summary: 'Lists the files of a settled run for the payment services.',
    description: 'Each payout of the run is a row of exactly one of them.',
    ids: { runId: 'payoutRun' },
    response: {
      status: 200,
      schema: z
        .object({ items: z.array(payoutFile).describe('All of them: by method, then by part.') })
        .meta({ id: 'PayoutFileList', description: 'The files of a payout run.' }),
    },
    handler: async ({ deps, app, ids }) => ({
      items: foundOrThrow(await listRunFiles(deps.sql, app.id, ids.runId)).map(presentFile),
    }),
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payout-runs/:runId/files/:fileId/download',
    caller: accountApp('payout'),
    operationId: 'downloadPayoutRunFile',
    summary: 'Downloads a file of a payout run, with the recipients.',
    description:
      'Always the same bytes. Each download is noted with its key. A row has a key of its own: the id of the item, in files for Wise its last 16 characters.',
    ids: { runId: 'payoutRun', fileId: 'payoutFile' },
    errors: ['payout_file_erased', 'unavailable'],
    makesFile: true,
    response: {
      status: 200,
      contentType: 'text/csv',
      headers: {
        'Content-Disposition': 'Suggests a name for the file.',
        'X-Payout-Sha256': 'The SHA-256 of the body, hexadecimal.',
      },
    },
    handler: async ({ deps, caller, app, ids }) => {
      const { accountId, keyId } = caller;
      const file = foundOrThrow(
        await downloadFile(deps, { appId: app.id, runId: ids.runId, fileId: ids.fileId, accountId, keyId }),
      );
      if (file.bytes === null) throw new ApiError('payout_file_erased');
      return {
        headers: {
          'Content-Type': 'text/csv; charset=utf-8',
          'Content-Disposition': `attachment; filename="${ids.runId}-${file.method}-${file.part}.csv"`,
          'X-Payout-Sha256': file.sha256.toString('hex'),
        },
        body: file.bytes,
      };
    },
  }),
];
