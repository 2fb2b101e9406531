import type { AffiliateStatus } from '../domain/attribution.ts';
import type { AffiliateId, AppId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import type { Existing } from './existing.ts';
import { retryAfterConflict, retryUntilVisible } from './conflict-retries.ts';
import type { Sql, Statements } from './sql.ts';

export interface Affiliate {
  readonly id: AffiliateId;
  readonly name: string;
  readonly email: string | null;
  readonly status: AffiliateStatus;
  readonly defaultCommissionRateBps: number | null;
  /** The caller's own id. Unique within an app. */
  readonly externalId: string | null;
  /** What founders note, for themselves. */
  readonly note: string | null;
  readonly tags: readonly string[];
  readonly createdAt: number;
}

export interface NewAffiliate {
  readonly id: AffiliateId;
  readonly name: string;
  readonly email: string | null;
  readonly defaultCommissionRateBps: number | null;
  readonly externalId: string | null;
  readonly note: string | null;
  readonly tags: readonly string[];
}

export interface CreatedAffiliate extends Affiliate {
  /** Whether another affiliate of the app has the same e-mail address, ignoring case. */
  readonly emailRepeats: boolean;
}

/** Whether the app has, or had, the affiliate. */
export async function isAffiliate(sql: Statements, appId: AppId, id: AffiliateId): Promise<boolean> {
  return (await sql.maybe`select from affiliates where app_id = ${appId} and id = ${id}`) !== undefined;
}

/**
 * Creates affiliates of an existing app and returns for each, in the order given, the affiliate, or the id of the one
 * that has its external id. An affiliate whose id exists is returned unchanged. Creation times increase by a microsecond,
 * so that lists have the same order.
 *
 * The parts of the statement: `rows` are the new affiliates, `turn` counts those of one external id; `added` are
 * inserted, and `made` also has those that an earlier attempt inserted.
 */
export async function createAffiliates(
  sql: Sql,
  appId: AppId,
  affiliates: readonly NewAffiliate[],
): Promise<(CreatedAffiliate | Existing<AffiliateId>)[]> {
  return await retryUntilVisible(async () => {
    const rows = await sql<
      { [K in keyof CreatedAffiliate]: CreatedAffiliate[K] | null } & { existingId: AffiliateId | null }
    >`
      with rows as (
        select r.*, row_number() over (partition by coalesce(external_id, id) collate "C" order by position) as turn
          from rows from (jsonb_to_recordset(${sql.json(affiliates)}) as (id text, name text, email text,
                 "defaultCommissionRateBps" int, "externalId" text, note text, tags text[])) with ordinality
                 r (id, name, email, rate_bps, external_id, note, tags, position)
      ), added as (
        insert into affiliates (id, app_id, name, email, default_commission_rate_bps, external_id, note, tags, created_at)
        select id, ${appId}::text, name, email, rate_bps, external_id, note, tags, now() + (position - 1) * interval '1 microsecond'
          from rows where turn = 1 and ${acting(sql)} order by position
        on conflict do nothing
        returning *
      ), made as (
        select * from added
        union all select * from affiliates where app_id = ${appId} and id in (select id from rows)
      )
      select m.id, m.name, m.email, m.status, m.default_commission_rate_bps, m.external_id, m.note, m.tags, m.created_at,
             (select true from affiliates o
               where o.app_id = ${appId} and lower(o.email) collate "C" = lower(m.email) and o.id <> m.id limit 1) is not null
             or exists (select from made o where lower(o.email) = lower(m.email) and o.id <> m.id) as email_repeats,
             case when m.id is null then coalesce(
               (select a.id from affiliates a where a.app_id = ${appId} and a.external_id = r.external_id),
               (select a.id from made a where a.external_id = r.external_id)) end as existing_id
        from rows r left join made m on m.id = r.id
       order by r.position`;
    // Another attempt of the same call, or another call with the same external id, has just inserted the missing rows.
    // The next attempt sees them.
    if (rows.some(({ id, existingId }) => id === null && existingId === null)) return undefined;
    return rows.map(({ existingId, ...row }) =>
      existingId === null ? (row as CreatedAffiliate) : { existingId },
    );
  });
}

export interface AffiliateChange {
  readonly name?: string | undefined;
  /** Null clears it. */
  readonly email?: string | null | undefined;
  readonly status?: AffiliateStatus | undefined;
  /** Null clears it: the app's rate then applies. */
  readonly defaultCommissionRateBps?: number | null | undefined;
  /** Null clears it. */
  readonly externalId?: string | null | undefined;
  /** Null clears it. */
  readonly note?: string | null | undefined;
  readonly tags?: readonly string[] | undefined;
}

/**
 * Changes the given fields. `mayPay` says whether the caller may: who may not does not confirm an address for codes. Returns undefined when the app has no such affiliate. If another affiliate has the external
 * id, changes nothing and returns the id of that one.
 */
export async function updateAffiliate(
  sql: Sql,
  appId: AppId,
  id: AffiliateId,
  change: AffiliateChange,
  mayPay: boolean,
): Promise<Affiliate | Existing<AffiliateId> | undefined> {
  const { name, email, status, defaultCommissionRateBps, externalId, note, tags } = change;
  const find = async () =>
    await sql.maybe<{ [K in keyof Affiliate]: Affiliate[K] | null } & { existingId: AffiliateId | null }>`
    with found as (
      select a.id, (select o.id from affiliates o
                     where o.app_id = a.app_id and o.external_id = ${externalId ?? null}::text and o.id <> a.id) as existing_id
        from affiliates a where a.app_id = ${appId} and a.id = ${id}
    ), changed as (
      update affiliates a
         set name = coalesce(${name ?? null}::text, name),
             email = case when ${email === undefined} then email else ${email ?? null}::text end,
             status = coalesce(${status ?? null}::text, status),
             default_commission_rate_bps = case when ${defaultCommissionRateBps === undefined}
                                                then default_commission_rate_bps
                                                else ${defaultCommissionRateBps ?? null}::integer end,
             external_id = case when ${externalId === undefined} then external_id else ${externalId ?? null}::text end,
             note = case when ${note === undefined} then note else ${note ?? null}::text end,
             tags = coalesce(${tags === undefined ? null : [...tags]}::text[], tags)
        from found
       where a.app_id = ${appId} and a.id = found.id and found.existing_id is null and ${acting(sql)}
         and confirms_email(${mayPay && typeof email === 'string'}::boolean)
      returning a.*
    )
    select c.id, c.name, c.email, c.status, c.default_commission_rate_bps, c.external_id, c.note, c.tags, c.created_at, f.existing_id
      from found f left join changed c on c.id = f.id`;
  const outcome = await retryAfterConflict(['affiliates_external_id'], find);
  if (outcome === undefined) return undefined;
  const { existingId, ...changed } = outcome;
  return existingId === null ? (changed as Affiliate) : { existingId };
}
