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
  const hash = ({ key, prefix }, body) =>
    (key === null ? createHash('sha256') : createHmac('sha256', key)).update(prefix).update(body).digest();
  parentPort.on('message', ({ jobs, length }) => {
    const body = workerData.subarray(0, length);
    parentPort.postMessage(jobs.map((job) => hash(job, body)));
  });
`;

/** A job that waits for its digest; null without a thread. */
interface WaitingJob extends Job {
  readonly resolve: (digest: Buffer | null) => void;
}

/**
 * A thread that hashes large bodies, one after another. It starts with the first of them and does not keep the process alive.
 * All hashes of a body that are asked for at once, such as those under several secrets, are one message, because each message
 * costs the event loop about 0.2 ms. Each body is copied to the same shared memory: memory of its own for each would
 * wait for the thread's garbage collector, which rarely runs.
 */
export class HashThread {
  readonly #memory = new Uint8Array(new SharedArrayBuffer(MOST_BYTES));
  readonly #waiting = new Map<Uint8Array, WaitingJob[]>();
  #worker: Worker | undefined;
  #answer: (digests: readonly Uint8Array[] | null) => void = () => {};
  #isRunning = false;

  async run(job: Job): Promise<Buffer> {
    const digest = new Promise<Buffer | null>((resolve) => {
      const jobs = this.#waiting.get(job.body) ?? [];
      this.#waiting.set(job.body, [...jobs, { ...job, resolve }]);
    });
    if (!this.#isRunning) void this.#runWaiting();
    return (await digest) ?? hash(job);
  }

  async #runWaiting(): Promise<void> {
    this.#isRunning = true;
    // The other hashes of the same body are asked for in the same turn.
    await Promise.resolve();
    for (const [body, jobs] of this.#waiting) {
      this.#waiting.delete(body);
      const digests = await this.#hashInThread(body, jobs);
      for (const [nth, { resolve }] of jobs.entries()) {
        const digest = digests?.[nth];
        resolve(digest === undefined ? null : Buffer.from(digest));
      }
    }
    this.#isRunning = false;
  }

  /** Returns null without a thread. */
  async #hashInThread(body: Uint8Array, jobs: readonly Job[]): Promise<readonly Uint8Array[] | null> {
    const digests = await new Promise<readonly Uint8Array[] | null>((resolve) => {
      this.#answer = resolve;
      try {
        this.#worker ??= this.#start();
        this.#worker.ref();
        this.#memory.set(body);
        const sent = jobs.map(({ key, prefix }) => ({
          // A small buffer shares its memory with others, which would all be copied.
          key: typeof key === 'string' || key === null ? key : new Uint8Array(key),
          prefix,
        }));
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
        this.#worker.postMessage({ jobs: sent, length: body.length });
      } catch {
        resolve(null);
      }
    });
    this.#worker?.unref();
    return digests;
  }

  #start(): Worker {
    const worker = new Worker(THREAD_SOURCE, { eval: true, workerData: this.#memory });
    worker.on('message', (digests: readonly Uint8Array[]) => {
      if (this.#worker === worker) this.#answer(digests);
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
