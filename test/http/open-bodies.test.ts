import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { findUnstorableText } from '../../src/http/storable-text.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';

const LIMIT_BYTES = 32 * 1024;

let api: TestApi;
let app: TestApp;
let slug: string;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
  ({ slug } = await newLink(api, app, await newAffiliate(api, app)));
});
afterAll(async () => {
  await api.close();
});

const click = () => ({ customerAppId: app.appId, slug, claimToken: randomUUID() });

/** Returns a valid body of each route that needs no account key, and the key it takes. */
const open = () =>
  [
    ['/clicks', undefined, click()],
    ['/sdk/install', app.sdkKey, { deviceId: 'd', affiliateCode: slug, firstOpenAt: api.clock.now }],
    ['/sdk/identify', app.sdkKey, { deviceId: 'd', customerUserId: 'u', identifiedAt: api.clock.now }],
  ] as const;

/** Returns the JSON text of an object, filled with an unknown field to `bytes` bytes. */
function padded(body: object, bytes: number): string {
  const text = JSON.stringify({ ...body, padding: '' });
  return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`);
}

// @promise open-body-limit
test('a body of 32 KiB is read on every route without an account key, and one more byte is a 413', async () => {
  for (const [path, key, body] of open()) {
    const options = key === undefined ? {} : { key };
    const fits = await api.call('POST', path, { ...options, body: padded(body, LIMIT_BYTES) });
    expect({ path, status: fits.status }).toEqual({ path, status: 200 });
    const over = await api.call('POST', path, { ...options, body: padded(body, LIMIT_BYTES + 1) });
    expect({ path, status: over.status }).toEqual({ path, status: 413 });
    expect(over.body['detail']).toContain('32768 bytes');
  }
});

// @promise content-encoding-415
test.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
])(
  'a body with the Content-Encoding %s is a 415 on every route, before it is decompressed',
  async (encoding, compress) => {
    const bomb = compress(Buffer.from('['.repeat(2 ** 20)));
    const headers = { 'content-encoding': encoding };
    for (const [path, key] of [...open(), ['/apps', app.key] as const]) {
      const options = key === undefined ? {} : { key };
      const response = await api.call('POST', path, { ...options, body: bomb, headers });
      expect({ path, status: response.status }).toEqual({ path, status: 415 });
    }
    const plain = await api.call('POST', '/clicks', {
      body: click(),
      headers: { 'content-encoding': 'identity' },
    });
    expect(plain.status).toBe(200);
  },
);

describe('text that Postgres cannot store', () => {
  const untouchable = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('the value was walked');
      },
    },
  );

  test('a value is walked only when its JSON text has an escape that can stand for such text', () => {
    expect(findUnstorableText(untouchable, '{"a":["\\u00e9\\n"]}')).toEqual([]);
    for (const escape of ['\\u0000', '\\uD800', '\\udfff']) {
      expect(() => findUnstorableText(untouchable, `{"a":"${escape}"}`)).toThrow('the value was walked');
    }
  });

  test('an error names the place of a text with NUL or a lone surrogate, and a pair of surrogates is fine', () => {
    const text = '{"a":["\\ud83d\\ude00",{"b\\u0000":1,"c":"x\\u0000"}],"d":"\\udc00"}';
    const paths = findUnstorableText(JSON.parse(text), text).map(({ path }) => path);
    expect(paths.toSorted()).toEqual(['a.1', 'a.1.c', 'd']);
  });
});

/** Sends the head of a request that announces a body and sends none. Returns the status line of the response. */
async function announceBody(path: string): Promise<string> {
  const { hostname, port } = new URL(api.url);
  const socket = connect(Number(port), hostname);
  socket.setEncoding('utf8');
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`);
  try {
    for await (const chunk of socket) return String(chunk).split('\r\n')[0] ?? '';
    return 'closed';
  } finally {
    socket.destroy();
  }
}

// @promise app-before-body
test('a webhook of an unknown app or provider is refused before its body is read', async () => {
  expect(await announceBody(`/webhooks/stripe/${newId('app')}`)).toContain(' 401 ');
  expect(await announceBody('/webhooks/stripe/nonsense')).toContain(' 401 ');
  expect(await announceBody(`/webhooks/other/${app.appId}`)).toContain(' 404 ');
});
