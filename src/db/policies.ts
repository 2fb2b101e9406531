import type { AppId, PolicyId, PolicyVersionId } from '../domain/ids.ts';
import type { PolicyTerms } from '../domain/policy.ts';
import { lockApp } from './app-lock.ts';
import { acting } from './audit.ts';
import { effectiveFrom } from './effective-from.ts';
import type { TooEarly } from './effective-from.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** A version of a policy. Never changed. */
export interface PolicyVersion {
  readonly id: PolicyVersionId;
  readonly policyId: PolicyId;
  readonly version: number;
  readonly effectiveFrom: number;
  readonly terms: PolicyTerms;
  readonly createdAt: number;
}

export interface Policy {
  readonly id: PolicyId;
  readonly name: string;
  readonly createdAt: number;
  /** Since when lists leave it out. Null: it is not archived. */
  readonly archivedAt: number | null;
  /** The version in effect. Null before the first one. */
  readonly current: PolicyVersion | null;
  /** The next version that takes effect. Null without one. */
  readonly next: PolicyVersion | null;
}

const versionObject = (sql: Statements) => sql.fragment`
  jsonb_build_object('id', v.id, 'policyId', v.policy_id, 'version', v.version, 'effectiveFrom', epoch_ms(v.effective_from),
                     'terms', v.terms, 'createdAt', epoch_ms(v.created_at))`;

/** The columns of a `Policy` of a row `p`. */
const columns = (sql: Statements) => sql.fragment`
  p.id, p.name, p.created_at, p.archived_at,
  (select ${versionObject(sql)} from policy_versions v
    where v.policy_id = p.id and v.effective_from <= now() order by v.effective_from desc, v.version desc limit 1) as current,
  (select ${versionObject(sql)} from policy_versions v
    where v.policy_id = p.id and v.effective_from > now() order by v.effective_from, v.version desc limit 1) as next`;

/** Creates a policy, which has no version yet. */
export async function createPolicy(
  sql: Sql,
  { id, appId, name }: { readonly id: PolicyId; readonly appId: AppId; readonly name: string },
): Promise<Policy | undefined> {
  await sql`
    insert into policies (id, app_id, name)
    select ${id}::text, ${appId}::text, ${name}::text where ${acting(sql)} on conflict do nothing`;
  return await findPolicy(sql, appId, id);
}

/** What to change of a policy. Null: nothing of it. */
export interface PolicyChange {
  readonly name: string | null;
  readonly archived: boolean | null;
}

/**
 * Renames a policy, archives it or brings it back. One that is assigned, now or later, is not archived: returns `assigned`. Undefined for
 * an unknown one.
 */
export async function updatePolicy(
  sql: Sql,
  appId: AppId,
  id: PolicyId,
  { name, archived }: PolicyChange,
): Promise<Policy | 'assigned' | undefined> {
  return await sql.transaction(async (tx) => {
    await lockApp(tx, appId);
    const { isAssigned } = await tx.one<{ isAssigned: boolean }>`
      select ${archived}::boolean is true and policy_is_assigned(${appId}, ${id}) as is_assigned`;
    if (isAssigned) return 'assigned';
    await tx`
      update policies
         set name = coalesce(${name}::text, name),
             archived_at = case when ${archived}::boolean is null then archived_at
                                when ${archived}::boolean then coalesce(archived_at, now()) end
       where app_id = ${appId} and id = ${id} and ${acting(tx)}`;
    return await findPolicy(tx, appId, id);
  });
}

/** Returns a policy. Undefined for an unknown one and for one of another app. */
export async function findPolicy(sql: Statements, appId: AppId, id: PolicyId): Promise<Policy | undefined> {
  return await sql.maybe<Policy>`
    select ${columns(sql)} from policies p where p.app_id = ${appId} and p.id = ${id}`;
}

/** Returns a page of an app's policies, archived or not, oldest first. */
export async function listPolicies(
  sql: Sql,
  appId: AppId,
  { archived }: { readonly archived: boolean },
  after: Position<number> | null,
  limit: number,
): Promise<Page<Policy, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (created_at, id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const isListed = archived ? sql.fragment`archived_at is not null` : sql.fragment`archived_at is null`;
  const rows = await sql<Policy & Position<number>>`
    select ${columns(sql)}, p.sort_key
      from (select *, (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from policies where app_id = ${appId} and ${isListed} ${from} order by created_at, id limit ${limit + 1}) p
     order by p.sort_key, p.id`;
  return pageOf(rows, limit);
}

export interface NewPolicyVersion {
  readonly id: PolicyVersionId;
  readonly appId: AppId;
  readonly policyId: PolicyId;
  /** Epoch ms. Null: as soon as possible. */
  readonly effectiveFrom: number | null;
  readonly terms: PolicyTerms;
}

/**
 * Publishes a version of a policy. Of versions that take effect at the same instant, the last one counts. Undefined for an unknown
 * policy. A call that runs again with the same id changes nothing.
 */
export async function publishVersion(
  sql: Sql,
  { id, appId, policyId, effectiveFrom: wanted, terms }: NewPolicyVersion,
): Promise<PolicyVersion | TooEarly | undefined> {
  const find = async (tx: Statements) =>
    await tx.maybe<PolicyVersion>`
      select id, policy_id, version, effective_from, terms, created_at
        from policy_versions where app_id = ${appId} and id = ${id}`;
  return await sql.transaction(async (tx) => {
    await lockApp(tx, appId);
    const stored = await find(tx);
    if (stored !== undefined) return stored;
    const from = await effectiveFrom(tx, wanted);
    if (typeof from !== 'number') return from;
    await tx`
      insert into policy_versions (id, app_id, policy_id, version, effective_from, terms)
      select ${id}::text, p.app_id, p.id,
             coalesce((select max(v.version) from policy_versions v where v.policy_id = p.id), 0) + 1,
             ${instant(from)}::timestamptz, ${tx.json(terms)}
        from policies p where p.app_id = ${appId} and p.id = ${policyId} and ${acting(tx)}`;
    return await find(tx);
  });
}

/** Returns a page of a policy's versions, the last one first. */
export async function listVersions(
  sql: Sql,
  appId: AppId,
  policyId: PolicyId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<PolicyVersion, number>> {
  const from = after === null ? sql.fragment`` : sql.fragment`and version < ${after.sortKey}`;
  const rows = await sql<PolicyVersion & Position<number>>`
    select id, policy_id, version, effective_from, terms, created_at, version as sort_key
      from policy_versions
     where app_id = ${appId} and policy_id = ${policyId} ${from}
     order by policy_id, version desc limit ${limit + 1}`;
  return pageOf(rows, limit);
}
