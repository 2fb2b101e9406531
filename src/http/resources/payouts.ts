import * as z from 'zod';
import { exportPayout } from '../../commands/export-payout.ts';
import { appendTransfer, findMoney, listTransfers } from '../../db/payout-transfers.ts';
import { PAYOUT_CREDITS_LIMIT } from '../../domain/payout.ts';
import { readExtendedPayoutCsv } from '../../db/extended-payout-csv.ts';
import { EMPTY_PAYOUT_CSV, readPayoutCsv } from '../../db/payout-csv.ts';
import {
  findListedPayout,
  listNotPayable,
  listPayouts,
  previewEarlierPayouts,
  previewPayouts,
} from '../../db/payout-lists.ts';
import { ApiError, foundOrThrow, invalidField, notFound, payoutsStopped } from '../errors.ts';
import { filterId, inputId } from '../fields.ts';
import { instantInQuery } from '../instants.ts';
import { readIdempotencyKey } from '../idempotency.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, EMPTY_PAGE, pageSchema, pageQuery, presentPage, timeKey } from '../pagination.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
import {
  payout,
  transfer,
  newTransfer,
  payoutWithTransfers,
  preview,
  notPayable,
  presentPayout,
  presentTransfer,
  presentNotPayable,
  presentPreview,
  CSV_HEADERS,
  EXPORT_HEADERS,
  presentCsv,
  presentExport,
} from './payouts-views.ts';

const exportBody = z
  .strictObject({
    expectedTotalCents: z
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .meta({
        description:
          'The total that is due, as in the preview. The export fails with `total_changed` if it differs. US cents.',
      })
      .optional(),
  })
  .meta({ id: 'PayoutExport', description: 'The condition of an export.' });

const EXPORT_RETRY_AFTER_SECONDS = 5;

export const payoutRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/payouts',
    caller: accountApp('read'),
    operationId: 'listPayouts',
    summary: 'Lists payouts, latest first.',
    description: CSV_LIST,
    query: z.object({ ...pageQuery, affiliateId: inputId('affiliate').optional() }),
    response: { status: 200, schema: pageSchema(payout), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'payouts', appId: app.id, filters: { affiliateId: query.affiliateId ?? null } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listPayouts(deps.sql, app.id, { affiliateId }, after, query.limit);
      const money = await findMoney(
        deps.sql,
        page.rows.map(({ id }) => id),
      );
      return presentPage(key, page, (row) => presentPayout(row, money.get(row.id)));
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payouts/preview',
    caller: accountApp('read'),
    operationId: 'previewPayouts',
    summary: 'Previews what exports would pay now, or what was owed at an earlier instant.',
    description:
      'Lists affiliates with a positive net, largest first, without those whose payouts are blocked. Writes nothing. With `asOf`, it counts the commissions that ' +
      'were in the ledger and due at that instant and that no payout had paid yet. What was appended or paid later changes ' +
      'nothing. Affiliates have their current names.',
    query: z.object({
      asOf: instantInQuery(
        1_781_524_800_000,
        'What was owed at this instant. Must not be in the future. Defaults to now.',
      ).optional(),
      affiliateId: inputId('affiliate').optional(),
    }),
    errors: ['unavailable'],
    response: { status: 200, schema: preview },
    handler: async ({ ctx, deps, caller, app, query, now }) => {
      const { asOf = now } = query;
      if (asOf > now) throw invalidField('asOf', 'Must not be in the future.');
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return presentPreview(asOf, []);
      const read = async () => {
        const rows =
          query.asOf === undefined
            ? await previewPayouts(deps.sql, app.id, now, affiliateId)
            : await previewEarlierPayouts(deps.sql, app.id, asOf);
        if (rows === undefined)
          throw invalidField('asOf', 'Too much was paid or became due since then. Choose a later instant.');
        return presentPreview(
          asOf,
          rows.filter((row) => affiliateId === null || row.affiliateId === affiliateId),
        );
      };
      // Of one creator it reads one row, else one for each.
      return query.asOf === undefined && affiliateId !== null
        ? await read()
        : await deps.intake.previews.run(caller.accountId, ctx.res, read);
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payouts/not-payable',
    caller: accountApp('read'),
    operationId: 'listNotPayable',
    summary: 'Lists affiliates with unpaid commissions whom exports would pay nothing now, and why.',
    response: { status: 200, schema: notPayable },
    handler: async ({ deps, app, now }) => {
      const { rows, isTruncated } = await listNotPayable(deps.sql, app.id, now);
      return { rows: rows.map(presentNotPayable), truncated: isTruncated };
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payouts/:payoutId',
    caller: accountApp('read'),
    operationId: 'getPayout',
    summary: 'Retrieves a payout.',
    description: 'Its commissions are those that `GET /apps/:appId/commissions` lists for its `payoutId`.',
    ids: { payoutId: 'payout' },
    response: { status: 200, schema: payoutWithTransfers },
    handler: async ({ deps, app, ids }) => {
      const [found, money, transfers] = await Promise.all([
        findListedPayout(deps.sql, app.id, ids.payoutId),
        findMoney(deps.sql, [ids.payoutId]),
        listTransfers(deps.sql, app.id, ids.payoutId),
      ]);
      return {
        ...presentPayout(foundOrThrow(found), money.get(ids.payoutId)),
        transfers: transfers.map(presentTransfer),
      };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/payouts/:payoutId/transfers',
    caller: accountApp('payout'),
    operationId: 'addPayoutTransfer',
    summary: 'States that the money of a payout was sent or came back.',
    description:
      'The service moves no money. Statements are appended, at most a hundred of a payout, and change nothing else.',
    ids: { payoutId: 'payout' },
    body: newTransfer,
    response: { status: 201, schema: transfer },
    errors: ['transfer_not_possible'],
    handler: async ({ deps, caller, app, ids, body, idGenerator }) => {
      const added = await appendTransfer(deps.sql, {
        id: idGenerator.id('transfer'),
        appId: app.id,
        payoutId: ids.payoutId,
        accountId: caller.accountId,
        keyId: caller.keyId,
        state: body.state,
        method: body.method ?? null,
        reference: body.reference ?? null,
        note: body.note ?? null,
      });
      if (added === null) throw new ApiError('transfer_not_possible');
      return presentTransfer(foundOrThrow(added));
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/payouts/export',
    caller: accountApp('payout'),
    operationId: 'exportPayout',
    summary: 'Pays the amount due to an affiliate and returns the payout as CSV.',
    description:
      `Each commission is paid once. A payout has all due reversals, corrections and deductions, and at most ${PAYOUT_CREDITS_LIMIT} earnings and bonuses, ` +
      'oldest first; repeat the export while `X-Payout-More-Due` is `true`. If the net is zero or less, nothing is paid and the CSV has only its header line. ' +
      'With `payoutApproval: another_key`, exports are refused: a payout run has a second approver. ' +
      'Stored responses of exports never expire.',
    ids: { affiliateId: 'affiliate' },
    body: exportBody,
    errors: [
      'total_changed',
      'payouts_blocked',
      'another_approver_needed',
      'idempotency_key_reused',
      'payout_not_settled',
      'payouts_stopped',
      'unavailable',
    ],
    response: { status: 200, contentType: 'text/csv', headers: EXPORT_HEADERS },
    handler: async ({ ctx, deps, caller, app, ids, body }) => {
      const result = await exportPayout(deps, {
        appId: app.id,
        affiliateId: ids.affiliateId,
        accountId: caller.accountId,
        keyId: caller.keyId,
        idempotencyKey: readIdempotencyKey(ctx),
        expectedTotalCents: body.expectedTotalCents ?? null,
      });
      switch (result.kind) {
        case 'settled': {
          const { payoutId, isRepeated } = result;
          const read = async () => {
            const csv =
              payoutId === null ? EMPTY_PAYOUT_CSV : await readPayoutCsv(deps.sql, app.id, payoutId);
            return presentExport({ ...result, csv: foundOrThrow(csv) }, ids.affiliateId);
          };
          // A settled export can be asked for again and again. A call that pays gets its CSV, however many files are being read.
          return isRepeated
            ? await deps.intake.accountFiles.run(caller.accountId, ctx.res, read)
            : await read();
        }
        case 'not_found':
          throw notFound();
        case 'total_changed':
          throw new ApiError('total_changed', {
            detail: `The net is now ${result.netCents} cents. Nothing was paid. Check the preview and export again.`,
          });
        case 'blocked':
          throw new ApiError('payouts_blocked');
        case 'another_approver_needed':
          throw new ApiError('another_approver_needed', {
            detail:
              'Nothing was paid. The app has `payoutApproval: another_key`, and a single export has no second approver. Draft a payout run, which another key approves.',
          });
        case 'key_reused':
          throw new ApiError('idempotency_key_reused', {
            detail: 'The key belongs to an earlier export with other parameters. Use a new key.',
          });
        case 'stopped':
          throw payoutsStopped('Export');
        case 'timed_out':
          throw new ApiError('payout_not_settled', {
            detail:
              'The payout workflow did not finish in time. Nothing was paid, and this request is closed. Send a new one.',
            headers: { 'Retry-After': String(EXPORT_RETRY_AFTER_SECONDS) },
          });
      }
    },
  }),

  route({
    method: 'GET',
    path: '/apps/:appId/payouts/:payoutId/csv',
    caller: accountApp('payout'),
    operationId: 'getPayoutCsv',
    summary: 'Retrieves the CSV of a payout.',
    description:
      'Returns the same bytes as the export that paid it. With `columns=extended`, each line also has `affiliate_email` (the ' +
      "affiliate's current address), `occurred_at_iso` and `affiliate_email_problem`, and a last line, whose `commission_id` is `total`, has the total. " +
      'The address is left out as `not_confirmed` if it was changed without the permission `payout`, and as `new` in the first seven days of a creator ' +
      'who was added with it. Send money to the payee only: the address is for your own reference.',
    errors: ['unavailable'],
    makesFile: true,
    ids: { payoutId: 'payout' },
    query: z.object({
      columns: z
        .enum(['standard', 'extended'])
        .default('standard')
        .meta({ description: 'Which columns the CSV has.' }),
    }),
    response: { status: 200, contentType: 'text/csv', headers: CSV_HEADERS },
    handler: async ({ deps, app, ids, query }) => {
      const read = query.columns === 'extended' ? readExtendedPayoutCsv : readPayoutCsv;
      return presentCsv(foundOrThrow(await read(deps.sql, app.id, ids.payoutId)), ids.payoutId);
    },
  }),
];
