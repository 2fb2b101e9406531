import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { HOUR_MS } from '../../../src/domain/time.ts';
import { between, CannotBeTried, processOf } from './fault.ts';
import type { Fault } from './fault.ts';

/** Ends one process, and starts it again. A stopped one finishes what it has begun. */
const endService =
  (signal: 'SIGKILL' | 'SIGTERM'): Fault =>
  async ({ stack }, planned) => {
    const one = processOf(stack, planned);
    await one.end(signal);
    return async () => await one.start();
  };

/** Starts one process again with other settings, until the fault ends. */
const startWith =
  (settings: () => Readonly<Record<string, string>>, tolerated: readonly number[] = []): Fault =>
  async ({ stack }, planned) => {
    const one = processOf(stack, planned);
    const others = settings();
    await one.end('SIGTERM');
    for (const status of tolerated) one.tolerated.add(status);
    await one.start(others);
    return async () => {
      await one.end('SIGTERM');
      one.tolerated.clear();
      await one.start();
    };
  };

/** Where Debian, Ubuntu and Fedora have libfaketime. */
const LIBRARIES = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib64/faketime/libfaketime.so.1',
];

/** The clock of one process is wrong. It refuses the signatures of providers that sign the time. */
const clockOff = (offMs: number): Fault =>
  startWith(() => {
    const library = LIBRARIES.find((file) => existsSync(file));
    if (library === undefined) throw new CannotBeTried('libfaketime is missing: apt-get install faketime');
    return {
      LD_PRELOAD: library,
      FAKETIME: `${offMs > 0 ? '+' : ''}${offMs / 1_000}s`,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }, [401]);

export const PROCESS_FAULTS = {
  'service killed': endService('SIGKILL'),
  'service stopped': endService('SIGTERM'),
  'service frozen': async ({ stack }, planned) => {
    const one = processOf(stack, planned);
    one.freeze();
    return async () => one.thaw();
  },
  'all services killed': async ({ stack: { processes } }) => {
    await Promise.all(processes.map(async (one) => await one.end('SIGKILL')));
    return async () => {
      for (const one of processes) await one.start();
    };
  },
  'restart loop': async ({ stack }, planned) => {
    // Killed at any time of its start, or soon after it.
    const one = processOf(stack, planned);
    const until = Date.now() + planned.lastsMs;
    const looped = (async () => {
      for (; Date.now() < until; await one.start(), await sleep(between(200, 3_000, planned)))
        await one.end('SIGKILL');
      await one.end('SIGKILL');
    })();
    return async () => {
      await looped;
      await one.start();
    };
  },
  'wrong secrets key': startWith(() => ({ SECRETS_KEY: randomBytes(32).toString('base64') })),
  'clock ahead': clockOff(HOUR_MS),
  'clock behind': clockOff(-HOUR_MS),
} as const satisfies Readonly<Record<string, Fault>>;
