import { DAY_MS, MINUTE_MS } from '../domain/time.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Returns the encryption context of an address key, which binds the ciphertext to its day. */
export function addressKeyContext(dayStartsAt: number): string {
  return `address-key:${dayStartsAt}`;
}

/** The stored key that addresses are hashed with on one UTC day. */
export interface AddressKey {
  readonly dayStartsAt: number;
  readonly ciphertext: Uint8Array;
  readonly encryptionKeyId: string;
}

const columns = (sql: Sql) => sql.fragment`
  day_starts_at, ciphertext, encryption_key_id`;

/** Returns the key of a day. Undefined if there was no click on that day, or if the key was deleted. */
export async function findAddressKey(sql: Sql, dayStartsAt: number): Promise<AddressKey | undefined> {
  return await sql.maybe<AddressKey>`
    select ${columns(sql)} from address_keys where day_starts_at = ${instant(dayStartsAt)}`;
}

/** Stores the key of a day unless the day has one: of several processes, the first to store a key decides. */
export async function addAddressKey(sql: Sql, key: AddressKey): Promise<void> {
  await sql`
    insert into address_keys (day_starts_at, ciphertext, encryption_key_id)
    values (${instant(key.dayStartsAt)}, ${Buffer.from(key.ciphertext)}, ${key.encryptionKeyId})
    on conflict (day_starts_at) do nothing`;
}

/** Number of hashes that one statement deletes. */
const BATCH = 5_000;

/**
 * Deletes what no deferred match can use after `now` (epoch ms): the hashes of clicks older than the longest window of
 * any app, and the keys of days that ended before that window. Returns how many of each. It may run at any time, and in
 * several processes at once.
 */
export async function destroyExpiredAddressKeys(
  sql: Sql,
  now: number,
): Promise<{ readonly keys: number; readonly hashes: number }> {
  const { windowMinutes } = await sql.one<{ windowMinutes: number }>`
    select coalesce(max(deferred_window_minutes), 0) as window_minutes from apps`;
  const windowStartsAt = now - windowMinutes * MINUTE_MS;
  const keys = await sql`
    delete from address_keys where day_starts_at <= ${instant(windowStartsAt - DAY_MS)} returning day_starts_at`;
  let hashes = 0;
  for (let last = BATCH; last === BATCH; hashes += last) {
    const forgotten = await sql`
      with page as materialized (
        select click_id from deferred_clicks where clicked_at < ${instant(windowStartsAt)}
         order by clicked_at limit ${BATCH}
         for update skip locked
      )
      delete from deferred_clicks d using page where d.click_id = page.click_id
      returning d.click_id`;
    last = forgotten.length;
  }
  return { keys: keys.length, hashes };
}
