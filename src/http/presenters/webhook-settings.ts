import type { WebhookState } from '../../db/webhook-secrets.ts';
import type { AppId } from '../../domain/ids.ts';
import { webhookUrl } from '../../domain/webhook-url.ts';
import { providers } from '../../providers/index.ts';
import type { ProviderName } from '../../providers/index.ts';

/** How an app's webhooks of one provider are set up. Never shows a secret. */
export function presentWebhookState(
  publicUrl: string,
  appId: AppId,
  provider: ProviderName,
  state: WebhookState | undefined,
) {
  const {
    environment = null,
    receivedAt = null,
    signatureValid = null,
    processingStatus = null,
  } = state ?? {};
  return {
    provider,
    url: webhookUrl(publicUrl, provider, appId),
    configured: environment !== null,
    environment,
    setupHint: providers[provider].setupHint,
    lastDelivery:
      receivedAt === null || signatureValid === null || processingStatus === null
        ? null
        : { receivedAt, signatureValid, processingStatus },
  };
}
