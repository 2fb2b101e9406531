import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { HttpSocket } from './http-socket.ts';
import { mainThreadTimeMs } from './processor-time.ts';
import { ratio } from './report.ts';
import { median, percentile } from './support.ts';

/*
 * Requests of one kind, sent by a thread of its own over plain sockets: the client of Node costs more than the service, and would
 * share its thread.
 */

export interface Load {
  readonly port: number;
  readonly path: string;
  /** The body of a POST, or null for a GET. In its texts, `#n` stands for the number of the request, and `#uuid` for a new id. */
  readonly fields: object | null;
  /** The status of a response; 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly seconds: number;
  readonly inFlight: number;
  /** Requests per second that arrive whether or not earlier ones are answered. Null sends the next after a response. */
  readonly perSecond: number | null;
  /** The most requests. Default: as many as fit into the time. */
  readonly most?: number;
}

interface Answered {
  readonly timesMs: readonly number[];
  readonly failed: readonly string[];
  readonly seconds: number;
}

export interface LoadFigures {
  readonly sent: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of the first thread of this process, which serves, for each request. */
  readonly threadMs: number;
}

/** Sends requests over sockets, one at a time on each. Runs in the thread. */
async function send(load: Load): Promise<Answered> {
  const { port, path, fields, headers, seconds, inFlight, perSecond, most = Number.POSITIVE_INFINITY } = load;
  const { status = 200 } = load;
  const timesMs: number[] = [];
  const failed: string[] = [];
  const template = JSON.stringify(fields);
  // Opened before the time begins: opening hundreds of sockets at once would be measured as the first answers.
  const sockets = await Promise.all(
    Array.from({ length: inFlight }, async () => await HttpSocket.open(port)),
  );
  const begin = performance.now();
  const endsAt = begin + seconds * 1000;
  let arrivals = 0;
  const sendOver = async (socket: HttpSocket) => {
    while (performance.now() < endsAt && arrivals < most) {
      let sentAt = performance.now();
      arrivals += 1;
      const body = template.replaceAll('#n', String(arrivals)).replaceAll('#uuid', randomUUID());
      if (perSecond !== null) {
        // The time counts from when the request was due, also if no socket was free then.
        sentAt = begin + ((arrivals - 1) * 1000) / perSecond;
        if (sentAt > performance.now()) await sleep(sentAt - performance.now());
      }
      const answer =
        fields === null ? await socket.get(path, headers) : await socket.post(path, body, headers);
      timesMs.push(performance.now() - sentAt);
      if (answer.status !== status) failed.push(`${answer.status} ${answer.body}`);
    }
    socket.close();
  };
  await Promise.all(sockets.map(sendOver));
  return { timesMs, failed, seconds: (performance.now() - begin) / 1000 };
}

/** Sends requests from a thread. Throws when one fails. */
export async function sendLoad(load: Load): Promise<LoadFigures> {
  const before = mainThreadTimeMs();
  const worker = new Worker(new URL(import.meta.url), { workerData: load });
  const [{ timesMs, failed, seconds }] = (await once(worker, 'message')) as [Answered];
  if (failed.length > 0) {
    throw new Error(`${failed.length} of ${timesMs.length} requests to ${load.path} failed: ${failed[0]}`);
  }
  const threadMs = (mainThreadTimeMs() - before) / timesMs.length;
  const sorted = timesMs.toSorted((a, b) => a - b);
  return {
    sent: timesMs.length,
    perSecond: timesMs.length / seconds,
    threadMs,
    p50Ms: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
  };
}

/** Returns how many times the rate of the rounds of another subject one subject has, in the median of neighbours, and both in words. */
export function compareLoads(own: readonly LoadFigures[], theirs: readonly LoadFigures[]) {
  const times = median(
    own.map(({ perSecond }, round) => perSecond / (theirs[round]?.perSecond ?? Number.NaN)),
  );
  const rateOf = (rounds: readonly LoadFigures[]) =>
    `${median(rounds.map(({ perSecond }) => perSecond)).toFixed(0)}/s`;
  const threadOf = (rounds: readonly LoadFigures[]) =>
    median(rounds.map(({ threadMs }) => threadMs)).toFixed(2);
  const measured = `${rateOf(own)} against ${rateOf(theirs)}: ${ratio(times)}; ${threadOf(own)} against ${threadOf(theirs)} ms of the main thread`;
  return { times, measured };
}

if (!isMainThread) parentPort?.postMessage(await send(workerData as Load), []);
