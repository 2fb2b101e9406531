import type { AffiliateId, AppId, GroupId, PolicyId } from '../domain/ids.ts';
import { lockApp } from './app-lock.ts';
import { acting } from './audit.ts';
import { effectiveFrom } from './effective-from.ts';
import type { TooEarly } from './effective-from.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** What a policy is assigned to: the app, a group or a creator. */
export type PolicyScope =
  | { readonly kind: 'app' }
  | { readonly kind: 'group'; readonly groupId: GroupId }
  | { readonly kind: 'affiliate'; readonly affiliateId: AffiliateId };

export const SCOPE_KINDS = ['app', 'group', 'affiliate'] as const;

/** `past`: another assignment of the same scope has taken its place. */
export const ASSIGNMENT_STATES = ['past', 'in_effect', 'scheduled'] as const;

/** A policy of the app, a group or a creator from an instant on. Never changed. */
export interface PolicyAssignment {
  readonly scope: (typeof SCOPE_KINDS)[number];
  readonly scopeId: AppId | GroupId | AffiliateId;
  /** The current name of the app, the group or the creator. */
  readonly scopeName: string;
  /** Null ends the policy of the scope. */
  readonly policyId: PolicyId | null;
  readonly policyName: string | null;
  readonly effectiveFrom: number;
  readonly createdAt: number;
  readonly state: (typeof ASSIGNMENT_STATES)[number];
}

/** The columns of a `PolicyAssignment` of a row `a`. */
const columns = (sql: Statements) => sql.fragment`
  case when a.affiliate_id is not null then 'affiliate' when a.group_id is not null then 'group' else 'app' end as scope,
  a.scope_id,
  coalesce((select f.name from affiliates f where f.id = a.affiliate_id), (select g.name from affiliate_groups g where g.id = a.group_id),
           (select x.name from apps x where x.id = a.app_id)) as scope_name,
  a.policy_id, (select p.name from policies p where p.id = a.policy_id) as policy_name, a.effective_from, a.created_at,
  case when a.effective_from > now() then
         case when exists (select from policy_assignments x
                            where x.scope_id = a.scope_id and x.effective_from = a.effective_from and x.position > a.position)
              then 'past' else 'scheduled' end
       when a.position = (select x.position from policy_assignments x
                           where x.scope_id = a.scope_id and x.effective_from <= now()
                           order by x.effective_from desc, x.position desc limit 1) then 'in_effect'
       else 'past' end as state`;

/**
 * Assigns a policy, or none (null), to a scope from an instant on. Returns `archived` for an archived policy. Undefined for an unknown policy, group or creator. A call that runs
 * again with the same instant and policy changes nothing.
 */
export async function assignPolicy(
  sql: Sql,
  appId: AppId,
  scope: PolicyScope,
  {
    policyId,
    effectiveFrom: wanted,
  }: { readonly policyId: PolicyId | null; readonly effectiveFrom: number | null },
): Promise<PolicyAssignment | TooEarly | 'archived' | undefined> {
  const groupId = scope.kind === 'group' ? scope.groupId : null;
  const affiliateId = scope.kind === 'affiliate' ? scope.affiliateId : null;
  const scopeId = affiliateId ?? groupId ?? appId;
  return await sql.transaction(async (tx) => {
    await lockApp(tx, appId);
    const soonest = await effectiveFrom(tx, wanted);
    const from = typeof soonest === 'number' ? soonest : (wanted ?? soonest.soonestAt);
    const latest = await tx.maybe<{ position: number; isRepeated: boolean }>`
      select position, policy_id is not distinct from ${policyId}::text and effective_from = ${instant(from)} as is_repeated
        from policy_assignments where app_id = ${appId} and scope_id = ${scopeId} order by position desc limit 1`;
    const isRepeated = latest?.isRepeated === true;
    // A call that runs again because its answer was lost may come when its instant is near, or has passed.
    if (typeof soonest !== 'number' && !isRepeated) return soonest;
    const archived = await tx.maybe`
      select from policies where app_id = ${appId} and id = ${policyId}::text and archived_at is not null`;
    if (archived !== undefined && !isRepeated) return 'archived';
    const position = (latest?.position ?? 0) + (isRepeated ? 0 : 1);
    if (!isRepeated) {
      await tx`
        insert into policy_assignments (app_id, group_id, affiliate_id, position, policy_id, effective_from)
        select ${appId}::text, ${groupId}::text, ${affiliateId}::text, ${position}::int, ${policyId}::text, ${instant(from)}::timestamptz
         where (${groupId}::text is null or exists (select from affiliate_groups g where g.app_id = ${appId} and g.id = ${groupId}))
           and (${affiliateId}::text is null or exists (select from affiliates f where f.app_id = ${appId} and f.id = ${affiliateId}))
           and (${policyId}::text is null or exists (select from policies p where p.app_id = ${appId} and p.id = ${policyId}))
           and ${acting(tx)}`;
    }
    return await tx.maybe<PolicyAssignment>`
      select ${columns(tx)} from policy_assignments a
       where a.app_id = ${appId} and a.scope_id = ${scopeId} and a.position = ${position}`;
  });
}

/** Whether a policy has, or had, a rule that may earn more than its base. */
export async function hasRuleAboveBase(sql: Statements, appId: AppId, policyId: PolicyId): Promise<boolean> {
  const { isAbove } = await sql.one<{ isAbove: boolean }>`
    select exists (select from policy_versions v
                    where v.app_id = ${appId} and v.policy_id = ${policyId}
                      and v.terms @? '$.rules[*] ? (@.aboveBase == true)') as is_above`;
  return isAbove;
}

/** Whether a policy has a version in effect at an instant; null is now. Without one it does not count. */
export async function hasVersionAt(
  sql: Statements,
  appId: AppId,
  policyId: PolicyId,
  at: number | null,
): Promise<boolean> {
  const { hasVersion } = await sql.one<{ hasVersion: boolean }>`
    select exists (select from policy_versions v
                    where v.app_id = ${appId} and v.policy_id = ${policyId}
                      and v.effective_from <= ${at === null ? sql.fragment`now()` : instant(at)}) as has_version`;
  return hasVersion;
}

/**
 * Whether a policy of the app or of a group, now or later, has such a rule: a creator may come to earn by it who ends in a group, or whose own
 * rate or policy ends.
 */
export async function sharedPolicyHasRuleAboveBase(sql: Statements, appId: AppId): Promise<boolean> {
  const { isAbove } = await sql.one<{ isAbove: boolean }>`
    select exists (select from policy_assignments a
                     join policy_versions v on v.policy_id = a.policy_id
                    where a.app_id = ${appId} and a.affiliate_id is null
                      and v.terms @? '$.rules[*] ? (@.aboveBase == true)') as is_above`;
  return isAbove;
}

/** A creator whose own rate goes before the policies of group and app. */
export interface OwnRate {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly rateBps: number;
}

/** Returns creators with an own rate, at most `limit`. */
export async function listOwnRates(sql: Sql, appId: AppId, limit: number): Promise<OwnRate[]> {
  return await sql<OwnRate>`
    select id as affiliate_id, name as affiliate_name, default_commission_rate_bps as rate_bps
      from affiliates
     where app_id = ${appId} and default_commission_rate_bps is not null
     order by app_id, id limit ${limit}`;
}

/** Returns a page of an app's assignments, or of those of one group or creator, latest first. */
export async function listAssignments(
  sql: Sql,
  appId: AppId,
  filter: { readonly scopeId: GroupId | AffiliateId | null },
  after: Position<number> | null,
  limit: number,
): Promise<Page<PolicyAssignment, number>> {
  const ofScope = filter.scopeId === null ? sql.fragment`` : sql.fragment`and scope_id = ${filter.scopeId}`;
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (created_at, scope_id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<PolicyAssignment & Position<number>>`
    select ${columns(sql)}, a.sort_key, a.scope_id as id
      from (select *, (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from policy_assignments
             where app_id = ${appId} ${ofScope} ${from}
             order by created_at desc, scope_id desc limit ${limit + 1}) a
     order by a.sort_key desc, a.scope_id desc`;
  return pageOf(rows, limit);
}
