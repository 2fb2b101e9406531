import { describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { projectRoot } from '../../src/config/project-root.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { newToken, spendSignInLink } from '../../src/db/sessions.ts';
import { createReadiness } from '../../src/readiness.ts';
import { banner, createFirstLink } from '../../src/server.ts';
import type { Service } from '../../src/service.ts';
import { createTestDatabase } from '../support/database.ts';
import { spawnService, startChildService } from '../support/child-service.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import { sendRequest } from '../support/http-client.ts';
import { bodyOf, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';

test('the start message names the API, its documentation and the next commands', () => {
  const service = { url: 'https://api.example.test', metricsUrl: null, isTemporalReady: () => true };
  const backends = {
    databaseUrl: 'postgres://u:hidden@127.0.0.1:5432/shop',
    databaseFolder: null,
    temporal: { connection: { address: '127.0.0.1:7233' }, namespace: 'default' },
    temporalUiUrl: null,
  };
  const message = banner({ service, backends });
  expect(message).toContain('Tributary is up at https://api.example.test\n');
  expect(message).toContain('API docs     https://api.example.test/docs\n');
  expect(message).toContain('Console      https://api.example.test/console\n');
  expect(message).toContain('admin -- console');
  expect(message).not.toContain('hidden');
  expect(banner({ service: { ...service, url: null }, backends })).not.toContain('/docs');
  const firstLink = 'https://api.example.test/console/#token=x&new=1';
  const first = banner({ service, backends, firstLink });
  expect(first).toContain(`works once, for 30 minutes:\n    ${firstLink}\n`);
  expect(first).not.toContain('admin -- console');
});

// @promise first-link-creates-account
test('a start without an account makes a link that creates one; a start with an account makes none', async () => {
  const database = await createTestDatabase();
  const server = { service: { url: 'https://api.example.test', sql: database.sql } as unknown as Service };
  const link = (await createFirstLink(server)) ?? '';
  const session = { token: newToken(), userAgent: null, now: Date.now() };
  const token = /^https:\/\/api\.example\.test\/console\/#token=([\w-]+)&new=1$/.exec(link)?.[1] ?? '';
  expect(await spendSignInLink(database.sql, token, session, 'Lantern')).toMatchObject({
    accountName: 'Lantern',
  });
  expect(await createFirstLink(server)).toBeNull();
  await database.drop();
});

describe('a failed start', () => {
  test('a start on a port in use fails with the port and what to do', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => {
      blocker.once('listening', resolve);
    });
    const { port } = blocker.address() as AddressInfo;
    const database = await createTestDatabase();
    await expect(startChildService(database.url, { PORT: String(port) })).rejects.toThrow(
      `Port ${port} is in use: stop the process that listens there, or set PORT to another port.`,
    );
    blocker.close();
    await database.drop();
  });

  test('a start without a reachable database fails with its address but not its password', async () => {
    const start = startChildService('postgres://user:hidden-word@127.0.0.1:1/nothing');
    await expect(start).rejects.toThrow(
      /Postgres at 127\.0\.0\.1:1\/nothing can't be used \(.*\): check DATABASE_URL/,
    );
    await expect(start).rejects.not.toThrow(/hidden-word/);
  });

  test('a start whose first statements the database does not answer in time fails with a sentence, without a stack trace', async () => {
    const database = await createTestDatabase();
    const holder = new pg.Client(database.url);
    await holder.connect();
    await holder.query('begin; lock table erasure_key in access exclusive mode');
    const start = startChildService(database.url);
    await expect(start).rejects.toThrow(
      /Postgres at 127\.0\.0\.1:\d+\/\w+ can't be used \(.*\): it responds too slowly/,
    );
    await expect(start).rejects.not.toThrow(/\n\s+at /);
    await holder.end();
    await database.drop();
  });

  // @promise bounded-migrations
  test('SIGTERM ends a start that waits for a database without answers', async () => {
    const silent = createTcpServer((socket) => void socket.on('error', () => {}).resume()).listen(
      0,
      '127.0.0.1',
    );
    const connected = new Promise<Socket>((resolve) => {
      silent.once('connection', resolve);
    });
    await new Promise((resolve) => {
      silent.once('listening', resolve);
    });
    const { port } = silent.address() as AddressInfo;
    const child = spawnService(`postgres://user@127.0.0.1:${port}/silent`);
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const ended = new Promise<number | null>((resolve) => {
      child.once('exit', resolve);
    });
    const socket = await connected;
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(stderr).toContain('SIGTERM: finishing the work in progress');
    socket.destroy();
    silent.close();
  });

  // @promise secrets-key-required
  test('a start with an external database and no SECRETS_KEY fails', async () => {
    await expect(startChildService('postgres://u@127.0.0.1:1/x', { SECRETS_KEY: '' })).rejects.toThrow(
      /SECRETS_KEY is required/,
    );
  });

  test('a start with an invalid variable fails with the allowed values', async () => {
    await expect(startChildService('postgres://u@127.0.0.1:1/x', { PORT: 'eighty' })).rejects.toThrow(
      /PORT must be a whole number/,
    );
  });
});

// @promise start-without-temporal
test('a service that starts without a Temporal server stores webhooks, is ready as degraded, and stops in order', async () => {
  const database = await createTestDatabase();
  const service = await startChildService(database.url, { TEMPORAL_ADDRESS: '127.0.0.1:1' });
  expect(service.stderr()).toContain('127.0.0.1:1, namespace default, not reached yet');
  const founder = await setUpFounder({ sql: database.sql, url: service.url });
  const response = await founder.stripe(bodyOf(stripeInvoicePaid({ amount: 2_000 })));
  expect(response).toMatchObject({ status: 200, body: { pending: true } });
  const ready = await founder.call<{ status: string }>('GET', '/readyz');
  expect([ready.status, ready.body.status]).toEqual([200, 'degraded']);
  expect(ready.text).not.toContain('127.0.0.1:1');
  const stored = await database.sql`select id from deliveries where processing_status = 'received'`;
  expect(stored).toHaveLength(1);
  expect(await service.stop()).toBe(0);
  await database.drop();
});

test('a start with credentials that the Temporal server refuses fails with the variables to check', async () => {
  // A gRPC server that responds to every call with UNAUTHENTICATED.
  const server = createHttp2Server().listen(0, '127.0.0.1');
  server.on('stream', (stream) =>
    stream.respond(
      {
        ':status': 200,
        'content-type': 'application/grpc',
        'grpc-status': '16',
        'grpc-message': 'Jwt expired',
      },
      { endStream: true },
    ),
  );
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const database = await createTestDatabase();
  await expect(startChildService(database.url, { TEMPORAL_ADDRESS: `127.0.0.1:${port}` })).rejects.toThrow(
    `Temporal at 127.0.0.1:${port} refuses the credentials (Jwt expired): check TEMPORAL_API_KEY and the TEMPORAL_TLS variables.`,
  );
  server.close();
  await database.drop();
});

/** Returns the exit status of the health check of the image. */
async function healthCheck(url: string | null): Promise<number | null> {
  const child = spawn(process.execPath, [path.join(projectRoot, 'deploy/health-check.mjs')], {
    env: { PORT: new URL(url ?? '').port },
  });
  return await new Promise((resolve) => {
    child.once('exit', resolve);
  });
}

// @promise lost-key-reported
test('a service that starts without the encryption key of a stored secret is not ready, and says why in the log and in /readyz', async () => {
  const lines: string[] = [];
  const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const service = await startTestService();
  const founder = await setUpFounder(service);
  const other = createSecretBox([Buffer.alloc(32, 3)]);
  const second = await startTestService({
    logger,
    settings: { databaseUrl: service.database.url, secretBox: other },
  });
  try {
    expect(await service.ready()).toContainEqual({
      name: 'secrets',
      ok: true,
      optional: true,
      detail: null,
    });
    const { status: ready, text } = await sendRequest(second.url, 'GET', '/readyz');
    expect([ready, text]).toEqual([503, expect.stringContaining('Not available: secrets')]);
    const lost = {
      name: 'secrets',
      ok: false,
      optional: false,
      detail: expect.stringMatching(
        /^SECRETS_KEY lacks the key [0-9a-f]{12} of 2 webhook secrets and of the erasure of persons: restore it$/,
      ),
    };
    expect(await second.ready()).toContainEqual(lost);
    // The container is unhealthy, so an update stops here; that of a process with its keys is healthy.
    const health = await Promise.all([second, service].map(async ({ ownUrl }) => await healthCheck(ownUrl)));
    expect(health).toEqual([1, 0]);
    // One that has had its keys stays ready, and so does one whose operator accepts the loss.
    const connection = { problem: null, setUpProblem: null };
    const deps = { sql: service.sql, connection, checkClock: async () => null, logger };
    let lacking: string | null = null;
    const running = createReadiness({ ...deps, checkSecrets: async () => lacking });
    await running();
    lacking = 'a key';
    await eventually('the loss is shown', async () =>
      (await running()).some(({ name, ok, optional }) => name === 'secrets' && !ok && optional),
    );
    const accepting = createReadiness({ ...deps, checkSecrets: async () => 'a key', acceptsLostKeys: true });
    expect(await accepting()).toContainEqual({ ...lost, optional: true, detail: 'a key' });
    expect(lines.join('')).toContain('SECRETS_KEY lacks the key');
    const { status } = await sendRequest(second.url, 'POST', `/webhooks/revenuecat/${founder.app.id}`, {
      body: {},
      headers: { authorization: 'any' },
    });
    expect(status).toBe(503);
  } finally {
    await second.close();
    await service.close();
  }
});
