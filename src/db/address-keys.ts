import { DAY_MS, MINUTE_MS } from '../domain/time.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** What an encrypted address key is for: it can't be moved to another day. */
export function addressKeyContext(dayStartsAt: number): string {
  return `address-key:${dayStartsAt}`;
}

/** The key that addresses are hashed with on one UTC day, as it is stored. */
export interface AddressKey {
  readonly dayStartsAt: number;
  readonly ciphertext: Uint8Array;
  readonly encryptionKeyId: string;
}

const columns = (sql: Sql) => sql.fragment`
  day_starts_at, ciphertext, encryption_key_id`;

/** The key of a day. Undefined when nobody clicked then, or when it was destroyed. */
export async function findAddressKey(sql: Sql, dayStartsAt: number): Promise<AddressKey | undefined> {
  return await sql.maybe<AddressKey>`
    select ${columns(sql)} from address_keys where day_starts_at = ${instant(dayStartsAt)}`;
}

/** Stores a key as that of its day, unless the day has one. Whoever of several processes comes first, that key stays. */
export async function addAddressKey(sql: Sql, key: AddressKey): Promise<void> {
  await sql`
    insert into address_keys (day_starts_at, ciphertext, encryption_key_id)
    values (${instant(key.dayStartsAt)}, ${Buffer.from(key.ciphertext)}, ${key.encryptionKeyId})
    on conflict (day_starts_at) do nothing`;
}

/** How many hashes one statement forgets. */
const BATCH = 5_000;

/**
 * Destroys what no deferred match can need any more at `now` (epoch ms): the hashes of clicks that lie further back than
 * the longest window any app has, and the keys of days whose last click does. Answers how many it were. For
 * housekeeping: it may run at any time, any number of times, and in several processes at once.
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
      delete from deferred_clicks
       where click_id in (
         select click_id from deferred_clicks where clicked_at < ${instant(windowStartsAt)}
          order by clicked_at limit ${BATCH}
          for update skip locked)
      returning click_id`;
    last = forgotten.length;
  }
  return { keys: keys.length, hashes };
}
