import { createHash, createHmac } from 'node:crypto';
import { Worker } from 'node:worker_threads';

/**
 * The size from which a body is hashed in a thread of its own, bytes. The hand-over costs the event loop about 0.1 ms, and
 * a copy of the body unless it is in shared memory, so smaller bodies are hashed at once. Webhooks usually have 2 to 20 KiB.
 */
export const THREAD_BYTES = 256 * 1024;

interface Job {
  /** The key of an HMAC; null for a plain hash. */
  readonly key: string | Buffer | null;
  readonly prefix: string;
  readonly body: Uint8Array;
}

function hash({ key, prefix, body }: Job): Buffer {
  const algorithm = key === null ? createHash('sha256') : createHmac('sha256', key);
  return algorithm.update(prefix).update(body).digest();
}

/** The same as `hash`, as text: a thread can't load TypeScript, from which the tests run. */
const THREAD_SOURCE = `
  const { createHash, createHmac } = require('node:crypto');
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ id, key, prefix, body }) => {
    const algorithm = key === null ? createHash('sha256') : createHmac('sha256', key);
    parentPort.postMessage({ id, digest: algorithm.update(prefix).update(body).digest() });
  });
`;

/** A thread that hashes large bodies, one after another. It starts with the first of them and does not keep the process alive. */
export class HashThread {
  readonly #waiting = new Map<number, { readonly job: Job; readonly resolve: (digest: Buffer) => void }>();
  #worker: Worker | undefined;
  #lastId = 0;

  async run(job: Job): Promise<Buffer> {
    return await new Promise<Buffer>((resolve) => {
      const id = (this.#lastId += 1);
      this.#waiting.set(id, { job, resolve });
      this.#worker ??= this.#start();
      this.#worker.ref();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
      this.#worker.postMessage({ id, ...job });
    });
  }

  #start(): Worker {
    const worker = new Worker(THREAD_SOURCE, { eval: true });
    worker.on('message', ({ id, digest }: { id: number; digest: Uint8Array }) => {
      this.#waiting.get(id)?.resolve(Buffer.from(digest));
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) worker.unref();
    });
    // Without a thread, the bodies that wait are hashed here, and the next one starts another thread.
    const onEnd = () => {
      if (this.#worker === worker) this.#worker = undefined;
      for (const { job, resolve } of this.#waiting.values()) resolve(hash(job));
      this.#waiting.clear();
    };
    worker.once('error', onEnd).once('exit', onEnd);
    return worker;
  }
}

const thread = new HashThread();

async function digestOf(job: Job): Promise<Buffer> {
  return job.body.length < THREAD_BYTES ? hash(job) : await thread.run(job);
}

/** Returns the SHA-256 of a body. A large body does not hold up the event loop. */
export async function sha256(body: Uint8Array): Promise<Buffer> {
  return await digestOf({ key: null, prefix: '', body });
}

/** Returns the HMAC-SHA256 of `prefix` and `body` under a key that is not empty. A large body does not hold up the event loop. */
export async function hmacSha256(key: string | Buffer, prefix: string, body: Buffer): Promise<Buffer> {
  return await digestOf({ key, prefix, body });
}
