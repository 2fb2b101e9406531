import type { AffiliateId, AppId, GroupId } from '../domain/ids.ts';
import { lockApp } from './app-lock.ts';
import { acting } from './audit.ts';
import { effectiveFrom } from './effective-from.ts';
import type { TooEarly } from './effective-from.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** Creators who earn by the same policy. */
export interface AffiliateGroup {
  readonly id: GroupId;
  readonly name: string;
  readonly createdAt: number;
}

/** Creates a group without members. */
export async function createGroup(
  sql: Sql,
  { id, appId, name }: { readonly id: GroupId; readonly appId: AppId; readonly name: string },
): Promise<AffiliateGroup | undefined> {
  await sql`
    insert into affiliate_groups (id, app_id, name)
    select ${id}::text, ${appId}::text, ${name}::text where ${acting(sql)} on conflict do nothing`;
  return await findGroup(sql, appId, id);
}

/** Renames a group. Undefined for an unknown one. */
export async function renameGroup(
  sql: Sql,
  appId: AppId,
  id: GroupId,
  name: string,
): Promise<AffiliateGroup | undefined> {
  await sql`
    update affiliate_groups set name = ${name} where app_id = ${appId} and id = ${id} and ${acting(sql)}`;
  return await findGroup(sql, appId, id);
}

/** Returns a group. Undefined for an unknown one and for one of another app. */
export async function findGroup(
  sql: Statements,
  appId: AppId,
  id: GroupId,
): Promise<AffiliateGroup | undefined> {
  return await sql.maybe<AffiliateGroup>`
    select id, name, created_at from affiliate_groups where app_id = ${appId} and id = ${id}`;
}

/** Returns a page of an app's groups, oldest first. */
export async function listGroups(
  sql: Sql,
  appId: AppId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<AffiliateGroup, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (created_at, id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<AffiliateGroup & Position<number>>`
    select id, name, created_at, (extract(epoch from created_at) * 1000000)::bigint as sort_key
      from affiliate_groups where app_id = ${appId} ${from} order by created_at, id limit ${limit + 1}`;
  return pageOf(rows, limit);
}

/** A creator's group from an instant on. Never changed. */
export interface Membership {
  /** Null: none. */
  readonly groupId: GroupId | null;
  readonly groupName: string | null;
  readonly effectiveFrom: number;
}

/**
 * Moves a creator to a group, or to none (null), from an instant on. Undefined for an unknown creator or group. A call that runs again
 * with the same instant and group changes nothing.
 */
export async function moveToGroup(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId,
  {
    groupId,
    effectiveFrom: wanted,
  }: { readonly groupId: GroupId | null; readonly effectiveFrom: number | null },
): Promise<Membership | TooEarly | undefined> {
  return await sql.transaction(async (tx) => {
    await lockApp(tx, appId);
    const soonest = await effectiveFrom(tx, wanted);
    const from = typeof soonest === 'number' ? soonest : (wanted ?? soonest.soonestAt);
    const latest = await tx.maybe<{ position: number; isRepeated: boolean }>`
      select position, group_id is not distinct from ${groupId}::text and effective_from = ${instant(from)} as is_repeated
        from group_memberships
       where app_id = ${appId} and affiliate_id = ${affiliateId} order by affiliate_id, position desc limit 1`;
    const isRepeated = latest?.isRepeated === true;
    // A call that runs again because its answer was lost may come when its instant is near, or has passed.
    if (typeof soonest !== 'number' && !isRepeated) return soonest;
    const position = (latest?.position ?? 0) + (isRepeated ? 0 : 1);
    if (!isRepeated) {
      await tx`
        insert into group_memberships (app_id, affiliate_id, position, group_id, effective_from)
        select f.app_id, f.id, ${position}::int, ${groupId}::text, ${instant(from)}::timestamptz
          from affiliates f
         where f.app_id = ${appId} and f.id = ${affiliateId}
           and (${groupId}::text is null or exists (select from affiliate_groups g where g.app_id = ${appId} and g.id = ${groupId}))
           and ${acting(tx)}`;
    }
    return await tx.maybe<Membership>`
      select m.group_id, (select g.name from affiliate_groups g where g.id = m.group_id) as group_name, m.effective_from
        from group_memberships m
       where m.app_id = ${appId} and m.affiliate_id = ${affiliateId} and m.position = ${position}`;
  });
}

/** A creator in a group. */
export interface GroupMember {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  /** Since when, epoch ms. In the future for one who joins later. */
  readonly memberFrom: number;
  /** Until when, if that is known. */
  readonly memberUntil: number | null;
}

/** Number of later memberships of a creator that are read. */
const MOST_LATER = 20;

/**
 * Returns a page of the creators who are in the group now, or join it later, by their ids. It examines at most `limit` of those who
 * were ever in the group, so it may be shorter.
 *
 * The parts of the statement: `e` are those who were ever in it, `span` is the membership of the group that has not ended, until the next
 * one of any group.
 */
export async function listMembers(
  sql: Sql,
  appId: AppId,
  groupId: GroupId,
  after: Position<string> | null,
  limit: number,
): Promise<Page<GroupMember, string>> {
  const from = after === null ? sql.fragment`` : sql.fragment`and affiliate_id > ${after.id}`;
  const rows = await sql<GroupMember & Position<string> & { isMember: boolean }>`
    select e.affiliate_id, (select f.name from affiliates f where f.id = e.affiliate_id) as affiliate_name,
           span.effective_from as member_from, span.until as member_until, span.effective_from is not null as is_member,
           e.affiliate_id as id, e.affiliate_id as sort_key
      from (select distinct affiliate_id from group_memberships
             where app_id = ${appId} and group_id = ${groupId} ${from} order by affiliate_id limit ${limit + 1}) e
      left join lateral (
        select s.effective_from, s.until
          from (select m.group_id, m.effective_from, lead(m.effective_from) over (order by m.effective_from, m.position) as until
                  from ((select * from group_memberships x
                          where x.affiliate_id = e.affiliate_id and x.effective_from <= now()
                          order by x.effective_from desc, x.position desc limit 1)
                        union all
                        (select * from group_memberships x
                          where x.affiliate_id = e.affiliate_id and x.effective_from > now()
                          order by x.effective_from, x.position limit ${MOST_LATER})) m) s
         where s.group_id = ${groupId} and s.until is distinct from s.effective_from
         order by s.effective_from limit 1) span on true
     order by e.affiliate_id`;
  const page = pageOf<string, (typeof rows)[number]>(rows, limit);
  return { ...page, rows: page.rows.filter(({ isMember }) => isMember) };
}
