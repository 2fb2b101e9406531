import { createHash, createHmac } from 'node:crypto';
import { Worker } from 'node:worker_threads';

/**
 * The size from which a body is hashed in a thread of its own, bytes. The hand-over costs the event loop about 0.2 ms, so
 * smaller bodies are hashed at once. Webhooks usually have 2 to 20 KiB.
 */
const THREAD_BYTES = 256 * 1024;
/** The largest body that the thread takes: the limit of a webhook. */
const MOST_BYTES = 1024 * 1024;

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
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.on('message', ({ key, prefix, length }) => {
    const algorithm = key === null ? createHash('sha256') : createHmac('sha256', key);
    parentPort.postMessage(algorithm.update(prefix).update(workerData.subarray(0, length)).digest());
  });
`;

/**
 * A thread that hashes large bodies, one after another. It starts with the first of them and does not keep the process alive.
 * Each body is copied to the same shared memory: memory of its own for each would wait for the thread's garbage collector,
 * which rarely runs.
 */
export class HashThread {
  readonly #memory = new Uint8Array(new SharedArrayBuffer(MOST_BYTES));
  #worker: Worker | undefined;
  #answer: (digest: Uint8Array | null) => void = () => {};
  #last: Promise<unknown> = Promise.resolve();

  async run(job: Job): Promise<Buffer> {
    const result = this.#last.then(async () => (await this.#hashInThread(job)) ?? hash(job));
    this.#last = result;
    return await result;
  }

  /** Returns null without a thread. */
  async #hashInThread({ key, prefix, body }: Job): Promise<Buffer | null> {
    const digest = await new Promise<Uint8Array | null>((resolve) => {
      this.#answer = resolve;
      try {
        this.#worker ??= this.#start();
        this.#worker.ref();
        this.#memory.set(body);
        // A small buffer shares its memory with others, which would all be copied.
        const ownKey = typeof key === 'string' || key === null ? key : new Uint8Array(key);
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
        this.#worker.postMessage({ key: ownKey, prefix, length: body.length });
      } catch {
        resolve(null);
      }
    });
    this.#worker?.unref();
    return digest === null ? null : Buffer.from(digest);
  }

  #start(): Worker {
    const worker = new Worker(THREAD_SOURCE, { eval: true, workerData: this.#memory });
    worker.on('message', (digest: Uint8Array) => {
      if (this.#worker === worker) this.#answer(digest);
    });
    const onEnd = () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#answer(null);
    };
    return worker.once('error', onEnd).once('exit', onEnd);
  }
}

const thread = new HashThread();

async function digestOf(job: Job): Promise<Buffer> {
  const { length } = job.body;
  return length < THREAD_BYTES || length > MOST_BYTES ? hash(job) : await thread.run(job);
}

/** Returns the SHA-256 of a body. A large body does not hold up the event loop. */
export async function sha256(body: Uint8Array): Promise<Buffer> {
  return await digestOf({ key: null, prefix: '', body });
}

/** Returns the HMAC-SHA256 of `prefix` and `body` under a key that is not empty. A large body does not hold up the event loop. */
export async function hmacSha256(key: string | Buffer, prefix: string, body: Buffer): Promise<Buffer> {
  return await digestOf({ key, prefix, body });
}
