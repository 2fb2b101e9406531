import { expect, test } from '@jest/globals';
import { MESSAGE_TYPES, RETRY_DELAYS_MS } from '../../src/domain/outgoing-webhooks.ts';
import { HOUR_MS } from '../../src/domain/time.ts';
import { messageBody, signedHeaders } from '../../src/webhooks-out/signature.ts';
import { textOf } from '../support/text-of.ts';

const page = textOf('docs/webhooks-out.md');

type Check = (secret: string, headers: Readonly<Record<string, string>>, body: string) => boolean;

/** Returns the function of the page that verifies a message. */
async function checkOfPage(): Promise<Check> {
  const [, code = ''] = /```js\n(.*?)```/s.exec(page) ?? [];
  const module = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { isGenuine: Check };
  return module.isGenuine;
}

// @promise webhooks-out-signed
test('the example of the page accepts a message of the service, also during a rotation, and no other one', async () => {
  const isGenuine = await checkOfPage();
  const [secret, previous] = ['whsec_Y3VycmVudA==', 'whsec_cHJldmlvdXM='] as const;
  const body = messageBody({ type: 'webhook.test', createdAt: Date.now(), data: {} });
  const message = { id: 'msg_1', at: Date.now(), body };
  const headers = signedHeaders([secret, previous], message);
  expect(isGenuine(secret, headers, body)).toBe(true);
  expect(isGenuine(previous, headers, body)).toBe(true);
  expect(isGenuine('whsec_b3RoZXI=', headers, body)).toBe(false);
  expect(isGenuine(secret, headers, `${body} `)).toBe(false);
  const old = signedHeaders([secret], { ...message, at: Date.now() - 301_000 });
  expect(isGenuine(secret, old, body)).toBe(false);
});

test('the example of the page refuses a request that lacks a header, without an exception', async () => {
  const isGenuine = await checkOfPage();
  const secret = 'whsec_Y3VycmVudA==';
  const headers = signedHeaders([secret], { id: 'msg_1', at: Date.now(), body: '{}' });
  expect(isGenuine(secret, {}, '{}')).toBe(false);
  for (const missing of Object.keys(headers)) {
    const rest = Object.fromEntries(Object.entries(headers).filter(([name]) => name !== missing));
    expect(isGenuine(secret, rest, '{}')).toBe(false);
  }
});

test('the page describes every type of messages, and the waits between attempts', () => {
  const described = [...page.matchAll(/^\| `([a-z.]+)` \|/gm)].map(([, type = '']) => type);
  expect(described.toSorted()).toEqual([...MESSAGE_TYPES].toSorted());
  expect(page).toContain('after 5 s, 5 and 30 minutes, 2, 5, 10, 14, 20 and 24 hours');
  const hours = RETRY_DELAYS_MS.reduce((sum, delay) => sum + delay, 0) / HOUR_MS;
  expect(page).toContain(`about ${Math.round(hours)} hours`);
});
