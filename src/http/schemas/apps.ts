import * as z from 'zod';
import { isSubdomain } from '../../domain/slugs.ts';
import { anyId, epochMs, graceSeconds, label, rateBps } from './common.ts';

const attributionWindowDays = z.int().min(1).max(365);
const holdPeriodDays = z.int().min(0).max(365);
const deferredWindowMinutes = z.int().min(0).max(1440);
const linkSubdomain = z
  .string()
  .refine(isSubdomain, 'Must be a DNS label: a-z, 0-9 and -, at most 63 characters.');

export const appSummary = z.object({ id: anyId, name: z.string() });

export const app = z.object({
  id: anyId,
  name: z.string(),
  commissionRateBps: rateBps,
  attributionWindowDays,
  holdPeriodDays,
  deferredWindowMinutes,
  linkSubdomain: z.string(),
});

/** The body of `PATCH /apps/:appId/settings`. */
export const settingsPatch = z.strictObject({
  name: label.optional(),
  commissionRateBps: rateBps.optional(),
  attributionWindowDays: attributionWindowDays.optional(),
  holdPeriodDays: holdPeriodDays.optional(),
  deferredWindowMinutes: deferredWindowMinutes.optional(),
  linkSubdomain: linkSubdomain.optional(),
});

/** The body of `POST /apps`. */
export const newApp = settingsPatch.extend({ name: label });

export const createdApp = app.extend({ sdkKey: z.string().describe('shown once') });

export const rotateSdkKey = z.strictObject({ graceSeconds: graceSeconds.optional() });

export const rotatedSdkKey = z.object({ sdkKey: z.string(), previousKeyExpiresAt: epochMs });
