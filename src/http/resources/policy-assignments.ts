import * as z from 'zod';
import { moveToGroup } from '../../db/groups.ts';
import {
  ASSIGNMENT_STATES,
  assignPolicy,
  hasRuleAboveBase,
  hasVersionAt,
  sharedPolicyHasRuleAboveBase,
  listAssignments,
  listOwnRates,
  SCOPE_KINDS,
} from '../../db/policy-assignments.ts';
import type { PolicyAssignment, PolicyScope } from '../../db/policy-assignments.ts';
import type { App } from '../../db/apps.ts';
import { isId } from '../../domain/ids.ts';
import type { GroupId, PolicyId } from '../../domain/ids.ts';
import type { Caller } from '../authenticate.ts';
import { ApiError, notFound } from '../errors.ts';
import {
  epochMs,
  exampleId,
  filterId,
  idOf,
  inputId,
  nameOfAffiliate,
  orNull,
  rateBps,
  textField,
} from '../fields.ts';
import { CSV_LIST } from '../list-csv.ts';
import { decodeCursor, EMPTY_PAGE, pageQuery, pageSchema, presentPage, timeKey } from '../pagination.ts';
import { accountApp, withPermission } from '../routing/callers.ts';
import type { Call } from '../routing/read-call.ts';
import { route } from '../routing/route.ts';
import { effectiveFromInBody, tookEffect } from './policies.ts';

const assignment = z
  .object({
    scope: z
      .enum(SCOPE_KINDS)
      .describe(
        'What the policy is assigned to. That of an affiliate goes before that of its group, which goes before that of the app.',
      ),
    scopeId: textField(exampleId('group'), 'The id of the app, the group or the affiliate.'),
    scopeName: textField('VIPs', 'Its current name.'),
    policyId: orNull(idOf('policy'), 'Null: from then on, the scope has no policy of its own.'),
    policyName: orNull(textField('Standard', 'The current name of the policy.'), 'Null without a policy.'),
    effectiveFrom: epochMs(
      'Payments from then on earn by it, until another assignment of the scope takes effect.',
    ),
    state: z.enum(ASSIGNMENT_STATES).describe('`past`: another assignment of the scope has taken its place.'),
    createdAt: epochMs('When it was made.'),
  })
  .meta({
    id: 'PolicyAssignment',
    description: 'A policy for an app, a group or an affiliate. Never changed.',
  });

/** Number of creators with an own rate that a response names. */
const OWN_RATES = 20;

const assigned = assignment
  .extend({
    ownRates: z
      .array(
        z.object({
          affiliateId: idOf('affiliate'),
          affiliateName: nameOfAffiliate,
          rateBps: rateBps('The own rate.'),
        }),
      )
      .max(OWN_RATES)
      .describe(
        `Affiliates whose own rate (\`defaultCommissionRateBps\`) goes before policies of groups and the app, at most ${OWN_RATES}. Empty for the policy of an affiliate, which goes before the own rate.`,
      ),
  })
  .meta({ id: 'AssignedPolicy', description: 'The assignment, and whom it does not reach.' });

const newAssignment = z
  .strictObject({
    policyId: orNull(inputId('policy'), 'Null: the scope has no policy of its own any more.'),
    effectiveFrom: effectiveFromInBody.optional(),
  })
  .meta({
    id: 'NewPolicyAssignment',
    examples: [{ policyId: exampleId('policy') }],
    description: 'The policy of a scope from an instant on.',
  });

const membership = z
  .object({
    groupId: orNull(idOf('group'), 'Null: no group.'),
    groupName: orNull(textField('VIPs', 'The current name of the group.'), 'Null without a group.'),
    effectiveFrom: epochMs('From when on.'),
  })
  .meta({ id: 'GroupMembership', description: 'The group of an affiliate from an instant on.' });

const newMembership = z
  .strictObject({
    groupId: orNull(inputId('group'), 'Null: no group.'),
    effectiveFrom: effectiveFromInBody.optional(),
  })
  .meta({
    id: 'NewGroupMembership',
    examples: [{ groupId: exampleId('group') }],
    description: 'The group of an affiliate from an instant on.',
  });

function presentAssignment(row: PolicyAssignment) {
  return {
    scope: row.scope,
    scopeId: row.scopeId,
    scopeName: row.scopeName,
    policyId: row.policyId,
    policyName: row.policyName,
    effectiveFrom: row.effectiveFrom,
    state: row.state,
    createdAt: row.createdAt,
  };
}

/** Returns an id of a body. Throws 404 for a malformed one, as for an unknown one. */
function idInBody<K extends 'policy' | 'group'>(kind: K, text: string | null) {
  if (text === null) return null;
  if (!isId(kind, text)) throw notFound();
  return text;
}

async function assign(
  call: Call & {
    readonly caller: Caller;
    readonly app: App;
    readonly body: z.output<typeof newAssignment>;
  },
  scope: PolicyScope,
) {
  const { app, body } = call;
  const policyId: PolicyId | null = idInBody('policy', body.policyId);
  const { sql } = call.deps;
  const { effectiveFrom = null } = body;
  // Without a version the policies of the group and the app count, as without a policy.
  const leadsToShared =
    scope.kind !== 'app' &&
    (policyId === null || !(await hasVersionAt(sql, app.id, policyId, effectiveFrom))) &&
    (await sharedPolicyHasRuleAboveBase(sql, app.id));
  const paysAboveBase =
    leadsToShared || (policyId !== null && (await hasRuleAboveBase(sql, app.id, policyId)));
  const { deps } = paysAboveBase ? withPermission(call, 'payout') : call;
  const outcome = await assignPolicy(deps.sql, app.id, scope, { policyId, effectiveFrom });
  if (outcome === 'archived') {
    throw new ApiError('policy_archived', { detail: 'The policy is archived. Bring it back first.' });
  }
  const made = tookEffect(outcome);
  const ownRates = scope.kind === 'affiliate' ? [] : await listOwnRates(deps.sql, app.id, OWN_RATES);
  return { ...presentAssignment(made), ownRates };
}

const DESCRIPTION =
  'Payments from `effectiveFrom` on earn by the version of the policy that is in effect when the customer pays. Earlier payments, ' +
  'and existing commissions, do not change. A policy with a rule `aboveBase` needs the permission `payout`, and so does what may bring a creator to one of the app or a group.';

export const policyAssignmentRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/policy-assignments',
    caller: accountApp('read'),
    operationId: 'listPolicyAssignments',
    summary: 'Lists to whom policies were assigned, latest first.',
    description: CSV_LIST,
    query: z.object({
      ...pageQuery,
      groupId: inputId('group').optional(),
      affiliateId: inputId('affiliate').optional(),
    }),
    response: { status: 200, schema: pageSchema(assignment), asCsv: true },
    handler: async ({ deps, app, query }) => {
      const filters = { groupId: query.groupId ?? null, affiliateId: query.affiliateId ?? null };
      const key = { list: 'policy assignments', appId: app.id, filters };
      const after = decodeCursor(key, timeKey, query.cursor);
      const groupId = filterId('group', query.groupId);
      const affiliateId = filterId('affiliate', query.affiliateId);
      const areBoth = groupId !== null && affiliateId !== null;
      if (groupId === 'none' || affiliateId === 'none' || areBoth) return EMPTY_PAGE;
      const page = await listAssignments(
        deps.sql,
        app.id,
        { scopeId: groupId ?? affiliateId },
        after,
        query.limit,
      );
      return presentPage(key, page, presentAssignment);
    },
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/policy-assignment',
    caller: accountApp('write'),
    operationId: 'assignPolicyToApp',
    summary: 'Assigns a commission policy to the app.',
    description: DESCRIPTION,
    body: newAssignment,
    response: { status: 200, schema: assigned },
    errors: ['session_not_raised', 'policy_archived'],
    handler: async (call) => await assign(call, { kind: 'app' }),
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/groups/:groupId/policy-assignment',
    caller: accountApp('write'),
    operationId: 'assignPolicyToGroup',
    summary: 'Assigns a commission policy to a group.',
    description: DESCRIPTION,
    ids: { groupId: 'group' },
    body: newAssignment,
    response: { status: 200, schema: assigned },
    errors: ['session_not_raised', 'policy_archived'],
    handler: async (call) => await assign(call, { kind: 'group', groupId: call.ids.groupId }),
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/affiliates/:affiliateId/policy-assignment',
    caller: accountApp('write'),
    operationId: 'assignPolicyToAffiliate',
    summary: 'Assigns a commission policy to an affiliate.',
    description: `${DESCRIPTION} It goes before the affiliate's own rate.`,
    ids: { affiliateId: 'affiliate' },
    body: newAssignment,
    response: { status: 200, schema: assigned },
    errors: ['session_not_raised', 'policy_archived'],
    handler: async (call) => await assign(call, { kind: 'affiliate', affiliateId: call.ids.affiliateId }),
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/affiliates/:affiliateId/group',
    caller: accountApp('write'),
    operationId: 'moveAffiliateToGroup',
    summary: 'Moves an affiliate to a group.',
    description:
      'Payments from `effectiveFrom` on earn by the policy of the group. Needs the permission `payout` where the app or a group has a policy with a rule `aboveBase`.',
    ids: { affiliateId: 'affiliate' },
    body: newMembership,
    response: { status: 200, schema: membership },
    errors: ['session_not_raised'],
    handler: async (call) => {
      const { app, ids, body } = call;
      const groupId: GroupId | null = idInBody('group', body.groupId);
      const mayPayAboveBase = await sharedPolicyHasRuleAboveBase(call.deps.sql, app.id);
      const { deps } = mayPayAboveBase ? withPermission(call, 'payout') : call;
      const { effectiveFrom = null } = body;
      const { groupName, ...moved } = tookEffect(
        await moveToGroup(deps.sql, app.id, ids.affiliateId, { groupId, effectiveFrom }),
      );
      return { groupId: moved.groupId, groupName, effectiveFrom: moved.effectiveFrom };
    },
  }),
];
