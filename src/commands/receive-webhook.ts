import { setTimeout as sleep } from 'node:timers/promises';
import type { SecretBox } from '../config/secret-box.ts';
import type { StoredDelivery } from '../db/deliveries.ts';
import { newId } from '../db/new-id.ts';
import { DatabaseUnavailable } from '../db/errors.ts';
import { findActiveWebhookSecrets, openWebhookSecret } from '../db/webhook-secrets.ts';
import type { WebhookSecretRow } from '../db/webhook-secrets.ts';
import { isId } from '../domain/ids.ts';
import type { DeliveryKeys, DeliveryOutcome } from '../domain/delivery.ts';
import type { AppId, CommissionId, EventId, SecretId } from '../domain/ids.ts';
import { sha256 } from '../providers/hashing.ts';
import { providers } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import { proofOf } from '../providers/proof.ts';
import type { Provider, SignedRequest } from '../providers/provider.ts';
import type { CommandDeps, HoldSlot } from './deps.ts';
import { refusalReason } from './refusal-reason.ts';
import { storeWebhook } from './store-webhook.ts';

/** A webhook whose body has not been read. */
export interface IncomingWebhook extends Omit<SignedRequest, 'body'> {
  /** Reads the raw bytes. Called once, and only if the app exists. */
  readonly readBody: () => Promise<Buffer>;
}

/** The result for the provider. `refused` gives no reason, so that an attacker learns nothing. */
export type WebhookResult =
  | { readonly kind: 'done'; readonly eventId: EventId; readonly commissionId: CommissionId | null }
  | { readonly kind: 'pending'; readonly eventId: EventId }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'refused' };

/** Within how long the provider gets a response, ms. The strictest provider gives up after 5 s. */
const RESPOND_WITHIN_MS = 2_500;

/** A delivery with less time than this, ms, is awaited for as long as if it had just arrived. */
const LEAST_WAIT_MS = 1_000;

/** How long after `respondBy` a delivery without an outcome is answered as pending, ms. One that has a slot first decides whether it holds the slot. */
const PENDING_MARGIN_MS = 100;

/** How long a stored delivery waits for a slot, ms: then the relay soon starts it. Its response does not wait as long. */
const LONGEST_WAIT_MS = 20_000;

interface WebhookDeps extends Pick<
  CommandDeps,
  'sql' | 'secretBox' | 'workflows' | 'webhookCache' | 'refusals'
> {
  /**
   * Starts and awaits the workflow of a stored delivery when a slot is free. Returns null without starting it if none is within
   * `waitMs`: the relay does it then.
   */
  readonly runInDeliverySlot: (
    waitMs: number,
    work: (holdSlot: HoldSlot) => Promise<DeliveryOutcome | null>,
  ) => Promise<DeliveryOutcome | null>;
  /** Runs the work on a verified webhook when a slot is free, or throws. */
  readonly admit: <T>(work: (holdSlot: HoldSlot) => Promise<T>) => Promise<T>;
}

/** How often a request is verified again because the secrets change meanwhile. */
const MAX_VERIFICATIONS = 5;

/**
 * Receives a webhook: verifies its signature over the raw bytes, stores the delivery, starts its workflow and waits for
 * the outcome. A stored delivery can't be lost, so from then on the result is never an error. Throws
 * `DatabaseUnavailable` if the delivery can't be stored, and `SecretUnreadable` if an encryption key is missing that may
 * be needed to verify it. The provider must then send it again.
 *
 * Remembered secrets only save reading them: they are read again before a request is refused, and when the database does
 * not accept the delivery under them.
 */
export async function receiveWebhook(
  deps: WebhookDeps,
  providerName: ProviderName,
  customerAppId: string,
  { readBody, ...incoming }: IncomingWebhook,
): Promise<WebhookResult> {
  const { sql, webhookCache, admit } = deps;
  const respondBy = performance.now() + RESPOND_WITHIN_MS;
  if (!isId('app', customerAppId)) return { kind: 'refused' };
  const remembered = webhookCache.secretsOf(customerAppId, providerName);
  const readSecrets = async () => {
    const read = await findActiveWebhookSecrets(sql, customerAppId, providerName, incoming.receivedAt);
    webhookCache.rememberSecrets(customerAppId, providerName, read ?? []);
    return read;
  };
  let secrets = remembered ?? (await readSecrets());
  if (secrets === null) return { kind: 'refused' };

  const request: SignedRequest = { ...incoming, body: await readBody() };
  const ids = {
    deliveryId: newId('delivery'),
    eventId: newId('event'),
    appId: customerAppId,
    provider: providerName,
    receivedAt: request.receivedAt,
  };
  const hashing = sha256(request.body);
  let areRead = remembered === undefined;
  const mismatched = new Set<SecretId>();
  for (let attempt = 1; attempt <= MAX_VERIFICATIONS && secrets !== null; attempt += 1) {
    const open = opener(deps.secretBox, customerAppId, providerName);
    const readable = secrets.filter((secret) => deps.secretBox.keyIds.includes(secret.encryptionKeyId));
    const verifying = await findVerifying(providers[providerName], request, readable, open, mismatched);
    const row = { ...ids, bodySha256: await hashing };
    if (verifying !== undefined) {
      const known = secrets;
      const proof = proofOf(providers[providerName], request, open(verifying), deps.secretBox);
      // Refused webhooks take no slot from others.
      const result = await admit(async (holdSlot) => {
        const stored = await storeWebhook(deps, request.body, { ...row, proof }, { verifying, known });
        if (stored === 'secrets_changed') return null;
        return await processStored(deps, ids, stored, { respondBy, holdSlot });
      });
      if (result !== null) return result;
    } else if (areRead) {
      // Opening a secret that can't be decrypted throws, because it may have signed what no other secret verifies.
      const reason = await refusalReason(providers[providerName], request, secrets.map(open));
      deps.refusals.count({ ...row, reason });
      return { kind: 'refused' };
    }
    secrets = await readSecrets();
    areRead = true;
  }
  if (secrets === null) return { kind: 'refused' };
  throw new DatabaseUnavailable(`the webhook secrets changed during ${MAX_VERIFICATIONS} verifications`);
}

/** Returns a function that decrypts the secrets of an app, each once. */
function opener(
  secretBox: SecretBox,
  appId: AppId,
  provider: ProviderName,
): (secret: WebhookSecretRow) => string {
  const opened = new Map<SecretId, string>();
  return (secret) => {
    const text = opened.get(secret.id) ?? openWebhookSecret(secretBox, { appId, provider }, secret);
    opened.set(secret.id, text);
    return text;
  };
}

/**
 * Returns the newest secret that verifies the request, or undefined. Adds the secrets that do not to `mismatched`, and
 * compares none of those again. All are tried at once, because the signatures of a large body are then one message to the thread that
 * computes them. Throws `SecretUnreadable` for a secret that can't be opened, if no other one verifies the request.
 */
async function findVerifying(
  provider: Provider,
  request: SignedRequest,
  secrets: readonly WebhookSecretRow[],
  open: (secret: WebhookSecretRow) => string,
  mismatched: Set<SecretId>,
): Promise<WebhookSecretRow | undefined> {
  const compared = secrets.filter(({ id }) => !mismatched.has(id));
  const results = await Promise.allSettled(
    compared.map(async (secret) => await provider.verify(request, open(secret))),
  );
  const verifying = results.findIndex((result) => result.status === 'fulfilled' && result.value);
  if (verifying !== -1) return compared[verifying];
  const unreadable = results.find((result) => result.status === 'rejected');
  if (unreadable !== undefined) throw unreadable.reason;
  for (const { id } of compared) mismatched.add(id);
  return undefined;
}

/**
 * Starts the workflow of a stored delivery in a slot, and waits for the outcome until `respondBy`; null if there is none by then.
 * A function of its own, so that a delivery that gets its slot later does not keep its body in memory.
 */
async function processInSlot(
  { workflows, runInDeliverySlot }: Pick<WebhookDeps, 'workflows' | 'runInDeliverySlot'>,
  delivery: DeliveryKeys,
  { respondBy, holdSlot }: { readonly respondBy: number; readonly holdSlot: HoldSlot },
): Promise<DeliveryOutcome | null> {
  const leftMs = () => Math.max(0, respondBy - performance.now());
  const processed = runInDeliverySlot(LONGEST_WAIT_MS, async (holdDeliverySlot) => {
    const holdBoth: HoldSlot = (ended) => {
      holdSlot(ended);
      holdDeliverySlot(ended);
    };
    // A delivery whose response is due has its slot for as long as others.
    const waitMs = leftMs() > LEAST_WAIT_MS ? leftMs() : RESPOND_WITHIN_MS;
    return await workflows.awaitDelivery(delivery, waitMs, holdBoth);
  });
  const answered = new AbortController();
  try {
    const late = sleep(leftMs() + PENDING_MARGIN_MS, null, { signal: answered.signal });
    return await Promise.race([processed, late]);
  } finally {
    answered.abort();
  }
}

/**
 * Starts the workflow of a delivery that was stored, and waits for its outcome until `respondBy` (`performance.now()`, ms). Meanwhile its
 * steps need not read it from the database.
 */
async function processStored(
  deps: Pick<WebhookDeps, 'workflows' | 'webhookCache' | 'runInDeliverySlot'>,
  keys: DeliveryKeys,
  stored: StoredDelivery | 'stored_before',
  waiting: { readonly respondBy: number; readonly holdSlot: HoldSlot },
): Promise<WebhookResult> {
  const outcome = await deps.webhookCache.keeping(
    stored === 'stored_before' ? null : stored,
    async () => await processInSlot(deps, keys, waiting),
  );
  if (outcome === null) return { kind: 'pending', eventId: keys.eventId };
  return outcome.status === 'duplicate'
    ? { kind: 'duplicate' }
    : { kind: 'done', eventId: outcome.eventId, commissionId: outcome.commissionId };
}
