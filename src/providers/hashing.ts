import { createHash, createHmac } from 'node:crypto';

/**
 * The size from which a body is hashed in the thread pool, bytes. The hand-over to a thread costs the event loop about
 * 0.1 ms and copies the bytes, so smaller bodies are hashed at once. Webhooks usually have 2 to 20 KiB.
 */
const THREAD_POOL_BYTES = 256 * 1024;

let last: Promise<unknown> = Promise.resolve();

/** Runs a job after the jobs before it. One thread at a time hashes, so only one body is copied at a time. */
async function inTurn(job: () => Promise<ArrayBuffer>): Promise<Buffer> {
  const result = last.then(job);
  last = result.catch(() => {});
  return Buffer.from(await result);
}

/** Returns the SHA-256 of a body. A large body does not hold up the event loop. */
export async function sha256(body: Uint8Array): Promise<Buffer> {
  return body.length < THREAD_POOL_BYTES
    ? createHash('sha256').update(body).digest()
    : await inTurn(async () => await crypto.subtle.digest('SHA-256', body));
}

/** Returns the HMAC-SHA256 of `prefix` and `body` under a key that is not empty. A large body does not hold up the event loop. */
export async function hmacSha256(key: string | Buffer, prefix: string, body: Buffer): Promise<Buffer> {
  if (body.length < THREAD_POOL_BYTES) {
    return createHmac('sha256', key).update(prefix).update(body).digest();
  }
  return await inTurn(async () => {
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    const imported = await crypto.subtle.importKey('raw', Buffer.from(key), algorithm, false, ['sign']);
    return await crypto.subtle.sign('HMAC', imported, Buffer.concat([Buffer.from(prefix), body]));
  });
}
