import type { SecretBox } from '../config/secret-box.ts';
import { acceptDelivery, sealBody } from '../db/deliveries.ts';
import type { AcceptedDelivery, StoredDelivery } from '../db/deliveries.ts';
import { identifierHasher } from '../db/erased-identifiers.ts';
import type { Sql } from '../db/sql.ts';
import type { WebhookSecretRow } from '../db/webhook-secrets.ts';
import { identifyingTexts, isLargeBody } from '../domain/erasure.ts';
import type { AppId } from '../domain/ids.ts';
import { eventIn } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import type { CommandDeps } from './deps.ts';

/** A verified webhook without its body. */
type WebhookRow = Pick<
  AcceptedDelivery,
  'deliveryId' | 'eventId' | 'appId' | 'receivedAt' | 'proof' | 'bodySha256'
> & { readonly provider: ProviderName };

/**
 * Stores a verified webhook with its body, which is encrypted if it names an erased person. Returns the delivery as its steps read it;
 * `stored_before` if a lost answer of the database made it store the webhook twice; and `secrets_changed`, with nothing stored, if the
 * secrets have changed since they were read. `known` are the secrets that were read, `verifying` is the one that verifies the webhook.
 */
export async function storeWebhook(
  { sql, secretBox, webhookCache }: Pick<CommandDeps, 'sql' | 'secretBox' | 'webhookCache'>,
  body: Buffer,
  row: WebhookRow,
  { verifying, known }: { readonly verifying: WebhookSecretRow; readonly known: readonly WebhookSecretRow[] },
): Promise<StoredDelivery | 'stored_before' | 'secrets_changed'> {
  const { appId } = row;
  const accept = async (stored: Pick<AcceptedDelivery, 'body' | 'bodyKeyId' | 'bodyHashes'>) =>
    await acceptDelivery(sql, {
      ...row,
      ...stored,
      secretId: verifying.id,
      currentSecretId: known.find(({ isCurrent }) => isCurrent)?.id ?? null,
    });
  const hashes = async () => await identifyingHashes(sql, secretBox, row, body);

  let acceptance = await accept({
    body,
    bodyKeyId: null,
    bodyHashes: webhookCache.hasErasedUsers(appId) ? await hashes() : null,
  });
  if (acceptance.namesErased && !webhookCache.hasErasedUsers(appId)) {
    webhookCache.rememberErasedUsers(appId);
    acceptance = await accept({ body, bodyKeyId: null, bodyHashes: await hashes() });
  }
  const { namesErased } = acceptance;
  if (namesErased)
    acceptance = await accept({ ...sealBody(secretBox, row.deliveryId, body), bodyHashes: null });

  const { isAccepted, isSelfTest, stripeAccounts } = acceptance;
  if (!isAccepted) return 'secrets_changed';
  if (isSelfTest === null) return 'stored_before';
  return {
    ...row,
    id: row.deliveryId,
    processingStatus: 'received',
    lastError: null,
    commissionId: null,
    body,
    hasBody: true,
    isBodyLost: false,
    namesErased,
    isSelfTest,
    stripeAccounts,
    secret: verifying,
  };
}

/** Returns the keyed hashes of the texts in a body that may name a person. Null for a large body: it is encrypted if anybody of the app is erased. */
async function identifyingHashes(
  sql: Sql,
  secretBox: SecretBox,
  { appId, provider }: { readonly appId: AppId; readonly provider: ProviderName },
  body: Buffer,
): Promise<Buffer[] | null> {
  if (isLargeBody(body)) return null;
  const hash = await identifierHasher(sql, secretBox);
  return identifyingTexts(body, eventIn(provider, body)).map((text) => hash(appId, text));
}
