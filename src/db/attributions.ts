import { DEFERRED_LINKS_LIMIT } from '../domain/attribution.ts';
import type {
  AffiliateStatus,
  ClaimedClick,
  CodeTarget,
  DeferredClick,
  MatchMethod,
  Touch,
} from '../domain/attribution.ts';
import type { AffiliateId, AppId, AttributionId, ClickId, LinkId } from '../domain/ids.ts';
import type { SdkKeyKind } from '../domain/keys.ts';
import { isSomebody } from '../domain/user-ids.ts';
import { newId } from './new-id.ts';
import { lockLimit, shareStatements } from './shared-statements.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** The touch that a device is attributed to. */
export interface Attribution {
  readonly attributionId: AttributionId;
  readonly affiliateId: AffiliateId;
  readonly linkId: LinkId | null;
  readonly clickId: ClickId | null;
  readonly matchMethod: MatchMethod;
}

/** A user who was identified on a device before the device had an attribution. */
export interface RememberedUser {
  readonly customerUserId: string;
  /** Epoch ms. */
  readonly identifiedAt: number;
}

/** Everything that the choice of a touch depends on, and the users that it will bind, read by one statement. */
export interface InstallCandidates {
  readonly windowDays: number;
  readonly deferredWindowMinutes: number;
  /** The device's attribution, if it has one. */
  readonly attribution: Attribution | null;
  readonly click: ClaimedClick | null;
  readonly code: CodeTarget | null;
  /** Users of the device without a binding. Empty if the device has its attribution. */
  readonly rememberedUsers: readonly RememberedUser[];
}

/** What an install names. */
interface InstallTouches {
  readonly appId: AppId;
  readonly deviceId: string;
  readonly claimToken: string | null;
  readonly affiliateCode: string | null;
}

interface CandidateRow {
  /** The place of the install among those of the statement, from 1. */
  number: number;
  windowDays: number;
  deferredWindowMinutes: number;
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
  rememberedUsers: readonly RememberedUser[];
}

/** Reads the candidates of installs. Each part is a look-up by all columns of its key, however large the app is. */
async function findCandidates(
  sql: Sql,
  keyKind: SdkKeyKind,
  installs: readonly InstallTouches[],
): Promise<InstallCandidates[]> {
  const attributions = keyKind === 'live' ? sql.fragment`attributions` : sql.fragment`test_attributions`;
  const named = installs.map(({ appId, deviceId, claimToken, affiliateCode }, index) => {
    return { number: index + 1, appId, deviceId, claimToken, affiliateCode };
  });
  const rows = await sql<CandidateRow>`
    select i.number, app.attribution_window_days as window_days, app.deferred_window_minutes,
           t.id as attribution_id, t.affiliate_id as won_affiliate_id, t.link_id as won_link_id,
           t.click_id as won_click_id, t.match_method,
           c.id as click_id, c.affiliate_id as click_affiliate_id, c.link_id as click_link_id,
           c.clicked_at, c.claimed_by_device, ca.status as click_affiliate_status,
           code.affiliate_id as code_affiliate_id, code.link_id as code_link_id, code.active as code_active,
           code.status as code_affiliate_status,
           coalesce((
             select jsonb_agg(jsonb_build_object('customerUserId', x.customer_user_id,
                                                 'identifiedAt', epoch_ms(x.identified_at)))
               from (select * from identities x
                      where t.id is null and ${keyKind === 'live'} and x.app_id = i."appId" and x.device_id = i."deviceId" offset 0) x
              where not exists (select from bindings b
                                 where b.app_id = i."appId" and b.customer_user_id = x.customer_user_id)), '[]') as remembered_users
      from jsonb_to_recordset(${sql.json(named)}) i (number integer, "appId" text, "deviceId" text, "claimToken" uuid, "affiliateCode" text)
     cross join lateral (select * from apps x where x.id = i."appId" offset 0) app
      left join lateral (
        select * from ${attributions} x where x.app_id = i."appId" and x.device_id = i."deviceId" offset 0) t on true
      left join lateral (
        select * from clicks x where x.app_id = i."appId" and x.claim_token = i."claimToken" offset 0) c on true
      left join lateral (select status from affiliates x where x.id = c.affiliate_id offset 0) ca on true
      left join lateral (
        select a.id as affiliate_id, null::text as link_id, true as active, a.status, 1 as rank
          from (select * from affiliates x where x.id = i."affiliateCode" offset 0) a
         where a.app_id = i."appId"
        union all
        select l.affiliate_id, l.id, l.active, (select a.status from affiliates a where a.id = l.affiliate_id), 2
          from (select * from links x
                 where x.app_id = i."appId" and lower(x.slug) collate "C" = lower(i."affiliateCode") offset 0) l
         order by rank limit 1) code on true`;
  const candidates = new Map(rows.map((row) => [row.number, candidatesOf(row)]));
  return installs.map(({ appId }, index) => {
    const found = candidates.get(index + 1);
    if (found === undefined) throw new Error(`${appId} does not exist`);
    return found;
  });
}

function candidatesOf(row: CandidateRow): InstallCandidates {
  return {
    windowDays: row.windowDays,
    deferredWindowMinutes: row.deferredWindowMinutes,
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
    rememberedUsers: row.rememberedUsers.filter(isSomebody),
  };
}

/** Finds candidates for each kind of key, together with other installs that arrive now. */
const findTogether = {
  live: shareCandidates('live'),
  test: shareCandidates('test'),
} as const;

function shareCandidates(keyKind: SdkKeyKind) {
  return shareStatements(
    async (sql, installs: readonly InstallTouches[]) => await findCandidates(sql, keyKind, installs),
    {
      keyOf: ({ appId, deviceId, claimToken, affiliateCode }) =>
        JSON.stringify([appId, deviceId, claimToken, affiliateCode]),
      repeated: 'share',
    },
  );
}

/**
 * Finds the click and the code that an install names. An affiliate's id takes precedence over an equal slug. The attribution is
 * the one of the key's kind: a test key does not see those of live keys, and no users wait for it.
 */
export async function findInstallCandidates(
  sql: Sql,
  install: InstallTouches,
  keyKind: SdkKeyKind = 'live',
): Promise<InstallCandidates> {
  return await findTogether[keyKind](sql, install);
}

/**
 * A part of a statement that inserts a device's attribution (`added`): binds the remembered users in the same
 * statement, so that a process that dies leaves both or neither. A user who was erased since they were read is not remembered any more.
 */
function bindUsersOfAdded(
  sql: Sql,
  { appId, deviceId }: Pick<AttributedInstall, 'appId' | 'deviceId'>,
  users: readonly RememberedUser[],
) {
  const pairs = users.map((user) => ({ id: newId('binding'), ...user }));
  return sql.fragment`
    insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
    select u.id, ${appId}::text, u."customerUserId", added.id, to_timestamp(u."identifiedAt" / 1000.0)
      from added
     cross join jsonb_to_recordset(${sql.json(pairs)}) u (id text, "customerUserId" text, "identifiedAt" bigint)
     cross join lateral (
       select from identities i
        where i.app_id = ${appId} and i.device_id = ${deviceId} and i.customer_user_id = u."customerUserId" offset 0) i
     order by u."customerUserId"
    on conflict (app_id, customer_user_id) do nothing`;
}

/** The install that attributes a device. */
export interface AttributedInstall {
  readonly appId: AppId;
  readonly deviceId: string;
  readonly firstOpenAt: number;
  /** The SDK that reported the install, and its version. */
  readonly sdk: string | null;
  readonly rememberedUsers: readonly RememberedUser[];
}

/** A device and the code that attributes it, without a click to claim or a user to bind. */
interface AttributionByCode extends Omit<AttributedInstall, 'rememberedUsers'> {
  readonly id: AttributionId;
  readonly touch: Touch;
}

/** Attributes devices that have no attribution yet, and returns whether each of them is among these. */
async function insertByCode(
  sql: Sql,
  installs: readonly AttributionByCode[],
  isAlone: boolean,
): Promise<boolean[]> {
  const rows = installs.map(({ touch, ...install }) => ({ ...install, ...touch }));
  const added = await sql<{ id: AttributionId }>`
    insert into attributions (id, app_id, device_id, affiliate_id, link_id, match_method, touched_at, first_open_at, sdk)
    select id, "appId", "deviceId", "affiliateId", "linkId", "matchMethod", to_timestamp("touchedAt" / 1000.0),
           to_timestamp("firstOpenAt" / 1000.0), sdk
      from jsonb_to_recordset(${sql.json(rows)}) r (id text, "appId" text, "deviceId" text, "affiliateId" text, "linkId" text,
             "matchMethod" text, "touchedAt" bigint, "firstOpenAt" bigint, sdk text)
     cross join ${lockLimit(sql, isAlone)}
     order by "appId", "deviceId"
    on conflict (app_id, device_id) do nothing
    returning id`;
  const ids = new Set(added.map(({ id }) => id));
  return installs.map(({ id }) => ids.has(id));
}

/** Attributes a device by its code, together with others that arrive now. All of them take their places in one order, so none waits in a circle. */
const insertTogether = shareStatements(insertByCode, {
  keyOf: ({ appId, deviceId }) => `${appId} ${deviceId}`,
  repeated: 'wait',
});

/**
 * Inserts a device's attribution, claims the click for the device, and binds the device's remembered users. Does nothing
 * and returns null if the device has an attribution or another device has claimed the click; the caller then reads the
 * candidates again.
 */
export async function attributeDevice(
  sql: Sql,
  { appId, deviceId, firstOpenAt, sdk, rememberedUsers }: AttributedInstall,
  touch: Touch,
): Promise<Attribution | null> {
  const id = newId('attribution');
  const { affiliateId, linkId, clickId, matchMethod, touchedAt } = touch;
  const attribution = { attributionId: id, affiliateId, linkId, clickId, matchMethod };
  if (clickId === null && rememberedUsers.length === 0) {
    return (await insertTogether(sql, { id, appId, deviceId, firstOpenAt, sdk, touch })) ? attribution : null;
  }
  const [added] = await sql`
    with claimed as (
      update clicks set claimed_by_device = ${deviceId}
       where app_id = ${appId} and id = ${clickId} and (claimed_by_device is null or claimed_by_device = ${deviceId})
      returning id
    ), added as (
      insert into attributions (id, app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at, sdk)
      select ${id}::text, ${appId}::text, ${deviceId}::text, ${affiliateId}::text, ${linkId}::text, ${clickId}::text,
             ${matchMethod}::text, ${instant(touchedAt)}::timestamptz, ${instant(firstOpenAt)}::timestamptz, ${sdk}::text
       where ${clickId}::text is null or exists (select from claimed)
      on conflict (app_id, device_id) do nothing
      returning id
    ), bound as (${bindUsersOfAdded(sql, { appId, deviceId }, rememberedUsers)})
    select id from added`;
  return added === undefined ? null : attribution;
}

/**
 * Records a touch that came after the device had an attribution, and claims its click for the device. A code that was recorded
 * before is not recorded again: a repeated report may state no time or another one.
 */
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
     where case when ${clickId}::text is not null then exists (select from claimed)
                else not exists (select from losing_touches x
                                  where x.app_id = ${appId} and x.device_id = ${deviceId} and x.affiliate_id = ${affiliateId}
                                    and x.link_id is not distinct from ${linkId}::text and x.click_id is null) end
    on conflict do nothing`;
}

/**
 * Returns the unclaimed clicks of the redirect with any of these address hashes: the newest of each link, for at most
 * one link more than a deferred match considers. The statement walks the index from link to link, so its cost depends
 * only on the number of links with clicks from the address.
 */
export async function findDeferredClicks(
  sql: Sql,
  appId: AppId,
  addressHashes: readonly Buffer[],
): Promise<DeferredClick[]> {
  const hashes = addressHashes.map((hash) => hash.toString('hex'));
  return await sql<DeferredClick>`
    with recursive newest as (
      select d.* from unnest(${hashes}::text[]) h cross join lateral (
        select address_hash, link_id, clicked_at from deferred_clicks
         where app_id = ${appId} and address_hash = decode(h, 'hex')
         order by link_id desc, clicked_at desc limit 1) d
      union all
      select d.* from newest n cross join lateral (
        select address_hash, link_id, clicked_at from deferred_clicks
         where app_id = ${appId} and address_hash = n.address_hash and link_id < n.link_id
         order by link_id desc, clicked_at desc limit 1) d
    )
    select l.affiliate_id, n.link_id, encode(n.address_hash, 'hex') as address_hash,
           n.clicked_at, l.active as link_active, a.status as affiliate_status
      from (select * from newest limit ${DEFERRED_LINKS_LIMIT + 1}) n
      join links l on l.id = n.link_id
      join affiliates a on a.id = l.affiliate_id`;
}

/**
 * Attributes a device to the newest unclaimed click of its address on the link of `match` since `since` (epoch ms), and
 * binds its remembered users. Concurrent installs get different clicks or none: one waits for the claim of the other.
 * Does nothing and returns null if no click is left or the device has an attribution; the caller then reads the
 * candidates again.
 */
export async function attributeDeferred(
  sql: Sql,
  { appId, deviceId, firstOpenAt, sdk, rememberedUsers }: AttributedInstall,
  match: DeferredClick,
  since: number,
): Promise<Attribution | null> {
  const id = newId('attribution');
  const { affiliateId, linkId } = match;
  const [added] = await sql<{ clickId: ClickId }>`
    with click as (
      select c.id, c.affiliate_id, c.link_id, c.clicked_at
        from deferred_clicks d join clicks c on c.id = d.click_id
       where d.app_id = ${appId} and d.address_hash = decode(${match.addressHash}, 'hex') and d.link_id = ${match.linkId}
         and d.clicked_at >= ${instant(since)} and c.claimed_by_device is null
       order by d.clicked_at desc limit 1
         for no key update of c
    ), added as (
      insert into attributions (id, app_id, device_id, affiliate_id, link_id, click_id, match_method, touched_at, first_open_at, sdk)
      select ${id}::text, ${appId}::text, ${deviceId}::text, affiliate_id, link_id, id, 'deferred', clicked_at,
             ${instant(firstOpenAt)}::timestamptz, ${sdk}::text
        from click
      on conflict (app_id, device_id) do nothing
      returning id, click_id
    ), claimed as (
      update clicks set claimed_by_device = ${deviceId} where id in (select click_id from added)
    ), bound as (${bindUsersOfAdded(sql, { appId, deviceId }, rememberedUsers)})
    select click_id from added`;
  return added === undefined
    ? null
    : { attributionId: id, affiliateId, linkId, clickId: added.clickId, matchMethod: 'deferred' };
}
