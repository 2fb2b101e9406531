import { expect, test } from '@jest/globals';
import type { HoldSlot } from '../../src/commands/deps.ts';
import { Admission } from '../../src/http/admission.ts';
import type { AdmissionRules } from '../../src/http/admission.ts';
import type { Intake } from '../../src/http/intake.ts';
import { startTestApi } from '../support/api.ts';

/** Starts calls that end when the test says so, and tells which of them work, wait or were refused. */
function setUp(limit: number, rules: AdmissionRules = {}) {
  const admission = new Admission(limit, rules);
  const working: string[] = [];
  const refused: string[] = [];
  const ends: (() => void)[] = [];
  const calls: Promise<void>[] = [];
  const call = (app: string, times = 1): void => {
    for (let n = 0; n < times; n += 1) {
      const run = admission.run(app, async () => {
        working.push(app);
        await new Promise<void>((resolve) => {
          ends.push(resolve);
        });
      });
      calls.push(run.catch(() => void refused.push(app)));
    }
  };
  const settle = async () => {
    for (let n = 0; n < 20; n += 1) await Promise.resolve();
  };
  /** Ends the call that has worked longest. */
  const end = async () => {
    await settle();
    ends.shift()?.();
    await settle();
  };
  const endAll = async () => {
    await settle();
    while (ends.length > 0) await end();
    await Promise.all(calls);
  };
  return { call, working, refused, settle, end, endAll };
}

// @promise app-shares
test('the next place goes to the app with the fewest calls in progress, and not to the one that waits longest', async () => {
  const { call, working, end, endAll } = setUp(3);
  call('noisy', 6);
  call('quiet');
  call('other');
  await end();
  await end();
  expect(working).toEqual(['noisy', 'noisy', 'noisy', 'quiet', 'other']);
  await endAll();
  expect(working).toHaveLength(8);
});

// @promise app-shares
test('while all slots of the queue are taken, a call of an app with fewer of them replaces one of the app with most', async () => {
  const { call, working, refused, settle, endAll } = setUp(2);
  // Two work, eight wait, and the others are refused: a lone app may use all that is free.
  call('noisy', 12);
  await settle();
  expect(refused).toEqual(['noisy', 'noisy']);
  call('quiet', 3);
  await settle();
  expect(refused).toEqual(['noisy', 'noisy', 'noisy', 'noisy', 'noisy']);
  // Until both have as many: then no call takes the place of another.
  call('quiet', 3);
  await settle();
  expect(refused.filter((app) => app === 'quiet')).toHaveLength(2);
  await endAll();
  expect(working.filter((app) => app === 'quiet')).toHaveLength(4);
});

test('where refusals come late, as many as are worked on wait until their time is over, and further ones are refused at once', async () => {
  const { call, working, refused, settle, endAll } = setUp(2, { refusesLate: true, waitMs: 20 });
  // Two work, eight wait, and two have no room.
  call('noisy', 12);
  await settle();
  expect([working.length, refused]).toEqual([2, []]);
  call('noisy');
  call('quiet');
  await settle();
  // The last one, and one whose place the other app has got.
  expect(refused).toEqual(['noisy', 'noisy']);
  while (refused.length < 12) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(refused.filter((app) => app === 'quiet')).toHaveLength(1);
  await endAll();
  expect(working).toEqual(['noisy', 'noisy']);
});

/** Whether the limit follows a call. */
type IsMeasured = (result: string, durationMs: number) => boolean;

/** Calls of apps under a limit of 32 that follows their durations. The first app has made ten of 25 ms. */
async function setUpAdaptive(first: string) {
  let nowMs = 0;
  const admission = new Admission(32, { isAdaptive: true, elapsed: () => nowMs });
  const working: string[] = [];
  const ends: (() => void)[] = [];
  const call = async (app: string, isMeasured: IsMeasured = () => true) => {
    const work = async () => {
      working.push(app);
      await new Promise<void>((resolve) => ends.push(resolve));
      working.splice(working.indexOf(app), 1);
      return 'done';
    };
    return await admission.runWithin(60_000, app, work, isMeasured);
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  /** Ends the call that has worked longest, after `ms`. */
  const endAfter = async (ms: number) => {
    while (ends.length === 0) await Promise.resolve();
    pass(ms);
    ends.shift()?.();
    for (let tick = 0; tick < 20; tick += 1) await Promise.resolve();
  };
  for (let n = 0; n < 10; n += 1) {
    const alone = call(first);
    await endAfter(25);
    await alone;
  }
  /** Runs 120 calls of an app, of which the oldest ends every 25 ms. Returns how many were in progress at most of the last ones. */
  const saturate = async (of: string, isMeasured?: IsMeasured) => {
    const calls = Array.from({ length: 120 }, async () => await call(of, isMeasured));
    let most = 0;
    for (let n = 0; n < 120; n += 1) {
      if (n > 70) most = Math.max(most, working.length);
      await endAfter(25);
    }
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['done']));
    return most;
  };
  return { call, working, ends, endAfter, pass, saturate };
}

test('fewer calls are worked on at one time while they take long, and results that are not measured change nothing', async () => {
  const { saturate } = await setUpAdaptive('app');
  expect(await saturate('app', () => false)).toBe(32);
  expect(
    await saturate('app', (result, durationMs) => result === 'done' && durationMs >= 25),
  ).toBeLessThanOrEqual(12);
});

// @promise app-shares
test('of an app that makes calls without a pause, far fewer are worked on while another app has made one within an hour', async () => {
  const { call, endAfter, pass, saturate } = await setUpAdaptive('noisy');
  const alone = await saturate('noisy');
  const quiet = call('quiet');
  await endAfter(25);
  await quiet;
  expect(alone).toBeGreaterThanOrEqual(8);
  expect(await saturate('noisy')).toBeLessThanOrEqual(4);
  pass(60 * 60_000);
  expect(await saturate('noisy')).toBeGreaterThanOrEqual(8);
});

// @promise app-shares
test('while one app has all slots of a lowered limit, the first call of another app begins at once, and its second one waits', async () => {
  const { call, working, ends, endAfter, saturate } = await setUpAdaptive('noisy');
  await saturate('noisy');
  const calls = Array.from({ length: 20 }, async () => await call('noisy'));
  await Promise.resolve();
  const before = working.length;
  expect(before).toBeLessThan(20);
  calls.push(call('quiet'), call('quiet'));
  expect(working.slice(before)).toEqual(['quiet']);
  while (ends.length > 0) await endAfter(25);
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['done']));
});

test('work for which there is no room in time is not run', async () => {
  const admission = new Admission(1);
  let end = () => {};
  const first = admission.runWithin(
    0,
    'a',
    async () => await new Promise<string>((resolve) => (end = () => resolve('first'))),
    () => true,
  );
  let isRun = false;
  const second = await admission.runWithin(
    1,
    'b',
    async () => {
      isRun = true;
      return await Promise.resolve('second');
    },
    () => true,
  );
  expect([second, isRun]).toEqual([null, false]);
  end();
  expect(await first).toBe('first');
  expect(await admission.run('b', async () => await Promise.resolve('free again'))).toBe('free again');
});

test('slots are free again after refused, failed and finished calls', async () => {
  const admission = new Admission(1);
  await expect(admission.run('a', async () => await Promise.reject(new Error('failed')))).rejects.toThrow(
    'failed',
  );
  expect(await admission.run('b', async () => await Promise.resolve('done'))).toBe('done');
});

// @promise app-shares
test('the networks of one IPv6 /56 have one share of the open calls', async () => {
  const shares = new Set<string>();
  class Recording extends Admission {
    override async run<T>(app: string, work: (holdSlot: HoldSlot) => Promise<T>): Promise<T> {
      shares.add(app);
      return await super.run(app, work);
    }
  }
  const intake = { openCalls: new Recording(0) } as unknown as Intake;
  const api = await startTestApi({ trustProxy: 1, intake });
  const sharesOf = async (...addresses: string[]) => {
    shares.clear();
    for (const address of addresses)
      await api.call('GET', '/l/-/-', { headers: { 'x-forwarded-for': address } });
    return shares.size;
  };
  expect(await sharesOf('2001:db8:0:1::1', '2001:db8:0:ff::1')).toBe(1);
  expect(await sharesOf('2001:db8:0:1::1', '2001:db8:0:100::1', '198.51.100.1')).toBe(3);
  await api.close();
});
