import * as z from 'zod';
import { readTimeseries } from '../../db/timeseries.ts';
import type { TimeseriesPoint } from '../../db/timeseries.ts';
import { DAY_MS } from '../../domain/time.ts';
import { hasTooManyPoints, MAX_POINTS, TIMESERIES_INTERVALS } from '../../domain/timeseries.ts';
import { invalidField } from '../errors.ts';
import { ATTRIBUTED_REVENUE, cents, count, epochMs, funnelCounts, inputId, textField } from '../fields.ts';
import { fromTo } from '../instants.ts';
import { appRoute } from '../route.ts';
import { databaseTimeZone } from '../time-zone.ts';

const DEFAULT_SPAN_MS = 30 * DAY_MS;

const interval = z.enum(TIMESERIES_INTERVALS).describe('The length of a point. A `week` begins on Monday.');

const TIMEZONE = 'The time zone in which points begin: a name of the IANA time zone database.';

/** A time zone as requested, and as the database names it. */
const timezone = z
  .string()
  .meta({ description: TIMEZONE, examples: ['Europe/Berlin'] })
  .default('UTC')
  .transform((name, context) => {
    const inDatabase = databaseTimeZone(name);
    if (inDatabase !== undefined) return { name, inDatabase };
    context.addIssue('Must be a name of the IANA time zone database, for example Europe/Berlin.');
    return z.NEVER;
  });

const timeseriesQuery = z.object({
  ...fromTo('Inclusive. Defaults to 30 days before `to`.', 'Exclusive. Defaults to now.'),
  interval: interval.default('day'),
  timezone,
  affiliateId: inputId('affiliate').optional(),
  linkId: inputId('link').optional(),
});

const timeseries = z
  .object({
    from: epochMs('The beginning of the range, inclusive.'),
    to: epochMs('The end of the range, exclusive.'),
    interval,
    timezone: textField('Europe/Berlin', TIMEZONE),
    points: z
      .array(
        z.object({
          at: z.int().describe('The start of the point in the time zone. Epoch milliseconds.'),
          ...funnelCounts,
          paid: count('Users whose first attributed payment is in this point.'),
          revenueCents: cents(ATTRIBUTED_REVENUE),
          commissionCents: cents('Commissions, net of reversals and corrections.'),
        }),
      )
      .max(MAX_POINTS)
      .describe('In order, without gaps.'),
  })
  .meta({ id: 'Timeseries', description: 'Counts and sums per hour, day, week or month.' });

function presentPoint(point: TimeseriesPoint) {
  const { at, clicks, installs, identified, paidUsers, revenueCents, commissionCents } = point;
  return { at, clicks, installs, identified, paid: paidUsers, revenueCents, commissionCents };
}

function tooManyPoints() {
  return invalidField(
    'interval',
    `Results in more than ${MAX_POINTS} points. Choose a longer interval or a shorter time range.`,
  );
}

export const timeseriesRoutes = [
  appRoute({
    method: 'GET',
    path: '/apps/:appId/timeseries',
    permission: 'read',
    operationId: 'getTimeseries',
    summary: 'Retrieves counts and sums per hour, day, week or month.',
    description: `Points begin at the boundaries of the time zone. Points without data are zero. At most ${MAX_POINTS} points.`,
    query: timeseriesQuery,
    response: { status: 200, schema: timeseries },
    handler: async ({ deps, app, query, now }) => {
      const to = query.to ?? now;
      const from = query.from ?? Math.max(0, to - DEFAULT_SPAN_MS);
      if (from >= to) throw invalidField('from', 'Must be before `to`.');
      if (hasTooManyPoints(from, to, query.interval)) throw tooManyPoints();
      const points = await readTimeseries(deps.sql, app.id, {
        from,
        to,
        interval: query.interval,
        timezone: query.timezone.inDatabase,
        affiliateId: query.affiliateId ?? null,
        linkId: query.linkId ?? null,
      });
      if (points === undefined)
        throw invalidField('timezone', 'The database does not know this time zone. Choose another one.');
      if (points.length > MAX_POINTS) throw tooManyPoints();
      const { name } = query.timezone;
      return { from, to, interval: query.interval, timezone: name, points: points.map(presentPoint) };
    },
  }),
];
