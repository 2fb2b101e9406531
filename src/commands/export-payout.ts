import { closePayoutRequest, findPayoutRequest, openPayoutRequest } from '../db/payout-requests.ts';
import type { PayoutRequest } from '../db/payout-requests.ts';
import { needsAnotherApprover } from '../db/payout-approval.ts';
import { arePayoutsStopped } from '../db/payout-stops.ts';
import { newId } from '../db/new-id.ts';
import { readPayoutCsv, EMPTY_PAYOUT_CSV } from '../db/payout-csv.ts';
import type { PayoutCsv } from '../db/payout-csv.ts';
import type { AccountId, AffiliateId, AppId, KeyId } from '../domain/ids.ts';
import type { CommandDeps } from './deps.ts';

export interface ExportInput {
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly idempotencyKey: string | null;
  /** The net that the caller expects to pay; null to pay any. */
  readonly expectedTotalCents: number | null;
}

export type ExportResult =
  /** `totalCents`: what the payout paid. `moreDue`: earnings remain that this payout had no room for. Another export pays them. */
  | { readonly kind: 'csv'; readonly csv: PayoutCsv; readonly totalCents: number; readonly moreDue: boolean }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'total_changed'; readonly netCents: number }
  /** A founder has blocked the payouts of the creator. */
  | { readonly kind: 'blocked' }
  /** The app wants another key to approve each payment, which payout runs have. The request is closed. */
  | { readonly kind: 'another_approver_needed' }
  /** The idempotency key belongs to an earlier request with other input. */
  | { readonly kind: 'key_reused' }
  /** The database may have forgotten payouts. The request is closed. */
  | { readonly kind: 'stopped' }
  /** The request timed out and is closed. It will never pay. */
  | { readonly kind: 'timed_out' };

/** How long a call waits for the affiliate's payout workflow before it closes its request. */
const WAIT_MS = 20_000;

/**
 * Pays the amount due to an affiliate and returns the CSV. The request row decides: it is written first, the workflow
 * receives only its id, and a call that times out closes it. So the result always matches the ledger.
 */
export async function exportPayout(
  deps: Pick<CommandDeps, 'sql' | 'workflows' | 'observeExport'>,
  input: ExportInput,
): Promise<ExportResult> {
  const { sql } = deps;
  const request = await openPayoutRequest(sql, { id: newId('payoutRequest'), ...input, validForMs: WAIT_MS });
  if (request === undefined) return { kind: 'not_found' };
  if (request === 'key_reused') return { kind: 'key_reused' };
  const isSame =
    request.appId === input.appId &&
    request.affiliateId === input.affiliateId &&
    request.expectedTotalCents === input.expectedTotalCents;
  if (!isSame) return { kind: 'key_reused' };
  if (request.status !== 'open') return await resultOf(deps, request);
  if (await arePayoutsStopped(sql)) {
    await closePayoutRequest(sql, request.id);
    return { kind: 'stopped' };
  }
  if (await needsAnotherApprover(sql, input.appId)) {
    await closePayoutRequest(sql, request.id);
    return { kind: 'another_approver_needed' };
  }
  const settled = await settle(deps, request);
  const { status } = settled;
  deps.observeExport?.(
    status === 'open' || status === 'closed' || status === 'payee_changed' ? 'timed_out' : status,
  );
  return await resultOf(deps, settled);
}

/** Has the payout workflow settle the request, or closes it after `WAIT_MS`. Returns the request as it is then. */
async function settle(
  { sql, workflows }: Pick<CommandDeps, 'sql' | 'workflows'>,
  request: PayoutRequest,
): Promise<PayoutRequest> {
  await workflows.settlePayout(request, WAIT_MS);
  const settled = await findPayoutRequest(sql, request.id);
  if (settled?.status !== 'open') return settled ?? request;
  await closePayoutRequest(sql, request.id);
  return (await findPayoutRequest(sql, request.id)) ?? request;
}

async function resultOf({ sql }: Pick<CommandDeps, 'sql'>, request: PayoutRequest): Promise<ExportResult> {
  switch (request.status) {
    case 'paid': {
      const csv =
        request.payoutId === null ? undefined : await readPayoutCsv(sql, request.appId, request.payoutId);
      if (csv === undefined) return { kind: 'not_found' };
      return { kind: 'csv', csv, totalCents: request.netCents ?? 0, moreDue: request.moreDue };
    }
    case 'empty':
      return { kind: 'csv', csv: EMPTY_PAYOUT_CSV, totalCents: 0, moreDue: request.moreDue };
    case 'total_changed':
      return { kind: 'total_changed', netCents: request.netCents ?? 0 };
    case 'blocked':
      return { kind: 'blocked' };
    case 'open':
    case 'closed':
    // Only of a payout run.
    case 'payee_changed':
      return { kind: 'timed_out' };
  }
}
