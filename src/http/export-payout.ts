import { closePayoutRequest, findPayoutRequest, openPayoutRequest } from '../db/ledger.ts';
import type { PayoutRequest } from '../db/ledger.ts';
import { newId } from '../db/new-id.ts';
import { buildPayoutCsv, EMPTY_PAYOUT_CSV } from '../db/payout-csv.ts';
import type { PayoutCsv } from '../db/payout-csv.ts';
import type { AccountId, AffiliateId, AppId, KeyId } from '../domain/ids.ts';
import type { HttpDeps } from './deps.ts';

export interface ExportCall {
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly idempotencyKey: string | null;
  readonly expectedTotalCents: number | null;
}

export type ExportAnswer =
  | { readonly kind: 'csv'; readonly csv: PayoutCsv }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'total_changed'; readonly netCents: number }
  /** The key was used before, for something else. */
  | { readonly kind: 'key_reused' }
  /** Given up: the request is closed and nothing will be paid for it. */
  | { readonly kind: 'gave_up' };

/** How long a call waits for the affiliate's payout workflow before it closes its request, and how long that is valid. */
const WAIT_MS = 20_000;

/**
 * Exports what an affiliate is owed. The request row is the authority: it is written first, the workflow only learns its
 * id, and a call that gives up closes it, so that the answer and the money never part ways.
 */
export async function exportPayout(
  deps: Pick<HttpDeps, 'sql' | 'work'>,
  call: ExportCall,
): Promise<ExportAnswer> {
  const { sql, work } = deps;
  const opened = await openPayoutRequest(sql, { id: newId('payoutRequest'), ...call, validForMs: WAIT_MS });
  if (opened === undefined) return { kind: 'not_found' };
  if (opened === 'key_reused') return { kind: 'key_reused' };
  const same =
    opened.appId === call.appId &&
    opened.affiliateId === call.affiliateId &&
    opened.expectedTotalCents === call.expectedTotalCents;
  if (!same) return { kind: 'key_reused' };
  return await answerFor(deps, await settled(opened));

  async function settled(request: PayoutRequest): Promise<PayoutRequest> {
    if (request.status !== 'open') return request;
    await work.settlePayout(request.affiliateId, request.id, WAIT_MS);
    let now = await findPayoutRequest(sql, request.id);
    if (now?.status === 'open') {
      await closePayoutRequest(sql, request.id);
      now = await findPayoutRequest(sql, request.id);
    }
    return now ?? request;
  }
}

async function answerFor({ sql }: Pick<HttpDeps, 'sql'>, request: PayoutRequest): Promise<ExportAnswer> {
  switch (request.status) {
    case 'paid': {
      const csv =
        request.payoutId === null ? undefined : await buildPayoutCsv(sql, request.appId, request.payoutId);
      return csv === undefined ? { kind: 'not_found' } : { kind: 'csv', csv };
    }
    case 'empty':
      return { kind: 'csv', csv: EMPTY_PAYOUT_CSV };
    case 'total_changed':
      return { kind: 'total_changed', netCents: request.netCents ?? 0 };
    case 'open':
    case 'closed':
      return { kind: 'gave_up' };
  }
}
