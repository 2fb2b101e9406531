import { createHash, randomBytes, randomUUID } from 'node:crypto';
import * as z from 'zod';
import { claimIdempotencyKey, storeResponse, releaseClaim } from '../db/idempotency.ts';
import type { IdempotentRequest } from '../db/idempotency.ts';
import type { AccountId } from '../domain/ids.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError, invalidField } from './errors.ts';
import { createIdGenerator, ID_SEED_BYTES } from './id-generator.ts';
import type { IdGenerator } from './id-generator.ts';
import { problemReply } from './reply.ts';
import type { Reply } from './reply.ts';

/** How long a caller should wait for a call that is under way, seconds. */
const RETRY_AFTER_SECONDS = 1;

/** `Idempotency-Key`: 1 to 255 printable ASCII characters. */
export const idempotencyKey = z.string().regex(/^[\x21-\x7e]{1,255}$/);

const storedReply = z.object({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
});

/** The request's idempotency key, null for none. */
export function readIdempotencyKey(ctx: HttpContext): string | null {
  const header = ctx.headers['idempotency-key'];
  if (header === undefined) return null;
  const parsed = idempotencyKey.safeParse(header);
  if (parsed.success) return parsed.data;
  throw invalidField('Idempotency-Key', 'Send 1 to 255 printable ASCII characters without spaces.');
}

/** What makes a request the same as another: method, path, query and what its body says. */
function requestSha256(ctx: HttpContext, body: unknown): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([ctx.method, ctx.path, ctx.querystring, body ?? null]))
    .digest();
}

/** Whose stored text an encrypted one is: it can't be moved to another account or key. */
function context(part: 'seed' | 'answer', { accountId, idempotencyKey: key }: IdempotentRequest): string {
  return `idempotency ${part}:${accountId}:${key}`;
}

/**
 * Runs a call once for its idempotency key. A repeat within 24 hours gets the stored answer, also a refusal by state
 * (404, 409). While the first is under way a second gets a 409; another request with the key gets one, too. A failure
 * on our side is not stored: the next try runs again, with the same ids and keys, so what the first one wrote is found
 * and not made twice.
 */
export async function answerOnce(
  ctx: HttpContext,
  deps: HttpDeps,
  accountId: AccountId,
  body: unknown,
  run: (idGenerator: IdGenerator) => Promise<Reply>,
): Promise<Reply> {
  const key = readIdempotencyKey(ctx);
  const now = deps.now();
  if (key === null) return await run(createIdGenerator(now));

  const { sql, secretBox } = deps;
  const request = { accountId, idempotencyKey: key, requestSha256: requestSha256(ctx, body) };
  const claimId = randomUUID();
  const claimed = await claimIdempotencyKey(sql, request, {
    claimId,
    requestedAt: now,
    seed: secretBox.encrypt(randomBytes(ID_SEED_BYTES).toString('base64'), context('seed', request)),
  });
  switch (claimed.state) {
    case 'reused':
      throw new ApiError('idempotency_key_reused', {
        detail: 'The key belongs to an earlier request with another path or body.',
      });
    case 'in_use':
      throw new ApiError('idempotency_key_in_use', {
        headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
      });
    case 'completed': {
      const { ciphertext, encryptionKeyId } = claimed.response;
      const text = secretBox.decrypt(ciphertext, encryptionKeyId, context('answer', request));
      const reply = storedReply.parse(JSON.parse(text));
      return { ...reply, headers: { ...reply.headers, 'Idempotency-Replayed': 'true' } };
    }
    case 'claimed':
  }
  const { ciphertext, encryptionKeyId } = claimed.seed;
  const seed = Buffer.from(
    secretBox.decrypt(ciphertext, encryptionKeyId, context('seed', request)),
    'base64',
  );
  let reply: Reply;
  try {
    reply = await run(createIdGenerator(claimed.requestedAt, seed));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) {
      await releaseClaim(sql, request, claimId).catch(() => {});
      throw error;
    }
    reply = problemReply(error, ctx.state.requestId);
  }
  await storeResponse(sql, request, secretBox.encrypt(JSON.stringify(reply), context('answer', request)));
  return reply;
}
