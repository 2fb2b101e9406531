import { randomBytes } from 'node:crypto';
import { listWebhookStates, putWebhookSecret, secretContext } from '../../db/webhook-secrets.ts';
import { DEFAULT_GRACE_SECONDS } from '../../domain/keys.ts';
import { webhookUrl } from '../../domain/webhook-url.ts';
import { isProviderName, PROVIDER_NAMES, providers } from '../../providers/index.ts';
import type { ProviderName } from '../../providers/index.ts';
import { invalidField, notFound } from '../errors.ts';
import { presentWebhookState } from '../presenters/webhook-settings.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/webhook-settings.ts';

/** The secret to keep, and the part of it that is told: only one that was made here, and only now. */
function secretOf(
  provider: ProviderName,
  given: string | undefined,
): { secret: string; told: { secret?: string } } {
  if (given !== undefined) return { secret: given, told: {} };
  if (providers[provider].scheme !== 'static_token') {
    throw invalidField('secret', `${providers[provider].title} generates the secret: copy it from there.`);
  }
  const secret = randomBytes(32).toString('base64url');
  return { secret, told: { secret } };
}

export const webhookSettingsRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/webhooks',
    auth: 'account',
    permission: 'setup',
    operationId: 'getWebhookSettings',
    summary: 'Shows for each provider where it posts, and whether it is set up.',
    response: { status: 200, schema: schemas.webhookSettings },
    handler: async ({ deps, app }) => {
      const states = await listWebhookStates(deps.sql, app.id, PROVIDER_NAMES);
      return {
        items: PROVIDER_NAMES.map((provider) => {
          const state = states.find((candidate) => candidate.provider === provider);
          return presentWebhookState(deps.publicUrl, app.id, provider, state);
        }),
      };
    },
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/webhooks/:provider/secret',
    auth: 'account',
    permission: 'setup',
    operationId: 'putWebhookSecret',
    summary: "Sets a provider's webhook secret; the one before stays valid for a grace period.",
    body: schemas.putSecret,
    response: { status: 200, schema: schemas.secretPut },
    handler: async ({ deps, app, params, body, now }) => {
      const provider = params['provider'] ?? '';
      if (!isProviderName(provider)) throw notFound();
      const { title, environmentFrom } = providers[provider];
      if (environmentFrom === 'secret' && body.environment === undefined) {
        throw invalidField(
          'environment',
          `Required for ${title}, whose webhooks do not name their environment.`,
        );
      }
      const { secret, told } = secretOf(provider, body.secret);
      const fault = providers[provider].secretProblem?.(secret) ?? null;
      if (fault !== null) throw invalidField('secret', fault);
      const previousSecretExpiresAt = await putWebhookSecret(deps.sql, {
        appId: app.id,
        provider,
        environment: body.environment ?? 'production',
        ...deps.secretBox.encrypt(secret, secretContext(app.id, provider)),
        keyIds: deps.secretBox.keyIds,
        at: now,
        previousEndsAt: now + (body.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000,
      });
      return {
        provider,
        url: webhookUrl(deps.publicUrl, provider, app.id),
        ...told,
        setupHint: providers[provider].setupHint,
        previousSecretExpiresAt,
      };
    },
  }),
];
