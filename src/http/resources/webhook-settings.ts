import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import {
  listWebhookStates,
  MAX_LIVE_SECRETS,
  openWebhookSecret,
  putWebhookSecret,
  secretContext,
} from '../../db/webhook-secrets.ts';
import type { WebhookSecretRow, WebhookState } from '../../db/webhook-secrets.ts';
import { SecretUnreadable } from '../../config/secret-box.ts';
import type { SecretBox } from '../../config/secret-box.ts';
import type { AppId } from '../../domain/ids.ts';
import { DEFAULT_GRACE_SECONDS } from '../../domain/keys.ts';
import { webhookUrl } from '../../domain/webhook-url.ts';
import { isProviderName, PROVIDER_NAMES, providers } from '../../providers/index.ts';
import type { ProviderName } from '../../providers/index.ts';
import { joinSignedToken, splitSignedToken } from '../../providers/shared/signed-token.ts';
import type { SignedToken } from '../../providers/shared/signed-token.ts';
import { invalidField, notFound } from '../errors.ts';
import * as enums from '../enum-fields.ts';
import { epochMs, graceSeconds, orNull, isSignatureValid, textField } from '../fields.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

const setupHint = textField(
  'Integrations, Webhooks: paste the URL and the secret.',
  "Where to enter the URL and the secret in the provider's dashboard.",
);
const url = textField(
  'https://api.example.com/webhooks/revenuecat/app_01',
  'The URL that the provider sends to.',
);

/** A secret is sent in a header or keys a signature: printable ASCII without surrounding spaces. */
const secret = z
  .string()
  .max(500)
  .regex(/^[!-~]([ -~]*[!-~])?$/, 'Must be printable ASCII without surrounding spaces.')
  .meta({
    description: 'The secret or token that proves the webhooks of the provider.',
    examples: ['whsec_Zm9yIGRvY3VtZW50YXRpb24gb25seSA3'],
  });

const signed = z
  .literal(true)
  .describe('Present if webhooks under the current secret need a signature of the body beside the token.');

const secretInput = z
  .strictObject({
    secret: secret.optional(),
    signingSecret: orNull(
      secret.meta({
        description:
          "The signing secret of RevenueCat's webhooks. As soon as no previous secret is valid, a webhook needs the token and a signature. Without `secret`, the token stays. If absent, the signing secret stays.",
        examples: ['rc_signing_only_for_documentation_4f1'],
      }),
      'Null to need the token only.',
    ).optional(),
    environment: enums.environment.optional(),
    graceSeconds: graceSeconds.optional(),
  })
  .meta({ id: 'WebhookSecretInput', description: 'The secret to set.' });

const storedSecret = z
  .object({
    provider: enums.provider,
    url,
    secret: textField(
      'generated-secret',
      'The new secret. Returned only once, and only if the service generated it.',
    ).optional(),
    setupHint,
    signed: signed.optional(),
    previousSecretExpiresAt: orNull(
      epochMs('Until when the previous secret is valid.'),
      'Null if there is none.',
    ),
  })
  .meta({ id: 'WebhookSecret', description: 'The URL and secret of a provider.' });

/** The URL and the state of a provider. */
export const webhookState = z.object({
  provider: enums.provider,
  url,
  configured: z.boolean().describe('Whether it has a secret.'),
  environment: orNull(enums.environment, 'Null if it has no secret.'),
  signed: signed.optional(),
  setupHint,
  lastDelivery: orNull(
    z
      .object({
        receivedAt: epochMs('When the webhook arrived.'),
        signatureValid: isSignatureValid,
        processingStatus: enums.processingStatus,
      })
      .describe('The latest webhook, also a refused one.'),
    'Null if none has arrived.',
  ),
  lastAcceptedAt: orNull(
    epochMs('When the latest webhook arrived that was not refused.'),
    'Null if none was accepted.',
  ),
});

const webhookSettings = z
  .object({ items: z.array(webhookState).describe('One per provider.') })
  .meta({ id: 'WebhookSettings', description: 'The URL and status of each provider.' });

/** Returns the URL and the state of a provider. */
export function presentState(
  publicUrl: string,
  appId: AppId,
  name: ProviderName,
  state: WebhookState | undefined,
) {
  const { receivedAt = null, signatureValid = null, processingStatus = null } = state ?? {};
  return {
    provider: name,
    url: webhookUrl(publicUrl, name, appId),
    configured: (state?.environment ?? null) !== null,
    environment: state?.environment ?? null,
    ...(state?.signed == null ? {} : { signed: state.signed }),
    setupHint: providers[name].setupHint,
    lastDelivery:
      receivedAt === null || signatureValid === null || processingStatus === null
        ? null
        : { receivedAt, signatureValid, processingStatus },
    lastAcceptedAt: state?.acceptedAt ?? null,
  };
}

/** The providers whose secret the service can generate. */
const GENERATED_FOR = PROVIDER_NAMES.filter((name) => providers[name].scheme === 'static_token')
  .map((name) => providers[name].title)
  .join(' and ');

interface GivenSecret {
  readonly secret?: string | undefined;
  readonly signingSecret?: string | null | undefined;
}

/** The secret to store, and the part of the response that shows it. A given secret is never shown. */
interface ChosenSecret {
  readonly stored: string;
  readonly signed: true | null;
  readonly shown: { readonly secret?: string; readonly signed?: true };
}

/** What is stored until now of a provider that may sign its webhooks. */
interface CurrentSecret {
  readonly row: WebhookSecretRow;
  /** Null if it can't be decrypted. */
  readonly texts: SignedToken | null;
}

/** Returns what a given secret, or a generated one, is stored as. What the call does not name stays as it is. */
function chooseSecret(name: ProviderName, given: GivenSecret, current: CurrentSecret | null): ChosenSecret {
  const { title, scheme, bodySignature, secretProblem } = providers[name];
  if (given.signingSecret !== undefined && bodySignature === undefined) {
    throw invalidField('signingSecret', `${title} has no second secret. Send \`secret\` only.`);
  }
  if (given.secret === undefined && scheme !== 'static_token') {
    throw invalidField('secret', `Required for ${title}, which generates the secret. Copy it from there.`);
  }
  const keepsToken = given.secret === undefined && given.signingSecret !== undefined && current !== null;
  const keepsSignature = given.signingSecret === undefined && current?.row.signed === true;
  if (keepsToken && current.texts === null) {
    throw invalidField('secret', 'The stored token cannot be decrypted, so it cannot stay. Send it again.');
  }
  if (keepsSignature && current.texts === null) {
    throw invalidField(
      'signingSecret',
      'The stored one cannot be decrypted, so it cannot stay. Send it again, or null.',
    );
  }
  const token =
    given.secret ?? (keepsToken ? current.texts?.token : null) ?? randomBytes(32).toString('base64url');
  const problem = given.secret === undefined ? null : secretProblem(token);
  if (problem !== null) throw invalidField('secret', problem);
  const signingSecret = keepsSignature
    ? (current.texts?.signingSecret ?? null)
    : (given.signingSecret ?? null);
  const signingProblem =
    given.signingSecret == null ? null : (bodySignature?.secretProblem(given.signingSecret) ?? null);
  if (signingProblem !== null) throw invalidField('signingSecret', signingProblem);
  return {
    stored: joinSignedToken({ token, signingSecret }),
    signed: signingSecret === null ? null : true,
    shown: {
      ...(given.secret === undefined && !keepsToken ? { secret: token } : {}),
      ...(signingSecret === null ? {} : { signed: true }),
    },
  };
}

/** Returns the current secret in clear. */
function readSecret(
  secretBox: SecretBox,
  owner: { readonly appId: AppId; readonly provider: ProviderName },
  row: WebhookSecretRow,
): CurrentSecret {
  try {
    return { row, texts: splitSignedToken(openWebhookSecret(secretBox, owner, row)) };
  } catch (error) {
    if (error instanceof SecretUnreadable) return { row, texts: null };
    throw error;
  }
}

export const webhookSettingsRoutes = [
  route({
    method: 'GET',
    path: '/apps/:appId/webhooks',
    caller: accountApp('setup'),
    operationId: 'getWebhookSettings',
    summary: 'Lists the webhook URL and status of each billing provider.',
    description: 'Never returns a secret.',
    response: { status: 200, schema: webhookSettings },
    handler: async ({ deps, app }) => {
      await deps.refusals.flush();
      const states = await listWebhookStates(deps.sql, app.id, PROVIDER_NAMES);
      return {
        items: PROVIDER_NAMES.map((name) => {
          const state = states.find((candidate) => candidate.provider === name);
          return presentState(deps.publicUrl, app.id, name, state);
        }),
      };
    },
  }),

  route({
    method: 'PUT',
    path: '/apps/:appId/webhooks/:provider/secret',
    caller: accountApp('setup'),
    operationId: 'putWebhookSecret',
    summary: "Sets a provider's webhook secret.",
    description: `The previous secret stays valid for the grace period. At most ${MAX_LIVE_SECRETS} are valid at once: one more ends the oldest. For ${GENERATED_FOR} a secret is generated if none is sent.`,
    body: secretInput,
    response: { status: 200, schema: storedSecret },
    handler: async ({ deps, app, params, body, now }) => {
      const name = params['provider'] ?? '';
      if (!isProviderName(name)) throw notFound();
      const { title, environmentFrom } = providers[name];
      if (environmentFrom === 'secret' && body.environment === undefined) {
        throw invalidField('environment', `Required for ${title}, whose webhooks do not state it.`);
      }
      const maySign = providers[name].bodySignature !== undefined;
      const owner = { appId: app.id, provider: name };
      const place = {
        ...owner,
        keyIds: deps.secretBox.keyIds,
        at: now,
        previousEndsAt: now + (body.graceSeconds ?? DEFAULT_GRACE_SECONDS) * 1000,
      };
      const { chosen, previousExpiresAt } = await putWebhookSecret(deps.sql, place, (row) => {
        const current = maySign && row !== null ? readSecret(deps.secretBox, owner, row) : null;
        const { stored, signed: signs, shown } = chooseSecret(name, body, current);
        const kept = body.signingSecret === undefined ? undefined : current?.row.environment;
        return {
          environment: body.environment ?? kept ?? 'production',
          signed: signs,
          ...deps.secretBox.encrypt(stored, secretContext(app.id, name)),
          shown,
        };
      });
      return {
        provider: name,
        url: webhookUrl(deps.publicUrl, name, app.id),
        ...chosen.shown,
        setupHint: providers[name].setupHint,
        previousSecretExpiresAt: previousExpiresAt,
      };
    },
  }),
];
