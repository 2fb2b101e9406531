import { createHash } from 'node:crypto';
import { acceptDelivery, findActiveWebhookSecrets, recordRefusedDelivery } from '../db/deliveries.ts';
import type { WebhookSecretRow } from '../db/deliveries.ts';
import { newId } from '../db/new-id.ts';
import { secretContext } from '../db/webhook-secrets.ts';
import { isId } from '../domain/ids.ts';
import type { CommissionId, EventId } from '../domain/ids.ts';
import { providers } from '../providers/index.ts';
import { proofOf, SIGNED_AT_ANOTHER_TIME } from '../providers/proof.ts';
import type { ProviderName } from '../providers/index.ts';
import type { Provider, SignedRequest } from '../providers/provider.ts';
import type { HttpDeps } from './deps.ts';

/** What a provider is told. `refused` is one and the same answer whatever was wrong, so that nothing can be probed. */
export type WebhookResult =
  | { readonly kind: 'done'; readonly eventId: EventId; readonly commissionId: CommissionId | null }
  | { readonly kind: 'pending'; readonly eventId: EventId }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'refused' };

/** Why a request is refused whose signature is right; null where it is not. Only its own founder reads it. */
function staleness(provider: Provider, request: SignedRequest, secrets: readonly string[]): string | null {
  const at = provider.signedAt?.(request) ?? null;
  if (at === null) return null;
  const isRight = secrets.some((secret) => provider.verify({ ...request, receivedAt: at }, secret));
  const seconds = Math.round(Math.abs(request.receivedAt - at) / 1000);
  return isRight
    ? `${SIGNED_AT_ANOTHER_TIME} ${seconds} s ${at < request.receivedAt ? 'before' : 'after'} this server's time: synchronize its clock`
    : null;
}

/** When the answer is due. The tightest provider gives up after 5 s. */
const ANSWER_WITHIN_MS = 2_500;

/**
 * Takes one webhook: checks its signature over the raw bytes, keeps the delivery, starts its workflow and waits for the
 * outcome. After the delivery is kept nothing can lose it, so from there on the answer is never an error. Throws
 * `DatabaseUnavailable` when it could not be kept, and `SecretUnreadable` when a key is missing that may prove it: the
 * provider is then asked to send it again.
 */
export async function receiveWebhook(
  deps: Pick<HttpDeps, 'sql' | 'secretBox' | 'work' | 'logger'>,
  providerName: ProviderName,
  customerAppId: string,
  request: SignedRequest,
): Promise<WebhookResult> {
  const { sql, secretBox, work, logger } = deps;
  const answerAt = request.receivedAt + ANSWER_WITHIN_MS;
  if (!isId('app', customerAppId)) return { kind: 'refused' };
  const secrets = await findActiveWebhookSecrets(sql, customerAppId, providerName, request.receivedAt);
  if (secrets === null) return { kind: 'refused' };

  const provider = providers[providerName];
  const open = (secret: WebhookSecretRow) =>
    secretBox.decrypt(
      Buffer.from(secret.ciphertext),
      secret.encryptionKeyId,
      secretContext(customerAppId, providerName),
    );
  // One that can't be opened comes last and throws: what no other proves may be signed with it, and has to come again.
  const canOpen = (secret: WebhookSecretRow) => Number(secretBox.keyIds.includes(secret.encryptionKeyId));
  const proving = secrets
    .toSorted((a, b) => canOpen(b) - canOpen(a))
    .find((secret) => provider.verify(request, open(secret)));
  const row = {
    deliveryId: newId('delivery'),
    eventId: newId('event'),
    appId: customerAppId,
    provider: providerName,
    receivedAt: request.receivedAt,
    bodySha256: createHash('sha256').update(request.body).digest(),
  };
  if (proving === undefined) {
    const reason =
      secrets.length === 0
        ? 'no webhook secret is set for this provider'
        : (staleness(provider, request, secrets.map(open)) ?? 'the signature or token does not match');
    const told = { appId: customerAppId, provider: providerName, reason };
    const recorded = await recordRefusedDelivery(sql, { ...row, reason });
    if (recorded === 'self_test') logger.info({ ...told, msg: 'delivery of a self-test refused' });
    else logger.warn({ ...told, msg: 'delivery refused' });
    return { kind: 'refused' };
  }

  await acceptDelivery(sql, {
    ...row,
    secretId: proving.id,
    proof: proofOf(provider, request, secretBox),
    body: request.body,
  });
  const outcome = await work.processDelivery(row.deliveryId, Math.max(0, answerAt - Date.now()));
  if (outcome === null) return { kind: 'pending', eventId: row.eventId };
  return outcome.status === 'duplicate'
    ? { kind: 'duplicate' }
    : { kind: 'done', eventId: outcome.eventId, commissionId: outcome.commissionId };
}
