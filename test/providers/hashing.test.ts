import { createHash, createHmac, randomBytes } from 'node:crypto';
import { expect, jest, test } from '@jest/globals';
import { hmacSha256, sha256 } from '../../src/providers/hashing.ts';

const KIB = 1024;

test.each([0, 5 * KIB, 256 * KIB - 1, 256 * KIB, KIB * KIB])(
  'the hashes of %i bytes are those of the standard',
  async (size) => {
    const body = randomBytes(size);
    for (const key of ['text ä', randomBytes(24), randomBytes(100)]) {
      const expected = createHmac('sha256', key).update('1700000000.').update(body).digest();
      expect(await hmacSha256(key, '1700000000.', body)).toEqual(expected);
    }
    expect(await sha256(body)).toEqual(createHash('sha256').update(body).digest());
  },
);

// @promise large-body-off-loop
test('a body of 256 KiB is hashed in the thread pool, and a smaller one at once', async () => {
  const sign = jest.spyOn(crypto.subtle, 'sign');
  const digest = jest.spyOn(crypto.subtle, 'digest');
  for (const [size, calls] of [
    [256 * KIB - 1, 0],
    [256 * KIB, 1],
  ] as const) {
    const body = randomBytes(size);
    await hmacSha256('key', '', body);
    await sha256(body);
    expect([sign.mock.calls.length, digest.mock.calls.length]).toEqual([calls, calls]);
  }
});

test('a hash that fails does not keep the next one from being made', async () => {
  const large = randomBytes(256 * KIB);
  const failed = hmacSha256('', '', large);
  const made = hmacSha256('key', '', large);
  await expect(failed).rejects.toThrow('Zero-length key');
  expect(await made).toEqual(createHmac('sha256', 'key').update(large).digest());
});
