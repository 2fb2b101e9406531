import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { bodyOf, signStripe, stripeInvoicePaid } from '../provider-payloads.ts';
import { HttpSocket } from './http-socket.ts';

/*
 * Calls of one app without a pause, sent by a thread of its own until they are stopped. Refusals are counted and are no failure.
 */

/** What the calls of a noise are: purchases of users that the secret signs, or JSON. */
type Calls =
  | { readonly kind: 'purchases'; readonly secret: string; readonly users: readonly string[] }
  /** In the texts of the fields, `#n` stands for the number of the call, and `#uuid` for a new id. */
  | {
      readonly kind: 'json';
      readonly fields: object;
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface Noise {
  readonly port: number;
  readonly path: string;
  readonly calls: Calls;
  /** Connections, each of which sends the next call as soon as the one before is answered. */
  readonly inFlight: number;
}

export interface NoiseFigures {
  readonly answeredPerSecond: number;
  /** Answers of 429 and 503. */
  readonly refusedPerSecond: number;
}

/** What the thread counts. */
interface Counted {
  answered: number;
  refused: number;
  /** The first answer that was neither a success nor a refusal, or null. */
  fault: string | null;
}

const REFUSALS = new Set([429, 503]);
/** How long a connection that the service has closed waits before it is opened again, ms. */
const REOPEN_MS = 100;

/** Sends the calls without an end, and counts the answers. Runs in the thread. */
function make({ port, path, calls, inFlight }: Noise, counted: Counted): void {
  let sent = 0;
  const next = (): [string, Readonly<Record<string, string>>] => {
    sent += 1;
    if (calls.kind === 'json') {
      const body = JSON.stringify(calls.fields).replaceAll('#n', String(sent));
      return [body.replaceAll('#uuid', randomUUID()), calls.headers ?? {}];
    }
    const userId = calls.users[sent % calls.users.length] ?? '';
    const body = bodyOf(stripeInvoicePaid({ userId, amount: 1_999, occurredAt: Date.now() }));
    const signature = signStripe(body, calls.secret, Math.floor(Date.now() / 1000));
    return [body.toString(), { 'stripe-signature': signature }];
  };
  const sendOn = async (socket: HttpSocket) => {
    for (;;) {
      const { status, body } = await socket.post(path, ...next());
      if (status === 200) counted.answered += 1;
      else if (REFUSALS.has(status)) counted.refused += 1;
      else counted.fault ??= `${status} ${body}`;
    }
  };
  const lane = async () => {
    for (;;) {
      const socket = await HttpSocket.open(port);
      await sendOn(socket).catch(async () => await sleep(REOPEN_MS));
      socket.close();
    }
  };
  for (let n = 0; n < inFlight; n += 1) void lane();
}

/** Starts a noise. `stop` ends its connections, and throws when an answer was neither a success nor a refusal. */
export async function startNoise(noise: Noise): Promise<{ readonly stop: () => Promise<NoiseFigures> }> {
  const worker = new Worker(new URL(import.meta.url), { workerData: noise });
  await once(worker, 'online');
  const begin = performance.now();
  return {
    stop: async () => {
      const seconds = (performance.now() - begin) / 1000;
      worker.postMessage('stop', []);
      const [{ answered, refused, fault }] = (await once(worker, 'message')) as [Counted];
      await worker.terminate();
      if (fault !== null) throw new Error(`${noise.path}: ${fault}`);
      return { answeredPerSecond: answered / seconds, refusedPerSecond: refused / seconds };
    },
  };
}

if (!isMainThread) {
  const counted: Counted = { answered: 0, refused: 0, fault: null };
  parentPort?.once('message', () => parentPort?.postMessage(counted, []));
  make(workerData as Noise, counted);
}
