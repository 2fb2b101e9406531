import { setTimeout as sleep } from 'node:timers/promises';
import { createDatabase, runOn } from '../../test/support/postgres-admin.ts';
import type { FaultKind, Plan, PlannedFault } from './plan.ts';
import type { FaultyProxy, ProxyMode } from './proxy.ts';
import { TEMPORAL_DATABASES } from './stack.ts';
import type { ServiceProcess, Stack } from './stack.ts';

/** Breaks something, and returns how to repair it. */
type Fault = (stack: Stack, planned: PlannedFault) => Promise<() => Promise<void>>;

function processOf(stack: Stack, { process: n }: PlannedFault): ServiceProcess {
  const one = stack.processes[n % stack.processes.length];
  if (one === undefined) throw new Error('the stack has no process');
  return one;
}

/** A number between both ends, by the strength of the fault. */
const between = (least: number, most: number, { strength }: PlannedFault) =>
  Math.round(least + (most - least) * strength);

/** Ends one process, and starts it again. A stopped one finishes what it has begun. */
const endService =
  (signal: 'SIGKILL' | 'SIGTERM'): Fault =>
  async (stack, planned) => {
    const one = processOf(stack, planned);
    await one.end(signal);
    return async () => {
      await one.start();
      await one.whenReady();
    };
  };

/** Ends Postgres, and starts it again. Temporal is started again if it did not survive that, as Compose does. */
const endPostgres =
  (how: 'fast' | 'crash'): Fault =>
  async ({ postgres, temporal }) => {
    await postgres.stop(how);
    return async () => {
      await postgres.startAgain();
      await temporal.revive();
    };
  };

const endTemporal =
  (signal: 'SIGKILL' | 'SIGTERM'): Fault =>
  async ({ temporal }) => {
    await temporal.stop(signal);
    return async () => await temporal.startAgain();
  };

/** Lets a proxy treat what passes in another way for a while. */
const onWire =
  (
    name: keyof Stack['proxies'],
    mode: (planned: PlannedFault) => ProxyMode,
    whenMended?: (stack: Stack) => Promise<void>,
  ): Fault =>
  async (stack, planned) => {
    const proxy: FaultyProxy = stack.proxies[name];
    proxy.set(mode(planned));
    return async () => {
      // Connections of a silent time never speak again.
      proxy.set({ kind: 'forward' });
      await whenMended?.(stack);
    };
  };

export const FAULTS: Readonly<Record<FaultKind, Fault>> = {
  'service killed': endService('SIGKILL'),
  'service stopped': endService('SIGTERM'),
  'service frozen': async (stack, planned) => {
    const one = processOf(stack, planned);
    one.freeze();
    return async () => one.thaw();
  },
  'all services killed': async ({ processes }) => {
    await Promise.all(processes.map(async (one) => await one.end('SIGKILL')));
    return async () => {
      for (const one of processes) await one.start();
      await Promise.all(processes.map(async (one) => await one.whenReady()));
    };
  },

  'Postgres killed': endPostgres('crash'),
  'Postgres stopped': endPostgres('fast'),
  'connections ended': async ({ postgres }, { lastsMs }) => {
    // Every connection, those of Temporal too, once a second.
    const others = 'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()';
    const until = Date.now() + lastsMs;
    const ended = (async () => {
      for (; Date.now() < until; await sleep(1_000)) await runOn(postgres.ownerUrl, others);
    })();
    return async () => await ended;
  },
  'disk slow': async ({ postgres }, planned) => {
    // Each commit waits before it writes its log to the disk.
    const delay = `alter system set commit_delay = ${between(20_000, 100_000, planned)}`;
    await runOn(postgres.ownerUrl, delay);
    await runOn(postgres.ownerUrl, 'alter system set commit_siblings = 0');
    await runOn(postgres.ownerUrl, 'select pg_reload_conf()');
    return async () => {
      await runOn(postgres.ownerUrl, 'alter system reset commit_delay');
      await runOn(postgres.ownerUrl, 'select pg_reload_conf()');
    };
  },

  'database cut': onWire('database', () => ({ kind: 'cut' })),
  'database silent': onWire('database', () => ({ kind: 'silent' })),
  'database slow': onWire('database', (planned) => ({ kind: 'slow', delayMs: between(20, 150, planned) })),
  'statements cut': onWire('database', (planned) => ({ kind: 'drop', share: between(1, 8, planned) / 100 })),
  'answers swallowed': onWire('database', (planned) => ({
    kind: 'swallow',
    share: between(1, 8, planned) / 100,
    delayMs: between(0, 1_500, planned),
  })),

  'Temporal killed': endTemporal('SIGKILL'),
  'Temporal stopped': endTemporal('SIGTERM'),
  'Temporal cut': onWire('temporal', () => ({ kind: 'cut' })),
  'Temporal silent': onWire('temporal', () => ({ kind: 'silent' })),
  'Temporal slow': onWire('temporal', (planned) => ({ kind: 'slow', delayMs: between(20, 200, planned) })),
  'Temporal wiped': async ({ postgres, temporal }) => {
    await temporal.stop('SIGKILL');
    for (const name of TEMPORAL_DATABASES) {
      await runOn(postgres.ownerUrl, `drop database "${name}" with (force)`);
      await createDatabase(postgres.ownerUrl, name);
    }
    return async () => await temporal.startAgain();
  },
  'Temporal without database': onWire(
    'temporalDatabase',
    () => ({ kind: 'cut' }),
    async ({ temporal }) => {
      await temporal.revive();
    },
  ),
};

/** A fault that was tried. */
export interface TriedFault extends PlannedFault {
  /** How long it took until everything was up again, ms. */
  readonly repairedInMs: number;
}

/**
 * Injects the faults of a plan one after another, and repairs each before the next. Calls `begun` with each. On a slow machine
 * each takes longer: those that could only begin after the end of the plan are left out.
 */
export async function injectFaults(
  stack: Stack,
  { faults, lastsMs }: Pick<Plan, 'faults' | 'lastsMs'>,
  begun: (kind: FaultKind | undefined) => void,
): Promise<TriedFault[]> {
  const startedAt = Date.now();
  const tried: TriedFault[] = [];
  for (const planned of faults) {
    await sleep(planned.pauseMs);
    if (Date.now() - startedAt > lastsMs) break;
    begun(planned.kind);
    const repair = await FAULTS[planned.kind](stack, planned);
    await sleep(planned.lastsMs);
    const repairedFrom = Date.now();
    await repair();
    begun(undefined);
    tried.push({ ...planned, repairedInMs: Date.now() - repairedFrom });
  }
  return tried;
}
