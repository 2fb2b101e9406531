import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { bodyOf, stripeInvoicePaid } from '../provider-payloads.ts';
import { createBenchApp, median, percentile, postPurchase, startBenchServer } from './support.ts';

/**
 * `npm run bench -- erasure`: erases a person of an app with `BENCH_ROWS` stored webhooks of about a kilobyte, then sends the same request
 * again. Prints how long the request and the search take, how much memory the process takes meanwhile, and how long purchases take
 * that arrive without an erasure and beside each search. The load comes from the same process.
 */
const ROWS = Number(process.env['BENCH_ROWS'] ?? 1_000_000);
const PAGE = 5_000;
const PAUSE_MS = 50;
const WITHOUT_MS = 15_000;
const MIB = 2 ** 20;

const ms = (value: number) => `${value.toFixed(0)} ms`;
const say = (line: string) => void process.stdout.write(`${line}\n`);
const server = await startBenchServer();
const { sql } = server.service;
const app = await createBenchApp(server.base, server.key, { creators: 1, users: 1 });
const { appId, stripeSecret } = app;
const [buyer = ''] = app.users;
const person = `person-${randomUUID()}`;
const webhook = `${server.base}/webhooks/stripe/${appId}`;
const purchase = async (user: string) => await postPurchase(webhook, stripeSecret, user);

/** Inserts webhooks of other users, which were processed within the last year. */
async function insertDeliveries(): Promise<void> {
  const template = bodyOf(stripeInvoicePaid({ userId: 'USER', amount: 1_999 })).toString();
  const id = (kind: string) => sql.fragment`${kind} || '_0' || lpad(n::text, 25, '0')`;
  const at = sql.fragment`now() - interval '365 days' * (1 - n / ${ROWS}::float8)`;
  for (let from = 0; from < ROWS; from += PAGE) {
    const numbers = sql.fragment`generate_series(${from}::int, ${Math.min(ROWS, from + PAGE) - 1}::int) n`;
    await sql.forManyRows(60_000)`
      with added as (
        insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, proof, body_sha256,
                                event_id, source_event_id, event_count, completed_at)
        select ${id('del')}, ${appId}, 'stripe', ${at}, true, 'processed', secret.id, '{"kind": "headers", "headers": {}}',
               sha256('x'), ${id('evt')}, 'source-' || n, 1, ${at}
          from (select id from webhook_secrets where app_id = ${appId}) secret, ${numbers}
        returning id
      ), bodies as (
        insert into delivery_bodies (delivery_id, body)
        select id, convert_to(replace(${template}, 'USER', 'other-' || id), 'UTF8') from added
      )
      insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                          customer_user_id, store, payment_ref, currency, amount_minor, amount_cents, likely_cause)
      select ${id('evt')}, ${appId}, ${id('del')}, 'stripe', 'source-' || n, 'purchase', 'production', ${at}, ${at},
             'other-' || ${id('del')}, 'stripe', 'bulk-' || n, 'USD', 1999, 1999, 'user_never_identified'
        from ${numbers}`;
  }
  await sql.forManyRows(120_000)`analyze`;
}

/** Sends purchases one after the other until `work` ends. Returns its result, its time, the times of the purchases and the peak memory. */
async function beside<T>(work: () => Promise<T>) {
  const times: number[] = [];
  let peak = 0;
  const startedAt = performance.now();
  const ended = new AbortController();
  const running = work().finally(() => {
    ended.abort();
  });
  while (!ended.signal.aborted) {
    const before = performance.now();
    const { status, body } = await purchase(buyer);
    if (status !== 200) throw new Error(`a purchase was refused: ${status}`);
    if (body.pending === true) say('a purchase was pending');
    times.push(performance.now() - before);
    peak = Math.max(peak, process.memoryUsage().rss);
    await sleep(PAUSE_MS);
  }
  const result = await running;
  const sorted = times.toSorted((a, b) => a - b);
  const figures = `${times.length} purchases: median ${ms(median(times))}, 99 of 100 within ${ms(percentile(sorted, 0.99))}; memory of the process at most ${(peak / MIB).toFixed(0)} MiB`;
  return { result, seconds: (performance.now() - startedAt) / 1_000, figures };
}

interface Erasure {
  readonly erasureId: string;
  readonly erased: { readonly bodies: number };
}

/** Erases the person and waits until the first search has ended. Returns how long the request took, ms. */
async function erase(): Promise<number> {
  const before = performance.now();
  const response = await fetch(`${server.base}/apps/${appId}/users/${person}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${server.key}` },
  });
  const requestMs = performance.now() - before;
  const { erasureId } = (await response.json()) as Erasure;
  for (;;) {
    const { hasSearched } = await sql.one<{ hasSearched: boolean }>`
      select settles_at is not null as has_searched from erasures where id = ${erasureId}`;
    if (hasSearched) return requestMs;
    await sleep(100);
  }
}

/** Waits until the erasure is complete. Returns how many bodies it has removed. */
async function complete(): Promise<number> {
  for (;;) {
    const open = await sql.maybe<{ counts: { bodies: number }; isDone: boolean }>`
      select counts, finished_at is not null as is_done from erasures where app_id = ${appId}`;
    if (open?.isDone === true) return open.counts.bodies;
    await sleep(250);
  }
}

try {
  const begin = performance.now();
  await insertDeliveries();
  for (let n = 0; n < 10; n += 1) await purchase(person);
  const { bytes } = await sql.forManyRows(60_000).one<{ bytes: number }>`
    select avg(length(body))::int as bytes from (select body from delivery_bodies limit 1000) b`;
  say(
    `${ROWS} webhooks with bodies of ${bytes} bytes were stored in ${((performance.now() - begin) / 1_000).toFixed(0)} s`,
  );
  const without = await beside(async () => await sleep(Math.min(WITHOUT_MS, ROWS)));
  say(`Without an erasure: ${without.figures}`);
  const first = await beside(erase);
  say(
    `Erasure: the request took ${first.result.toFixed(0)} ms, the search ${first.seconds.toFixed(1)} s. ${first.figures}`,
  );
  const settled = await beside(complete);
  say(
    `Complete ${settled.seconds.toFixed(1)} s later, with ${settled.result} bodies removed. ${settled.figures}`,
  );
  const again = await beside(erase);
  say(
    `The same request again: ${again.result.toFixed(0)} ms, the search by hashes ${again.seconds.toFixed(1)} s. ${again.figures}`,
  );
} finally {
  await server.stop();
}
