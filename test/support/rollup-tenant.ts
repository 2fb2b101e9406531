import { randomBytes } from 'node:crypto';
import { newId } from '../../src/db/new-id.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AccountId, AffiliateId, AppId, LinkId } from '../../src/domain/ids.ts';

export interface Tenant {
  readonly accountId: AccountId;
  readonly appId: AppId;
  readonly affiliates: readonly AffiliateId[];
  readonly links: readonly LinkId[];
}

/** Creates an app with affiliates that have `linksEach` links each. */
export async function newRollupTenant(sql: Sql, affiliateCount: number, linksEach: number): Promise<Tenant> {
  const [accountId, appId] = [newId('account'), newId('app')];
  await sql`insert into accounts (id, name) values (${accountId}, 'Account')`;
  await sql`
    insert into apps (id, account_id, name, commission_rate_bps, attribution_window_days, hold_period_days,
                      deferred_window_minutes, link_subdomain)
    values (${appId}, ${accountId}, 'App', 2000, 30, 30, 60, ${randomBytes(6).toString('hex')})`;
  const affiliates = Array.from({ length: affiliateCount }, () => newId('affiliate'));
  const links = affiliates.flatMap((affiliateId) =>
    Array.from({ length: linksEach }, () => ({ id: newId('link'), affiliateId })),
  );
  await sql`
    insert into affiliates (id, app_id, name)
    select id, ${appId}, 'Creator' from unnest(${affiliates}::text[]) id`;
  await sql`
    insert into links (id, app_id, affiliate_id, slug, destination_url)
    select id, ${appId}, "affiliateId", right(id, 20), 'https://example.com'
      from jsonb_to_recordset(${sql.json(links)}) l (id text, "affiliateId" text)`;
  return { accountId, appId, affiliates, links: links.map(({ id }) => id) };
}

/** Inserts clicks of a link with one statement, a few minutes apart. */
export async function click(
  sql: Sql,
  linkId: LinkId,
  count: number,
  at = '2026-03-01 00:00:00+00',
): Promise<void> {
  const ids = Array.from({ length: count }, () => newId('click'));
  await sql`
    insert into clicks (id, app_id, affiliate_id, link_id, claim_token, is_bot, clicked_at)
    select c.id, l.app_id, l.affiliate_id, l.id, gen_random_uuid(), false,
           ${at}::timestamptz + c.position * interval '7 minutes'
      from unnest(${ids}::text[]) with ordinality c (id, position) cross join links l where l.id = ${linkId}`;
}
