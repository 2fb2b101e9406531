import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SecretBox } from '../config/secret-box.ts';
import { sealBody } from '../db/deliveries.ts';
import { hasErasedIdentifiers, identifierHasher } from '../db/erased-identifiers.ts';
import { newId } from '../db/new-id.ts';
import { acceptReconciled, findErasedBodies, findReconciledOutcomes } from '../db/reconciliation.ts';
import type { ReconciledDelivery, ReconciledOutcome, ReconciliationSecret } from '../db/reconciliation.ts';
import type { Sql } from '../db/sql.ts';
import { identifyingTexts, isLargeBody } from '../domain/erasure.ts';
import type { AppId } from '../domain/ids.ts';
import { eventIn } from '../providers/index.ts';
import type { ProviderName } from '../providers/index.ts';
import { reconciliationProof } from '../providers/proof.ts';
import { bodyOf } from '../providers/shared/sample.ts';
import type { Payload } from '../providers/shared/sample.ts';

export interface FeedBackRequest {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly appId: AppId;
  readonly provider: ProviderName;
  readonly secret: ReconciliationSecret;
  /** How long to wait for a running service, ms. */
  readonly timeoutMs: number;
  readonly onProgress: (line: string) => void;
}

/** What became of the events that were added. */
export interface FeedBackResult {
  readonly events: number;
  /** Events whose delivery has a commission: an earning, or the reversal of one. */
  readonly earned: number;
  readonly duplicates: number;
  /** The reasons of deliveries that could not be processed. */
  readonly failures: readonly string[];
  /** Events that are stored and that no service has processed in time. */
  readonly waiting: number;
}

/** Events that are stored and waited for at a time. So they never hold up the webhooks that arrive meanwhile for long. */
const BATCH = 200;
const POLL_MS = 200;

/**
 * Adds the events of webhook bodies that were made from an export. Each becomes a delivery that a running service processes
 * like any other. Returns when all are processed, or when no service has gone on with them for a while.
 */
export async function feedBack(
  request: FeedBackRequest,
  bodies: AsyncIterable<Payload>,
): Promise<FeedBackResult> {
  const result = { events: 0, earned: 0, duplicates: 0, failures: [] as string[], waiting: 0 };
  let batch: ReconciledDelivery[] = [];
  const flush = async (): Promise<boolean> => {
    const outcomes = await addBatch(request, await withoutErased(request, batch));
    result.events += batch.length;
    for (const { status, lastError, commissionId, isDone } of outcomes) {
      if (!isDone) result.waiting += 1;
      if (commissionId !== null) result.earned += 1;
      if (status === 'duplicate') result.duplicates += 1;
      if (status === 'failed' || status === 'ignored') result.failures.push(lastError ?? status);
    }
    batch = [];
    request.onProgress(`${result.events} events added, ${result.waiting} of them not processed yet`);
    return result.waiting === 0;
  };
  for await (const payload of bodies) {
    batch.push(deliveryOf(request, payload));
    if (batch.length === BATCH && !(await flush())) return result;
  }
  if (batch.length > 0) await flush();
  return result;
}

function deliveryOf({ appId, provider, secretBox }: FeedBackRequest, payload: Payload): ReconciledDelivery {
  const body = bodyOf(payload);
  const bodySha256 = createHash('sha256').update(body).digest();
  return {
    deliveryId: newId('delivery'),
    eventId: newId('event'),
    proof: reconciliationProof({ appId, provider, bodySha256 }, secretBox),
    bodySha256,
    body,
    bodyKeyId: null,
  };
}

/** Encrypts the bodies that name an erased person, as webhooks do: their outcome then removes them. */
async function withoutErased(
  { sql, appId, provider, secretBox }: FeedBackRequest,
  batch: readonly ReconciledDelivery[],
): Promise<readonly ReconciledDelivery[]> {
  if (!(await hasErasedIdentifiers(sql, appId))) return batch;
  const hash = await identifierHasher(sql, secretBox);
  const hashes = batch.map(({ body }) =>
    identifyingTexts(body, eventIn(provider, body)).map((text) => hash(appId, text)),
  );
  const erased = await findErasedBodies(sql, appId, hashes);
  return batch.map((delivery, index) => {
    if (!erased.has(index) && !isLargeBody(delivery.body)) return delivery;
    return { ...delivery, ...sealBody(secretBox, delivery.deliveryId, delivery.body) };
  });
}

/** Stores a batch and waits until it is processed, or until nothing has happened for `timeoutMs`. */
async function addBatch(
  { sql, appId, provider, secret, timeoutMs }: FeedBackRequest,
  batch: readonly ReconciledDelivery[],
): Promise<readonly ReconciledOutcome[]> {
  await acceptReconciled(sql, { appId, provider, secretId: secret.id }, batch);
  const ids = batch.map(({ deliveryId }) => deliveryId);
  let giveUpAt = performance.now() + timeoutMs;
  let done = 0;
  for (;;) {
    const outcomes = await findReconciledOutcomes(sql, ids);
    const doneNow = outcomes.filter(({ isDone }) => isDone).length;
    if (doneNow === ids.length || performance.now() > giveUpAt) return outcomes;
    if (doneNow > done) giveUpAt = performance.now() + timeoutMs;
    done = doneNow;
    await sleep(POLL_MS);
  }
}
