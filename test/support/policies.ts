import type { Sql } from '../../src/db/sql.ts';
import type { PolicyTerms } from '../../src/domain/policy.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import type { Founder } from './founder.ts';

/** When the policies of tests take effect, unless they say otherwise: before every payment. */
const ALWAYS = Date.now() - 3_000 * DAY_MS;

/** What a policy is assigned to. */
type Scope = { readonly affiliateId: string } | { readonly groupId: string } | null;

/** Creates a policy and publishes a first version, which is in effect since `from`. Returns the id of the policy. */
export async function publishPolicy(
  founder: Founder,
  sql: Sql,
  terms: PolicyTerms,
  { from = ALWAYS, policyId }: { readonly from?: number; readonly policyId?: string } = {},
): Promise<string> {
  const app = `/apps/${founder.app.id}`;
  const id =
    policyId ?? (await founder.ok<{ id: string }>('POST', `${app}/policies`, { name: 'Test policy' })).id;
  await founder.ok('POST', `${app}/policies/${id}/versions`, terms);
  await takesEffect(sql, founder.app, from);
  return id;
}

/** Assigns a policy to the app, a group or a creator, in effect since `from`. */
export async function assignPolicy(
  founder: Founder,
  sql: Sql,
  policyId: string | null,
  scope: Scope = null,
  from = ALWAYS,
): Promise<void> {
  const path =
    scope === null
      ? ''
      : 'groupId' in scope
        ? `/groups/${scope.groupId}`
        : `/affiliates/${scope.affiliateId}`;
  await founder.ok('PUT', `/apps/${founder.app.id}${path}/policy-assignment`, { policyId });
  await takesEffect(sql, founder.app, from);
}

/** Moves a creator to a group, in effect since `from`. */
export async function moveToGroup(
  founder: Founder,
  sql: Sql,
  affiliateId: string,
  groupId: string | null,
  from = ALWAYS,
): Promise<void> {
  await founder.ok('PUT', `/apps/${founder.app.id}/affiliates/${affiliateId}/group`, { groupId });
  await takesEffect(sql, founder.app, from);
}

/** Gives the app a policy that is in effect since `from`. Returns its id. */
export async function earnByPolicy(
  founder: Founder,
  sql: Sql,
  terms: PolicyTerms,
  { from = ALWAYS, scope = null }: { readonly from?: number; readonly scope?: Scope } = {},
): Promise<string> {
  const policyId = await publishPolicy(founder, sql, terms, { from });
  await assignPolicy(founder, sql, policyId, scope, from);
  return policyId;
}

/**
 * Moves what takes effect in the future to `from`. The service only takes instants that are two minutes ahead, and a test cannot wait
 * for them.
 */
export async function takesEffect(sql: Sql, app: { readonly id: string }, from: number): Promise<void> {
  const at = new Date(from);
  await sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      update policy_versions set effective_from = ${at} where app_id = ${app.id} and effective_from > now()`;
    await tx`
      update policy_assignments set effective_from = ${at} where app_id = ${app.id} and effective_from > now()`;
    await tx`
      update group_memberships set effective_from = ${at} where app_id = ${app.id} and effective_from > now()`;
    await tx`update apps set policies_from = least(policies_from, ${at}) where id = ${app.id} and policies_from is not null`;
  });
}
