import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { headOf, inChunks, openConnection, received } from '../support/raw-http.ts';

const KIB = 1024;
const SECRET = `whsec_test_${'x'.repeat(24)}`;

let api: TestApi;
let app: TestApp;
let slug: string;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  ({ slug } = await newLink(api, app, await newAffiliate(api, app)));
  await api.call('PUT', `/apps/${app.appId}/webhooks/stripe/secret`, {
    key: app.key,
    body: { secret: SECRET },
  });
});
afterAll(async () => {
  await api.close();
});

/** Returns the bodies of 32 KiB of the calls without an account key, and the key that they take. */
const openBodies = () =>
  (
    [
      ['/clicks', null, { customerAppId: app.appId, slug, claimToken: randomUUID() }],
      ['/sdk/install', app.sdkKey, { deviceId: 'd', affiliateCode: slug, firstOpenAt: api.clock.now }],
      ['/sdk/identify', app.sdkKey, { deviceId: 'd', customerUserId: 'u', identifiedAt: api.clock.now }],
      ['/session', null, { key: 'x' }],
      ['/creator/session', null, { token: 'x' }],
      ['/operator/session', null, { token: 'x' }],
      ['/sign-in-links', null, { email: 'x' }],
      [`/webhooks/stripe/${app.appId}`, null, {}],
      ['/apps', app.key, { name: 'App' }],
    ] as const
  ).map(([path, key, body]) => {
    const text = JSON.stringify({ ...body, padding: '' });
    return { path, key, body: Buffer.from(text.replace('""', `"${'x'.repeat(32 * KIB - text.length)}"`)) };
  });

async function sendChunked(
  path: string,
  body: Buffer,
  chunkBytes: number,
  headers: Record<string, string> = {},
): Promise<string> {
  const head = headOf('POST', path, {
    'content-type': 'application/json',
    'transfer-encoding': 'chunked',
    connection: 'close',
    ...headers,
  });
  return await received(
    await openConnection(api.url, Buffer.concat([Buffer.from(head), inChunks(body, chunkBytes)])),
  );
}

// @promise body-parts
test('a body in chunks of one byte is a 400 on every route that reads a body, and the connection is closed', async () => {
  for (const { path, key, body } of openBodies()) {
    const response = await sendChunked(path, body, 1, key === null ? {} : { authorization: `Bearer ${key}` });
    expect({ path, status: response.slice(9, 12) }).toEqual({ path, status: '400' });
    expect(response).toContain('"code":"body_in_small_parts"');
    expect(response.toLowerCase()).toContain('connection: close');
  }
});

// @promise body-parts
test('a webhook in chunks of 1 KiB is verified over exactly the bytes that were sent', async () => {
  const payload = stripeInvoicePaid({ userId: 'u', amount: 1_999, occurredAt: api.clock.now });
  const body = bodyOf({ ...payload, padding: 'é'.repeat(100_000) });
  const signature = signStripe(body, SECRET, Math.floor(api.clock.now / 1000));
  for (const chunkBytes of [1_024, 65_536, body.length]) {
    const response = await sendChunked(`/webhooks/stripe/${app.appId}`, body, chunkBytes, {
      'stripe-signature': signature,
    });
    expect({ chunkBytes, status: response.slice(9, 12) }).toEqual({ chunkBytes, status: '200' });
  }
});
