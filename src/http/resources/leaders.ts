import * as z from 'zod';
import { LEADER_KINDS, LEADER_MEASURES, MOST_LEADERS, readLeaders } from '../../db/leaders.ts';
import type { Leader } from '../../db/leaders.ts';
import { DAY_MS } from '../../domain/time.ts';
import { invalidField } from '../errors.ts';
import {
  ATTRIBUTED_REVENUE,
  cents,
  count,
  epochMs,
  funnelCounts,
  idOf,
  nameOfAffiliate,
  orNull,
  textField,
} from '../fields.ts';
import { fromTo } from '../instants.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const DEFAULT_SPAN_MS = 30 * DAY_MS;
/** The longest range. Each creator that is compared has up to four sums a day. */
const MOST_DAYS = 400;

const by = z.enum(LEADER_KINDS).describe('Whose sums are compared.');
const measure = z
  .enum(LEADER_MEASURES)
  .describe('What they are ordered by. `paid` counts users whose first attributed payment is in the range.');

const leader = z
  .object({
    affiliateId: idOf('affiliate'),
    affiliateName: nameOfAffiliate,
    linkId: orNull(idOf('link'), 'Null with `by=affiliate`.'),
    slug: orNull(textField('spring', 'The code of the link.'), 'Null with `by=affiliate`.'),
    ...funnelCounts,
    paid: count('Users whose first attributed payment is in the range.'),
    revenueCents: cents(ATTRIBUTED_REVENUE),
    commissionCents: cents('Commissions, net of reversals and corrections.'),
  })
  .meta({ id: 'Leader', description: 'An affiliate or a link with its counts and sums of a range.' });

const leaders = z
  .object({
    from: epochMs('The beginning of the range, inclusive.'),
    to: epochMs('The end of the range, exclusive.'),
    by,
    measure,
    complete: z
      .boolean()
      .describe(
        'Whether all were compared. If not, the list may miss one that was active only early in the range.',
      ),
    leaders: z
      .array(leader)
      .max(MOST_LEADERS)
      .describe('Those with the most first. Those with none are left out.'),
  })
  .meta({ id: 'Leaders', description: 'The affiliates or links with the most of a measure in a range.' });

function presentLeader({ paidUsers, ...row }: Leader) {
  return {
    affiliateId: row.affiliateId,
    affiliateName: row.affiliateName,
    linkId: row.linkId,
    slug: row.slug,
    clicks: row.clicks,
    installs: row.installs,
    identified: row.identified,
    paid: paidUsers,
    revenueCents: row.revenueCents,
    commissionCents: row.commissionCents,
  };
}

export const leaderRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/leaders',
    caller: accountApp('read'),
    operationId: 'listLeaders',
    summary: 'Lists the ten affiliates or links with the most of a measure in a range.',
    description: `Counts a quarter hour if it begins in the range, which has at most ${MOST_DAYS} days.`,
    query: z.object({
      ...fromTo('Inclusive. Defaults to 30 days before `to`.', 'Exclusive. Defaults to now.'),
      by: by.default('affiliate'),
      measure: measure.default('commissions'),
    }),
    response: { status: 200, schema: leaders },
    handler: async ({ deps, app, query, now }) => {
      const to = query.to ?? now;
      const from = query.from ?? Math.max(0, to - DEFAULT_SPAN_MS);
      if (from >= to) throw invalidField('from', 'Must be before `to`.');
      if (to - from > MOST_DAYS * DAY_MS)
        throw invalidField('from', `Must be at most ${MOST_DAYS} days before \`to\`.`);
      const request = { by: query.by, measure: query.measure, from, to };
      const { rows, isComplete } = await readLeaders(deps.sql, app.id, request);
      return { ...request, complete: isComplete, leaders: rows.map(presentLeader) };
    },
  }),
];
