import * as z from 'zod';
import { MAX_POINTS, TIMESERIES_INTERVALS } from '../../domain/timeseries.ts';
import { databaseTimeZone } from '../time-zone.ts';
import { cents, count, epochMs, fromTo, givenId, textLike } from './common.ts';

const interval = z.enum(TIMESERIES_INTERVALS);

/** A time zone as it was asked for, and as the database knows it. */
const timezone = z
  .string()
  .meta({ description: 'a name of the IANA time zone database', examples: ['Europe/Berlin'] })
  .default('UTC')
  .transform((name, context) => {
    const inDatabase = databaseTimeZone(name);
    if (inDatabase !== undefined) return { name, inDatabase };
    context.addIssue('Must be a name of the IANA time zone database, as Europe/Berlin.');
    return z.NEVER;
  });

export const timeseriesQuery = z.object({
  ...fromTo('included; 30 days before `to` by default', 'not included; now by default'),
  interval: interval.default('day'),
  timezone,
  affiliateId: givenId('affiliate').optional(),
  linkId: givenId('link').optional(),
});

export const timeseries = z.object({
  from: epochMs,
  to: epochMs,
  interval,
  timezone: textLike('Europe/Berlin'),
  points: z
    .array(
      z.object({
        at: z.int().describe('where the point begins in the time zone, epoch milliseconds'),
        clicks: count,
        installs: count,
        identified: count,
        paid: count.describe('users whose first attributed payment was then'),
        revenueCents: cents,
        commissionCents: cents,
      }),
    )
    .max(MAX_POINTS),
});
