import { once } from 'node:events';
import { connect as connectSocket, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import postgres from 'postgres';
import { DatabaseUnavailable, faultOf } from '../../src/db/errors.ts';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { inDatabase, runOn } from '../support/postgres-admin.ts';

let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  await runOn(
    database.url,
    `create function fail(code text) returns int language plpgsql as $$
       begin raise exception 'failed with %', code using errcode = code; end $$`,
  );
  sql = connect({ url: database.url, max: 3, patienceMs: 0 });
});
afterAll(async () => {
  await sql.close();
  await database.drop();
});

const errorOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('errors of Postgres', () => {
  // @promise environment-faults
  test.each([
    ['08006', 'resend', 'connection'],
    ['25006', 'reconnect', 'refuses writes'],
    ['25P03', 'resend', 'idle transaction'],
    ['26000', 'resend', 'pooler'],
    ['28P01', 'wait', 'password'],
    ['3D000', 'wait', 'does not exist'],
    ['40001', 'resend', 'concurrent'],
    ['40P01', 'resend', 'concurrent'],
    ['42501', 'wait', 'permission'],
    ['42703', 'wait', 'migrations'],
    ['42883', 'wait', 'migrations'],
    ['42P01', 'wait', 'migrations'],
    ['53000', 'resend', 'resource'],
    ['53100', 'wait', 'disk'],
    ['53200', 'resend', 'memory'],
    ['53300', 'resend', 'max_connections'],
    ['53400', 'resend', 'limit'],
    ['55006', 'resend', 'in use'],
    ['55P03', 'wait', 'lock'],
    ['57014', 'resend', 'cancelled'],
    ['57P01', 'resend', 'shutting down'],
    ['57P02', 'resend', 'crash'],
    ['57P03', 'resend', 'starting up'],
    ['58000', 'resend', 'system'],
    ['58030', 'resend', 'system'],
    ['F0000', 'wait', 'configuration'],
    ['XX000', 'resend', 'internal error'],
    ['XX001', 'wait', 'damaged'],
  ])('SQLSTATE %s is a fault of the environment: %s', async (code, remedy, text) => {
    const error = await errorOf(sql`select fail(${code})`);
    expect(faultOf(error)).toEqual({ remedy, problem: expect.stringContaining(text) });
    expect(error).toBeInstanceOf(remedy === 'wait' ? postgres.PostgresError : DatabaseUnavailable);
    // The fault is found below the errors that wrap it.
    expect(faultOf(new Error('a step failed', { cause: error }))?.remedy).toBe(remedy);
  });

  test.each(['22023', '23505', '22P02', '42601', '55000', 'P0001'])(
    'SQLSTATE %s is no fault of the environment',
    async (code) => {
      const error = await errorOf(sql`select fail(${code})`);
      expect(error).toBeInstanceOf(postgres.PostgresError);
      expect(faultOf(error)).toBeNull();
    },
  );

  test.each([
    [{ code: 'EHOSTUNREACH', syscall: 'connect' }, 'resend'],
    [{ code: 'CONNECT_TIMEOUT' }, 'resend'],
    // Of a socket that the server has ended, without the name of an operation.
    [{ code: 'EPIPE' }, 'resend'],
    [{ code: 'ECONNRESET' }, 'resend'],
    [{ code: 'ERR_STREAM_DESTROYED' }, 'resend'],
    [{ code: 'CERT_HAS_EXPIRED' }, 'wait'],
    [{ code: 'EMFILE', syscall: 'open' }, 'wait'],
    [{ code: 'ENOSPC', syscall: 'write' }, 'wait'],
  ])('a system error is a fault of the environment: %j', (codes, remedy) => {
    const error = Object.assign(new Error('failed'), codes);
    expect(faultOf(error)?.remedy).toBe(remedy);
  });

  // @promise environment-faults
  test('a host with several addresses that all refuse is a fault of the environment', async () => {
    const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    // The port of no service. The lookup is that of a name with two addresses.
    const socket = connectSocket({
      host: 'postgres.example',
      port: 1,
      lookup: (_host, _options, callback) => callback(null, addresses),
    });
    const [error] = (await once(socket, 'error').catch((refused: unknown) => [refused])) as [unknown];
    expect(error).toMatchObject({ code: 'ECONNREFUSED', errors: [{}, {}] });
    expect(faultOf(error)).toEqual({ remedy: 'resend', problem: expect.stringContaining('ECONNREFUSED') });
  });

  // @promise environment-faults
  test('a connection that ends during the TLS handshake is a fault of the environment', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      // It accepts TLS, and ends instead of a handshake: a proxy whose Postgres is unavailable.
      socket.once('data', () => {
        socket.write('S');
        socket.once('data', () => socket.end());
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const own = connect({ url: `postgres://u:p@127.0.0.1:${port}/x?sslmode=no-verify`, patienceMs: 0 });
    const error = await errorOf(own`select 1`);
    expect(error).toBeInstanceOf(DatabaseUnavailable);
    expect(faultOf(error)).toEqual({ remedy: 'resend', problem: expect.stringContaining('ECONNRESET') });
    await own.close();
    server.close();
  });

  test('a problem that lasts is shown for half a minute, and a short one is not', async () => {
    const own = connect({ url: database.url, max: 1, patienceMs: 0 });
    await errorOf(own`select fail('40001')`);
    expect(own.recentProblem()).toBeNull();
    await errorOf(own`select fail('53100')`);
    expect(own.recentProblem()).toContain('the disk of Postgres is full');
    await own.close();
  });
});

describe('a primary that becomes a standby', () => {
  // @promise read-only-database
  test('the first refused write closes all connections, so that the name is followed to the new primary', async () => {
    const own = connect({ url: database.url, max: 5 });
    const backends = async () =>
      await Promise.all(
        Array.from({ length: 5 }, async () => {
          const { pid, readOnly } = await own.one<{ pid: number; readOnly: boolean }>`
            select pg_backend_pid() as pid, current_setting('transaction_read_only')::boolean as read_only, pg_sleep(0.02)`;
          return { pid, readOnly };
        }),
      );
    // Connections of this time are read-only, as to a server that was demoted. Later ones are not.
    const name = new URL(database.url).pathname.slice(1);
    await runOn(database.url, `alter database "${name}" set default_transaction_read_only = on`);
    const old = await backends();
    await runOn(
      inDatabase(database.url, 'postgres'),
      `alter database "${name}" reset default_transaction_read_only`,
    );
    expect(old.map(({ readOnly }) => readOnly)).toEqual(old.map(() => true));
    await own`insert into accounts (id, name) values ('acct_01h00000000000000000000001', 'Account')`;
    const pids = old.map(({ pid }) => String(pid));
    await eventually('Postgres has ended the sessions of the closed connections', async () => {
      const left = await database.sql`
        select from pg_stat_activity where pid in (select unnest(${pids}::text[])::int)`;
      return left.length === 0;
    });
    expect((await backends()).map(({ readOnly }) => readOnly)).toEqual(old.map(() => false));
    await own.close();
  });
});
