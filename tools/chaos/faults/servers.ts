import { setTimeout as sleep } from 'node:timers/promises';
import { createDatabase, runOn } from '../../../test/support/postgres-admin.ts';
import { TEMPORAL_DATABASES } from '../stack.ts';
import { between } from './fault.ts';
import type { Fault } from './fault.ts';

/** Ends Postgres, and starts it again. Temporal is started again if it did not survive that, as Compose does. */
const endPostgres =
  (how: 'fast' | 'crash'): Fault =>
  async ({ stack: { postgres, temporal } }) => {
    await postgres.stop(how);
    return async () => {
      await postgres.startAgain();
      await temporal.revive();
    };
  };

const endTemporal =
  (signal: 'SIGKILL' | 'SIGTERM'): Fault =>
  async ({ stack: { temporal } }) => {
    await temporal.stop(signal);
    return async () => await temporal.startAgain();
  };

/** The servers end, or a setting of theirs changes for a while. */
export const SERVER_FAULTS = {
  'Postgres killed': endPostgres('crash'),
  'Postgres stopped': endPostgres('fast'),
  'connections ended': async ({ stack: { postgres } }, { lastsMs }) => {
    // Every connection, those of Temporal too, once a second.
    const others = 'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()';
    const until = Date.now() + lastsMs;
    const ended = (async () => {
      for (; Date.now() < until; await sleep(1_000)) await runOn(postgres.ownerUrl, others);
    })();
    return async () => await ended;
  },
  'disk slow': async ({ stack: { postgres } }, planned) => {
    // Each commit waits before it writes its log to the disk.
    await postgres.set({ commit_delay: between(20_000, 100_000, planned), commit_siblings: 0 });
    return async () => await postgres.reset('commit_delay', 'commit_siblings');
  },

  'Temporal killed': endTemporal('SIGKILL'),
  'Temporal stopped': endTemporal('SIGTERM'),
  'Temporal wiped': async ({ stack: { postgres, temporal } }) => {
    await temporal.stop('SIGKILL');
    for (const name of TEMPORAL_DATABASES) {
      await runOn(postgres.ownerUrl, `drop database "${name}" with (force)`);
      await createDatabase(postgres.ownerUrl, name);
    }
    return async () => await temporal.startAgain();
  },
} as const satisfies Readonly<Record<string, Fault>>;
