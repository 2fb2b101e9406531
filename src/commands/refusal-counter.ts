import type { Logger } from 'pino';
import type { RefusedRequests, SelfTestRequest } from '../db/deliveries.ts';
import { newId } from '../db/new-id.ts';
import type { AppId } from '../domain/ids.ts';
import { HOUR_MS } from '../domain/time.ts';

/** A webhook whose signature or token was refused. */
export interface Refusal {
  readonly appId: AppId;
  readonly provider: string;
  /** Epoch ms. */
  readonly receivedAt: number;
  readonly bodySha256: Buffer;
  readonly reason: string;
}

/**
 * Counts refused webhooks in memory and writes the counts at most once a second, so that forged requests neither wait for
 * a row nor take connections from real deliveries. A process that is killed loses the counts of its last second.
 */
export interface RefusalCounter {
  /** Counts a request. Never waits. */
  readonly count: (refusal: Refusal) => void;
  /** Writes what was counted until now. Never throws: a failed write is repeated with the next one. */
  readonly flush: () => Promise<void>;
}

const FLUSH_PAUSE_MS = 1_000;
/** The most counters: one per app, provider and hour. Further ones are only logged. */
const MAX_COUNTERS = 1_000;
/** The most bodies with a count of their own per counter. A request of a self-test is found by its body. */
const MAX_BODIES = 16;

/** Counts of one app, provider and hour, by body. The empty key stands for all further bodies. */
type Counter = Map<string, RefusedRequests>;
type Counters = Map<string, Counter>;

function keyOf({ appId, provider, receivedAt }: Refusal): string {
  return `${appId} ${provider} ${Math.floor(receivedAt / HOUR_MS)}`;
}

/** Adds requests to the counters. Returns false if there is no room for another counter. */
function addTo(counters: Counters, refusal: Refusal, count: number): boolean {
  const key = keyOf(refusal);
  const counter =
    counters.get(key) ?? (counters.size < MAX_COUNTERS ? new Map<string, RefusedRequests>() : null);
  if (counter === null) return false;
  counters.set(key, counter);
  const hash = refusal.bodySha256.toString('hex');
  const body = counter.has(hash) || counter.size < MAX_BODIES ? hash : '';
  const known = counter.get(body);
  const latest = known === undefined || known.receivedAt <= refusal.receivedAt ? refusal : known;
  counter.set(body, {
    deliveryId: known?.deliveryId ?? newId('delivery'),
    eventId: known?.eventId ?? newId('event'),
    appId: refusal.appId,
    provider: refusal.provider,
    receivedAt: latest.receivedAt,
    bodySha256: latest.bodySha256,
    reason: latest.reason,
    count: (known?.count ?? 0) + count,
  });
  return true;
}

/** Creates the counter of a process. `record` writes a batch in one statement and returns the requests of self-tests. */
export function createRefusalCounter({
  record,
  logger,
}: {
  readonly record: (rows: readonly RefusedRequests[]) => Promise<readonly SelfTestRequest[]>;
  readonly logger: Logger;
}): RefusalCounter {
  let counters: Counters = new Map();
  let uncounted = 0;
  let timer: NodeJS.Timeout | undefined;
  let lastFlushAt = Number.NEGATIVE_INFINITY;
  let flushing: Promise<void> = Promise.resolve();

  function log(rows: readonly RefusedRequests[], selfTests: readonly SelfTestRequest[]): void {
    for (const { appId, provider, reason, count, bodySha256 } of rows) {
      const isSelfTest = selfTests.some(
        (test) =>
          test.appId === appId &&
          test.provider === provider &&
          bodySha256.equals(Buffer.from(test.bodySha256)),
      );
      if (isSelfTest) logger.info({ appId, provider, reason, msg: 'delivery of a self-test refused' });
      else logger.warn({ appId, provider, reason, count, msg: 'deliveries refused' });
    }
    if (uncounted > 0)
      logger.warn({ count: uncounted, msg: 'deliveries of further apps refused, not counted' });
    uncounted = 0;
  }

  async function write(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    lastFlushAt = performance.now();
    const rows = [...counters.values()].flatMap((counter) => [...counter.values()]);
    if (rows.length === 0) return;
    counters = new Map();
    try {
      log(rows, await record(rows));
    } catch (error) {
      for (const row of rows) if (!addTo(counters, row, row.count)) uncounted += row.count;
      logger.warn({ err: error, msg: 'refused deliveries could not be counted; the next write repeats it' });
      schedule();
    }
  }

  async function flush(): Promise<void> {
    flushing = flushing.then(write);
    await flushing;
  }

  /** The first refusal after a quiet second is written at once, further ones together. */
  function schedule(): void {
    timer ??= setTimeout(
      () => void flush(),
      Math.max(0, lastFlushAt + FLUSH_PAUSE_MS - performance.now()),
    ).unref();
  }

  return {
    count: (refusal) => {
      if (!addTo(counters, refusal, 1)) uncounted += 1;
      schedule();
    },
    flush,
  };
}
