import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { newId } from '../../src/db/new-id.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { headOf, openConnection, received } from '../support/raw-http.ts';
import { rounds } from '../support/rounds.ts';

/*
 * Health checks while others attack. A busy machine makes everything slow, so these tests count work, and not time: how many
 * requests of the others are worked on while a health check waits. The times are printed with TEST_CROWD_TIMES=1.
 */

/** Health checks for each attack: few in `npm test`, many in `npm run test:long`. */
const CHECKS = rounds(5, 500);
const ADDRESSES = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
/** What a health check waits for at most, of each connection of the others: those in progress, and a few turns. */
const REQUESTS_PER_CONNECTION = 20;

let api: TestApi | undefined;
let requests = 0;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await api?.close();
});

async function start(limits = NO_RATE_LIMITS): Promise<TestApi> {
  const options = { rateLimits: createRateLimits(limits), observeRequest: () => (requests += 1) };
  api = await startTestApi(options, {}, { connections: 40, connectionsPerAddress: 10 });
  return api;
}

/** Sends health checks one after another. Returns the largest number of other requests during one, and prints their times. */
async function checkHealth({ url }: TestApi, between = async () => {}): Promise<number> {
  let most = 0;
  const times: number[] = [];
  for (let nth = 0; nth < CHECKS; nth += 1) {
    const [before, from] = [requests, performance.now()];
    const response = await received(
      await openConnection(url, headOf('GET', '/healthz', { connection: 'close' })),
    );
    expect(response).toMatch(/^HTTP\/1.1 200 /);
    most = Math.max(most, requests - before - 1);
    times.push(performance.now() - from);
    await between();
  }
  if (process.env['TEST_CROWD_TIMES'] === '1')
    process.stderr.write(
      `${expect.getState().currentTestName}: at most ${Math.max(...times).toFixed(0)} ms\n`,
    );
  return most;
}

// @promise health-in-crowd
test('four addresses with all connections and half a head each do not keep a health check from its answer', async () => {
  const own = await start();
  const attack = async (connections: number) => {
    for (const address of ADDRESSES) {
      for (let nth = 0; nth < connections; nth += 1)
        sockets.push(await openConnection(own.url, 'GET /healthz HTTP/1.1\r\nHost: x', address));
    }
  };
  await attack(12);
  await checkHealth(own, async () => await attack(2));
});

// @promise health-in-crowd
test('a health check waits for a few of tens of thousands of requests that were sent at once', async () => {
  const own = await start();
  for (const address of ADDRESSES) {
    for (let nth = 0; nth < 4; nth += 1)
      sockets.push(await openConnection(own.url, headOf('GET', '/healthz').repeat(1_500), address));
  }
  expect(await checkHealth(own)).toBeLessThan(16 * REQUESTS_PER_CONNECTION);
});

// @promise health-in-crowd
test('a health check waits for a few calls of a noisy tenant, and one of made-up webhooks and keys', async () => {
  const own = await start({ ...NO_RATE_LIMITS, failures: 50, refusals: 50 });
  const app = await newApp(own);
  const { slug } = await newLink(own, app, await newAffiliate(own, app));
  const click = JSON.stringify({ customerAppId: app.appId, slug, claimToken: randomUUID() });
  const post = (path: string, body: string) =>
    headOf('POST', path, { 'content-type': 'application/json', 'content-length': String(body.length) }) +
    body;
  const attacks = [
    post('/clicks', click).repeat(300),
    post(`/webhooks/stripe/${app.appId}`, '{}').repeat(300),
    Array.from({ length: 300 }, () => post(`/webhooks/stripe/${newId('app')}`, '{}')).join(''),
    Array.from({ length: 300 }, () =>
      headOf('GET', '/apps', { authorization: `Bearer tri_sk_live_${randomUUID()}` }),
    ).join(''),
  ];
  for (const [nth, text] of attacks.entries()) {
    for (let connection = 0; connection < 4; connection += 1)
      sockets.push(await openConnection(own.url, text, ADDRESSES[nth]));
  }
  expect(await checkHealth(own)).toBeLessThan(16 * REQUESTS_PER_CONNECTION);
});
