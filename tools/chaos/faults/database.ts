import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { runOn } from '../../../test/support/postgres-admin.ts';
import { CannotBeTried } from './fault.ts';
import type { Fault } from './fault.ts';

/** Opens a connection that may end at any time. */
async function openConnection(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  return client;
}

const TOO_MANY_CONNECTIONS = '53300';
const DEADLOCK_DETECTED = '40P01';
const OF_THE_SERVICE =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tributary%'";

/** Locks the tables of the ledger in a transaction. Returns whether that succeeded, and not in a deadlock. */
async function lockTables(holder: pg.Client): Promise<boolean> {
  await holder.query('begin');
  try {
    await holder.query('lock table deliveries, events, payments, commissions in access exclusive mode');
    return true;
  } catch (error) {
    await holder.query('rollback');
    if ((error as { code?: string }).code === DEADLOCK_DETECTED) return false;
    throw error;
  }
}

/** The database answers, and does not work. */
export const DATABASE_FAULTS = {
  'database read-only': async ({ stack: { postgres, temporal } }) => {
    await postgres.set({ default_transaction_read_only: 'on' });
    return async () => {
      await postgres.reset('default_transaction_read_only');
      await temporal.revive();
    };
  },
  'connections exhausted': async ({ stack: { postgres } }, { lastsMs }) => {
    // Others with the rights of the service take every connection that becomes free. The owner has some of their own.
    const taken: pg.Client[] = [];
    const takeAll = async () => {
      for (;;) {
        const one = await openConnection(postgres.serviceUrl).catch((error: unknown) => error);
        if (one instanceof pg.Client) taken.push(one);
        else if ((one as { code?: string }).code === TOO_MANY_CONNECTIONS) return;
        else throw one;
      }
    };
    await takeAll();
    const until = Date.now() + lastsMs;
    const held = (async () => {
      for (; Date.now() < until; await sleep(100)) {
        // The owner, too, may find no connection.
        await runOn(postgres.ownerUrl, OF_THE_SERVICE).catch(() => {});
        await takeAll();
      }
    })();
    return async () => {
      await held;
      await Promise.all(taken.map(async (one) => await one.end()));
    };
  },
  'primary demoted': async ({ stack: { postgres, temporal, proxies, admin } }) => {
    // The name of the database leads to the former primary all the time, which is a standby after its restart. Otherwise a process
    // that connects meanwhile would have the new one already. The fault ends when the name leads to the new one; connections to the
    // former one stay open.
    let { port } = postgres;
    proxies.database.redirect(() => port);
    port = await postgres.failOver();
    await temporal.revive();
    return async () => {
      proxies.database.redirect(null);
      await temporal.revive();
      // The database can't tell whether the standby had received the last payouts. The operator can.
      await admin('payouts', 'resume', '--none-missing');
    };
  },
  'disk full': async ({ stack: { postgres, temporal, disk } }) => {
    if (disk === null) throw new CannotBeTried('this process may not mount a file system');
    await disk.fill();
    // Postgres ends by itself when it can't write its log.
    return async () => {
      await disk.free();
      await postgres.revive();
      await temporal.revive();
    };
  },
  'tables locked': async ({ stack: { postgres } }) => {
    // A migration by hand, or a session that somebody left open: statements wait until their time limit.
    const holder = await openConnection(postgres.ownerUrl);
    // Another session may hold one of the tables and wait for the next: Postgres then ends one of both.
    while (!(await lockTables(holder))) await sleep(100);
    return async () => {
      await holder.query('rollback');
      await holder.end();
    };
  },
} as const satisfies Readonly<Record<string, Fault>>;
