import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startDeadline, withDeadline } from '../../src/lib/deadline.ts';
import { fetchRatesFile } from '../../src/rates/fetch-rates.ts';
import { sendRequest } from '../../src/self-test/send-request.ts';
import { postWebhook } from '../../src/webhooks-out/post.ts';
import { downloadProgram } from '../../temporal/local-server/download.ts';
import { eventually } from '../support/eventually.ts';
import { HOSTILE_ANSWERS, serveScript } from '../support/hostile-answers.ts';

/** The limit of each call. */
const LIMIT_MS = 80;
/** A call that lasts so long has no limit. */
const GIVE_UP_MS = 10_000;
const TIMED_OUT = 'the call did not end';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-test-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Every call to a server that this project does not run. Each resolves with what it found, or with its error. */
const CALLS: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  'an attempt to send a message': async (url) =>
    await postWebhook({ url, headers: {}, body: '{}', targets: 'any', timeoutMs: LIMIT_MS }),
  'the download of rates': async (url) =>
    await fetchRatesFile(url, { timeoutMs: LIMIT_MS, maxBytes: 100_000 }),
  'a request of the self-test': async (url) => await sendRequest(url, { body: Buffer.from('{}') }, LIMIT_MS),
  'the download of a program': async (url) =>
    await downloadProgram({
      url,
      sha256: 'none',
      target: path.join(folder, 'program'),
      connectMs: LIMIT_MS,
      downloadMs: LIMIT_MS,
      maxBytes: 100_000,
    }),
};

/** Returns what a call resolves or rejects with, and how long it took. */
async function settled(work: Promise<unknown>): Promise<{ outcome: unknown; ms: number }> {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const outcome = await Promise.race([
    work.catch((error: unknown) => error),
    new Promise((resolve) => {
      timer = setTimeout(resolve, GIVE_UP_MS, TIMED_OUT);
    }),
  ]);
  clearTimeout(timer);
  return { outcome, ms: performance.now() - startedAt };
}

describe.each(Object.entries(CALLS))('%s', (_name, call) => {
  // @promise outside-calls-end
  test.each(Object.entries(HOSTILE_ANSWERS))(
    'ends and closes its connection when the answer is %s',
    async (_answer, script) => {
      const server = await serveScript(script);
      try {
        expect((await settled(call(`http://127.0.0.1:${server.port}/`))).outcome).not.toBe(TIMED_OUT);
        await eventually(
          'the connection closes',
          async () => await Promise.resolve(server.answering() === 0),
        );
        expect(await readdir(folder)).toEqual([]);
      } finally {
        await server.close();
      }
    },
  );
});

describe('an attempt to send a message', () => {
  const sendTo = async (answer: string, timeoutMs: number) => {
    const server = await serveScript(HOSTILE_ANSWERS[answer] ?? (() => {}));
    try {
      const url = `http://127.0.0.1:${server.port}/`;
      return await postWebhook({ url, headers: {}, body: '{}', targets: 'any', timeoutMs });
    } finally {
      await server.close();
    }
  };

  // @promise webhooks-out-limits
  test.each([
    'a switch to another protocol',
    'a switch to another protocol, and bytes without an end',
    'a switch to another protocol without a name',
  ])('fails with the status 101 when the answer is %s', async (answer) => {
    expect(await sendTo(answer, GIVE_UP_MS)).toMatchObject({
      statusCode: 101,
      problem: 'The endpoint responded with 101.',
      response: '',
    });
  });

  // @promise webhooks-out-limits
  test.each(['100 Continue without an end', '103 Early Hints without an end'])(
    'ends long before its time limit when the answer is %s',
    async (answer) => {
      expect(await sendTo(answer, GIVE_UP_MS)).toMatchObject({
        statusCode: null,
        problem: 'The endpoint sent more than 16 1xx responses.',
      });
    },
  );
});

describe('a deadline', () => {
  const never = new Promise<never>(() => {});

  test('ends work that never settles, and work that ignores the signal of its caller', async () => {
    await expect(withDeadline(1, async () => await never)).rejects.toMatchObject({ name: 'TimeoutError' });
    const stopping = new AbortController();
    const deadline = startDeadline(GIVE_UP_MS, stopping.signal);
    const work = deadline.race(never);
    stopping.abort(new Error('stopped'));
    await expect(work).rejects.toThrow('stopped');
    expect(deadline.isExceeded()).toBe(false);
    deadline.end();
  });

  test('a caller that has stopped already gets no work done', async () => {
    const deadline = startDeadline(GIVE_UP_MS, AbortSignal.abort(new Error('stopped')));
    await expect(deadline.race(never)).rejects.toThrow('stopped');
    deadline.end();
  });
});
