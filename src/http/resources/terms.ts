import * as z from 'zod';
import { findListedAffiliate } from '../../db/affiliate-lists.ts';
import { readCreatorTerms } from '../../db/terms.ts';
import type { PolicyInEffect } from '../../db/terms.ts';
import { foundOrThrow } from '../errors.ts';
import { epochMs, idOf, orNull, rateBps, textField } from '../fields.ts';
import { policyInEffect, presentTerms } from '../policy-fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const source = z
  .enum(['policy', 'affiliate', 'app'])
  .describe("Whether a policy counts, the affiliate's own rate, or the app's rate.");

const earns = {
  source,
  rateBps: orNull(rateBps('The rate.'), 'Null for a policy.'),
  policy: orNull(policyInEffect, 'Null for a rate.'),
};

const terms = z
  .object({
    ...earns,
    group: orNull(
      z
        .object({
          id: idOf('group'),
          name: textField('VIPs', 'The name of the group.'),
          memberFrom: epochMs('Since when.'),
        })
        .describe('The group of the affiliate.'),
      'Null without a group.',
    ),
    nextGroup: orNull(
      z
        .object({
          id: orNull(idOf('group'), 'Null: no group from then on.'),
          name: orNull(textField('VIPs', 'The name of the group.'), 'Null: no group from then on.'),
          memberFrom: epochMs('From when on.'),
        })
        .describe('The next move of the affiliate.'),
      'Null if none is known.',
    ),
    upcoming: z
      .array(z.object({ from: epochMs('From when on.'), ...earns }))
      .max(5)
      .describe('What changes later, earliest first: the next five changes.'),
  })
  .meta({ id: 'CreatorTerms', description: 'By which terms an affiliate earns now, and later.' });

/** What a creator earns by, of the policy that counts (`readCreatorTerms`) and the rates. */
export function presentEarns(
  policy: PolicyInEffect | null,
  { ownRateBps, appRateBps }: { readonly ownRateBps: number | null; readonly appRateBps: number },
) {
  if (policy !== null) {
    const { scope, policyId, policyName, versionId, version, terms: of } = policy;
    const shown = { scope, policyId, policyName, policyVersionId: versionId, version, ...presentTerms(of) };
    return { source: 'policy' as const, rateBps: null, policy: shown };
  }
  return ownRateBps === null
    ? { source: 'app' as const, rateBps: appRateBps, policy: null }
    : { source: 'affiliate' as const, rateBps: ownRateBps, policy: null };
}

export const termsRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/affiliates/:affiliateId/terms',
    caller: accountApp('read'),
    operationId: 'getAffiliateTerms',
    summary: 'Retrieves by which terms an affiliate earns now, and what changes later.',
    ids: { affiliateId: 'affiliate' },
    response: { status: 200, schema: terms },
    handler: async ({ deps, app, ids }) => {
      const affiliate = foundOrThrow(await findListedAffiliate(deps.sql, app.id, ids.affiliateId));
      const rates = { ownRateBps: affiliate.defaultCommissionRateBps, appRateBps: app.commissionRateBps };
      const found = await readCreatorTerms(deps.sql, app.id, affiliate.id, rates.ownRateBps);
      const { group, nextGroup, current, upcoming } = found;
      return {
        ...presentEarns(current, rates),
        group:
          group?.groupId == null
            ? null
            : { id: group.groupId, name: group.groupName ?? '', memberFrom: group.effectiveFrom },
        nextGroup: nextGroup && {
          id: nextGroup.groupId,
          name: nextGroup.groupName,
          memberFrom: nextGroup.effectiveFrom,
        },
        upcoming: upcoming.map(({ from, policy }) => ({ from, ...presentEarns(policy, rates) })),
      };
    },
  }),
];
