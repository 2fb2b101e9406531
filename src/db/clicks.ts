import type { AffiliateId, AppId, ClickId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import { shareStatements } from './shared-statements.ts';
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

/** `not_found`: the link is unknown or inactive, or its affiliate was removed. `again`: the token has just been inserted. */
type ClickOutcome = RecordedClick | 'not_found' | 'again';

/**
 * Records clicks with one statement and returns the outcome of each. Two clicks of a call have different tokens. For a
 * known claim token the outcome is the click of that token, whatever the state of the link, and nothing is counted.
 *
 * The parts of the statement: `found` are the clicks with their link and the stored click of their token, each looked up
 * by its index; `waiting` are the clicks that an install without a token may match. The last part returns
 * one row more for each click that was added.
 */
async function recordClicks(sql: Sql, clicks: readonly ClickFact[]): Promise<ClickOutcome[]> {
  const rows = clicks.map(({ addressHash, ...click }) => ({
    ...click,
    // JSON in Postgres accepts no half of a surrogate pair, which remains where a text was cut off.
    userAgent: click.userAgent?.replaceAll(/\p{Surrogate}/gu, '\uFFFD') ?? null,
    id: newId('click'),
    addressHash: addressHash?.toString('hex') ?? null,
  }));
  const found = await sql<{
    id: string;
    isAdded: boolean;
    isLinked: boolean;
    storedId: ClickId | null;
    affiliateId: AffiliateId | null;
    destinationUrl: string | null;
  }>`
    with found as materialized (
      select r.*, c.id as stored_id, l.id as link_id, coalesce(c.affiliate_id, l.affiliate_id) as affiliate_id,
             coalesce(c.destination_url, l.destination_url) as destination_url
        from jsonb_to_recordset(${sql.json(rows)}) r (id text, "appId" text, slug text, "claimToken" uuid, "ipHash" text,
               "userAgent" text, "isBot" boolean, "clickedAt" bigint, "addressHash" text)
        left join lateral (
          select c.id, c.affiliate_id, (select destination_url from links l where l.id = c.link_id) as destination_url
            from clicks c where c.app_id = r."appId" and c.claim_token = r."claimToken" offset 0) c on true
        left join lateral (
          select l.id, l.affiliate_id, l.destination_url
            from links l
           where l.app_id = r."appId" and lower(l.slug) collate "C" = lower(r.slug) and l.active
             and (select a.status from affiliates a where a.id = l.affiliate_id) <> 'removed' offset 0) l on true
    ), added as (
      insert into clicks (id, app_id, affiliate_id, link_id, claim_token, ip_hash, user_agent, is_bot, clicked_at)
      select id, "appId", affiliate_id, link_id, "claimToken", "ipHash", "userAgent", "isBot",
             to_timestamp("clickedAt" / 1000.0)
        from found where stored_id is null and link_id is not null order by "appId", "claimToken"
      on conflict (app_id, claim_token) do nothing
      returning id, app_id, link_id, clicked_at
    ), waiting as (
      insert into deferred_clicks (click_id, app_id, link_id, address_hash, clicked_at)
      select a.id, a.app_id, a.link_id, decode(f."addressHash", 'hex'), a.clicked_at
        from (select * from found where "addressHash" is not null) f join added a on a.id = f.id
    )
    select id, false as is_added, link_id is not null as is_linked, stored_id, affiliate_id, destination_url from found
    union all
    select id, true, true, null, null, null from added`;
  const added = new Set(found.filter(({ isAdded }) => isAdded).map(({ id }) => id));
  const outcomes = new Map(
    found
      .filter(({ isAdded }) => !isAdded)
      .map(({ id, isLinked, storedId, affiliateId, destinationUrl }): [string, ClickOutcome] => {
        const clickId = storedId ?? (added.has(id) ? (id as ClickId) : null);
        return clickId !== null && affiliateId !== null && destinationUrl !== null
          ? [id, { clickId, affiliateId, destinationUrl }]
          : [id, isLinked ? 'again' : 'not_found'];
      }),
  );
  return rows.map(({ id }) => outcomes.get(id) ?? 'again');
}

const recordTogether = shareStatements(recordClicks, {
  keyOf: ({ appId, claimToken }) => `${appId} ${claimToken.toLowerCase()}`,
  repeated: 'wait',
});

/**
 * Records a click, together with others that arrive now. Resolves after its commit, with undefined when the link is unknown or
 * inactive, or its affiliate was removed.
 */
export async function recordClick(sql: Sql, click: ClickFact): Promise<RecordedClick | undefined> {
  const outcome = await retryUntilVisible(async () => {
    const recorded = await recordTogether(sql, click);
    // The next attempt sees the token that another statement has just inserted.
    return recorded === 'again' ? undefined : recorded;
  });
  return outcome === 'not_found' ? undefined : outcome;
}
