import type { AffiliateStatus, ClaimedClick, CodeTarget, MatchMethod, Touch } from '../domain/attribution.ts';
import type { AffiliateId, AppId, AttributionId, ClickId, LinkId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Which touch a device belongs to. */
export interface Attribution {
  readonly attributionId: AttributionId;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  readonly clickId: ClickId | null;
  readonly matchMethod: MatchMethod;
}

/** Everything that the choice of a touch depends on, read at one moment. */
export interface InstallCandidates {
  readonly windowDays: number;
  /** What the device belongs to already. */
  readonly attribution: Attribution | null;
  readonly click: ClaimedClick | null;
  readonly code: CodeTarget | null;
}

interface CandidateRow {
  windowDays: number;
  attributionId: AttributionId | null;
  wonAffiliateId: AffiliateId;
  wonLinkId: LinkId | null;
  wonClickId: ClickId | null;
  matchMethod: MatchMethod;
  clickId: ClickId | null;
  clickAffiliateId: AffiliateId;
  clickLinkId: LinkId;
  clickedAt: number;
  claimedByDevice: string | null;
  clickAffiliateStatus: AffiliateStatus;
  codeAffiliateId: AffiliateId | null;
  codeLinkId: LinkId | null;
  codeActive: boolean;
  codeAffiliateStatus: AffiliateStatus;
}

/** Looks up what an install names. An affiliate's id goes before a slug that happens to read the same. */
export async function findInstallCandidates(
  sql: Sql,
  install: {
    readonly appId: AppId;
    readonly deviceId: string;
    readonly claimToken: string | null;
    readonly affiliateCode: string | null;
  },
): Promise<InstallCandidates> {
  const { appId, deviceId, claimToken, affiliateCode } = install;
  const row = await sql.one<CandidateRow>`
    select app.attribution_window_days as "windowDays",
           t.id as "attributionId", t.affiliate_id as "wonAffiliateId", t.link_id as "wonLinkId",
           t.click_id as "wonClickId", t.match_method as "matchMethod",
           c.id as "clickId", c.affiliate_id as "clickAffiliateId", c.link_id as "clickLinkId",
           c.clicked_at as "clickedAt", c.claimed_by_device as "claimedByDevice", ca.status as "clickAffiliateStatus",
           code.affiliate_id as "codeAffiliateId", code.link_id as "codeLinkId", code.active as "codeActive",
           code.status as "codeAffiliateStatus"
      from apps app
      left join attributions t on t.app_id = app.id and t.device_id = ${deviceId}
      left join clicks c on c.app_id = app.id and c.claim_token = ${claimToken}::uuid
      left join affiliates ca on ca.id = c.affiliate_id
      left join lateral (
        select a.id as affiliate_id, null::text as link_id, true as active, a.status, 1 as rank
          from affiliates a where a.app_id = app.id and a.id = ${affiliateCode}
        union all
        select a.id, l.id, l.active, a.status, 2
          from links l join affiliates a on a.id = l.affiliate_id
         where l.app_id = app.id and lower(l.slug) collate "C" = lower(${affiliateCode})
         order by rank limit 1) code on true
     where app.id = ${appId}`;
  return {
    windowDays: row.windowDays,
    attribution:
      row.attributionId === null
        ? null
        : {
            attributionId: row.attributionId,
            affiliateId: row.wonAffiliateId,
            linkId: row.wonLinkId,
            clickId: row.wonClickId,
            matchMethod: row.matchMethod,
          },
    click:
      row.clickId === null
        ? null
        : {
            clickId: row.clickId,
            affiliateId: row.clickAffiliateId,
            linkId: row.clickLinkId,
            clickedAt: row.clickedAt,
            claimedByDevice: row.claimedByDevice,
            affiliateStatus: row.clickAffiliateStatus,
          },
    code:
      row.codeAffiliateId === null
        ? null
        : {
            affiliateId: row.codeAffiliateId,
            linkId: row.codeLinkId,
            active: row.codeActive,
            affiliateStatus: row.codeAffiliateStatus,
          },
  };
}

/**
 * Gives a device its attribution, unless it has one, and the click to the device, unless another device has it: then
 * nothing happens. Who calls looks at the candidates again to see what came of it.
 */
export async function attributeDevice(
  sql: Sql,
  appId: AppId,
  deviceId: string,
  touch: Touch,
  firstOpenAt: number,
): Promise<void> {
  const id = newId('attribution');
  const { affiliateId, linkId, clickId, matchMethod, touchedAt } = touch;
  await sql`
    with claimed as (
      update clicks set claimed_by_device = ${deviceId}
       where app_id = ${appId} and id = ${clickId} and (claimed_by_device is null or claimed_by_device = ${deviceId})
      returning id
    )
    insert into attributions (id, app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at)
    select ${id}::text, ${appId}::text, ${deviceId}::text, ${affiliateId}::text, ${linkId}::text, ${clickId}::text,
           ${matchMethod}::text, ${instant(touchedAt)}::timestamptz, ${instant(firstOpenAt)}::timestamptz
     where ${clickId}::text is null or exists (select from claimed)
    on conflict (app_id, device_id) do nothing`;
}

/** Keeps a touch that came after its device had an attribution. A click that it names now belongs to the device. */
export async function recordLosingTouch(
  sql: Sql,
  appId: AppId,
  deviceId: string,
  touch: Touch,
): Promise<void> {
  const { affiliateId, linkId, clickId, matchMethod, touchedAt } = touch;
  await sql`
    with claimed as (
      update clicks set claimed_by_device = ${deviceId}
       where app_id = ${appId} and id = ${clickId} and (claimed_by_device is null or claimed_by_device = ${deviceId})
      returning id
    )
    insert into losing_touches (app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at)
    select ${appId}::text, ${deviceId}::text, ${affiliateId}::text, ${linkId}::text, ${clickId}::text,
           ${matchMethod}::text, ${instant(touchedAt)}::timestamptz
     where ${clickId}::text is null or exists (select from claimed)
    on conflict do nothing`;
}
