import type { AffiliateId, AppId, CodeId } from '../domain/ids.ts';
import { CODE_NAMESPACES } from '../domain/purchase-codes.ts';
import type { CodeNamespace } from '../domain/purchase-codes.ts';
import { acting } from './audit.ts';
import type { Existing } from './existing.ts';
import { createdBefore, pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import type { Fragment, Sql } from './sql.ts';

/** A code of a creator, with which customers buy. Never changed, only deactivated. */
export interface Code {
  readonly id: CodeId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly namespace: CodeNamespace;
  readonly value: string;
  /** What events of the provider state instead of the value. */
  readonly externalId: string | null;
  readonly createdAt: number;
  /** Until when it worked. Null while it works. */
  readonly deactivatedAt: number | null;
}

const columns = (sql: Sql) => sql.fragment`
  c.id, c.affiliate_id, (select f.name from affiliates f where f.id = c.affiliate_id) as affiliate_name, c.namespace, c.value,
  c.external_id, c.created_at, c.deactivated_at`;

export interface NewCode extends Pick<Code, 'id' | 'affiliateId' | 'namespace' | 'value' | 'externalId'> {
  readonly appId: AppId;
}

/**
 * Registers a code. If an active code of the app has its value or its external id, writes nothing and returns the id of that one. Undefined
 * for an unknown affiliate, and for a removed one: its codes would count from now on when it comes back. A code whose id exists is returned
 * unchanged.
 */
export async function addCode(
  sql: Sql,
  { id, appId, affiliateId, namespace, value, externalId }: NewCode,
): Promise<Code | Existing<CodeId> | undefined> {
  const { code } = await retryUntilVisible(async () => {
    const row = await sql.one<{ code: Code | null; existingId: CodeId | null; isKnown: boolean }>`
      with known as (
        select id from affiliates where app_id = ${appId} and id = ${affiliateId} and status <> 'removed' for share
      ), added as (
        insert into codes (id, app_id, affiliate_id, namespace, value, external_id)
        select ${id}::text, ${appId}::text, id, ${namespace}::text, ${value}::text, ${externalId}::text from known where ${acting(sql)}
        on conflict do nothing
        returning id
      )
      select exists (select from known) as is_known,
             (select c.id from codes c
               where c.app_id = ${appId} and c.namespace = ${namespace} and c.deactivated_at is null and c.id <> ${id}
                 and (lower(c.value) collate "C" = lower(${value}::text) collate "C" or c.external_id = ${externalId}::text collate "C")
               limit 1) as existing_id`;
    const stored = await findCode(sql, appId, id);
    if (stored !== undefined || !row.isKnown) return { code: stored };
    return row.existingId === null ? undefined : { code: { existingId: row.existingId } };
  });
  return code;
}

/** Returns a code. Undefined for an unknown one and for one of another app. */
export async function findCode(sql: Sql, appId: AppId, id: CodeId): Promise<Code | undefined> {
  return await sql.maybe<Code>`select ${columns(sql)} from codes c where c.app_id = ${appId} and c.id = ${id}`;
}

/** Deactivates a code: later purchases with it attribute nothing. One that does not work any more stays as it is. */
export async function deactivateCode(sql: Sql, appId: AppId, id: CodeId): Promise<Code | undefined> {
  await sql`
    update codes set deactivated_at = now()
     where app_id = ${appId} and id = ${id} and deactivated_at is null and ${acting(sql)}`;
  return await findCode(sql, appId, id);
}

/** Number of codes that a creator sees. Nobody says more of them. */
const MOST_SHOWN = 50;

/** Returns the codes of a creator that work now, oldest first. */
export async function listWorkingCodes(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId,
): Promise<Pick<Code, 'namespace' | 'value'>[]> {
  return await sql<Pick<Code, 'namespace' | 'value'>>`
    select namespace, value from codes
     where app_id = ${appId} and affiliate_id = ${affiliateId} and deactivated_at is null
     order by created_at, id limit ${MOST_SHOWN}`;
}

/**
 * Returns codes whose value, ignoring case, or external id begins with a text, or whose id it is: first those that work, then by value, at
 * most `limit`.
 */
export async function searchCodes(sql: Sql, appId: AppId, text: string, limit: number): Promise<Code[]> {
  // Each namespace has indexes of its own for the codes that work, which deactivated ones must not hide.
  const beginning = (condition: Fragment, column: Fragment, from: Fragment) => sql.fragment`
    (select x.id from codes x
      where x.app_id = ${appId} and x.namespace = n and ${condition}
        and ${column} >= ${from} collate "C" and ${column} < ${from} collate "C" || chr(1114111)
      order by ${column} limit ${limit})`;
  const value = sql.fragment`lower(x.value) collate "C"`;
  const lower = sql.fragment`lower(${text}::text)`;
  const works = sql.fragment`x.deactivated_at is null`;
  const exact = sql.fragment`${text}::text`;
  const hasId = sql.fragment`x.external_id is not null`;
  return await sql<Code>`
    with found as materialized (
      select f.id from unnest(${[...CODE_NAMESPACES]}::text[]) n
       cross join lateral (
         ${beginning(works, value, lower)} union ${beginning(sql.fragment`true`, value, lower)}
         union ${beginning(sql.fragment`${works} and ${hasId}`, sql.fragment`x.external_id`, exact)}
         union ${beginning(hasId, sql.fragment`x.external_id`, exact)}) f
      union select id from codes where app_id = ${appId} and id = ${text}
    )
    select ${columns(sql)}
      from found cross join lateral (select * from codes x where x.id = found.id offset 0) c
     order by c.deactivated_at is not null, lower(c.value) collate "C", c.id limit ${limit}`;
}

/** Returns a page of an app's codes, or of those of an affiliate, latest first. */
export async function listCodes(
  sql: Sql,
  appId: AppId,
  filter: { readonly affiliateId: AffiliateId | null },
  after: Position<number> | null,
  limit: number,
): Promise<Page<Code, number>> {
  const ofAffiliate =
    filter.affiliateId === null ? sql.fragment`` : sql.fragment`and affiliate_id = ${filter.affiliateId}`;
  const rows = await sql<Code & Position<number>>`
    select ${columns(sql)}, c.sort_key
      from (select *, (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from codes
             where app_id = ${appId} ${ofAffiliate} ${createdBefore(sql, after)}
             order by created_at desc, id desc limit ${limit + 1}) c
     order by c.sort_key desc, c.id desc`;
  return pageOf(rows, limit);
}
