import * as z from 'zod';
import { MONEY_STATES, TRANSFER_STATES } from '../../domain/payout-transfer.ts';
import type { Money, PayoutTransfer } from '../../db/payout-transfers.ts';
import type { PayoutCsv } from '../../db/payout-csv.ts';
import type { PayoutId } from '../../domain/ids.ts';
import type { NotPayableRow, PayoutListRow, PreviewRow } from '../../db/payout-lists.ts';
import { nameOfAffiliate, cents, count, currency, epochMs, idOf, orNull, textField } from '../fields.ts';
import type { RawReply } from '../reply.ts';
import { heldKey } from './sessions-views.ts';

export const sha256Field = (description: string) =>
  z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ description, examples: ['0'.repeat(64)] });

const UNTIL_STORED = 'Null for a moment until the CSV is stored.';

export const payoutMoney = z
  .object({
    state: z
      .enum(MONEY_STATES)
      .describe('`sent`: the money was transferred. `returned`: it came back, and is not sent again yet.'),
    statedAt: epochMs('When that was stated.'),
  })
  .describe('Where the money is.');

/** Where the money of the payout of a row of the ledger is. */
export const moneyOfPayout = payoutMoney.describe(
  'Where the money of its payout is. Absent until a payout contains it and that is stated.',
);

/** Presents where the money of a row of the ledger is. */
export function presentMoney(
  money: ReadonlyMap<PayoutId, Money>,
  { payoutId }: { readonly payoutId: PayoutId | null },
): { readonly money?: Money } {
  const stated = payoutId === null ? undefined : money.get(payoutId);
  return stated === undefined ? {} : { money: stated };
}

export const payout = z
  .object({
    id: idOf('payout'),
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    itemCount: count('The number of commissions of all kinds in its CSV.'),
    totalCents: cents('The amount to transfer to the creator.'),
    currency,
    createdAt: epochMs('When the payout was exported.'),
    createdBy: orNull(heldKey, 'It paid the payout. Null for one that was recorded from its CSV.'),
    money: orNull(payoutMoney, 'Null until it is stated.'),
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

export const transfer = z
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

export const transferReference = transferText('2026-06-15/17', REFERENCE, 200);

export const newTransfer = z
  .strictObject({
    state: transferState,
    method: transferText('bank transfer', METHOD, 200).optional(),
    reference: transferReference.optional(),
    note: transferText('Sent with the payouts of May.', NOTE, 1_000).optional(),
  })
  .meta({ id: 'NewPayoutTransfer', description: 'A statement about the money of a payout.' });

export const payoutWithTransfers = payout
  .extend({ transfers: z.array(transfer).describe('What was stated about its money, the latest first.') })
  .meta({ id: 'PayoutWithTransfers', description: 'A payout, and what was stated about its money.' });

export const preview = z
  .object({
    asOf: textField('2026-06-15T12:00:00.000Z', 'The instant of the preview. ISO 8601, UTC.'),
    rows: z
      .array(
        z.object({
          affiliateId: idOf('affiliate'),
          affiliateName: nameOfAffiliate,
          count: count('The number of commissions of all kinds that are due.'),
          totalCents: cents('Their net, which is positive.'),
          moreRemains: z.boolean().meta({
            description:
              'Whether so much is due that one export may not pay all. Repeat the export while its `X-Payout-More-Due` is `true`.',
          }),
        }),
      )
      .describe('One per affiliate with a positive net whose payouts are not blocked, largest first.'),
    totalCents: cents('The sum of all rows.'),
  })
  .meta({ id: 'PayoutPreview', description: 'What exports would pay, or what was owed, per affiliate.' });

export const notPayable = z
  .object({
    rows: z
      .array(
        z
          .object({
            affiliateId: idOf('affiliate'),
            affiliateName: nameOfAffiliate,
            reason: z
              .enum(['held', 'reversed', 'negative_balance', 'payouts_blocked'])
              .describe(
                '`held`: all is in the hold period. `reversed`: reversals take back exactly what is due. `negative_balance`: they take back more, which later commissions have to outweigh. `payouts_blocked`: a founder has blocked them.',
              ),
            balanceCents: cents('The net of what is due: zero or less, unless payouts are blocked.'),
            heldCents: cents('The net of what is in the hold period.'),
            nextDueAt: orNull(
              epochMs('When the next commission in the hold period is due.'),
              'Null if there is none.',
            ),
          })
          .meta({ id: 'NotPayable', description: 'An affiliate whom an export would pay nothing, and why.' }),
      )
      .describe(
        'Blocked ones with a positive net first, then negative balances, then those whose next commission is due first. At most a hundred.',
      ),
    truncated: z.boolean().describe('Whether there are more.'),
  })
  .meta({ id: 'NotPayableList', description: 'Affiliates whom exports would pay nothing now, and why.' });

export function presentPayout(row: PayoutListRow, stated: Money | undefined) {
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
    money: stated ?? null,
  };
}

export function presentTransfer(row: PayoutTransfer) {
  const { id, state, method, reference, note, createdAt } = row;
  const createdBy = { id: row.keyId, label: row.keyLabel, display: row.keyDisplay };
  return { id, state, method, reference, note, createdAt, createdBy };
}

export function presentNotPayable(row: NotPayableRow) {
  const { affiliateId, affiliateName, reason, balanceCents, heldCents, nextDueAt } = row;
  return { affiliateId, affiliateName, reason, balanceCents, heldCents, nextDueAt };
}

export function presentPreview(asOf: number, rows: readonly PreviewRow[]) {
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

export const EXPORT_HEADERS = {
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

export function presentExport(
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
