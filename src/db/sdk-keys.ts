import type { AppId, KeyId } from '../domain/ids.ts';
import type { SdkKeyKind } from '../domain/keys.ts';
import { acting } from './audit.ts';
import { keySha256 } from './account-keys.ts';
import type { KeyMaterial } from './account-keys.ts';
import { lockApp } from './app-lock.ts';
import { retryAfterConflict } from './conflict-retries.ts';
import { shareStatements } from './shared-statements.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** The caller that a valid SDK key identifies. */
export interface SdkCaller {
  readonly appId: AppId;
  readonly keyKind: SdkKeyKind;
}

interface StoredSdkKey extends SdkCaller {
  readonly expiresAt: number | null;
}

/** Returns the keys with these hashes (hex). */
async function findSdkKeys(sql: Sql, hashes: readonly string[]): Promise<(StoredSdkKey | undefined)[]> {
  const found = await sql<StoredSdkKey & { hash: string }>`
    select h as hash, k.app_id, k.kind as key_kind, k.expires_at
      from unnest(${hashes}::text[]) h
     cross join lateral (select * from sdk_keys x where x.key_sha256 = decode(h, 'hex') offset 0) k`;
  const keys = new Map(found.map(({ hash, ...key }) => [hash, key]));
  return hashes.map((hash) => keys.get(hash));
}

const findSdkKey = shareStatements(findSdkKeys, { keyOf: (hash) => hash, repeated: 'share' });

/** Returns the app and the kind of an SDK key. Undefined for an unknown key, or one that is not valid at `now`. */
export async function findSdkCaller(sql: Sql, key: string, now: number): Promise<SdkCaller | undefined> {
  const stored = await findSdkKey(sql, keySha256(key).toString('hex'));
  if (stored === undefined || (stored.expiresAt !== null && stored.expiresAt <= now)) return undefined;
  const { appId, keyKind } = stored;
  return { appId, keyKind };
}

/** An SDK key that is about to be stored. */
export interface NewSdkKey extends KeyMaterial {
  readonly id: KeyId;
  readonly kind: SdkKeyKind;
}

/**
 * Inserts a new SDK key of an app, and returns when the previous one of its kind expires, or null if there was none. All earlier
 * keys of the kind expire at `previousEndsAt`, or earlier if they already would; so a rotation without grace also ends keys in
 * the grace period of an earlier rotation. An app has one current key of each kind: rotations of one app run one after the other.
 */
export async function rotateSdkKey(
  sql: Sql,
  appId: AppId,
  { id, kind, display, sha256 }: NewSdkKey,
  previousEndsAt: number,
): Promise<number | null> {
  const rotate = async (tx: Statements) => {
    await lockApp(tx, appId);
    // It exists if this runs again after a lost answer to the commit.
    if ((await tx`select from sdk_keys where id = ${id}`).length === 0) {
      await tx`
        update sdk_keys set expires_at = ${instant(previousEndsAt)}
         where app_id = ${appId} and kind = ${kind} and (expires_at is null or expires_at > ${instant(previousEndsAt)}) and ${acting(tx)}`;
      await tx`
        insert into sdk_keys (id, app_id, kind, key_sha256, display, created_at)
        select ${id}::text, ${appId}::text, ${kind}::text, ${sha256}::bytea, ${display}::text,
               greatest(now(), max(created_at) + interval '1 microsecond')
          from sdk_keys where app_id = ${appId} and kind = ${kind} having ${acting(tx)}`;
    }
    const { endsAt } = await tx.one<{ endsAt: number | null }>`
      select max(before.expires_at) as ends_at
        from sdk_keys made
        join sdk_keys before on before.app_id = made.app_id and before.kind = made.kind and before.id <> made.id and before.created_at <= made.created_at
       where made.id = ${id}`;
    return endsAt;
  };
  // During an upgrade, a process of version 0.1.0 takes no lock.
  return await retryAfterConflict(['sdk_keys_one_current'], () => sql.transaction(rotate));
}
