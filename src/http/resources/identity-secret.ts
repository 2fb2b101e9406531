import * as z from 'zod';
import {
  findIdentitySecrets,
  identitySecretContext,
  rotateIdentitySecret,
} from '../../db/identity-secrets.ts';
import { DEFAULT_GRACE_SECONDS } from '../../domain/keys.ts';
import { epochMs, graceSeconds, orNull, textField } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const SECRET_BYTES = 32;

const secret = textField(
  '4FvL9mJq…',
  "The key of the HMAC. It belongs on the app's server only, never in the app itself.",
);
const previousSecretExpiresAt = orNull(
  epochMs('Until when the previous secret is valid.'),
  'Null if there is none.',
);

export const identitySecretRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/identity-secret',
    caller: accountApp('setup'),
    operationId: 'getIdentitySecret',
    summary: "Retrieves the secret with which the app's server signs user ids.",
    description: '`secret` is null until the first rotation creates one.',
    response: {
      status: 200,
      schema: z
        .object({
          secret: orNull(secret, 'Null until the first rotation creates one.'),
          previousSecretExpiresAt,
        })
        .meta({ id: 'IdentitySecret', description: 'The secret, or null if none was created.' }),
    },
    handler: async ({ deps, app }) => {
      const stored = await findIdentitySecrets(deps.sql, app.id);
      if (stored === undefined) return { secret: null, previousSecretExpiresAt: null };
      const { ciphertext, encryptionKeyId } = stored.current;
      return {
        secret: deps.secretBox.decrypt(ciphertext, encryptionKeyId, identitySecretContext(app.id)),
        previousSecretExpiresAt: stored.previous?.expiresAt ?? null,
      };
    },
  }),

  route({
    method: 'POST',
    path: '/apps/:appId/identity-secret/rotate',
    caller: accountApp('setup'),
    operationId: 'rotateIdentitySecret',
    summary: "Creates or rotates the secret with which the app's server signs user ids.",
    description:
      'The previous secret stays valid for the grace period. An app has at most two valid secrets: the one before the previous ends at once.',
    body: z.strictObject({ graceSeconds: graceSeconds.optional() }),
    response: {
      status: 200,
      schema: z
        .object({ secret, previousSecretExpiresAt })
        .meta({ id: 'NewIdentitySecret', description: 'The new secret, and when the previous one ends.' }),
    },
    handler: async ({ deps, app, idGenerator, body, now }) => {
      const id = idGenerator.id('secret');
      const created = idGenerator.bytes(SECRET_BYTES).toString('base64url');
      const endsAt = await rotateIdentitySecret(
        deps.sql,
        {
          id,
          appId: app.id,
          ...deps.secretBox.encrypt(created, identitySecretContext(app.id)),
          previousEndsAt: now + (body.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000,
        },
        deps.secretBox,
      );
      return { secret: created, previousSecretExpiresAt: endsAt };
    },
  }),
];
