import type { CodeInUse } from '../db/code-arrivals.ts';
import { findActiveWebhookSecrets } from '../db/webhook-secrets.ts';
import { providers } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import { checkPublicAddress, findOwnAddress } from './check-address.ts';
import { checkAccepted, checkTamperedRefused } from './check-delivery.ts';
import { checkCodeRead } from './check-code.ts';
import { checkProcessed } from './check-processing.ts';
import { checkRealDeliveries } from './check-real-deliveries.ts';
import { checkCountedOnce, checkNoMoney, checkRead, checkRepeatIsDuplicate } from './check-records.ts';
import { checkSecret } from './check-secret.ts';
import { ProviderTest } from './provider-test.ts';
import type { ProviderStep } from './provider-test.ts';
import { OutOfTime } from './session.ts';
import type { SelfTestSession } from './session.ts';
import { advice, allPass, failed } from './steps.ts';

/** The result of one provider. */
export interface ProviderReport {
  readonly provider: ProviderName;
  readonly configured: boolean;
  readonly ok: boolean;
  readonly steps: readonly ProviderStep[];
}

/** Sends a provider's test purchase through the whole pipeline and reports each step. */
export async function checkProvider(
  session: SelfTestSession,
  provider: ProviderName,
  codes: readonly CodeInUse[],
): Promise<ProviderReport> {
  const { sql, now } = session.deps;
  const secrets = (await findActiveWebhookSecrets(sql, session.appId, provider, now())) ?? [];
  const test = new ProviderTest(session, provider, codes);
  if (secrets.length === 0) {
    const fix = `If you use ${providers[provider].title}, set its secret ${test.secretSetting}. The response tells you where to enter the URL and the secret.`;
    const steps = [advice('secret', 'Not configured: no webhook secret is set.', fix)];
    return { provider, configured: false, ok: true, steps };
  }
  try {
    const secret = checkSecret(test, secrets);
    if (secret !== null) await checkPipeline(test, secret);
  } catch (error) {
    if (!(error instanceof OutOfTime)) throw error;
    test.add(
      failed(
        'in_time',
        'The time limit of the self-test was reached before this provider was finished.',
        'Fix what the other steps report, which is what took the time, then run the self-test again.',
      ),
    );
  }
  await checkRealDeliveries(test);
  return { provider, configured: true, ok: allPass(test.steps), steps: test.steps };
}

/** Runs the steps that need a secret, and stops where the later ones can show nothing. */
async function checkPipeline(test: ProviderTest, secret: string): Promise<void> {
  // The address comes first and without a proof: the secret is sent only to an address that reaches this service.
  const baseUrl = (await checkPublicAddress(test)) ? test.session.deps.publicUrl : await findOwnAddress(test);
  if (baseUrl === null) return;
  const accepted = await checkAccepted(test, baseUrl, secret);
  await checkTamperedRefused(test, accepted?.baseUrl ?? baseUrl, secret);
  if (accepted !== null && (await checkProcessed(test, accepted.sent))) {
    await checkRead(test, accepted.purchase);
    await checkCodeRead(test, accepted.purchase);
    await checkRepeatIsDuplicate(test, accepted, secret);
    await checkCountedOnce(test, accepted.purchase);
  }
  await checkNoMoney(test);
}
