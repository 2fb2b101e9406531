import type { AffiliateStatus } from '../domain/attribution.ts';
import type { AccountId, AffiliateId, AppId, SessionId } from '../domain/ids.ts';
import {
  CREATOR_LINK_MS,
  CREATOR_LINK_USES,
  CREATOR_SESSION_IDLE_MS,
  CREATOR_SESSION_MAX_MS,
} from '../domain/sessions.ts';
import { acting } from './audit.ts';
import { LAST_USE_MS } from './account-keys.ts';
import { newId } from './new-id.ts';
import { EXPIRED_BATCH, MAX_LISTED, tokenSha256 } from './sessions.ts';
import type { NewSession } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A creator of an app. */
export interface CreatorScope {
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
}

/** A creator whose page is shown. */
export interface Creator extends CreatorScope {
  readonly name: string;
  readonly status: AffiliateStatus;
  /** The creator's own rate. Null: that of the app applies. */
  readonly ownRateBps: number | null;
}

/** A session of a creator that is valid. */
export interface CreatorSession extends Creator {
  readonly id: SessionId;
  readonly accountId: AccountId;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Returns a creator of an app. Undefined when the app has no such affiliate. */
export async function findCreator(
  sql: Sql,
  { appId, affiliateId }: CreatorScope,
): Promise<Creator | undefined> {
  return await sql.maybe<Creator>`
    select app_id, id as affiliate_id, name, status, default_commission_rate_bps as own_rate_bps
      from affiliates where app_id = ${appId} and id = ${affiliateId}`;
}

/** The condition that a session is valid at an instant. */
const isOpen = (sql: Sql, now: number) => sql.fragment`
  s.ended_at is null and s.expires_at > ${instant(now)} and s.last_used_at > ${instant(now - CREATOR_SESSION_IDLE_MS)}`;

/** Returns the session of a token, and records its use. Undefined if it is not valid at `now`. */
export async function findCreatorSession(
  sql: Sql,
  token: string,
  now: number,
): Promise<CreatorSession | undefined> {
  return await sql.maybe<CreatorSession>`
    with found as materialized (
      select s.id, a.account_id, s.app_id, s.affiliate_id, f.name, f.status, f.default_commission_rate_bps as own_rate_bps,
             s.created_at, s.expires_at, s.last_used_at <= ${instant(now - LAST_USE_MS)} as is_stale
        from creator_sessions s
        join affiliates f on f.app_id = s.app_id and f.id = s.affiliate_id
        join apps a on a.id = s.app_id
       where s.token_sha256 = ${tokenSha256(token)} and ${isOpen(sql, now)}
    ), used as (
      update creator_sessions set last_used_at = ${instant(now)} where id = (select id from found where is_stale)
    )
    select id, account_id, app_id, affiliate_id, name, status, own_rate_bps, created_at, expires_at from found`;
}

/** Stores a sign-in link of a creator. Returns when it ends; undefined when the app has no such affiliate. */
export async function createCreatorLink(
  sql: Sql,
  { appId, affiliateId }: CreatorScope,
  token: string,
  now: number,
): Promise<number | undefined> {
  const row = await sql.maybe`
    with creator as (
      select app_id, id from affiliates where app_id = ${appId} and id = ${affiliateId}
    ), made as (
      insert into creator_sign_in_links (token_sha256, app_id, affiliate_id, created_at, expires_at, uses_left)
      select ${tokenSha256(token)}::bytea, app_id, id, ${instant(now)}::timestamptz,
             ${instant(now + CREATOR_LINK_MS)}::timestamptz, ${CREATOR_LINK_USES}::integer
        from creator where ${acting(sql)}
      -- A repeat with the same idempotency key creates the same token.
      on conflict (token_sha256) do nothing
    )
    select id from creator`;
  return row === undefined ? undefined : now + CREATOR_LINK_MS;
}

/** How many links and sessions of a creator were ended. */
export interface EndedCreatorAccess {
  readonly revokedLinks: number;
  readonly endedSessions: number;
}

/**
 * Revokes the links of a creator and ends the creator's sessions. Returns undefined when the app has no such affiliate. Two
 * statements: the first one waits for a link that is being spent, so that the second one sees its session.
 */
export async function revokeCreatorAccess(
  sql: Sql,
  { appId, affiliateId }: CreatorScope,
  now: number,
): Promise<EndedCreatorAccess | undefined> {
  const found = await sql.maybe<{ revokedLinks: number }>`
    with creator as (
      select id from affiliates where app_id = ${appId} and id = ${affiliateId}
    ), revoked as (
      update creator_sign_in_links set revoked_at = ${instant(now)}
       where affiliate_id = (select id from creator) and revoked_at is null and uses_left > 0 and expires_at > ${instant(now)}
         and ${acting(sql)}
      returning 1
    )
    select (select count(*) from revoked)::int as revoked_links from creator`;
  if (found === undefined) return undefined;
  const endedSessions = await endCreatorSessions(sql, { appId, affiliateId }, null, now);
  return { ...found, endedSessions };
}

/**
 * Uses a sign-in link once and starts a session. Returns undefined for a link that is unknown, revoked, expired or has no
 * uses left. One statement, so that of several callers at the same time only as many get a session as the link has uses.
 */
export async function spendCreatorLink(
  sql: Sql,
  linkToken: string,
  { token, userAgent, now }: NewSession,
): Promise<CreatorSession | undefined> {
  await sql`
    with spent as (
      update creator_sign_in_links set uses_left = uses_left - 1
       where token_sha256 = ${tokenSha256(linkToken)} and expires_at > ${instant(now)} and revoked_at is null and uses_left > 0
         and ${acting(sql)}
         -- A statement whose answer was lost is sent again.
         and not exists (select from creator_sessions where token_sha256 = ${tokenSha256(token)})
      returning app_id, affiliate_id
    )
    insert into creator_sessions (id, token_sha256, app_id, affiliate_id, user_agent, created_at, last_used_at, expires_at)
    select ${newId('session')}::text, ${tokenSha256(token)}::bytea, app_id, affiliate_id, ${userAgent}::text,
           ${instant(now)}::timestamptz, ${instant(now)}::timestamptz, ${instant(now + CREATOR_SESSION_MAX_MS)}::timestamptz
      from spent`;
  return await findCreatorSession(sql, token, now);
}

/** A session of a creator in a list. */
export interface ListedCreatorSession {
  readonly id: SessionId;
  readonly userAgent: string | null;
  readonly createdAt: number;
  readonly lastUsedAt: number;
  readonly expiresAt: number;
}

/** Returns the valid sessions of a creator, newest first. */
export async function listCreatorSessions(
  sql: Sql,
  { appId, affiliateId }: CreatorScope,
  now: number,
): Promise<ListedCreatorSession[]> {
  return await sql<ListedCreatorSession>`
    select s.id, s.user_agent, s.created_at, s.last_used_at,
           least(s.expires_at, s.last_used_at + ${CREATOR_SESSION_IDLE_MS} * interval '1 millisecond') as expires_at
      from creator_sessions s
     where s.app_id = ${appId} and s.affiliate_id = ${affiliateId} and ${isOpen(sql, now)}
     order by s.created_at desc, s.id desc limit ${MAX_LISTED}`;
}

/** Ends a session of a creator. Returns false for an unknown one. Ending it twice changes nothing. */
export async function endCreatorSession(
  sql: Sql,
  { appId, affiliateId }: CreatorScope,
  id: SessionId,
  now: number,
): Promise<boolean> {
  const row = await sql.maybe`
    update creator_sessions set ended_at = coalesce(ended_at, ${instant(now)})
     where id = ${id} and app_id = ${appId} and affiliate_id = ${affiliateId} and ${acting(sql)}
    returning id`;
  return row !== undefined;
}

/** Ends all sessions of a creator, or all except one. Returns how many it ended. */
export async function endCreatorSessions(
  sql: Sql,
  { appId, affiliateId }: CreatorScope,
  except: SessionId | null,
  now: number,
): Promise<number> {
  const { ended } = await sql.one<{ ended: number }>`
    with gone as (
      update creator_sessions s set ended_at = ${instant(now)}
       where s.app_id = ${appId} and s.affiliate_id = ${affiliateId} and s.id is distinct from ${except}::text
         and ${isOpen(sql, now)} and ${acting(sql)}
      returning 1
    )
    select count(*)::int as ended from gone`;
  return ended;
}

/** Deletes sessions and sign-in links of creators that can no longer be used. */
export async function deleteExpiredCreatorSessions(sql: Sql, now: number): Promise<void> {
  await sql`
    delete from creator_sign_in_links where token_sha256 in (
      select token_sha256 from creator_sign_in_links where expires_at <= ${instant(now)}
       order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
  await sql`
    delete from creator_sessions where id in (
      select id from creator_sessions where expires_at <= ${instant(now)}
       order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
}
