import * as z from 'zod';
import { ENVIRONMENTS } from '../../domain/events.ts';
import { PROVIDER_NAMES } from '../../providers/provider.ts';
import { epochMs, graceSeconds } from './common.ts';

const provider = z.enum(PROVIDER_NAMES);
const environment = z.enum(ENVIRONMENTS);

/** A secret travels in a header, or keys a signature: printable ASCII without spaces around it. */
const secret = z
  .string()
  .min(8)
  .max(500)
  .regex(/^[!-~]([ -~]*[!-~])?$/, 'Must be printable ASCII without spaces around it.');

/** The body of `PUT /apps/:appId/webhooks/:provider/secret`. */
export const putSecret = z.strictObject({
  secret: secret.optional(),
  environment: environment.optional(),
  graceSeconds: graceSeconds.optional(),
});

export const secretPut = z.object({
  provider,
  url: z.string(),
  secret: z.string().optional().describe('shown once, and only when it was made here'),
  previousSecretExpiresAt: epochMs.nullable(),
});

export const webhookSettings = z.object({
  items: z.array(
    z.object({
      provider,
      url: z.string(),
      configured: z.boolean(),
      environment: environment.nullable(),
      setupHint: z.string().nullable(),
      lastDelivery: z
        .object({ receivedAt: epochMs, signatureValid: z.boolean(), processingStatus: z.string() })
        .nullable(),
    }),
  ),
});
