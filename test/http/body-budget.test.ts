import { expect, test } from '@jest/globals';
import { createBodyBudget } from '../../src/http/body-budget.ts';
import type { BodyBudget } from '../../src/http/body-budget.ts';
import { ApiError } from '../../src/http/errors.ts';
import { newAccount, startTestApi } from '../support/api.ts';
import { headOf, openConnection } from '../support/raw-http.ts';

const KIB = 1024;

/** Reserves memory for a new body. Returns the function that frees it. */
function reserve(budget: BodyBudget, address: string, bytes: number): () => void {
  const memory = budget.open(address);
  memory.reserve(bytes);
  return memory.free;
}

// @promise large-bodies-bounded
test('the large bodies of an address take a bounded amount of memory, and a finished one makes room', () => {
  const budget = createBodyBudget({ totalBytes: 1000 * KIB, siteBytes: 250 * KIB });
  const free = reserve(budget, '203.0.113.1', 100 * KIB);
  reserve(budget, '203.0.113.1', 100 * KIB);
  expect(() => reserve(budget, '203.0.113.1', 100 * KIB)).toThrow(ApiError);
  reserve(budget, '203.0.113.2', 100 * KIB);
  free();
  reserve(budget, '203.0.113.1', 100 * KIB);
});

// @promise large-bodies-bounded
test('all addresses together have a bound, and a body of at most 32 KiB is received beyond it', () => {
  const budget = createBodyBudget({ totalBytes: 100 * KIB, siteBytes: 100 * KIB });
  reserve(budget, '203.0.113.1', 100 * KIB);
  expect(() => reserve(budget, '203.0.113.2', 33 * KIB)).toThrow(
    expect.objectContaining({ code: 'unavailable' }),
  );
  reserve(budget, '203.0.113.2', 32 * KIB);
});

test('the networks of one IPv6 /56 share their part, and another /56 has its own', () => {
  const budget = createBodyBudget({ totalBytes: 1000 * KIB, siteBytes: 100 * KIB });
  reserve(budget, '2001:db8:0:1::1', 100 * KIB);
  expect(() => reserve(budget, '2001:db8:0:ff::1', 100 * KIB)).toThrow(ApiError);
  reserve(budget, '2001:db8:0:100::1', 100 * KIB);
});

// @promise large-bodies-bounded
test('a body that grows holds what its buffer has, and a refused growth leaves what it held', () => {
  const budget = createBodyBudget({ totalBytes: 1000 * KIB, siteBytes: 100 * KIB });
  const growing = budget.open('203.0.113.1');
  for (const size of [8, 32, 64]) growing.reserve(size * KIB);
  expect(() => reserve(budget, '203.0.113.1', 40 * KIB)).toThrow(ApiError);
  expect(() => growing.reserve(128 * KIB)).toThrow(ApiError);
  reserve(budget, '203.0.113.1', 36 * KIB);
  growing.free();
  growing.free();
  reserve(budget, '203.0.113.1', 64 * KIB);
});

// @promise large-bodies-bounded
test('bodies that are announced and not sent take no memory from others', async () => {
  const api = await startTestApi({
    bodyBudget: createBodyBudget({ totalBytes: 100 * KIB, siteBytes: 100 * KIB }),
  });
  const { key } = await newAccount(api);
  const announced = headOf('POST', '/apps', {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'content-length': String(90 * KIB),
  });
  const sockets = [await openConnection(api.url, announced), await openConnection(api.url, `${announced}{`)];
  const own = async () =>
    (await api.call('POST', '/apps', { key, body: { name: 'x'.repeat(60 * KIB) } })).status;
  expect([await own(), await own()]).toEqual([400, 400]);
  for (const socket of sockets) socket.destroy();
  await api.close();
});
