import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../src/domain/time.ts';
import { providers } from '../../src/providers/index.ts';
import { percentile } from '../bench/support.ts';
import { send } from '../chaos/answers.ts';
import type { Answer } from '../chaos/answers.ts';
import { bodyOf, revenuecatEvent } from '../provider-payloads.ts';
import type { Order, OrderResult, StreamName, StreamResult, Target } from './messages.ts';

/*
 * Sends requests at the instants at which they are due, however long earlier ones take, and counts the time of each from
 * that instant. It is a process of its own, so that its work does not delay what it measures more than another client would.
 */

const TICK_MS = 5;

class Stream {
  readonly #times: number[] = [];
  readonly #shedTimes: number[] = [];
  readonly #bad: string[] = [];
  #sent = 0;
  #pending = 0;
  #paidCents = 0;

  /** Waits for a request that was due at `dueAt` and counts what became of it. Returns whether it was shed. */
  async note(dueAt: number, answer: Promise<Answer>): Promise<boolean> {
    this.#sent += 1;
    try {
      const { status, retryAfter, body } = await answer;
      const tookMs = performance.now() - dueAt;
      const text = body.toString();
      if (status >= 200 && status < 300) {
        this.#times.push(tookMs);
        if (text.includes('"pending":true')) this.#pending += 1;
        for (const [, cents] of text.matchAll(/,(-?\d+),-?\d+\.\d\d,USD,[^,]+,\d+\r\n/g))
          this.#paidCents += Number(cents);
      } else if (status === 503 && retryAfter !== undefined) {
        this.#shedTimes.push(tookMs);
        return true;
      } else this.#bad.push(`${status}, Retry-After ${retryAfter}: ${text.slice(0, 200)}`);
    } catch (error) {
      this.#bad.push(String(error));
    }
    return false;
  }

  result(): StreamResult {
    const times = this.#times.toSorted((a, b) => a - b);
    return {
      sent: this.#sent,
      ok: times.length,
      shed: this.#shedTimes.length,
      pending: this.#pending,
      bad: this.#bad,
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      shedP99Ms: percentile(
        this.#shedTimes.toSorted((a, b) => a - b),
        0.99,
      ),
      mostMs: times.at(-1) ?? Number.NaN,
      paidCents: this.#paidCents,
    };
  }
}

let count = 0;
const next = <T>(list: readonly T[]): T => {
  const item = list[count % list.length];
  if (item === undefined) throw new Error('the target is empty');
  return item;
};

async function exportOf(target: Target, base: string, creator: string, key: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${target.key}`, 'idempotency-key': key };
  return await send(base, 'POST', `/apps/${target.appId}/affiliates/${creator}/payouts/export`, { headers });
}

/** Sends the next request of a stream, to one process after the other. */
async function request(name: StreamName, target: Target): Promise<Answer> {
  count += 1;
  const base = next(target.bases);
  switch (name) {
    case 'webhook': {
      const body = bodyOf(
        revenuecatEvent({ userId: next(target.users), usd: 10, occurredAt: Date.now() - 40 * DAY_MS }),
      );
      const headers = providers.revenuecat.sample.sign(body, target.webhookSecret, Date.now());
      return await send(base, 'POST', `/webhooks/revenuecat/${target.appId}`, { body, headers });
    }
    case 'read':
      return await send(base, 'GET', `/apps/${target.appId}/overview`, {
        headers: { authorization: `Bearer ${target.key}` },
      });
    case 'health':
      return await send(base, 'GET', '/healthz');
    case 'export':
      return await exportOf(target, base, next(target.creators), randomUUID());
  }
}

async function sendAtRates(
  target: Target,
  { seconds, rates }: Extract<Order, { kind: 'rates' }>,
): Promise<OrderResult> {
  const streams = Object.entries(rates).map(([name, rate]) => ({
    name: name as StreamName,
    rate,
    stream: new Stream(),
    sent: 0,
  }));
  const open: Promise<unknown>[] = [];
  const startedAt = performance.now();
  let latestMs = 0;
  for (let now = startedAt; now < startedAt + seconds * 1_000; now = performance.now()) {
    for (const one of streams) {
      for (;;) {
        const dueAt = startedAt + (one.sent * 1_000) / one.rate;
        if (dueAt > now) break;
        one.sent += 1;
        latestMs = Math.max(latestMs, performance.now() - dueAt);
        open.push(one.stream.note(dueAt, request(one.name, target)));
      }
    }
    await sleep(TICK_MS);
  }
  await Promise.all(open);
  return {
    streams: Object.fromEntries(streams.map(({ name, stream }) => [name, stream.result()])),
    latestMs,
  };
}

/** Starts exports of all creators at once. A call that gets 503 is sent again with its key, as a client does. */
async function exportAtOnce(target: Target, many: number): Promise<OrderResult> {
  const stream = new Stream();
  const dueAt = performance.now();
  const call = async (n: number) => {
    const creator = target.creators[n % target.creators.length] ?? '';
    const key = randomUUID();
    for (let attempt = 0; ; attempt += 1) {
      const base = target.bases[(n + attempt) % target.bases.length] ?? '';
      if (!(await stream.note(dueAt, exportOf(target, base, creator, key)))) return;
      await sleep(5_000);
    }
  };
  await Promise.all(Array.from({ length: many }, async (_, n) => await call(n)));
  return { streams: { export: stream.result() }, latestMs: 0 };
}

let target: Target | undefined;
process.on('message', (message: Target | Order) => {
  if (!('kind' in message)) {
    target = message;
    return;
  }
  if (target === undefined) throw new Error('the generator has no target yet');
  const work = message.kind === 'rates' ? sendAtRates(target, message) : exportAtOnce(target, message.count);
  void work.then((result) => process.send?.(result));
});
process.on('disconnect', () => process.exit(0));
