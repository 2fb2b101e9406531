import { readTimeseries } from '../../db/timeseries.ts';
import { DAY_MS } from '../../domain/time.ts';
import { hasTooManyPoints, MAX_POINTS } from '../../domain/timeseries.ts';
import { invalidField } from '../errors.ts';
import { presentPoint } from '../presenters/timeseries.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/timeseries.ts';

const DEFAULT_SPAN_MS = 30 * DAY_MS;

function tooManyPoints() {
  return invalidField('interval', `Gives more than ${MAX_POINTS} points: choose a longer one, or less time.`);
}

export const timeseriesRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/timeseries',
    auth: 'account',
    permission: 'read',
    operationId: 'getTimeseries',
    summary: 'Shows what happened in each hour, day, week or month of a time zone.',
    query: schemas.timeseriesQuery,
    response: { status: 200, schema: schemas.timeseries },
    handler: async ({ deps, app, query, now }) => {
      const { interval, timezone } = query;
      const to = query.to ?? now;
      const from = query.from ?? Math.max(0, to - DEFAULT_SPAN_MS);
      if (from >= to) throw invalidField('from', 'Must be before `to`.');
      if (hasTooManyPoints(from, to, interval)) throw tooManyPoints();
      const points = await readTimeseries(deps.sql, app.id, {
        from,
        to,
        interval,
        timezone: timezone.inDatabase,
        affiliateId: query.affiliateId ?? null,
        linkId: query.linkId ?? null,
      });
      if (points === undefined) throw invalidField('timezone', 'Is not known here.');
      if (points.length > MAX_POINTS) throw tooManyPoints();
      return { from, to, interval, timezone: timezone.name, points: points.map(presentPoint) };
    },
  }),
];
