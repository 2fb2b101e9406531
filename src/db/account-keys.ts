import { createHash, randomBytes } from 'node:crypto';
import type { AccountId, KeyId } from '../domain/ids.ts';
import { displayKey, formatKey, KEY_RANDOM_BYTES } from '../domain/keys.ts';
import type { KeyKind, Permission } from '../domain/keys.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import { violatedConstraint } from './errors.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A stored key, without its text. */
export interface AccountKey {
  readonly id: KeyId;
  readonly accountId: AccountId;
  readonly display: string;
  /** Who uses the key. Null if it was not said. */
  readonly label: string | null;
  /** Whether it is the key of the account's sign-in links, which nobody has as text. */
  readonly isConsole: boolean;
  readonly permissions: readonly Permission[];
  readonly createdAt: number;
  /** When the key was last used, to the minute. Null before its first use. */
  readonly lastUsedAt: number | null;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** A key that was just created, with its text. The text is not stored. */
export interface NewAccountKey extends AccountKey {
  readonly key: string;
}

/** The caller that a valid key identifies. */
export interface AccountCaller {
  readonly keyId: KeyId;
  readonly accountId: AccountId;
  readonly permissions: readonly Permission[];
}

/** Returns the hash that is stored for a key. Keys are random, so a plain hash cannot be brute-forced. */
export function keySha256(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** A key's text, which is shown once, and what is stored. */
export interface KeyMaterial {
  readonly key: string;
  readonly display: string;
  readonly sha256: Buffer;
}

/** Creates a key from 32 bytes, random unless given. */
export function makeKey(kind: KeyKind, random: Buffer = randomBytes(KEY_RANDOM_BYTES)): KeyMaterial {
  const key = formatKey(kind, random);
  return { key, display: displayKey(kind, key), sha256: keySha256(key) };
}

/** Whether a key, which is not a member's, is valid at an instant: a condition of SQL for the columns of `account_keys`. */
const isValid = (sql: Sql, now: number) => sql.fragment`
  (revoked_at is null and (expires_at is null or expires_at > ${instant(now)}))`;

/** How exactly the last use of a key or a session is known, ms. So a busy caller does not write at each request. */
export const LAST_USE_MS = 60_000;

/**
 * Returns the caller that a key identifies, and records its use. Undefined for an unknown key, or one that is not valid at
 * `now`.
 */
export async function findAccountCaller(
  sql: Sql,
  key: string,
  now: number,
): Promise<AccountCaller | undefined> {
  return await sql.maybe<AccountCaller>`
    with found as materialized (
      select id, account_id, permissions, last_used_at from account_keys
       where key_sha256 = ${keySha256(key)} and ${isValid(sql, now)}
    ), used as (
      update account_keys set last_used_at = ${instant(now)}
       where id = (select id from found
                    where last_used_at is null or last_used_at <= ${instant(now - LAST_USE_MS)})
    )
    select id as key_id, account_id, permissions from found`;
}

/** The columns of an `AccountKey`. */
const columns = (sql: Sql) => sql.fragment`
  id, account_id, display, label, is_console, permissions, created_at, last_used_at, expires_at, revoked_at`;

/** Creates a key. Returns undefined for an unknown account. */
export async function generateAccountKey(
  sql: Sql,
  accountId: AccountId,
  permissions: readonly Permission[],
  label: string | null = null,
): Promise<NewAccountKey | undefined> {
  const id = newId('key');
  const { key, display, sha256 } = makeKey('account');
  try {
    const row = await sql.one<AccountKey>`
      with added as (
        insert into account_keys (id, account_id, key_sha256, display, label, permissions)
        select ${id}::text, ${accountId}::text, ${sha256}::bytea, ${display}::text, ${label}::text, ${permissions}::text[]
         where ${acting(sql)}
        on conflict (id) do nothing
        returning *
      )
      select ${columns(sql)}
        from (select * from added union all select * from account_keys where id = ${id}) k`;
    return { ...row, key };
  } catch (error) {
    if (violatedConstraint(error) === 'account_keys_account_id_fkey') return undefined;
    throw error;
  }
}

/** Creates a key for an existing account. Throws for an unknown one. */
export async function createAccountKey(
  sql: Sql,
  accountId: AccountId,
  permissions: readonly Permission[],
): Promise<NewAccountKey> {
  const generated = await generateAccountKey(sql, accountId, permissions);
  if (generated === undefined) throw new Error(`there is no account ${accountId}`);
  return generated;
}

/** The most valid keys that a list returns, and the most of those that have ended. */
export const MOST_LISTED = { valid: 1_000, ended: 100 };

/**
 * Returns the keys of an account but those of members, oldest first: of the valid ones and of those that have ended the newest
 * (`MOST_LISTED`). Undefined for an unknown account.
 */
export async function listAccountKeys(
  sql: Sql,
  accountId: AccountId,
  now: number,
): Promise<AccountKey[] | undefined> {
  const own = sql.fragment`account_id = a.id and not is_member`;
  const rows = await sql<AccountKey | { readonly id: null }>`
    select k.id, k.account_id, k.display, k.label, k.is_console, k.permissions, k.created_at, k.last_used_at,
           k.expires_at, k.revoked_at
      from accounts a
      left join lateral (
        (select * from account_keys where ${own} and ${isValid(sql, now)}
          order by created_at desc, id desc limit ${MOST_LISTED.valid})
        union all
        (select * from account_keys where ${own} and not ${isValid(sql, now)}
          order by created_at desc, id desc limit ${MOST_LISTED.ended})) k on true
     where a.id = ${accountId}
     order by k.created_at, k.id`;
  return rows.length === 0 ? undefined : rows.filter((row): row is AccountKey => row.id !== null);
}

/** Returns a key of an account. Undefined for an unknown one, for one of another account, and for that of a member. */
export async function findAccountKey(
  sql: Sql,
  accountId: AccountId,
  id: KeyId,
): Promise<AccountKey | undefined> {
  return await sql.maybe<AccountKey>`
    select ${columns(sql)} from account_keys where account_id = ${accountId} and id = ${id} and not is_member`;
}

/**
 * Revokes a key at once, and with it its sessions. Returns false for an unknown key, and for that of a member, who is removed instead.
 * Revoking twice changes nothing.
 */
export async function revokeAccountKey(sql: Sql, id: KeyId): Promise<boolean> {
  const row = await sql.maybe`
    update account_keys set revoked_at = coalesce(revoked_at, now()) where id = ${id} and not is_member and ${acting(sql)} returning id`;
  return row !== undefined;
}

/**
 * Creates a key with the same permissions and lets the old one expire at `previousEndsAt`, or earlier if it already
 * would. Returns undefined for an unknown key, for one that is no longer valid, and for the keys of sign-in links and members.
 */
export async function rotateAccountKey(
  sql: Sql,
  id: KeyId,
  now: number,
  previousEndsAt: number,
): Promise<NewAccountKey | undefined> {
  const successor = newId('key');
  const { key, display, sha256 } = makeKey('account');
  const row = await sql.maybe<AccountKey>`
    with ended as (
      update account_keys set expires_at = least(expires_at, ${instant(previousEndsAt)})
       where id = ${id} and not is_console and not is_member and ${isValid(sql, now)}
         and not exists (select from account_keys where id = ${successor}) and ${acting(sql)}
      returning account_id, label, permissions
    ), added as (
      insert into account_keys (id, account_id, key_sha256, display, label, permissions)
      select ${successor}::text, account_id, ${sha256}::bytea, ${display}::text, label, permissions from ended
      on conflict (id) do nothing
      returning *
    )
    select ${columns(sql)}
      from (select * from added union all select * from account_keys where id = ${successor}) k`;
  return row === undefined ? undefined : { ...row, key };
}
