import type { AffiliateId, AppId, ClickId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './retries.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

export interface ClickFact {
  readonly appId: AppId;
  readonly slug: string;
  readonly claimToken: string;
  readonly ipHash: string | null;
  readonly userAgent: string | null;
  readonly isBot: boolean;
  readonly clickedAt: number;
  /** This service's keyed hash of the requester's address. Null excludes the click from deferred matches. */
  readonly addressHash: Buffer | null;
}

export interface RecordedClick {
  readonly clickId: ClickId;
  readonly affiliateId: AffiliateId;
  readonly destinationUrl: string;
}

/**
 * Records a click on a link. For a known claim token it returns the click of that token, whatever the state of the
 * link, and counts nothing. Returns undefined when the link is unknown or inactive, or its affiliate was removed.
 */
export async function recordClick(sql: Sql, click: ClickFact): Promise<RecordedClick | undefined> {
  const id = newId('click');
  const { found } = await retryUntilVisible(async () => {
    const row = await sql.one<
      { linkFound: boolean } & { [K in keyof RecordedClick]: RecordedClick[K] | null }
    >`
      with stored as (
        select id, affiliate_id, link_id from clicks where app_id = ${click.appId} and claim_token = ${click.claimToken}::uuid
      ), link as (
        select l.id, l.app_id, l.affiliate_id
          from links l join affiliates a on a.id = l.affiliate_id
         where l.app_id = ${click.appId} and lower(l.slug) collate "C" = lower(${click.slug})
           and l.active and a.status <> 'removed'
      ), added as (
        insert into clicks (id, app_id, affiliate_id, link_id, claim_token, ip_hash, user_agent, is_bot, clicked_at)
        select ${id}::text, app_id, affiliate_id, id, ${click.claimToken}::uuid, ${click.ipHash}::text,
               ${click.userAgent}::text, ${click.isBot}::boolean, ${instant(click.clickedAt)}::timestamptz
          from link where not exists (select from stored)
        on conflict (app_id, claim_token) do nothing
        returning id, affiliate_id, link_id
      ), waiting as (
        insert into deferred_clicks (click_id, app_id, link_id, address_hash, clicked_at)
        select id, ${click.appId}::text, link_id, ${click.addressHash}::bytea, ${instant(click.clickedAt)}::timestamptz
          from added where ${click.addressHash}::bytea is not null
      )
      select exists (select from link) as link_found, c.id as click_id, c.affiliate_id,
             l.destination_url
        from (select 1) always
        left join (select * from stored union all select * from added) c on true
        left join links l on l.id = c.link_id`;
    const { linkFound, clickId, affiliateId, destinationUrl } = row;
    if (clickId !== null && affiliateId !== null && destinationUrl !== null) {
      return { found: { clickId, affiliateId, destinationUrl } };
    }
    // A link without a click: another statement has just inserted the token. The next attempt sees it.
    return linkFound ? undefined : { found: undefined };
  });
  return found;
}
