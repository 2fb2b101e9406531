import { describe, expect, test } from '@jest/globals';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTestDatabase } from '../support/database.ts';
import { startChildService } from '../support/child-service.ts';

describe('a start that can not succeed says in one sentence what to do', () => {
  test('a port in use', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => {
      blocker.once('listening', resolve);
    });
    const { port } = blocker.address() as AddressInfo;
    const database = await createTestDatabase();
    await expect(startChildService(database.url, { PORT: String(port) })).rejects.toThrow(
      `Port ${port} is in use: stop what listens there or set PORT to another one.`,
    );
    blocker.close();
    await database.drop();
  });

  test('a database that is not there, without its password', async () => {
    const start = startChildService('postgres://somebody:hidden-word@127.0.0.1:1/nothing');
    await expect(start).rejects.toThrow(
      /Postgres at 127\.0\.0\.1:1\/nothing can't be used \(.*\): check DATABASE_URL/,
    );
    await expect(start).rejects.not.toThrow(/hidden-word/);
  });

  test('a database without a key for its secrets', async () => {
    await expect(startChildService('postgres://u@127.0.0.1:1/x', { SECRETS_KEY: '' })).rejects.toThrow(
      /SECRETS_KEY is needed/,
    );
  });

  test('a variable with a wrong value', async () => {
    await expect(startChildService('postgres://u@127.0.0.1:1/x', { PORT: 'eighty' })).rejects.toThrow(
      /PORT must be a whole number/,
    );
  });
});
