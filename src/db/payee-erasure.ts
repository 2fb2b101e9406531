import { isAffiliate } from './affiliates.ts';
import { acting } from './audit.ts';
import { appendPayee, findLatestPayee } from './payees.ts';
import type { PayeeDeps, PayeePlace } from './payees.ts';
import { lockPayoutsOf } from './payout-lock.ts';
import { lockFilesOf } from './payout-run-files.ts';
import type { FileOfCreator } from './payout-run-files.ts';

/** Nothing was erased: these files are the only lists of whom to pay. */
export interface NeededFiles {
  readonly neededFiles: readonly FileOfCreator[];
}

/**
 * Erases the recipients of all versions of a creator's payee with the files of payout runs that have one, and appends the version `none`
 * unless it is the latest. Returns how many versions have lost their recipient, now or before; undefined for an unknown creator. Erases
 * nothing if a file is still needed, and returns those that are.
 */
export async function erasePayees(
  deps: PayeeDeps,
  place: PayeePlace,
): Promise<number | NeededFiles | undefined> {
  const { appId, affiliateId } = place;
  return await deps.sql.forManyRows().transaction(async (tx) => {
    const inTransaction = { ...deps, sql: tx };
    await lockPayoutsOf(tx, affiliateId);
    if (!(await isAffiliate(tx, appId, affiliateId))) return undefined;
    // Waits for a run that is writing its files, which are found afterwards.
    await tx`
      select from payees where app_id = ${appId} and affiliate_id = ${affiliateId} and ciphertext is not null
       order by version for no key update`;
    const files = await lockFilesOf(inTransaction, appId, affiliateId);
    const neededFiles = files.filter(({ isNeeded }) => isNeeded);
    if (neededFiles.length > 0) return { neededFiles };
    const latest = await findLatestPayee(inTransaction, appId, affiliateId);
    if (latest !== null && latest.method !== 'none') {
      await appendPayee(inTransaction, place, { method: 'none', recipient: null }, latest.version + 1);
    }
    await tx`
      update payees set ciphertext = null, encryption_key_id = null, erased_at = now()
       where app_id = ${appId} and affiliate_id = ${affiliateId} and ciphertext is not null and ${acting(tx)}`;
    await tx`delete from payee_changes where app_id = ${appId} and affiliate_id = ${affiliateId}`;
    const fileIds = files.map(({ id }) => id);
    await tx`
      update payout_run_files set ciphertext = null, encryption_key_id = null
       where app_id = ${appId} and id = any(${fileIds}::text[])`;
    const { erased } = await tx.one<{ erased: number }>`
      select count(*)::int as erased from payees
       where app_id = ${appId} and affiliate_id = ${affiliateId} and erased_at is not null`;
    return erased;
  });
}
