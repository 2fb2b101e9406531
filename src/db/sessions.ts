import { createHash, randomBytes } from 'node:crypto';
import type { AccountId, AppId, KeyId, MemberId, SessionId } from '../domain/ids.ts';
import { KEY_RANDOM_BYTES, PERMISSIONS } from '../domain/keys.ts';
import type { Permission } from '../domain/keys.ts';
import { ROLE_PERMISSIONS } from '../domain/members.ts';
import type { MemberRole } from '../domain/members.ts';
import {
  FIRST_ACCOUNT_NAME,
  RAISED_MS,
  SESSION_IDLE_MS,
  SESSION_MAX_MS,
  TOKEN_BYTES,
} from '../domain/sessions.ts';
import { acting } from './audit.ts';
import { keySha256, LAST_USE_MS } from './account-keys.ts';
import { newId } from './new-id.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A session that is valid, and the key that it holds. */
export interface Session {
  readonly id: SessionId;
  readonly accountId: AccountId;
  readonly accountName: string;
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
  /** Those of the key at this moment. */
  readonly permissions: readonly Permission[];
  /** Whether it is the key of the account's sign-in links, which the operator creates. */
  readonly isConsole: boolean;
  /** The member who is signed in. Null for a session that holds another key. */
  readonly member: SessionMember | null;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The key on which payouts are booked, while the session may pay; else null. */
  readonly raisedKeyId: KeyId | null;
  readonly raisedUntil: number | null;
}

/** The member of a session, as of this moment. */
export interface SessionMember {
  readonly id: MemberId;
  readonly email: string;
  readonly role: MemberRole;
  /** The apps that the member sees. Null: all. */
  readonly appIds: readonly AppId[] | null;
}

/** What is stored of a session that begins. */
export interface NewSession {
  readonly token: string;
  readonly userAgent: string | null;
  readonly now: number;
}

/** Returns a random token of a session or a sign-in link. */
export function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}

/** Returns what is stored of a token. */
export function tokenSha256(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** The condition that a key is valid at an instant. That of a member has no end but a removal (migration 0100). */
export const isValid = (sql: Sql, now: number) => sql.fragment`
  k.revoked_at is null and (k.is_member or k.expires_at is null or k.expires_at > ${instant(now)})`;

/** The condition that a session is valid at an instant, apart from its key. */
const isOpen = (sql: Sql, now: number) => sql.fragment`
  s.ended_at is null and s.expires_at > ${instant(now)} and s.last_used_at > ${instant(now - SESSION_IDLE_MS)}`;

/** Returns the session of a token, and records its use and that of its key. Undefined if it is not valid at `now`. */
export async function findSession(sql: Sql, token: string, now: number): Promise<Session | undefined> {
  const usedBefore = instant(now - LAST_USE_MS);
  return await sql.maybe<Session>`
    with found as materialized (
      select s.id, s.account_id, a.name as account_name, k.id as key_id, k.label as key_label,
             k.display as key_display, k.permissions, k.is_console, s.created_at, s.expires_at, r.id as raised_key_id,
             case when m.id is not null then
               jsonb_build_object('id', m.id, 'email', m.email, 'role', m.role, 'appIds', m.app_ids) end as member,
             case when r.id is not null then s.raised_until end as raised_until,
             s.last_used_at <= ${usedBefore} as is_stale,
             k.last_used_at is null or k.last_used_at <= ${usedBefore} as is_key_stale
        from sessions s
        join accounts a on a.id = s.account_id
        join account_keys k on k.account_id = s.account_id and k.id = s.key_id
        left join members m on m.key_id = s.key_id and m.removed_at is null
        left join account_keys r on r.account_id = s.account_id and r.id = s.raised_key_id
             and s.raised_until > ${instant(now)} and 'payout' = any (r.permissions)
             and r.revoked_at is null and (r.is_member or r.expires_at is null or r.expires_at > ${instant(now)})
             -- Who pays as a member needs a role for it, whatever key was entered.
             and (m.id is null or 'payout' = any (k.permissions))
       where s.token_sha256 = ${tokenSha256(token)} and ${isOpen(sql, now)} and ${isValid(sql, now)}
         and k.is_member = (m.id is not null)
    ), used as (
      update sessions set last_used_at = ${instant(now)} where id = (select id from found where is_stale)
    ), used_key as (
      update account_keys set last_used_at = ${instant(now)} where id = (select key_id from found where is_key_stale)
    )
    select id, account_id, account_name, key_id, key_label, key_display, permissions, is_console, member,
           created_at, expires_at, raised_key_id, raised_until
      from found`;
}

/** Starts a session with an account key. Returns undefined for a key that is not valid. */
export async function startSession(
  sql: Sql,
  key: string,
  { token, userAgent, now }: NewSession,
): Promise<Session | undefined> {
  const id = newId('session');
  await sql`
    insert into sessions (id, token_sha256, account_id, key_id, user_agent, created_at, last_used_at, expires_at)
    select ${id}::text, ${tokenSha256(token)}::bytea, k.account_id, k.id, ${userAgent}::text,
           ${instant(now)}::timestamptz, ${instant(now)}::timestamptz, ${instant(now + SESSION_MAX_MS)}::timestamptz
      from account_keys k
     where k.key_sha256 = ${keySha256(key)} and ${isValid(sql, now)} and ${acting(sql)}
    on conflict (id) do nothing`;
  return await findSession(sql, token, now);
}

/**
 * Spends a sign-in link and starts its session. A link that creates its account gives it `accountName`. Returns undefined
 * for a link that is unknown, spent or expired, or whose key is no longer valid. One statement, so that of two callers at
 * most one gets a session. A link that was mailed to a member who may pay starts a session that may.
 */
export async function spendSignInLink(
  sql: Sql,
  linkToken: string,
  { token, userAgent, now }: NewSession,
  accountName: string = FIRST_ACCOUNT_NAME,
): Promise<Session | undefined> {
  const id = newId('session');
  const [accountId, keyId] = [newId('account'), newId('key')];
  await sql`
    with spent as (
      update sign_in_links set session_id = ${id}
       where token_sha256 = ${tokenSha256(linkToken)} and expires_at > ${instant(now)} and session_id is null and ${acting(sql)}
         -- The links of a former maker are deleted, but for one that was made at the same time.
         and (made_by is null or exists (select from account_keys k
                                          where k.id = made_by and ${isValid(sql, now)} and k.permissions @> ${[...ROLE_PERMISSIONS.owner]}::text[]))
      returning account_id, key_id, raises, made_by
    ), made_account as (
      insert into accounts (id, name) select ${accountId}::text, ${accountName}::text from spent where account_id is null
      returning id
    ), made_key as (
      insert into account_keys (id, account_id, key_sha256, display, label, permissions, is_console)
      select ${keyId}::text, id, ${randomBytes(KEY_RANDOM_BYTES)}::bytea, ${CONSOLE_KEY.display}::text,
             ${CONSOLE_KEY.label}::text, ${PERMISSIONS}::text[], true
        from made_account
      returning account_id, id as key_id
    ), holder as (
      select account_id, key_id, false as may_pay, null::text as made_by from made_key
      union all
      select k.account_id, k.id, spent.raises and k.is_member and 'payout' = any (k.permissions), spent.made_by from spent join account_keys k on k.account_id = spent.account_id and k.id = spent.key_id
       where ${isValid(sql, now)}
    )
    insert into sessions (id, token_sha256, account_id, key_id, user_agent, created_at, last_used_at, expires_at, raised_key_id,
                          raised_until, link_made_by)
    select ${id}::text, ${tokenSha256(token)}::bytea, account_id, key_id, ${userAgent}::text,
           ${instant(now)}::timestamptz, ${instant(now)}::timestamptz, ${instant(now + SESSION_MAX_MS)}::timestamptz,
           case when may_pay then key_id end, case when may_pay then ${instant(now + RAISED_MS)}::timestamptz end, made_by
      from holder`;
  return await findSession(sql, token, now);
}

/** How the key of an account's sign-in links is shown. */
const CONSOLE_KEY = { display: 'sign-in link', label: 'Sign-in links' };

/**
 * Stores a sign-in link. The account's key for sign-in links is created with the first one. Without an account, the link
 * creates one. Returns its token, which is not stored.
 */
export async function createSignInLink(
  sql: Sql,
  accountId: AccountId | null,
  { now, validMs }: { readonly now: number; readonly validMs: number },
): Promise<string> {
  const token = newToken();
  await sql`
    with console_key as (
      insert into account_keys as k (id, account_id, key_sha256, display, label, permissions, is_console)
      select ${newId('key')}::text, id, ${randomBytes(KEY_RANDOM_BYTES)}::bytea, ${CONSOLE_KEY.display}::text,
             ${CONSOLE_KEY.label}::text, ${PERMISSIONS}::text[], true
        from accounts where id = ${accountId} and ${acting(sql)}
      on conflict (account_id) where is_console and revoked_at is null do update set label = k.label
      returning account_id, id
    )
    insert into sign_in_links (token_sha256, account_id, key_id, created_at, expires_at)
    select ${tokenSha256(token)}::bytea, k.account_id, k.id, ${instant(now)}::timestamptz,
           ${instant(now + validMs)}::timestamptz
      from (select) one left join console_key k on true
     where (k.id is not null or ${accountId}::text is null) and ${acting(sql)}
    on conflict (token_sha256) do nothing`;
  return token;
}

/**
 * Lets a session pay for 15 minutes, on a key of its account with the permission `payout`. Returns the session, or
 * undefined for another key.
 */
export async function raiseSession(
  sql: Sql,
  session: Session,
  key: string,
  now: number,
): Promise<{ readonly raisedKeyId: KeyId; readonly raisedUntil: number } | undefined> {
  return await sql.maybe<{ raisedKeyId: KeyId; raisedUntil: number }>`
    update sessions s set raised_key_id = k.id, raised_until = ${instant(now + RAISED_MS)}
      from account_keys k
     where s.id = ${session.id} and k.account_id = s.account_id and k.key_sha256 = ${keySha256(key)}
       and 'payout' = any (k.permissions) and ${isValid(sql, now)} and ${acting(sql)}
    returning s.raised_key_id, s.raised_until`;
}

/**
 * Spends a link that was mailed to the member of a session, and lets the session pay for 15 minutes. Returns undefined for every other
 * link, and for a role that does not pay. One statement, so that a link is spent once.
 */
export async function raiseWithLink(
  sql: Sql,
  session: Session,
  linkToken: string,
  now: number,
): Promise<{ readonly raisedKeyId: KeyId; readonly raisedUntil: number } | undefined> {
  const until = instant(now + RAISED_MS);
  return await sql.maybe<{ raisedKeyId: KeyId; raisedUntil: number }>`
    with spent as (
      -- The link starts no session, so its id is that of none.
      update sign_in_links l set session_id = ${newId('session')}
        from account_keys k
       where l.token_sha256 = ${tokenSha256(linkToken)} and l.expires_at > ${instant(now)} and l.session_id is null and l.raises
         and l.key_id = ${session.keyId} and k.id = l.key_id and k.is_member and 'payout' = any (k.permissions)
         and ${isValid(sql, now)} and ${acting(sql)}
      returning l.key_id
    ), raised as (
      update sessions s set raised_key_id = spent.key_id, raised_until = ${until}
        from spent where s.id = ${session.id} and s.key_id = spent.key_id and s.ended_at is null
      returning s.raised_key_id, s.raised_until
    )
    select raised_key_id, raised_until from raised
    union all
    -- A statement whose answer was lost is sent again.
    select raised_key_id, raised_until from sessions
     where id = ${session.id} and raised_until = ${until} and raised_key_id = key_id and not exists (select from raised)`;
}

/** Which sessions of an account a caller sees and ends: all of them, or those of one key. */
export interface SessionScope {
  readonly accountId: AccountId;
  /** Null for all. */
  readonly keyId: KeyId | null;
}

/** A session in a list. */
export interface ListedSession {
  readonly id: SessionId;
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
  readonly userAgent: string | null;
  readonly createdAt: number;
  readonly lastUsedAt: number;
  readonly expiresAt: number;
}

/** The most sessions that a list returns. */
export const MAX_LISTED = 200;

/** Returns the valid sessions of a scope, newest first. */
export async function listSessions(
  sql: Sql,
  { accountId, keyId }: SessionScope,
  now: number,
): Promise<ListedSession[]> {
  return await sql<ListedSession>`
    select s.id, k.id as key_id, k.label as key_label, k.display as key_display, s.user_agent, s.created_at,
           s.last_used_at, least(s.expires_at, s.last_used_at + ${SESSION_IDLE_MS} * interval '1 millisecond') as expires_at
      from sessions s join account_keys k on k.account_id = s.account_id and k.id = s.key_id
     where s.account_id = ${accountId} and (${keyId}::text is null or s.key_id = ${keyId})
       and ${isOpen(sql, now)} and ${isValid(sql, now)}
     order by s.created_at desc, s.id desc limit ${MAX_LISTED}`;
}

/** Ends a session of a scope. Returns false for an unknown one. Ending it twice changes nothing. */
export async function endSession(
  sql: Sql,
  { accountId, keyId }: SessionScope,
  id: SessionId,
  now: number,
): Promise<boolean> {
  const row = await sql.maybe`
    update sessions set ended_at = coalesce(ended_at, ${instant(now)})
     where id = ${id} and account_id = ${accountId} and (${keyId}::text is null or key_id = ${keyId}) and ${acting(sql)}
    returning id`;
  return row !== undefined;
}

/** Ends all sessions of a scope except one. Returns how many it ended. */
export async function endOtherSessions(
  sql: Sql,
  { accountId, keyId }: SessionScope,
  except: SessionId,
  now: number,
): Promise<number> {
  const { ended } = await sql.one<{ ended: number }>`
    with gone as (
      update sessions s set ended_at = ${instant(now)}
       where account_id = ${accountId} and (${keyId}::text is null or key_id = ${keyId}) and id <> ${except}
         and ${isOpen(sql, now)} and ${acting(sql)}
      returning 1
    )
    select count(*)::int as ended from gone`;
  return ended;
}

/** Returns whether the installation has an account. */
export async function hasAccounts(sql: Sql): Promise<boolean> {
  const { found } = await sql.one<{ found: boolean }>`select exists (select from accounts) as found`;
  return found;
}

/** How many rows of a table one round of housekeeping deletes. */
export const EXPIRED_BATCH = 1_000;

/** Deletes sessions and sign-in links that can no longer be used. */
export async function deleteExpiredSessions(sql: Sql, now: number): Promise<void> {
  await sql`
    delete from sign_in_links where token_sha256 in (
      select token_sha256 from sign_in_links where expires_at <= ${instant(now)}
       order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
  await sql`
    delete from sessions where id in (
      select id from sessions where expires_at <= ${instant(now)}
       order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
}
