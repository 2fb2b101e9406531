import * as z from 'zod';
import { PROCESSING_STATUSES } from '../../db/deliveries.ts';
import { ENVIRONMENTS } from '../../domain/events.ts';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import { epochMs, graceSeconds, textLike } from './common.ts';

const provider = z.enum(PROVIDER_NAMES);
const environment = z.enum(ENVIRONMENTS);
const setupHint = textLike(
  'Integrations, Webhooks: paste the URL and the secret.',
  'where at the provider to fill in what',
);
const url = textLike('https://api.example.com/webhooks/revenuecat/app_01', 'where the provider posts');

/** A secret travels in a header, or keys a signature: printable ASCII without spaces around it. */
const secret = z
  .string()
  .min(8)
  .max(500)
  .regex(/^[!-~]([ -~]*[!-~])?$/, 'Must be printable ASCII without spaces around it.')
  .meta({ examples: ['whsec_of_the_provider'] });

/** The body of `PUT /apps/:appId/webhooks/:provider/secret`. */
export const putSecret = z.strictObject({
  secret: secret.optional(),
  environment: environment.optional(),
  graceSeconds: graceSeconds.optional(),
});

export const secretPut = z.object({
  provider,
  url,
  secret: textLike('made-here', 'shown once, and only when it was made here').optional(),
  setupHint,
  previousSecretExpiresAt: epochMs.nullable(),
});

export const webhookSettings = z.object({
  items: z.array(
    z.object({
      provider,
      url,
      configured: z.boolean(),
      environment: environment.nullable(),
      setupHint,
      lastDelivery: z
        .object({
          receivedAt: epochMs,
          signatureValid: z.boolean(),
          processingStatus: z.enum(PROCESSING_STATUSES),
        })
        .nullable(),
    }),
  ),
});
