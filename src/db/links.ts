import { randomInt } from 'node:crypto';
import type { AffiliateId, AppId, LinkId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { violatedConstraint } from './sql.ts';
import type { Sql } from './sql.ts';

export interface Link {
  readonly id: LinkId;
  readonly slug: string;
  readonly destinationUrl: string;
  readonly campaign: string | null;
  readonly active: boolean;
  readonly affiliateId: AffiliateId;
  readonly createdAt: number;
}

export interface LinkListRow extends Link {
  readonly affiliateName: string;
  readonly clicks: number;
}

const columns = (sql: Sql) => sql.fragment`
  id, slug, destination_url as "destinationUrl", campaign, active, affiliate_id as "affiliateId",
  created_at as "createdAt"`;

export interface NewLink {
  readonly affiliateId: AffiliateId;
  readonly destinationUrl: string;
  /** Null: one is made up. */
  readonly slug: string | null;
  readonly campaign: string | null;
}

/** Without vowels no words come out, and without 0, 1 and l no two look alike. */
const SLUG_ALPHABET = '23456789bcdfghjkmnpqrstvwxz';
const SLUG_ATTEMPTS = 5;

function makeSlug(): string {
  return Array.from({ length: 8 }, () => SLUG_ALPHABET[randomInt(SLUG_ALPHABET.length)]).join('');
}

/** Makes a link. A slug that another link of the app has, in whatever case, is taken. */
export async function createLink(
  sql: Sql,
  appId: AppId,
  link: NewLink,
): Promise<Link | 'unknown_affiliate' | 'slug_taken'> {
  for (let attempt = 1; ; attempt += 1) {
    const made = await insertLink(sql, appId, link, link.slug ?? makeSlug());
    if (made !== 'slug_taken' || link.slug !== null || attempt === SLUG_ATTEMPTS) return made;
  }
}

async function insertLink(
  sql: Sql,
  appId: AppId,
  link: NewLink,
  slug: string,
): Promise<Link | 'unknown_affiliate' | 'slug_taken'> {
  const id = newId('link');
  try {
    const row = await sql.maybe<Link>`
      with added as (
        insert into links (id, app_id, affiliate_id, slug, destination_url, campaign)
        select ${id}::text, a.app_id, a.id, ${slug}::text, ${link.destinationUrl}::text, ${link.campaign}::text
          from affiliates a where a.app_id = ${appId} and a.id = ${link.affiliateId}
        on conflict (id) do nothing
        returning *
      )
      select ${columns(sql)} from (select * from added union all select * from links where id = ${id}) l`;
    return row ?? 'unknown_affiliate';
  } catch (error) {
    if (violatedConstraint(error) === 'links_slug') return 'slug_taken';
    throw error;
  }
}

export interface LinkChange {
  readonly destinationUrl?: string | undefined;
  /** Null clears it. */
  readonly campaign?: string | null | undefined;
  readonly active?: boolean | undefined;
}

/** Changes the named fields and leaves the others. Undefined when the app has no such link. */
export async function updateLink(
  sql: Sql,
  appId: AppId,
  id: LinkId,
  change: LinkChange,
): Promise<Link | undefined> {
  const { destinationUrl, campaign, active } = change;
  return await sql.maybe<Link>`
    update links
       set destination_url = coalesce(${destinationUrl ?? null}::text, destination_url),
           campaign = case when ${campaign === undefined} then campaign else ${campaign ?? null}::text end,
           active = coalesce(${active ?? null}::boolean, active)
     where app_id = ${appId} and id = ${id}
    returning ${columns(sql)}`;
}

/** The links of an app, oldest first. */
export async function listLinks(
  sql: Sql,
  appId: AppId,
  filter: { readonly affiliateId: AffiliateId | null; readonly active: boolean | null },
  after: Position<number> | null,
  limit: number,
): Promise<Page<LinkListRow, number>> {
  const ofAffiliate =
    filter.affiliateId === null ? sql.fragment`` : sql.fragment`and l.affiliate_id = ${filter.affiliateId}`;
  const ifActive = filter.active === null ? sql.fragment`` : sql.fragment`and l.active = ${filter.active}`;
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (l.created_at, l.id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<LinkListRow & Position<number>>`
    with p as (
      select * from links l where l.app_id = ${appId} ${ofAffiliate} ${ifActive} ${from}
       order by l.created_at, l.id limit ${limit + 1}
    )
    select p.id, p.slug, p.destination_url as "destinationUrl", p.campaign, p.active,
           p.affiliate_id as "affiliateId", p.created_at as "createdAt", (select a.name from affiliates a where a.id = p.affiliate_id) as "affiliateName",
           coalesce(t.clicks, 0) as clicks, (extract(epoch from p.created_at) * 1000000)::bigint as "sortKey"
      from p
      left join lateral (
        select sum(clicks)::bigint as clicks from rollups
         where app_id = ${appId} and scope = 'link' and scope_id = p.id and bucket_at = '-infinity') t on true
     order by p.created_at, p.id`;
  return pageOf(rows, limit);
}
