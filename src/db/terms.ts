import type { AffiliateId, AppId, PolicyId, PolicyVersionId } from '../domain/ids.ts';
import { policyThatCounts } from '../domain/policy.ts';
import type { AssignedPolicy } from '../domain/policy.ts';
import type { Membership } from './groups.ts';
import type { Sql } from './sql.ts';

/** The policy in effect for a creator from an instant on. */
export interface PolicyInEffect extends AssignedPolicy {
  readonly policyId: PolicyId;
  readonly versionId: PolicyVersionId;
  readonly policyName: string;
  readonly version: number;
}

export interface CreatorTerms {
  /** Null: none. */
  readonly group: Membership | null;
  /** The next move to a group, or out of it. Null: none is known. */
  readonly nextGroup: Membership | null;
  /** Null: none. */
  readonly current: PolicyInEffect | null;
  /** What takes effect later, earliest first. */
  readonly upcoming: readonly { readonly from: number; readonly policy: PolicyInEffect | null }[];
}

/**
 * Number of later changes that are read of each kind, and of those that are shown. Most change nothing for one creator; behind twenty, one that
 * does is missed.
 */
const UPCOMING = 20;
const SHOWN = 5;

/**
 * Returns by which policy a creator with an own rate, or without one (null), earns now, and what changes later. A policy that does not count
 * beside the own rate is none. The parts of the statement: `scopes` are what a policy may
 * be assigned to for this creator, now or later, `assigned` the policies; `changes` are the instants at which something of it takes
 * effect.
 */
export async function readCreatorTerms(
  sql: Sql,
  appId: AppId,
  affiliateId: AffiliateId,
  ownRateBps: number | null,
): Promise<CreatorTerms> {
  const found = await sql<
    { from: number | null; policy: PolicyInEffect | null } & Pick<CreatorTerms, 'group' | 'nextGroup'>
  >`
    with memberships as materialized (
      (select group_id, effective_from from group_memberships
        where affiliate_id = ${affiliateId} and effective_from <= now() order by effective_from desc, position desc limit 1)
      union all
      (select group_id, effective_from from group_memberships
        where affiliate_id = ${affiliateId} and effective_from > now() order by effective_from limit ${UPCOMING})
    ), scopes as (
      select ${affiliateId}::text as id union select ${appId}::text
      union select group_id::text from memberships where group_id is not null
    ), assigned as materialized (
      select a.policy_id, a.effective_from
        from scopes s
       cross join lateral (
         (select policy_id, effective_from from policy_assignments
           where scope_id = s.id and effective_from <= now() order by effective_from desc, position desc limit 1)
         union all
         (select policy_id, effective_from from policy_assignments
           where scope_id = s.id and effective_from > now() order by effective_from limit ${UPCOMING})) a
    ), changes as (
      select effective_from as at from memberships
      union select effective_from from assigned
      union select v.effective_from
              from (select distinct policy_id from assigned where policy_id is not null) p
             cross join lateral (
               select effective_from from policy_versions x
                where x.policy_id = p.policy_id and x.effective_from > now() order by x.effective_from limit ${UPCOMING}) v
    ), instants as (
      select null::timestamptz as at
      union all (select at from changes where at > now() order by at limit ${UPCOMING})
    )
    select epoch_ms(i.at) as "from",
           (select jsonb_build_object('scope', x.scope, 'policyId', x.policy_id, 'policyName', p.name, 'versionId', x.version_id,
                                      'version', x.version, 'terms', x.terms)
              from policy_in_effect(${appId}, ${affiliateId}, coalesce(i.at, now())) x join policies p on p.id = x.policy_id) as policy,
           (select jsonb_build_object('groupId', m.group_id, 'groupName', g.name, 'effectiveFrom', epoch_ms(m.effective_from))
              from group_memberships m left join affiliate_groups g on g.id = m.group_id
             where m.affiliate_id = ${affiliateId} and m.effective_from <= now()
             order by m.effective_from desc, m.position desc limit 1) as "group",
           (select jsonb_build_object('groupId', m.group_id, 'groupName', g.name, 'effectiveFrom', epoch_ms(m.effective_from))
              from group_memberships m left join affiliate_groups g on g.id = m.group_id
             where m.affiliate_id = ${affiliateId} and m.effective_from > now()
             order by m.effective_from, m.position desc limit 1) as next_group
      from instants i order by i.at nulls first`;
  const rows = found.map((row) => ({ ...row, policy: policyThatCounts(row.policy, ownRateBps) }));
  const [now] = rows;
  return {
    group: now?.group ?? null,
    nextGroup: now?.nextGroup ?? null,
    current: now?.policy ?? null,
    upcoming: changesOf(rows).slice(0, SHOWN),
  };
}

/** Returns the instants at which another version counts than before. */
function changesOf(
  rows: readonly { readonly from: number | null; readonly policy: PolicyInEffect | null }[],
): CreatorTerms['upcoming'] {
  return rows.flatMap(({ from, policy }, index) => {
    const before = rows[index - 1]?.policy ?? null;
    const isSame = before?.versionId === policy?.versionId && before?.scope === policy?.scope;
    return from === null || isSame ? [] : [{ from, policy }];
  });
}
