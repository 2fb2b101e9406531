import * as z from 'zod';
import { exportPayout } from '../../commands/export-payout.ts';
import { appendTransfer, listTransfers, TRANSFER_STATES } from '../../db/payout-transfers.ts';
import type { PayoutTransfer } from '../../db/payout-transfers.ts';
import { PAYOUT_EARNINGS_LIMIT } from '../../db/ledger.ts';
import { readExtendedPayoutCsv } from '../../db/extended-payout-csv.ts';
import { readPayoutCsv } from '../../db/payout-csv.ts';
import type { PayoutCsv } from '../../db/payout-csv.ts';
import {
  findListedPayout,
  listNotPayable,
  listPayouts,
  previewEarlierPayouts,
  previewPayouts,
} from '../../db/payout-lists.ts';
import type { NotPayableRow, PayoutListRow, PreviewRow } from '../../db/payout-lists.ts';
import { ApiError, foundOrThrow, invalidField, notFound } from '../errors.ts';
import {
  nameOfAffiliate,
  cents,
  count,
  currency,
  epochMs,
  filterId,
  idOf,
  inputId,
  orNull,
  textField,
} from '../fields.ts';
import { instantInQuery } from '../instants.ts';
import { readIdempotencyKey } from '../idempotency.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, EMPTY_PAGE, pageOf, pageQuery, presentPage, timeKey } from '../pagination.ts';
import { appRoute, rawAppRoute } from '../route.ts';
import type { RawReply } from '../route.ts';
import { heldKey } from './sessions.ts';

const sha256Field = (description: string) =>
  z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ description, examples: ['0'.repeat(64)] });

const UNTIL_STORED = 'Null for a moment until the CSV is stored.';

const payout = z
  .object({
    id: idOf('payout'),
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    itemCount: count('The number of commissions, reversals and corrections in its CSV.'),
    totalCents: cents('The amount to transfer to the creator.'),
    currency,
    createdAt: epochMs('When the payout was exported.'),
    createdBy: orNull(heldKey, 'It paid the payout. Null for one that was recorded from its CSV.'),
    csvSha256: orNull(sha256Field('The SHA-256 of its CSV, hexadecimal.'), UNTIL_STORED),
    chainPosition: orNull(
      count('Its place in the hash chain of the payouts of the app, from 1.'),
      UNTIL_STORED,
    ),
    chainPreviousHash: orNull(
      sha256Field('The `chainHash` of the payout at the place before.'),
      'Null for the first payout of an app, and for a moment until the CSV is stored.',
    ),
    chainHash: orNull(
      sha256Field('Proves this payout and all before it. Keep it outside of the service.'),
      UNTIL_STORED,
    ),
  })
  .meta({ id: 'Payout', description: 'A payment of commissions to an affiliate.' });

const transferText = (example: string, description: string, length: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(length)
    .meta({ description, examples: [example] });
const transferState = z
  .enum(TRANSFER_STATES)
  .describe(
    '`sent`: the money left. `returned`: it came back. `withdrawn`: the statement before was a mistake. `return_withdrawn`: the return before was a mistake.',
  );
const METHOD = 'How the money was sent.';
const REFERENCE = 'The reference of the bank or the payment service.';
const NOTE = 'Anything else.';

const transfer = z
  .object({
    id: idOf('transfer'),
    state: transferState,
    method: orNull(textField('bank transfer', METHOD), 'Null if it was not said.'),
    reference: orNull(textField('2026-06-15/17', REFERENCE), 'Null if it was not said.'),
    note: orNull(textField('Sent with the payouts of May.', NOTE), 'Null if there is none.'),
    createdAt: epochMs('When it was stated.'),
    createdBy: heldKey,
  })
  .meta({
    id: 'PayoutTransfer',
    description: 'What somebody stated about the money of a payout outside of the service. Never changed.',
  });

const newTransfer = z
  .strictObject({
    state: transferState,
    method: transferText('bank transfer', METHOD, 200).optional(),
    reference: transferText('2026-06-15/17', REFERENCE, 200).optional(),
    note: transferText('Sent with the payouts of May.', NOTE, 1_000).optional(),
  })
  .meta({ id: 'NewPayoutTransfer', description: 'A statement about the money of a payout.' });

const payoutWithTransfers = payout
  .extend({ transfers: z.array(transfer).describe('What was stated about its money, the latest first.') })
  .meta({ id: 'PayoutWithTransfers', description: 'A payout, and what was stated about its money.' });

const preview = z
  .object({
    asOf: textField('2026-06-15T12:00:00.000Z', 'The instant of the preview. ISO 8601, UTC.'),
    rows: z
      .array(
        z.object({
          affiliateId: idOf('affiliate'),
          affiliateName: nameOfAffiliate,
          count: count('The number of commissions, reversals and corrections that are due.'),
          totalCents: cents('Their net, which is positive.'),
          moreRemains: z.boolean().meta({
            description:
              'Whether so much is due that one export may not pay all. Repeat the export while its `X-Payout-More-Due` is `true`.',
          }),
        }),
      )
      .describe('One per affiliate with a positive net, largest first.'),
    totalCents: cents('The sum of all rows.'),
  })
  .meta({ id: 'PayoutPreview', description: 'What exports would pay, or what was owed, per affiliate.' });

const notPayable = z
  .object({
    rows: z
      .array(
        z
          .object({
            affiliateId: idOf('affiliate'),
            affiliateName: nameOfAffiliate,
            reason: z
              .enum(['held', 'reversed', 'negative_balance'])
              .describe(
                '`held`: all is in the hold period. `reversed`: reversals take back exactly what is due. `negative_balance`: they take back more, which later commissions have to outweigh.',
              ),
            balanceCents: cents('The net of what is due: zero or less.'),
            heldCents: cents('The net of what is in the hold period.'),
            nextDueAt: orNull(
              epochMs('When the next commission in the hold period is due.'),
              'Null if there is none.',
            ),
          })
          .meta({ id: 'NotPayable', description: 'An affiliate whom an export would pay nothing, and why.' }),
      )
      .describe('Negative balances first, then those whose next commission is due first. At most a hundred.'),
    truncated: z.boolean().describe('Whether there are more.'),
  })
  .meta({ id: 'NotPayableList', description: 'Affiliates whom exports would pay nothing now, and why.' });

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

function presentPayout(row: PayoutListRow) {
  const { id, affiliateId, affiliateName, itemCount, totalCents, createdAt, csvSha256 } = row;
  const { chainPosition, chainPreviousHash, chainHash } = row;
  return {
    id,
    affiliateId,
    affiliateName,
    itemCount,
    totalCents,
    currency: 'USD' as const,
    createdAt,
    csvSha256,
    chainPosition,
    chainPreviousHash,
    chainHash,
    createdBy:
      row.keyId === null ? null : { id: row.keyId, label: row.keyLabel, display: row.keyDisplay ?? '' },
  };
}

function presentTransfer(row: PayoutTransfer) {
  const { id, state, method, reference, note, createdAt } = row;
  const createdBy = { id: row.keyId, label: row.keyLabel, display: row.keyDisplay };
  return { id, state, method, reference, note, createdAt, createdBy };
}

function presentNotPayable(row: NotPayableRow) {
  const { affiliateId, affiliateName, reason, balanceCents, heldCents, nextDueAt } = row;
  return { affiliateId, affiliateName, reason, balanceCents, heldCents, nextDueAt };
}

function presentPreview(asOf: number, rows: readonly PreviewRow[]) {
  return {
    asOf: new Date(asOf).toISOString(),
    rows: rows.map((row) => ({
      affiliateId: row.affiliateId,
      affiliateName: row.affiliateName,
      count: row.count,
      totalCents: row.totalCents,
      moreRemains: row.moreRemains,
    })),
    totalCents: rows.reduce((sum, row) => sum + row.totalCents, 0),
  };
}

/** Headers of every CSV of a payout. */
export const CSV_HEADERS = {
  'Content-Disposition': 'Suggests a name for the file.',
  'X-Payout-Id': 'The id of the payout. Absent if nothing was paid.',
  'X-Payout-Sha256': 'The SHA-256 of the body, hexadecimal.',
};

const EXPORT_HEADERS = {
  ...CSV_HEADERS,
  'X-Payout-Total-Cents':
    'What this payout paid, in cents: less than `expectedTotalCents` if more is due. 0 if nothing was paid.',
  'X-Payout-More-Due':
    '`true` if earnings remain due that this payout had no room for: export again. Otherwise `false`.',
};

export function presentCsv({ payoutId, bytes, sha256 }: PayoutCsv, fileName: string): RawReply {
  return {
    headers: {
      'Content-Type': 'text/csv; charset=utf-8',
      'Content-Disposition': `attachment; filename="${fileName}.csv"`,
      'X-Payout-Sha256': sha256.toString('hex'),
      ...(payoutId === null ? {} : { 'X-Payout-Id': payoutId }),
    },
    body: bytes,
  };
}

function presentExport(
  { csv, totalCents, moreDue }: { csv: PayoutCsv; totalCents: number; moreDue: boolean },
  affiliateId: string,
): RawReply {
  const { headers, body } = presentCsv(csv, csv.payoutId ?? `nothing-due-${affiliateId}`);
  return {
    headers: {
      ...headers,
      'X-Payout-Total-Cents': String(totalCents),
      'X-Payout-More-Due': String(moreDue),
    },
    body,
  };
}

const EXPORT_RETRY_AFTER_SECONDS = 5;
/** An operator has to act first. */
const STOPPED_RETRY_AFTER_SECONDS = 600;

export const payoutRoutes = [
  appRoute({
    method: 'GET',
    path: '/apps/:appId/payouts',
    permission: 'read',
    operationId: 'listPayouts',
    summary: 'Lists payouts, latest first.',
    description: CSV_LIST,
    asCsv: true,
    query: z.object({ ...pageQuery, affiliateId: inputId('affiliate').optional() }),
    response: { status: 200, schema: pageOf(payout) },
    handler: async ({ deps, app, query }) => {
      const key = { list: 'payouts', appId: app.id, filters: { affiliateId: query.affiliateId ?? null } };
      const after = decodeCursor(key, timeKey, query.cursor);
      const affiliateId = filterId('affiliate', query.affiliateId);
      if (affiliateId === 'none') return EMPTY_PAGE;
      const page = await listPayouts(deps.sql, app.id, { affiliateId }, after, query.limit);
      return presentPage(key, page, presentPayout);
    },
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/payouts/preview',
    permission: 'read',
    operationId: 'previewPayouts',
    summary: 'Previews what exports would pay now, or what was owed at an earlier instant.',
    description:
      'Lists affiliates with a positive net, largest first. Writes nothing. With `asOf`, it counts the commissions that ' +
      'were in the ledger and due at that instant and that no payout had paid yet. What was appended or paid later changes ' +
      'nothing. Affiliates have their current names.',
    query: z.object({
      asOf: instantInQuery(
        1_781_524_800_000,
        'What was owed at this instant. Must not be in the future. Defaults to now.',
      ).optional(),
    }),
    response: { status: 200, schema: preview },
    handler: async ({ deps, app, query, now }) => {
      const { asOf } = query;
      if (asOf === undefined) return presentPreview(now, await previewPayouts(deps.sql, app.id, now));
      if (asOf > now) throw invalidField('asOf', 'Must not be in the future.');
      const rows = await previewEarlierPayouts(deps.sql, app.id, asOf);
      if (rows === undefined)
        throw invalidField('asOf', 'Too much was paid or became due since then. Choose a later instant.');
      return presentPreview(asOf, rows);
    },
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/payouts/not-payable',
    permission: 'read',
    operationId: 'listNotPayable',
    summary: 'Lists affiliates with unpaid commissions whom exports would pay nothing now, and why.',
    response: { status: 200, schema: notPayable },
    handler: async ({ deps, app, now }) => {
      const { rows, isTruncated } = await listNotPayable(deps.sql, app.id, now);
      return { rows: rows.map(presentNotPayable), truncated: isTruncated };
    },
  }),

  appRoute({
    method: 'GET',
    path: '/apps/:appId/payouts/:payoutId',
    permission: 'read',
    operationId: 'getPayout',
    summary: 'Retrieves a payout.',
    description: 'Its commissions are those that `GET /apps/:appId/commissions` lists for its `payoutId`.',
    ids: { payoutId: 'payout' },
    response: { status: 200, schema: payoutWithTransfers },
    handler: async ({ deps, app, ids }) => {
      const [found, transfers] = await Promise.all([
        findListedPayout(deps.sql, app.id, ids.payoutId),
        listTransfers(deps.sql, app.id, ids.payoutId),
      ]);
      return { ...presentPayout(foundOrThrow(found)), transfers: transfers.map(presentTransfer) };
    },
  }),

  appRoute({
    method: 'POST',
    path: '/apps/:appId/payouts/:payoutId/transfers',
    permission: 'payout',
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

  rawAppRoute({
    method: 'POST',
    path: '/apps/:appId/affiliates/:affiliateId/payouts/export',
    permission: 'payout',
    operationId: 'exportPayout',
    summary: 'Pays the amount due to an affiliate and returns the payout as CSV.',
    description:
      `Each commission is paid once. A payout has all due reversals and corrections and at most ${PAYOUT_EARNINGS_LIMIT} earnings, ` +
      'oldest first; repeat the export while `X-Payout-More-Due` is `true`. If the net is zero or less, nothing is paid and the CSV has only its header line. ' +
      'Stored responses of exports never expire.',
    ids: { affiliateId: 'affiliate' },
    body: exportBody,
    errors: ['total_changed', 'idempotency_key_reused', 'payout_not_settled', 'payouts_stopped'],
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
        case 'csv':
          return presentExport(result, ids.affiliateId);
        case 'not_found':
          throw notFound();
        case 'total_changed':
          throw new ApiError('total_changed', {
            detail: `The net is now ${result.netCents} cents. Nothing was paid. Check the preview and export again.`,
          });
        case 'key_reused':
          throw new ApiError('idempotency_key_reused', {
            detail: 'The key belongs to an earlier export with other parameters. Use a new key.',
          });
        case 'stopped':
          throw new ApiError('payouts_stopped', {
            detail:
              'Nothing was paid. The database was restored or copied and may have forgotten payouts. Export again when the operator has recorded them.',
            headers: { 'Retry-After': String(STOPPED_RETRY_AFTER_SECONDS) },
          });
        case 'timed_out':
          throw new ApiError('payout_not_settled', {
            detail:
              'The payout workflow did not finish in time. Nothing was paid, and this request is closed. Send a new one.',
            headers: { 'Retry-After': String(EXPORT_RETRY_AFTER_SECONDS) },
          });
      }
    },
  }),

  rawAppRoute({
    method: 'GET',
    path: '/apps/:appId/payouts/:payoutId/csv',
    permission: 'payout',
    operationId: 'getPayoutCsv',
    summary: 'Retrieves the CSV of a payout.',
    description:
      'Returns the same bytes as the export that paid it. With `columns=extended`, each line also has `affiliate_email` (the ' +
      "affiliate's current address) and `occurred_at_iso`, and a last line, whose `commission_id` is `total`, has the total.",
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
