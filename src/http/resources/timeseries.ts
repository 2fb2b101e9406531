import * as z from 'zod';
import { readTimeseries } from '../../db/timeseries.ts';
import type { TimeseriesPoint, TimeseriesRequest } from '../../db/timeseries.ts';
import type { Sql } from '../../db/sql.ts';
import type { AppId } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/time.ts';
import { hasTooManyPoints, MAX_POINTS, TIMESERIES_INTERVALS } from '../../domain/timeseries.ts';
import { invalidField } from '../errors.ts';
import { ATTRIBUTED_REVENUE, cents, count, epochMs, funnelCounts, inputId, textField } from '../fields.ts';
import { fromTo } from '../instants.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';
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

/** The range and the resolution of a time series in a query. */
export const seriesQuery = z.object({
  ...fromTo('Inclusive. Defaults to 30 days before `to`.', 'Exclusive. Defaults to now.'),
  interval: interval.default('day'),
  timezone,
});

const timeseriesQuery = seriesQuery.extend({
  affiliateId: inputId('affiliate').optional(),
  linkId: inputId('link').optional(),
});

/** The fields of a point that founders and creators see. */
export const seriesPoint = z.object({
  at: z.int().describe('The start of the point in the time zone. Epoch milliseconds.'),
  ...funnelCounts,
  paid: count('Users whose first attributed payment is in this point.'),
  commissionCents: cents('Commissions, net of reversals and corrections.'),
});

/** Returns the schema of a time series. */
export function seriesOf<T extends z.ZodType>(point: T) {
  return z.object({
    from: epochMs('The beginning of the range, inclusive.'),
    to: epochMs('The end of the range, exclusive.'),
    interval,
    timezone: textField('Europe/Berlin', TIMEZONE),
    points: z.array(point).max(MAX_POINTS).describe('In order, without gaps.'),
  });
}

const timeseries = seriesOf(seriesPoint.extend({ revenueCents: cents(ATTRIBUTED_REVENUE) })).meta({
  id: 'Timeseries',
  description: 'Counts and sums per hour, day, week or month.',
});

/** Presents the fields of a point that founders and creators see. */
export function presentSeriesPoint(point: TimeseriesPoint) {
  const { at, clicks, installs, identified, paidUsers, commissionCents } = point;
  return { at, clicks, installs, identified, paid: paidUsers, commissionCents };
}

function presentPoint(point: TimeseriesPoint) {
  return { ...presentSeriesPoint(point), revenueCents: point.revenueCents };
}

function tooManyPoints() {
  return invalidField(
    'interval',
    `Results in more than ${MAX_POINTS} points. Choose a longer interval or a shorter time range.`,
  );
}

/** Reads the time series of a query. `ids` says whose. Throws 400 for too many points and an unknown time zone. */
export async function readSeries<P>(
  sql: Sql,
  appId: AppId,
  query: z.output<typeof seriesQuery>,
  ids: Pick<TimeseriesRequest, 'affiliateId' | 'linkId'>,
  { now, present }: { readonly now: number; readonly present: (point: TimeseriesPoint) => P },
) {
  const { interval: length, timezone: zone } = query;
  const to = query.to ?? now;
  const from = query.from ?? Math.max(0, to - DEFAULT_SPAN_MS);
  if (from >= to) throw invalidField('from', 'Must be before `to`.');
  if (hasTooManyPoints(from, to, length)) throw tooManyPoints();
  const request = { from, to, interval: length, timezone: zone.inDatabase, ...ids };
  const points = await readTimeseries(sql, appId, request);
  if (points === undefined)
    throw invalidField('timezone', 'The database does not know this time zone. Choose another one.');
  if (points.length > MAX_POINTS) throw tooManyPoints();
  return { from, to, interval: length, timezone: zone.name, points: points.map(present) };
}

export const timeseriesRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/timeseries',
    caller: accountApp('read'),
    operationId: 'getTimeseries',
    summary: 'Retrieves counts and sums per hour, day, week or month.',
    description: `Points begin at the boundaries of the time zone. Points without data are zero. At most ${MAX_POINTS} points.`,
    query: timeseriesQuery,
    response: { status: 200, schema: timeseries },
    handler: async ({ deps, app, query, now }) => {
      const ids = { affiliateId: query.affiliateId ?? null, linkId: query.linkId ?? null };
      return await readSeries(deps.sql, app.id, query, ids, { now, present: presentPoint });
    },
  }),
];
