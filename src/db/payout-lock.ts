import type { AffiliateId, AppId } from '../domain/ids.ts';
import type { Statements } from './sql.ts';

/**
 * Waits until no other transaction pays the creator, blocks the payouts or sets the payee, and keeps others waiting until the end of this
 * one. The triggers take the same lock (`lock_payouts_of_creator`).
 */
export async function lockPayoutsOf(tx: Statements, affiliateId: AffiliateId): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended('payout of ' || ${affiliateId}::text, 0))`;
}

/** Waits for each of many creators as `lockPayoutsOf` does, in the order of their ids. Keep them few: the locks share the memory of the server. */
export async function lockPayoutsOfAll(tx: Statements, affiliateIds: readonly AffiliateId[]): Promise<void> {
  await tx`
    select pg_advisory_xact_lock(hashtextextended('payout of ' || c.id, 0))
      from (select distinct x collate "C" as id from unnest(${[...affiliateIds]}::text[]) x order by 1 offset 0) c`;
}

/** The lock under which runs of an app are drafted and approved, until the end of the transaction. */
export const lockOfRuns = (tx: Statements, appId: AppId) =>
  tx.fragment`hashtextextended('payout runs of ' || ${appId}::text, 0)`;
