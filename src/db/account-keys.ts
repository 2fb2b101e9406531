import { createHash, randomBytes } from 'node:crypto';
import type { AccountId, KeyId } from '../domain/ids.ts';
import { displayKey, formatKey, KEY_RANDOM_BYTES } from '../domain/keys.ts';
import type { KeyKind, Permission } from '../domain/keys.ts';
import { newId } from './new-id.ts';
import { instant, violatedConstraint } from './sql.ts';
import type { Sql } from './sql.ts';

/** A key as it may be shown at any time. */
export interface AccountKey {
  readonly id: KeyId;
  readonly accountId: AccountId;
  readonly display: string;
  readonly permissions: readonly Permission[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
}

/** A key at the only moment when its text is known. */
export interface NewAccountKey extends AccountKey {
  readonly key: string;
}

/** Who calls, once its key was found valid. */
export interface AccountCaller {
  readonly keyId: KeyId;
  readonly accountId: AccountId;
  readonly permissions: readonly Permission[];
}

/** What is stored of a key. Keys are random, so a plain hash can't be searched for. */
export function keySha256(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** A key's text, which is told once, and what is stored of it. */
export interface KeyMaterial {
  readonly key: string;
  readonly display: string;
  readonly sha256: Buffer;
}

/** The key that 32 random bytes make; new ones when none are given. */
export function makeKey(kind: KeyKind, random: Buffer = randomBytes(KEY_RANDOM_BYTES)): KeyMaterial {
  const key = formatKey(kind, random);
  return { key, display: displayKey(kind, key), sha256: keySha256(key) };
}

/** Whose key this is, or undefined when there is no such key or it is not valid at `now`. */
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

/** Makes a key. Undefined when there is no such account. */
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

/** Makes a key for an account that is known to exist. */
export async function createAccountKey(
  sql: Sql,
  accountId: AccountId,
  permissions: readonly Permission[],
): Promise<NewAccountKey> {
  const generated = await generateAccountKey(sql, accountId, permissions);
  if (generated === undefined) throw new Error(`there is no account ${accountId}`);
  return generated;
}

/** All keys of an account, oldest first; undefined when there is no such account. */
export async function listAccountKeys(sql: Sql, accountId: AccountId): Promise<AccountKey[] | undefined> {
  const rows = await sql<AccountKey | { readonly id: null }>`
    select k.id, k.account_id, k.display, k.permissions, k.created_at,
           k.expires_at, k.revoked_at
      from accounts a left join account_keys k on k.account_id = a.id
     where a.id = ${accountId}
     order by k.created_at, k.id`;
  return rows.length === 0 ? undefined : rows.filter((row): row is AccountKey => row.id !== null);
}

/** Makes a key worthless at once. False when there is no such key; a key that was revoked before stays so. */
export async function revokeAccountKey(sql: Sql, id: KeyId): Promise<boolean> {
  const row = await sql.maybe`
    update account_keys set revoked_at = coalesce(revoked_at, now()) where id = ${id} returning id`;
  return row !== undefined;
}

/**
 * Makes a key with the same permissions and lets the old one end at `previousEndsAt`, never later than it would have.
 * Undefined when there is no such key, or when it is not valid any more: a dead key has no successor.
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
