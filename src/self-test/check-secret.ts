import { SecretUnreadable } from '../config/secret-box.ts';
import type { WebhookSecretRow } from '../db/webhook-secrets.ts';
import { openWebhookSecret } from '../db/webhook-secrets.ts';
import { providers } from '../providers/index.ts';
import type { ProviderTest } from './provider-test.ts';
import { failed, passed } from './steps.ts';

/** Returns the newest secret, with which a provider signs, in plain text; null when it is missing or wrong. */
export function checkSecret(test: ProviderTest, [newest]: readonly WebhookSecretRow[]): string | null {
  if (newest === undefined) return null;
  const { session, provider } = test;
  let secret: string;
  try {
    secret = openWebhookSecret(session.deps.secretBox, { appId: session.appId, provider }, newest);
  } catch (error) {
    if (!(error instanceof SecretUnreadable)) throw error;
    test.add(
      failed(
        'secret',
        `The stored secret cannot be decrypted: ${error.message}.`,
        `Have the operator restore the missing key in SECRETS_KEY, or set the secret again ${test.secretSetting}.`,
      ),
    );
    return null;
  }
  const problem = providers[provider].secretProblem(secret);
  // Webhooks of other providers state their environment themselves.
  const environment =
    providers[provider].environmentFrom === 'secret' ? `, for the ${newest.environment} environment` : '';
  const isFine = test.add(
    problem === null
      ? passed('secret', `A secret of the expected form is set${environment}.`)
      : failed(
          'secret',
          `The stored secret cannot be correct. ${problem}`,
          `Set the webhook's signing secret from ${test.title}, not an API key, ${test.secretSetting}.`,
        ),
  );
  return isFine ? secret : null;
}
