import { Writable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { createLogger } from '../../src/config/logger.ts';
import { eventually } from '../support/eventually.ts';

/** A logger, and the lines that it has written. */
function recording(repeatMs: number) {
  const lines: Record<string, unknown>[] = [];
  const destination = new Writable({
    write(chunk, _encoding, done) {
      for (const text of String(chunk).split('\n'))
        if (text !== '') lines.push(JSON.parse(text) as Record<string, unknown>);
      done();
    },
  });
  return { lines, logger: createLogger('info', destination, repeatMs) };
}

const refused = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

// @promise log-repeats
test('a warning about the same failure is written once in a minute, and then with the number of times that it came again', async () => {
  const { lines, logger } = recording(30);
  for (let round = 0; round < 100; round += 1) logger.warn({ err: refused(), msg: 'a round failed' });
  expect(lines.map(({ msg, repeated }) => [msg, repeated])).toEqual([['a round failed', undefined]]);
  await eventually('the count is written', async () => await Promise.resolve(lines.length === 2));
  expect(lines[1]).toMatchObject({
    level: 'warn',
    msg: 'a round failed',
    repeated: 99,
    err: { code: 'ECONNREFUSED' },
  });
  logger.warn({ err: refused(), msg: 'a round failed' });
  expect(lines).toHaveLength(3);
});

// @promise log-repeats
test('requests that fail for the same reason are one warning, and do not hide that a loop repeats itself', () => {
  const { lines, logger } = recording(60_000);
  for (let n = 0; n < 1_000; n += 1)
    logger.warn({ err: refused(), requestId: `request ${n}`, route: '/clicks', msg: 'request failed' });
  for (let round = 0; round < 10; round += 1) logger.warn({ err: refused(), msg: 'a round failed' });
  expect(lines.map(({ msg }) => msg)).toEqual(['request failed', 'a round failed']);
});

// @promise log-repeats
test('lines that differ, and all that are no warnings about a failure, are written each time', () => {
  const { lines, logger } = recording(60_000);
  for (let round = 0; round < 3; round += 1) {
    logger.warn({ err: refused(), deliveryId: `del_${round}`, msg: 'a step failed' });
    logger.warn({ err: new Error(`other ${round}`), msg: 'a round failed' });
    logger.error({ err: refused(), msg: 'the worker stopped' });
    logger.child({ requestId: `${round}` }).warn({ err: refused(), msg: 'of a request' });
    logger.warn({ msg: 'no failure' });
    logger.info('a text');
  }
  expect(lines).toHaveLength(18);
});

test('a thousand different failures are all written, and only the first hundreds are remembered', () => {
  const { lines, logger } = recording(60_000);
  for (let n = 0; n < 1_000; n += 1) logger.warn({ err: new Error(`failure ${n}`), msg: 'failed' });
  expect(lines).toHaveLength(1_000);
});

// @promise log-repeats
test('errors about a problem that an operator must end are one line in a minute, and all other errors are written', async () => {
  const { lines, logger } = recording(30);
  const full = () => Object.assign(new Error('could not extend file'), { code: '53100' });
  for (let n = 0; n < 100; n += 1)
    logger.error({
      err: full(),
      problem: 'the disk is full',
      requestId: `request ${n}`,
      msg: 'request failed',
    });
  for (let n = 0; n < 3; n += 1) logger.error({ err: full(), msg: 'the worker stopped' });
  expect(lines).toHaveLength(4);
  await eventually('the count is written', async () => await Promise.resolve(lines.length === 5));
  expect(lines[4]).toMatchObject({ level: 'error', problem: 'the disk is full', repeated: 99 });
});
