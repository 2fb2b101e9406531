import { closePayoutRequest, findPayoutRequest, openPayoutRequest } from '../db/payout-requests.ts';
import type { PayoutRequest } from '../db/payout-requests.ts';
import { needsAnotherApprover } from '../db/payout-approval.ts';
import { arePayoutsStopped } from '../db/payout-stops.ts';
import { newId } from '../db/new-id.ts';
import type { AccountId, AffiliateId, AppId, KeyId, PayoutId } from '../domain/ids.ts';
import type { CommandDeps, WorkflowStarter } from './deps.ts';

interface ExportDeps extends Pick<CommandDeps, 'sql' | 'observeExport'> {
  readonly workflows: Pick<WorkflowStarter, 'settlePayout'>;
}

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
  /** `payoutId` is null if nothing was due. `totalCents`: what the payout paid. `moreDue`: earnings remain that it had no room for: another export pays them. */
  | {
      readonly kind: 'settled';
      readonly payoutId: PayoutId | null;
      readonly totalCents: number;
      readonly moreDue: boolean;
      /** Whether an earlier call with the idempotency key has settled it. */
      readonly isRepeated: boolean;
    }
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
 * Has the amount due to an affiliate paid. The request row decides: it is written first, the workflow receives only its id, and a call
 * that times out closes it. So the result always matches the ledger. The activity stores the CSV after the commit.
 */
export async function exportPayout(deps: ExportDeps, input: ExportInput): Promise<ExportResult> {
  const { sql } = deps;
  const request = await openPayoutRequest(sql, { id: newId('payoutRequest'), ...input, validForMs: WAIT_MS });
  if (request === undefined) return { kind: 'not_found' };
  if (request === 'key_reused') return { kind: 'key_reused' };
  const isSame =
    request.appId === input.appId &&
    request.affiliateId === input.affiliateId &&
    request.expectedTotalCents === input.expectedTotalCents;
  if (!isSame) return { kind: 'key_reused' };
  if (request.status !== 'open') return resultOf(request, true);
  if (await arePayoutsStopped(sql)) {
    await closePayoutRequest(sql, request.id);
    return { kind: 'stopped' };
  }
  if (await needsAnotherApprover(sql, input.appId)) {
    await closePayoutRequest(sql, request.id);
    return { kind: 'another_approver_needed' };
  }
  const settled = await awaitSettled(deps, request);
  const { status } = settled;
  // The settlement closes a request, too, when the setting is changed after the export has begun.
  if (status === 'closed' && (await needsAnotherApprover(sql, input.appId)))
    return { kind: 'another_approver_needed' };
  deps.observeExport?.(
    status === 'open' || status === 'closed' || status === 'payee_changed' ? 'timed_out' : status,
  );
  return resultOf(settled, false);
}

/** Has the payout workflow settle the request, or closes it after `WAIT_MS`. Returns the request as it is then. */
async function awaitSettled({ sql, workflows }: ExportDeps, request: PayoutRequest): Promise<PayoutRequest> {
  await workflows.settlePayout(request, WAIT_MS);
  const settled = await findPayoutRequest(sql, request.id);
  if (settled?.status !== 'open') return settled ?? request;
  await closePayoutRequest(sql, request.id);
  return (await findPayoutRequest(sql, request.id)) ?? request;
}

function resultOf({ status, payoutId, netCents, moreDue }: PayoutRequest, isRepeated: boolean): ExportResult {
  switch (status) {
    case 'paid':
      return { kind: 'settled', payoutId, totalCents: netCents ?? 0, moreDue, isRepeated };
    case 'empty':
      return { kind: 'settled', payoutId: null, totalCents: 0, moreDue, isRepeated };
    case 'total_changed':
      return { kind: 'total_changed', netCents: netCents ?? 0 };
    case 'blocked':
      return { kind: 'blocked' };
    case 'open':
    case 'closed':
    // Only of a payout run.
    case 'payee_changed':
      return { kind: 'timed_out' };
  }
}
