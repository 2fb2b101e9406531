import * as z from 'zod';
import {
  approveRun,
  cancelRun,
  draftRun,
  findPayoutRun,
  ITEM_OUTCOMES,
  listPayoutRuns,
  listRunExclusions,
  listRunItems,
} from '../../db/payout-runs.ts';
import type { PayoutRun, PayoutRunItem, RunExclusion } from '../../db/payout-runs.ts';
import { downloadFile, listRunFiles } from '../../db/payout-run-files.ts';
import type { ListedPayoutFile } from '../../db/payout-run-files.ts';
import { arePayoutsStopped } from '../../db/payout-stops.ts';
import {
  EXCLUSION_REASONS,
  PAYOUT_FILE_METHODS,
  PAYOUT_RUN_KINDS,
  PAYOUT_RUN_STATUSES,
} from '../../domain/payout-run.ts';
import { MONEY_STATES } from '../../domain/payout-transfer.ts';
import { PAYOUT_EARNINGS_LIMIT } from '../../domain/payout.ts';
import { ApiError, foundOrThrow } from '../errors.ts';
import { cents, count, currency, epochMs, idOf, nameOfAffiliate, orNull } from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import { sha256Field } from './payout-views.ts';
import { heldKey } from './sessions.ts';

const MINIMUM = 'Creators to whom less is due are left out. US cents.';

const withoutPayee = z
  .enum(['exclude', 'include'])
  .describe(
    'What it does with creators without a payee: leave them out, or pay them, in a file of their own.',
  );

const kind = z
  .enum(PAYOUT_RUN_KINDS)
  .describe(
    '`pay`: it pays what is due. `resend`: it sends the money of payouts again that came back, and pays nothing.',
  );

const method = z
  .enum(PAYOUT_FILE_METHODS)
  .describe('How the money is sent. `other`: also to a creator without a payee.');

const payoutRun = z
  .object({
    id: idOf('payoutRun'),
    kind,
    status: z
      .enum(PAYOUT_RUN_STATUSES)
      .describe(
        '`draft`: it pays nothing. `approved`: it is being paid. `settled`: nothing more is paid. `cancelled`: the draft was cancelled, or a later one replaced it. `expired`: nobody approved the draft in time.',
      ),
    asOf: epochMs('It pays what was due then, and nothing that became due later.'),
    minimumCents: z
      .int()
      .min(0)
      .meta({ description: MINIMUM, examples: [5000] }),
    withoutPayee,
    itemCount: count('The number of its items: creators that it pays, or payouts that it sends again.'),
    totalCents: cents('Their sum.'),
    settledCount: count('The number of items that are settled, paid or not.'),
    paidCount: count('The number of items that were paid or sent again. Each is a row of a file.'),
    paidCents: cents('Their sum.'),
    currency,
    createdAt: epochMs('When it was drafted.'),
    createdBy: heldKey,
    expiresAt: epochMs('A draft can be approved until then.'),
    approvedAt: orNull(epochMs('When it was approved.'), 'Null until then.'),
    approvedBy: orNull(heldKey, 'Null until it is approved.'),
    stoppedAt: orNull(
      epochMs('When it was cancelled while it was being paid: nobody further is paid.'),
      'Null if it was not.',
    ),
    endedAt: orNull(epochMs('When it was settled or cancelled.'), 'Null until then.'),
  })
  .meta({ id: 'PayoutRun', description: 'A payment of many creators, each of which is a payout.' });

const payoutRunItem = z
  .object({
    id: idOf('payoutRunItem'),
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    expectedCents: cents('What the run pays the creator.'),
    method,
    outcome: orNull(
      z
        .enum(ITEM_OUTCOMES)
        .describe(
          '`waiting`: not settled yet. `paid`: see `payoutId`. `resent`: the money of the payout is sent again. All others were not paid, and are in the next draft: `total_changed`, a refund, deduction or export has changed what is due; `not_returned`, the money has not come back, or was sent again by another run; `blocked`, the payouts are blocked; `payee_changed`, the creator has another payee; `empty`, nothing is due; `closed`, the service was unavailable for an hour; `cancelled`, the run was cancelled before.',
        ),
      'Null until the run is approved.',
    ),
    payoutId: orNull(idOf('payout'), 'Null unless it was paid. In a `resend` run always there.'),
    transferState: orNull(
      z.enum(MONEY_STATES).describe('Where the money of the payout is. `returned`: it came back.'),
      'Of a payout that is sent again, since then. Null: nothing is stated, or it was withdrawn.',
    ),
  })
  .meta({ id: 'PayoutRunItem', description: 'A creator whom a payout run pays.' });

const payoutRunExclusion = z
  .object({
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    reason: z
      .enum(EXCLUSION_REASONS)
      .describe(
        `\`payouts_blocked\`: a founder has blocked them. \`payee_changed\`: a new payee waits until it counts. \`no_payee\`: there is none. \`below_minimum\`: less is due than \`minimumCents\`. \`too_many_commissions\`: more is due than one payout has room for, ${PAYOUT_EARNINGS_LIMIT} commissions; pay by exports. \`negative_balance\`: deductions take back more than is due. \`reversed\`: they take back exactly that. \`held\`: all is in the hold period.`,
      ),
    balanceCents: cents('The net of what was due.'),
    heldCents: cents('The net of what was in the hold period.'),
  })
  .meta({
    id: 'PayoutRunExclusion',
    description: 'A creator with unpaid commissions whom a payout run leaves out.',
  });

const payoutFile = z
  .object({
    id: idOf('payoutFile'),
    method,
    part: z
      .int()
      .min(1)
      .meta({ description: 'Payment services limit the rows of a file.', examples: [1] }),
    rowCount: count('The number of payouts in it.'),
    totalCents: cents('Their sum.'),
    currency,
    sha256: sha256Field('The SHA-256 of its bytes, hexadecimal.'),
    createdAt: epochMs('When it was written.'),
    downloadCount: count('How often it was downloaded. Who uploads a file twice may pay twice.'),
    erased: z
      .boolean()
      .meta({ description: 'Whether its bytes were removed, because a creator in it was erased.' }),
  })
  .meta({ id: 'PayoutFile', description: 'A file of a payout run for a payment service.' });

const newPayoutRun = z
  .strictObject({
    kind: kind.default('pay'),
    minimumCents: z
      .int()
      .min(0)
      .max(100_000_000)
      .default(0)
      .meta({ description: MINIMUM, examples: [5000] }),
    withoutPayee: withoutPayee.default('exclude'),
  })
  .meta({ id: 'NewPayoutRun', description: 'Drafts a payout run.' });

const approval = z
  .strictObject({
    expectedTotalCents: z
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .meta({ description: 'The `totalCents` of the draft. US cents.', examples: [41200] }),
  })
  .meta({ id: 'PayoutRunApproval', description: 'Approves a payout run by its total.' });

function presentPayoutRun(row: PayoutRun): z.input<typeof payoutRun> {
  const { id, kind: kindOfRun, status, asOf, minimumCents, itemCount, totalCents } = row;
  const { settledCount, paidCount, paidCents } = row;
  const { createdAt, expiresAt, approvedAt, stoppedAt, endedAt } = row;
  const { approverId, approverLabel, approverDisplay } = row;
  return {
    id,
    kind: kindOfRun,
    status,
    asOf,
    minimumCents,
    withoutPayee: row.includesWithoutPayee ? 'include' : 'exclude',
    itemCount,
    totalCents,
    settledCount,
    paidCount,
    paidCents,
    currency: 'USD',
    createdAt,
    createdBy: { id: row.keyId, label: row.keyLabel, display: row.keyDisplay },
    expiresAt,
    approvedAt,
    approvedBy:
      approverId === null || approverDisplay === null
        ? null
        : { id: approverId, label: approverLabel, display: approverDisplay },
    stoppedAt,
    endedAt,
  };
}

function presentItem(row: PayoutRunItem): z.input<typeof payoutRunItem> {
  const { id, affiliateId, affiliateName, expectedCents, outcome, payoutId, transferState: state } = row;
  return {
    id,
    affiliateId,
    affiliateName,
    expectedCents,
    method: row.method,
    outcome,
    payoutId,
    transferState: state,
  };
}

function presentExclusion(row: RunExclusion): z.input<typeof payoutRunExclusion> {
  const { affiliateId, affiliateName, reason, balanceCents, heldCents } = row;
  return { affiliateId, affiliateName, reason, balanceCents, heldCents };
}

function presentFile(row: ListedPayoutFile): z.input<typeof payoutFile> {
  const { id, part, rowCount, totalCents, sha256, createdAt, downloadCount, isErased } = row;
  return {
    id,
    method: row.method,
    part,
    rowCount,
    totalCents,
    currency: 'USD',
    sha256,
    createdAt,
    downloadCount,
    erased: isErased,
  };
}

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
      const run = await draftRun(deps.sql, {
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
      if (await arePayoutsStopped(deps.sql)) throw new ApiError('payouts_stopped');
      const { accountId, keyId } = caller;
      const { runId } = ids;
      const { expectedTotalCents } = body;
      const approved = foundOrThrow(
        await approveRun(deps.sql, { appId: app.id, accountId, keyId, runId, expectedTotalCents }),
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
      presentPayoutRun(foundOrThrow(await cancelRun(deps.sql, app.id, ids.runId))),
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
      const after = decodeCursor(key, timeKey, query.cursor);
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
      const after = decodeCursor(key, timeKey, query.cursor);
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
    errors: ['payout_file_erased'],
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
