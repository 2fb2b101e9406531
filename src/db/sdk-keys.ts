import type { AppId, KeyId } from '../domain/ids.ts';
import { keySha256 } from './account-keys.ts';
import type { KeyMaterial } from './account-keys.ts';
import { retryAfterConflict } from './retries.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Returns the app of an SDK key. Undefined for an unknown key, or one that is not valid at `now`. */
export async function findAppOfSdkKey(sql: Sql, key: string, now: number): Promise<AppId | undefined> {
  const row = await sql.maybe<{ appId: AppId }>`
    select app_id from sdk_keys
     where key_sha256 = ${keySha256(key)} and (expires_at is null or expires_at > ${instant(now)})`;
  return row?.appId;
}

/** An SDK key that is about to be stored. */
export interface NewSdkKey extends KeyMaterial {
  readonly id: KeyId;
}

/**
 * Inserts a new SDK key of an app, and returns when the previous one expires. All earlier keys expire at
 * `previousEndsAt`, or earlier if they already would; so a rotation without grace also ends keys in the grace period of
 * an earlier rotation. An app has one current key: of two concurrent rotations, the later one ends the key of the
 * earlier one. A key whose id exists changes nothing.
 */
export async function rotateSdkKey(
  sql: Sql,
  appId: AppId,
  { id, display, sha256 }: NewSdkKey,
  previousEndsAt: number,
): Promise<number> {
  // The insert reads the result of the update, so it runs after it, when the previous key is no longer current.
  await retryAfterConflict(
    ['sdk_keys_one_current'],
    () => sql`
      with ended as (
        update sdk_keys set expires_at = ${instant(previousEndsAt)}
         where app_id = ${appId} and id <> ${id} and (expires_at is null or expires_at > ${instant(previousEndsAt)})
           and not exists (select from sdk_keys where id = ${id})
        returning id
      )
      insert into sdk_keys (id, app_id, key_sha256, display)
      select ${id}::text, ${appId}::text, ${sha256}::bytea, ${display}::text from (select count(*) from ended) n
      on conflict (id) do nothing`,
  );
  const { endsAt } = await sql.one<{ endsAt: number }>`
    select max(before.expires_at) as ends_at
      from sdk_keys made
      join sdk_keys before on before.app_id = made.app_id and before.id <> made.id and before.created_at <= made.created_at
     where made.id = ${id}`;
  return endsAt;
}
