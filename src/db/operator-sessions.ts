import type { SessionId } from '../domain/ids.ts';
import { OPERATOR_SESSION_MS, SIGN_IN_LINK_MS } from '../domain/sessions.ts';
import { LAST_USE_MS } from './account-keys.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import { EXPIRED_BATCH, newToken, tokenSha256 } from './sessions.ts';
import type { NewSession } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A session of the operator that is valid. It belongs to no account. */
export interface OperatorSession {
  readonly id: SessionId;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Returns the session of a token, and records its use. Undefined if it is not valid at `now`. */
export async function findOperatorSession(
  sql: Sql,
  token: string,
  now: number,
): Promise<OperatorSession | undefined> {
  return await sql.maybe<OperatorSession>`
    with found as materialized (
      select s.id, s.created_at, s.expires_at, s.last_used_at <= ${instant(now - LAST_USE_MS)} as is_stale
        from operator_sessions s
       where s.token_sha256 = ${tokenSha256(token)} and s.ended_at is null and s.expires_at > ${instant(now)}
    ), used as (
      update operator_sessions set last_used_at = ${instant(now)} where id = (select id from found where is_stale)
    )
    select id, created_at, expires_at from found`;
}

/** Stores a sign-in link of the operator. Returns its token, which is not stored. */
export async function createOperatorLink(sql: Sql, now: number): Promise<string> {
  const token = newToken();
  await sql`
    insert into operator_sign_in_links (token_sha256, created_at, expires_at)
    values (${tokenSha256(token)}, ${instant(now)}, ${instant(now + SIGN_IN_LINK_MS)})
    on conflict (token_sha256) do nothing`;
  return token;
}

/**
 * Spends a sign-in link and starts its session. Returns undefined for a link that is unknown, spent or expired. One
 * statement, so that of two callers at most one gets a session.
 */
export async function spendOperatorLink(
  sql: Sql,
  linkToken: string,
  { token, userAgent, now }: NewSession,
): Promise<OperatorSession | undefined> {
  const id = newId('session');
  await sql`
    with spent as (
      update operator_sign_in_links set session_id = ${id}
       where token_sha256 = ${tokenSha256(linkToken)} and expires_at > ${instant(now)} and session_id is null
      returning session_id
    )
    insert into operator_sessions (id, token_sha256, user_agent, created_at, last_used_at, expires_at)
    select session_id, ${tokenSha256(token)}::bytea, ${userAgent}::text, ${instant(now)}::timestamptz,
           ${instant(now)}::timestamptz, ${instant(now + OPERATOR_SESSION_MS)}::timestamptz
      from spent`;
  return await findOperatorSession(sql, token, now);
}

/** Ends a session of the operator. Ending it twice changes nothing. */
export async function endOperatorSession(sql: Sql, id: SessionId, now: number): Promise<void> {
  await sql`update operator_sessions set ended_at = coalesce(ended_at, ${instant(now)}) where id = ${id}`;
}

/**
 * Ends all sessions and links of the operator, and those that begin with a link of the operator in any account. Returns how many sessions
 * it ended.
 */
export async function endOperatorSessions(
  sql: Sql,
  now: number,
): Promise<{ readonly operator: number; readonly accounts: number }> {
  // First the links: a session that one of them begins at the same time is seen by the statement after that.
  await sql`
    with links as (
      delete from operator_sign_in_links where session_id is null
    )
    delete from sign_in_links l
     where l.session_id is null
       and (l.key_id is null or exists (select from account_keys k where k.id in (l.key_id, l.made_by) and k.is_console))`;
  return await sql.one<{ operator: number; accounts: number }>`
    with ended as (
      update operator_sessions set ended_at = ${instant(now)} where ended_at is null and expires_at > ${instant(now)} returning id
    ), of_accounts as (
      update sessions s set ended_at = ${instant(now)}
        from account_keys k
       where k.id in (s.key_id, s.link_made_by) and k.is_console and s.ended_at is null and s.expires_at > ${instant(now)} and ${acting(sql)}
      returning s.id
    )
    select (select count(*) from ended) as operator, (select count(*) from of_accounts) as accounts`;
}

/** Deletes sessions and sign-in links of the operator that can no longer be used. */
export async function deleteExpiredOperatorSessions(sql: Sql, now: number): Promise<void> {
  await sql`
    delete from operator_sign_in_links where token_sha256 in (
      select token_sha256 from operator_sign_in_links where expires_at <= ${instant(now)}
       order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
  await sql`
    delete from operator_sessions where id in (
      select id from operator_sessions where expires_at <= ${instant(now)}
       order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
}
