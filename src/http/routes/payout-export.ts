import { buildPayoutCsv } from '../../db/payout-csv.ts';
import type { PayoutCsv } from '../../db/payout-csv.ts';
import type { HttpContext } from '../context.ts';
import { ApiError, foundOrThrow, notFound } from '../errors.ts';
import { readIdempotencyKey } from '../idempotency.ts';
import { exportPayout } from '../export-payout.ts';
import { rawRoute } from '../route.ts';
import { payoutExportBody } from '../schemas/payout-export.ts';

const RETRY_AFTER_SECONDS = 5;

const CSV_HEADERS = {
  'Content-Disposition': 'a name for the file',
  'X-Payout-Id': 'the payout; absent when nothing was paid',
  'X-Payout-Sha256': 'SHA-256 of the body, hex',
};

function sendCsv(ctx: HttpContext, { payoutId, bytes, sha256 }: PayoutCsv, fileName: string): void {
  ctx.set('Content-Type', 'text/csv; charset=utf-8');
  ctx.set('Content-Disposition', `attachment; filename="${fileName}.csv"`);
  ctx.set('X-Payout-Sha256', sha256.toString('hex'));
  if (payoutId !== null) ctx.set('X-Payout-Id', payoutId);
  ctx.body = bytes;
}

export const payoutExportRoutes = [
  rawRoute({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/payouts/export',
    auth: 'account',
    permission: 'payout',
    operationId: 'exportPayout',
    summary: 'Pays what is due to an affiliate, once, and answers the CSV',
    ids: { affiliateId: 'affiliate' },
    body: payoutExportBody,
    errors: ['total_changed', 'idempotency_key_reused', 'payout_not_settled'],
    response: { status: 200, contentType: 'text/csv', headers: CSV_HEADERS },
    handler: async ({ ctx, deps, caller, app, ids, body }) => {
      const answer = await exportPayout(deps, {
        appId: app.id,
        affiliateId: ids.affiliateId,
        accountId: caller.accountId,
        keyId: caller.keyId,
        idempotencyKey: readIdempotencyKey(ctx),
        expectedTotalCents: body.expectedTotalCents ?? null,
      });
      switch (answer.kind) {
        case 'csv':
          sendCsv(ctx, answer.csv, answer.csv.payoutId ?? `nothing-due-${ids.affiliateId}`);
          return;
        case 'not_found':
          throw notFound();
        case 'total_changed':
          throw new ApiError('total_changed', {
            detail: `The net is ${answer.netCents} cents now. Nothing was paid: look at the preview and export again.`,
          });
        case 'key_reused':
          throw new ApiError('idempotency_key_reused', {
            detail: 'The key belongs to an earlier export of something else.',
          });
        case 'gave_up':
          throw new ApiError('payout_not_settled', {
            detail:
              'The payout workflow did not get to it in time. Nothing was paid and nothing will be for this call: send it again.',
            headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
          });
      }
    },
  }),
  rawRoute({
    method: 'GET',
    path: '/apps/:appId/payouts/:payoutId/csv',
    auth: 'account',
    permission: 'payout',
    operationId: 'getPayoutCsv',
    summary: 'The CSV of a payout, the same bytes as when it was paid',
    ids: { payoutId: 'payout' },
    response: { status: 200, contentType: 'text/csv', headers: CSV_HEADERS },
    handler: async ({ ctx, deps, app, ids }) => {
      sendCsv(ctx, foundOrThrow(await buildPayoutCsv(deps.sql, app.id, ids.payoutId)), ids.payoutId);
    },
  }),
];
