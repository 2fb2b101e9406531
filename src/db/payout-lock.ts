import type { AffiliateId, AppId } from '../domain/ids.ts';
import type { Statements } from './sql.ts';

/**
 * Waits until no other transaction pays the creator, blocks the payouts or sets the payee, and keeps others waiting until the end of this
 * one. The triggers take the same lock (`lock_payouts_of_creator`).
 */
export async function lockPayoutsOf(tx: Statements, affiliateId: AffiliateId): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended('payout of ' || ${affiliateId}::text, 0))`;
}

/** The lock under which runs of an app are drafted and approved, until the end of the transaction. */
export const lockOfRuns = (tx: Statements, appId: AppId) =>
  tx.fragment`hashtextextended('payout runs of ' || ${appId}::text, 0)`;
