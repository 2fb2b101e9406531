import { describe, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { createTestDatabase } from '../support/database.ts';
import { startChildService } from '../support/child-service.ts';
import { setUpFounder } from '../support/founder.ts';
import { sendRequest } from '../support/http-client.ts';
import { startTestService } from '../support/service.ts';

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

// @promise lost-key-reported
test('a service that lacks the encryption key of a stored secret reports it in the log and in /readyz', async () => {
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
    const { body: ready } = await sendRequest(second.url, 'GET', '/readyz');
    expect(ready.status).toBe('degraded');
    expect(ready.checks).toContainEqual({
      name: 'secrets',
      ok: false,
      detail: expect.stringMatching(
        /^SECRETS_KEY lacks the key [0-9a-f]{12} of 2 webhook secrets: restore it/,
      ),
    });
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
