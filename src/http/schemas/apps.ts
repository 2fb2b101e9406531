import * as z from 'zod';
import { isSubdomain } from '../../domain/slugs.ts';
import { epochMs, graceSeconds, idOf, label, rateBps, textLike } from './common.ts';

const name = label.meta({ examples: ['My app'] });
const attributionWindowDays = z
  .int()
  .min(1)
  .max(365)
  .meta({ description: 'days from click (or code) to first open', examples: [30] });
const holdPeriodDays = z
  .int()
  .min(0)
  .max(365)
  .meta({ description: 'days from purchase until a commission may be paid', examples: [30] });
const deferredWindowMinutes = z
  .int()
  .min(0)
  .max(1440)
  .meta({ description: 'minutes from click to an install without a link; 0 is off', examples: [60] });
const linkSubdomain = z
  .string()
  .refine(isSubdomain, 'Must be a DNS label: a-z, 0-9 and -, at most 63 characters.')
  .meta({ pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$', examples: ['my-app'] });

const sdkKey = textLike('pk_live_…', 'shown once');

export const appSummary = z.object({ id: idOf('app'), name: textLike('My app') });

export const app = z.object({
  id: idOf('app'),
  name: textLike('My app'),
  commissionRateBps: rateBps,
  attributionWindowDays,
  holdPeriodDays,
  deferredWindowMinutes,
  linkSubdomain: textLike('my-app'),
});

/** The body of `PATCH /apps/:appId/settings`. */
export const settingsPatch = z.strictObject({
  name: name.optional(),
  commissionRateBps: rateBps.optional(),
  attributionWindowDays: attributionWindowDays.optional(),
  holdPeriodDays: holdPeriodDays.optional(),
  deferredWindowMinutes: deferredWindowMinutes.optional(),
  linkSubdomain: linkSubdomain.optional(),
});

/** The body of `POST /apps`. */
export const newApp = settingsPatch.extend({ name });

export const createdApp = app.extend({ sdkKey });

export const rotateSdkKey = z.strictObject({ graceSeconds: graceSeconds.optional() });

export const rotatedSdkKey = z.object({ sdkKey, previousKeyExpiresAt: epochMs });
