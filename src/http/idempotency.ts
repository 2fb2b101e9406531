import { createHash, randomBytes, randomUUID } from 'node:crypto';
import * as z from 'zod';
import { claimIdempotencyKey, forgetKey, releaseClaim, storeResponse } from '../db/idempotency.ts';
import type { IdempotentRequest } from '../db/idempotency.ts';
import type { AccountId } from '../domain/ids.ts';
import type { HttpContext } from './context.ts';
import type { HttpDeps } from './deps.ts';
import { ApiError, invalidField } from './errors.ts';
import { createIdGenerator, ID_SEED_BYTES } from './id-generator.ts';
import type { IdGenerator } from './id-generator.ts';
import { problemReply } from './reply.ts';
import type { TextReply } from './reply.ts';

/** When a caller should retry while the first call is in progress, seconds. */
const RETRY_AFTER_SECONDS = 1;

/** `Idempotency-Key`: 1 to 255 printable ASCII characters. */
export const idempotencyKey = z.string().regex(/^[\x21-\x7e]{1,255}$/);

const storedReply = z.object({
  status: z.int(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
});

/** Returns the request's idempotency key, or null if it has none. Throws 400 if it is malformed. */
export function readIdempotencyKey(ctx: HttpContext): string | null {
  const header = ctx.headers['idempotency-key'];
  if (header === undefined) return null;
  const parsed = idempotencyKey.safeParse(header);
  if (parsed.success) return parsed.data;
  throw invalidField('Idempotency-Key', 'Send 1 to 255 printable ASCII characters without spaces.');
}

/** Returns a hash that is equal for equal requests: same method, path, query and parsed body. */
function requestSha256(ctx: HttpContext, body: unknown): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([ctx.method, ctx.path, ctx.querystring, body ?? null]))
    .digest();
}

/** Binds an encrypted text to its account and key, so that it can't be decrypted as another one's. */
function context(part: 'seed' | 'response', { accountId, idempotencyKey: key }: IdempotentRequest): string {
  return `idempotency ${part}:${accountId}:${key}`;
}

/**
 * The statuses of refusals that leave the key free, because what they ask for makes the same request succeed, or a corrected one: sign
 * in, raise the session, wait. A handler throws them before it writes anything.
 */
const KEEPING_KEY_FREE: readonly number[] = [400, 401, 403, 429];

/**
 * Runs a call once per idempotency key. A repeat within 24 hours returns the stored response, also a 404 or a 409. While
 * the first call is in progress, and for another request with the same key, throws 409. A 5xx is not stored: the next
 * call with the key runs again with the same ids and keys, so it finds what the first one wrote and creates no duplicate. Nor are
 * refusals of `KEEPING_KEY_FREE`, which have written nothing: the next request may have the same key.
 */
export async function respondOnce(
  ctx: HttpContext,
  deps: HttpDeps,
  accountId: AccountId,
  body: unknown,
  run: (idGenerator: IdGenerator) => Promise<TextReply>,
): Promise<TextReply> {
  const key = readIdempotencyKey(ctx);
  const now = deps.now();
  if (key === null) return await run(createIdGenerator(now));

  const { sql, secretBox } = deps;
  const request = { accountId, idempotencyKey: key, requestSha256: requestSha256(ctx, body) };
  const claimId = randomUUID();
  const claimed = await claimIdempotencyKey(sql, request, {
    claimId,
    requestedAt: now,
    days: deps.idempotencyDays ?? 1,
    seed: secretBox.encrypt(randomBytes(ID_SEED_BYTES).toString('base64'), context('seed', request)),
  });
  switch (claimed.state) {
    case 'reused':
      throw new ApiError('idempotency_key_reused', {
        detail: 'The key belongs to an earlier request with another path or body. Use a new key.',
      });
    case 'in_use':
      throw new ApiError('idempotency_key_in_use', {
        headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
      });
    case 'completed': {
      const { ciphertext, encryptionKeyId } = claimed.response;
      const text = secretBox.decrypt(ciphertext, encryptionKeyId, context('response', request));
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
  let reply: TextReply;
  try {
    reply = await run(createIdGenerator(claimed.requestedAt, seed));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) {
      await releaseClaim(sql, request, claimId).catch(() => {});
      throw error;
    }
    if (KEEPING_KEY_FREE.includes(error.status)) {
      // Only an earlier attempt at the same call can have written something.
      const end = claimed.requestedAt === now ? forgetKey : releaseClaim;
      await end(sql, request, claimId).catch(() => {});
      throw error;
    }
    reply = problemReply(error, ctx.state.requestId);
  }
  await storeResponse(sql, request, secretBox.encrypt(JSON.stringify(reply), context('response', request)));
  return reply;
}
