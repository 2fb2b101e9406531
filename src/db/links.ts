import type { AffiliateStatus } from '../domain/attribution.ts';
import type { AffiliateId, AppId, LinkId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import type { Existing } from './existing.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined, positionInstant } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import { shareStatements } from './shared-statements.ts';
import type { Sql } from './sql.ts';

export interface Link {
  readonly id: LinkId;
  readonly slug: string;
  readonly destinationUrl: string;
  /** Where visitors on iOS and on Android are redirected. Null: to `destinationUrl`. */
  readonly iosDestinationUrl: string | null;
  readonly androidDestinationUrl: string | null;
  readonly campaign: string | null;
  readonly active: boolean;
  readonly affiliateId: AffiliateId;
  /** The caller's own id. Unique within an app. */
  readonly externalId: string | null;
  readonly createdAt: number;
}

export interface LinkListRow extends Link {
  readonly affiliateName: string;
  readonly affiliateStatus: AffiliateStatus;
  readonly clicks: number;
  readonly installs: number;
  /** Attributed production revenue net of refunds. */
  readonly revenueCents: number;
  /** Its commissions net of reversals, US cents. */
  readonly commissionCents: number;
}

const columns = (sql: Sql) => sql.fragment`
  id, slug, destination_url, ios_destination_url, android_destination_url, campaign, active, affiliate_id, external_id,
  created_at`;

export interface NewLink {
  readonly id: LinkId;
  readonly affiliateId: AffiliateId;
  readonly destinationUrl: string;
  readonly iosDestinationUrl: string | null;
  readonly androidDestinationUrl: string | null;
  readonly slug: string;
  readonly campaign: string | null;
  readonly externalId: string | null;
}

/**
 * Why a link cannot be created. `duplicate_slug`, `duplicate_external_id`: another link of the same call has the slug, or
 * has the external id and was refused.
 */
export type LinkRefusal = 'unknown_affiliate' | 'slug_taken' | 'duplicate_slug' | 'duplicate_external_id';

/** The link, the id of the link that has its external id, or why it was refused. */
export type LinkOutcome = Link | Existing<LinkId> | LinkRefusal;

/**
 * Inserts links where possible, and returns the outcome of each. The parts of the statement: `allowed` are links of
 * known affiliates with the link that has their external id, `wanted` the first of each external id without one, and
 * `turn` counts those of one slug.
 */
async function addLinks(sql: Sql, appId: AppId, links: readonly NewLink[]): Promise<LinkOutcome[]> {
  const rows = await sql<
    { refusal: LinkRefusal | null; existingId: LinkId | null } & { [K in keyof Link]: Link[K] | null }
  >`
    with rows as (
      select r.* from rows from (jsonb_to_recordset(${sql.json(links)}) as (id text, "affiliateId" text, slug text,
               "destinationUrl" text, "iosDestinationUrl" text, "androidDestinationUrl" text, campaign text, "externalId" text))
               with ordinality r (id, affiliate_id, slug, destination_url, ios_destination_url, android_destination_url, campaign,
                                  external_id, position)
    ), allowed as (
      select r.*, x.id as existing_id,
             row_number() over (partition by coalesce(r.external_id, r.id) collate "C" order by position) as external_turn
        from rows r
        join affiliates a on a.app_id = ${appId} and a.id = r.affiliate_id
        left join links x on x.app_id = ${appId} and x.external_id = r.external_id and x.id <> r.id
    ), wanted as (
      select w.*, row_number() over (partition by lower(w.slug) collate "C" order by position) as turn
        from allowed w where existing_id is null and external_turn = 1
    ), added as (
      insert into links (id, app_id, affiliate_id, slug, destination_url, ios_destination_url, android_destination_url, campaign,
                         external_id, created_at)
      select id, ${appId}::text, affiliate_id, slug, destination_url, ios_destination_url, android_destination_url, campaign,
             external_id, now() + (position - 1) * interval '1 microsecond'
        from wanted where turn = 1 and ${acting(sql)} order by position
      on conflict do nothing
      returning *
    ), made as (
      select * from added
      union all select * from links where app_id = ${appId} and id in (select id from rows)
    )
    select case when m.id is not null then null when a.id is null then 'unknown_affiliate'
                when a.external_turn > 1 then 'duplicate_external_id'
                when w.turn > 1 then 'duplicate_slug' else 'slug_taken' end as refusal,
           case when m.id is null then coalesce(
             a.existing_id, (select x.id from made x where a.id is not null and x.external_id = r.external_id)) end as existing_id,
           m.id, m.slug, m.destination_url, m.ios_destination_url, m.android_destination_url, m.campaign, m.active, m.affiliate_id, m.external_id,
           m.created_at
      from rows r left join allowed a on a.id = r.id left join wanted w on w.id = r.id left join made m on m.id = r.id
     order by r.position`;
  return rows.map(({ refusal, existingId, ...link }) =>
    existingId === null ? (refusal ?? (link as Link)) : { existingId },
  );
}

/**
 * Creates links and returns for each, in the order given, the link, the refusal, or the id of the link that has its
 * external id. A slug belongs to the first link that takes it, ignoring case. A link whose id exists is returned
 * unchanged.
 */
export async function createLinks(sql: Sql, appId: AppId, links: readonly NewLink[]): Promise<LinkOutcome[]> {
  const outcomes = await addLinks(sql, appId, links);
  // Another attempt of the same call, or another call, may have just inserted this link. The second attempt sees whose the
  // slug and the external id are.
  return outcomes.includes('slug_taken') ? await addLinks(sql, appId, links) : outcomes;
}

export interface LinkChange {
  readonly destinationUrl?: string | undefined;
  /** Null clears it. */
  readonly iosDestinationUrl?: string | null | undefined;
  /** Null clears it. */
  readonly androidDestinationUrl?: string | null | undefined;
  /** Null clears it. */
  readonly campaign?: string | null | undefined;
  readonly active?: boolean | undefined;
}

/** Changes the given fields. Returns undefined when the app has no such link. */
export async function updateLink(
  sql: Sql,
  appId: AppId,
  id: LinkId,
  change: LinkChange,
): Promise<Link | undefined> {
  const { destinationUrl, iosDestinationUrl: ios, androidDestinationUrl: android, campaign, active } = change;
  return await sql.maybe<Link>`
    update links
       set destination_url = coalesce(${destinationUrl ?? null}::text, destination_url),
           ios_destination_url = case when ${ios === undefined} then ios_destination_url else ${ios ?? null}::text end,
           android_destination_url =
             case when ${android === undefined} then android_destination_url else ${android ?? null}::text end,
           campaign = case when ${campaign === undefined} then campaign else ${campaign ?? null}::text end,
           active = coalesce(${active ?? null}::boolean, active)
     where app_id = ${appId} and id = ${id} and ${acting(sql)}
    returning ${columns(sql)}`;
}

/** What the redirect needs of a link. */
export interface RedirectTarget {
  readonly appId: AppId;
  /** The slug as it was created, with its own case. */
  readonly slug: string;
  readonly destinationUrl: string;
  readonly iosDestinationUrl: string | null;
  readonly androidDestinationUrl: string | null;
  /** Whether a click counts: the link is active and its affiliate is not removed. */
  readonly isCounted: boolean;
  readonly deferredWindowMinutes: number;
}

/** What a visitor asks for. */
interface LinkAddress {
  readonly subdomain: string;
  readonly slug: string;
}

async function findRedirectTargets(
  sql: Sql,
  addresses: readonly LinkAddress[],
): Promise<(RedirectTarget | undefined)[]> {
  const found = await sql<RedirectTarget & { number: number }>`
    select i.number::int, l.app_id, l.slug, l.destination_url, l.ios_destination_url, l.android_destination_url,
           l.active and a.status <> 'removed' as is_counted, app.deferred_window_minutes
      from unnest(${addresses.map(({ subdomain }) => subdomain)}::text[], ${addresses.map(({ slug }) => slug)}::text[])
           with ordinality i (subdomain, slug, number)
     cross join lateral (select app_id from link_subdomains x where x.subdomain = i.subdomain offset 0) s
     cross join lateral (
       select * from links x where x.app_id = s.app_id and lower(x.slug) collate "C" = lower(i.slug) offset 0) l
     cross join lateral (select deferred_window_minutes from apps x where x.id = s.app_id offset 0) app
     cross join lateral (select status from affiliates x where x.id = l.affiliate_id offset 0) a`;
  const targets = new Map(found.map(({ number, ...target }) => [number, target]));
  return addresses.map((_, index) => targets.get(index + 1));
}

const findTarget = shareStatements(findRedirectTargets, {
  keyOf: ({ subdomain, slug }: LinkAddress) => `${subdomain} ${slug}`,
  repeated: 'share',
});

/** Returns the destination of a link of the app that holds or held the subdomain. The slug's case is ignored. */
export async function findRedirectTarget(
  sql: Sql,
  subdomain: string,
  slug: string,
): Promise<RedirectTarget | undefined> {
  return await findTarget(sql, { subdomain, slug });
}

const listColumns = (sql: Sql) => sql.fragment`
  p.id, p.slug, p.destination_url, p.ios_destination_url, p.android_destination_url, p.campaign, p.active, p.affiliate_id, p.external_id,
  p.created_at, (select a.name from affiliates a where a.id = p.affiliate_id) as affiliate_name,
  (select a.status from affiliates a where a.id = p.affiliate_id) as affiliate_status`;

/** Joins a link's clicks, installs, revenue and commissions of all time. */
const totals = (sql: Sql, appId: AppId) => sql.fragment`
  left join lateral (
    select sum(clicks)::bigint as clicks, sum(installs)::bigint as installs, sum(revenue_cents)::bigint as revenue_cents,
           sum(commission_cents)::bigint as commission_cents
      from rollup_totals
     where app_id = ${appId} and scope = 'link' and scope_id = p.id) t on true`;

const totalColumns = (sql: Sql) => sql.fragment`
  coalesce(t.clicks, 0) as clicks, coalesce(t.installs, 0) as installs,
  coalesce(t.revenue_cents, 0)::float8 as revenue_cents, coalesce(t.commission_cents, 0)::float8 as commission_cents`;

/** Whether a link `l` has a text in its slug, campaign or external id, ignoring case, or has it as its id. */
const hasText = (sql: Sql, text: string) => sql.fragment`
  coalesce(strpos(lower(l.slug), lower(${text}::text)) > 0 or strpos(lower(l.campaign), lower(${text}::text)) > 0
           or strpos(lower(l.external_id), lower(${text}::text)) > 0 or l.id = ${text}, false)`;

/**
 * Returns a page of an app's links, oldest first. No index has all parts of a text, so a page with one examines at most
 * `examines` links and may have fewer than `limit`.
 */
export async function listLinks(
  sql: Sql,
  appId: AppId,
  filter: {
    readonly affiliateId: AffiliateId | null;
    readonly active: boolean | null;
    readonly text: string | null;
  },
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<LinkListRow, number>> {
  const { affiliateId, active, text } = filter;
  const ofAffiliate =
    affiliateId === null ? sql.fragment`` : sql.fragment`and l.affiliate_id = ${affiliateId}`;
  const ifActive = active === null ? sql.fragment`` : sql.fragment`and l.active = ${active}`;
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (l.created_at, l.id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<LinkListRow & Position<number> & Examined>`
    with walked as (
      select l.*, row_number() over (order by l.created_at, l.id) as examined
        from links l where l.app_id = ${appId} ${ofAffiliate} ${ifActive} ${from}
       order by l.created_at, l.id limit ${text === null ? limit + 1 : examines}
    ), p as (
      ${matchesOf(sql, sql.fragment`walked l`, text === null ? null : hasText(sql, text), sql.fragment`created_at, id`, { limit, examines })}
    )
    select ${listColumns(sql)}, ${totalColumns(sql)},
           (extract(epoch from p.created_at) * 1000000)::bigint as sort_key, p.is_match, p.examined
      from p
      ${totals(sql, appId)}
     order by p.created_at, p.id`;
  return text === null ? pageOf(rows, limit) : pageOfExamined(rows, limit, examines);
}

/**
 * Returns links whose slug or external id begins with a text, or whose id it is, by slug. Ignores case, except in external ids.
 */
export async function searchLinks(
  sql: Sql,
  appId: AppId,
  text: string,
  limit: number,
): Promise<LinkListRow[]> {
  return await sql<LinkListRow>`
    with slugged as materialized (
      select id from links
       where app_id = ${appId} and lower(slug) collate "C" >= lower(${text}::text) collate "C"
         and lower(slug) collate "C" < lower(${text}::text) collate "C" || chr(1114111)
       order by lower(slug) collate "C" limit ${limit}
    ), numbered as materialized (
      select id from links
       where app_id = ${appId} and external_id >= ${text} and external_id < ${text}::text collate "C" || chr(1114111)
       order by external_id limit ${limit}
    ), found as (
      select id from slugged union select id from numbered
      union select id from links where app_id = ${appId} and id = ${text}
    ), p as (
      select l.* from found cross join lateral (select * from links l where l.id = found.id offset 0) l
       order by lower(l.slug) collate "C" limit ${limit}
    )
    select ${listColumns(sql)}, ${totalColumns(sql)}
      from p
      ${totals(sql, appId)}
     order by lower(p.slug) collate "C"`;
}

/**
 * Returns the links with the most clicks, of an app or of one affiliate. Links without clicks follow, the oldest first.
 *
 * The parts of the statement: `tail` is what the tail adds, `leaders` the first rows of the index. The tail never lowers
 * clicks, so a link in neither has fewer than `limit` others. `parts` are the stored clicks of both and the tail.
 */
export async function listTopLinks(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId | null,
  limit: number,
): Promise<LinkListRow[]> {
  const ranked =
    affiliateId === null ? sql.fragment`` : sql.fragment`and r.link_affiliate_id = ${affiliateId}`;
  const owned = affiliateId === null ? sql.fragment`` : sql.fragment`and l.affiliate_id = ${affiliateId}`;
  const unfolded = affiliateId === null ? sql.fragment`` : sql.fragment`and affiliate_id = ${affiliateId}`;
  return await sql<LinkListRow>`
    with tail as materialized (
      select scope_id as id, sum(clicks) as clicks
        from rollup_tail where app_id = ${appId} and scope = 'link' and scope_id is not null and clicks > 0 ${unfolded} group by 1
    ), leaders as materialized (
      select r.scope_id as id from rollups r
       where r.app_id = ${appId} and r.scope = 'link' and r.bucket_at = '-infinity' and r.rank_value > 0 ${ranked}
       order by r.rank_value desc, r.scope_id limit ${limit}
    ), parts as (
      select r.scope_id as id, r.rank_value as clicks
        from (select id from leaders union select id from tail) c
       cross join lateral (select * from rollups r
                            where r.app_id = ${appId} and r.scope = 'link' and r.scope_id = c.id
                              and r.bucket_at = '-infinity' offset 0) r
      union all
      select id, clicks from tail
    ), clicked as (
      select id, sum(clicks)::bigint as clicks from parts group by id order by 2 desc, id limit ${limit}
    ), others as (
      select l.id, 0::bigint as clicks
        from links l
       where l.app_id = ${appId} ${owned} and l.id <> all(array(select id from clicked))
       order by l.created_at, l.id limit ${limit} - (select count(*) from clicked)
    ), chosen as (select * from clicked union all select * from others)
    -- One index lookup per row: with a generic plan, a join would read all links.
    select ${listColumns(sql)}, ${totalColumns(sql)}
      from chosen cross join lateral (select * from links l where l.id = chosen.id offset 0) p
      ${totals(sql, appId)}
     order by chosen.clicks desc, case when chosen.clicks = 0 then p.created_at end, p.id`;
}
