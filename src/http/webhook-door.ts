import { createHash } from 'node:crypto';
import { acceptDelivery, findDoorSecrets, recordRefusedDelivery } from '../db/deliveries.ts';
import { newId } from '../db/new-id.ts';
import { secretContext } from '../db/webhook-secrets.ts';
import { isId } from '../domain/ids.ts';
import type { CommissionId, EventId } from '../domain/ids.ts';
import { providers } from '../providers/index.ts';
import { keepProof } from '../providers/proof.ts';
import type { ProviderName, SignedRequest } from '../providers/provider.ts';
import type { HttpDeps } from './deps.ts';

/** What a provider is told. `refused` is one and the same answer whatever was wrong, so that nothing can be probed. */
export type DoorAnswer =
  | { readonly kind: 'done'; readonly eventId: EventId; readonly commissionId: CommissionId | null }
  | { readonly kind: 'pending'; readonly eventId: EventId }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'refused' };

/** When the answer is due. The tightest provider gives up after 5 s. */
const ANSWER_WITHIN_MS = 2_500;

/**
 * Takes one webhook: checks its signature over the raw bytes, keeps the delivery, starts its workflow and waits for the
 * outcome. After the delivery is kept nothing can lose it, so from there on the answer is never an error. Throws
 * `DatabaseUnavailable` when it could not be kept: the provider is then asked to send it again.
 */
export async function receiveWebhook(
  deps: Pick<HttpDeps, 'sql' | 'secretBox' | 'work' | 'logger'>,
  providerName: ProviderName,
  customerAppId: string,
  request: SignedRequest,
): Promise<DoorAnswer> {
  const { sql, secretBox, work, logger } = deps;
  const answerAt = request.receivedAt + ANSWER_WITHIN_MS;
  if (!isId('app', customerAppId)) return { kind: 'refused' };
  const secrets = await findDoorSecrets(sql, customerAppId, providerName, request.receivedAt);
  if (secrets === null) return { kind: 'refused' };

  const provider = providers[providerName];
  const proving = secrets.find((secret) =>
    provider.verify(
      request,
      secretBox.decrypt(
        Buffer.from(secret.ciphertext),
        secret.encryptionKeyId,
        secretContext(customerAppId, providerName),
      ),
    ),
  );
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
        : 'the signature or token does not match';
    const told = { appId: customerAppId, provider: providerName, reason };
    const recorded = await recordRefusedDelivery(sql, { ...row, reason });
    if (recorded === 'self_test') logger.info({ ...told, msg: 'delivery of a self-test refused' });
    else logger.warn({ ...told, msg: 'delivery refused' });
    return { kind: 'refused' };
  }

  await acceptDelivery(sql, {
    ...row,
    secretId: proving.id,
    proof: keepProof(provider, request, secretBox),
    body: request.body,
  });
  const outcome = await work.processDelivery(row.deliveryId, Math.max(0, answerAt - Date.now()));
  if (outcome === null) return { kind: 'pending', eventId: row.eventId };
  return outcome.status === 'duplicate'
    ? { kind: 'duplicate' }
    : { kind: 'done', eventId: outcome.eventId, commissionId: outcome.commissionId };
}
