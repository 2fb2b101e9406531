/** @jest-environment <rootDir>/test/jest/isolated.js */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { expect, jest, test } from '@jest/globals';
import { HashThread, hmacSha256, sha256 } from '../../src/providers/hashing.ts';

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
test('a body of 256 KiB to 1 MiB is hashed in a thread of its own, and any other one at once', async () => {
  const sent = jest.spyOn(Worker.prototype, 'postMessage');
  for (const [size, messages] of [
    [256 * KIB - 1, 0],
    [256 * KIB, 2],
    [KIB * KIB, 2],
    [KIB * KIB + 1, 0],
  ] as const) {
    sent.mockClear();
    const body = randomBytes(size);
    await hmacSha256('key', '', body);
    await sha256(body);
    expect(sent).toHaveBeenCalledTimes(messages);
    // The body itself goes through shared memory: a message with a copy would keep it until the thread collects garbage.
    for (const [nth, [message]] of sent.mock.calls.entries()) {
      expect(message).toEqual({
        jobs: [{ key: nth === 0 ? 'key' : null, prefix: '' }],
        length: size,
      });
    }
  }
  sent.mockRestore();
});

// @promise large-body-off-loop
test('hashes of one large body that are asked for at once are one message, and those of another body a second', async () => {
  const sent = jest.spyOn(Worker.prototype, 'postMessage');
  const [body, other] = [randomBytes(256 * KIB), randomBytes(300 * KIB)];
  const keys = ['first', 'second', 'third'];
  const hashes = await Promise.all([
    sha256(body),
    ...keys.map(async (key) => await hmacSha256(key, key, body)),
    sha256(other),
  ]);
  expect(hashes).toEqual([
    createHash('sha256').update(body).digest(),
    ...keys.map((key) => createHmac('sha256', key).update(key).update(body).digest()),
    createHash('sha256').update(other).digest(),
  ]);
  expect(sent).toHaveBeenCalledTimes(2);
  sent.mockRestore();
});

test('bodies are hashed although their thread ends', async () => {
  const sent = jest.spyOn(Worker.prototype, 'postMessage');
  const large = randomBytes(256 * KIB);
  const expected = createHmac('sha256', 'key').update(large).digest();
  const first = hmacSha256('key', '', large);
  const second = hmacSha256('key', '', large);
  await new Promise(setImmediate);
  const thread = sent.mock.contexts[0] as Worker;
  sent.mockRestore();
  await thread.terminate();
  expect(await first).toEqual(expected);
  expect(await second).toEqual(expected);
  expect(await hmacSha256('key', '', large)).toEqual(expected);
});

test('bodies are hashed although their thread fails, and its late answer is not that of another body', async () => {
  const sent = jest.spyOn(Worker.prototype, 'postMessage');
  const [body, next] = [randomBytes(256 * KIB), randomBytes(256 * KIB)];
  const first = sha256(body);
  await new Promise(setImmediate);
  const thread = sent.mock.contexts[0] as Worker;
  sent.mockRestore();
  thread.emit('error', new Error('no memory is left'));
  expect(await first).toEqual(createHash('sha256').update(body).digest());
  expect(await sha256(next)).toEqual(createHash('sha256').update(next).digest());
  await thread.terminate();
});

test('a body that is larger than the memory of a thread is hashed all the same', async () => {
  const thread = new HashThread();
  const [large, fitting] = [randomBytes(KIB * KIB + 1), randomBytes(KIB)];
  const hashes = [large, fitting].map(async (body) => await thread.run({ key: null, prefix: '', body }));
  expect(await Promise.all(hashes)).toEqual(
    [large, fitting].map((body) => createHash('sha256').update(body).digest()),
  );
});
