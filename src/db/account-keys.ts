import { createHash, randomBytes } from 'node:crypto';
import type { AccountId, KeyId } from '../domain/ids.ts';
import { displayKey, formatKey, KEY_RANDOM_BYTES } from '../domain/keys.ts';
import type { KeyKind, Permission } from '../domain/keys.ts';
import { newId } from './new-id.ts';
import { instant, violatedConstraint } from './sql.ts';
import type { Sql } from './sql.ts';

/** A stored key, without its text. */
export interface AccountKey {
  readonly id: KeyId;
  readonly accountId: AccountId;
  readonly display: string;
  readonly permissions: readonly Permission[];
  readonly createdAt: number;
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

/** Returns the caller that a key identifies. Undefined for an unknown key, or one that is not valid at `now`. */
export async function findAccountCaller(
  sql: Sql,
  key: string,
  now: number,
): Promise<AccountCaller | undefined> {
  return await sql.maybe<AccountCaller>`
    select id as key_id, account_id, permissions
      from account_keys
     where key_sha256 = ${keySha256(key)} and revoked_at is null
       and (expires_at is null or expires_at > ${instant(now)})`;
}

/** Creates a key. Returns undefined for an unknown account. */
export async function generateAccountKey(
  sql: Sql,
  accountId: AccountId,
  permissions: readonly Permission[],
): Promise<NewAccountKey | undefined> {
  const id = newId('key');
  const { key, display, sha256 } = makeKey('account');
  try {
    const row = await sql.one<AccountKey>`
      with added as (
        insert into account_keys (id, account_id, key_sha256, display, permissions)
        values (${id}, ${accountId}, ${sha256}, ${display}, ${permissions}::text[])
        on conflict (id) do nothing
        returning *
      )
      select id, account_id, display, permissions, created_at,
             expires_at, revoked_at
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

/** Returns all keys of an account, oldest first. Undefined for an unknown account. */
export async function listAccountKeys(sql: Sql, accountId: AccountId): Promise<AccountKey[] | undefined> {
  const rows = await sql<AccountKey | { readonly id: null }>`
    select k.id, k.account_id, k.display, k.permissions, k.created_at,
           k.expires_at, k.revoked_at
      from accounts a left join account_keys k on k.account_id = a.id
     where a.id = ${accountId}
     order by k.created_at, k.id`;
  return rows.length === 0 ? undefined : rows.filter((row): row is AccountKey => row.id !== null);
}

/** Revokes a key at once. Returns false for an unknown key. Revoking twice changes nothing. */
export async function revokeAccountKey(sql: Sql, id: KeyId): Promise<boolean> {
  const row = await sql.maybe`
    update account_keys set revoked_at = coalesce(revoked_at, now()) where id = ${id} returning id`;
  return row !== undefined;
}

/**
 * Creates a key with the same permissions and lets the old one expire at `previousEndsAt`, or earlier if it already
 * would. Returns undefined for an unknown key, and for one that is no longer valid.
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
       where id = ${id} and revoked_at is null and (expires_at is null or expires_at > ${instant(now)})
         and not exists (select from account_keys where id = ${successor})
      returning account_id, permissions
    ), added as (
      insert into account_keys (id, account_id, key_sha256, display, permissions)
      select ${successor}::text, account_id, ${sha256}::bytea, ${display}::text, permissions from ended
      on conflict (id) do nothing
      returning *
    )
    select id, account_id, display, permissions, created_at,
           expires_at, revoked_at
      from (select * from added union all select * from account_keys where id = ${successor}) k`;
  return row === undefined ? undefined : { ...row, key };
}
