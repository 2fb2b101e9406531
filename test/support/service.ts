import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import type { Logger } from 'pino';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { startService } from '../../src/service.ts';
import type { ServiceSettings } from '../../src/compose/settings.ts';
import type { Service } from '../../src/service.ts';
import { createTestDatabase } from './database.ts';
import type { TestDatabase } from './database.ts';

/** A key for tests: 32 bytes of one fixed value. */
export const TEST_SECRETS_KEY = Buffer.alloc(32, 7);

export const temporalAddress = (): string => process.env['TEST_TEMPORAL_ADDRESS'] ?? '';

export interface TestService extends Service {
  readonly url: string;
  readonly database: TestDatabase;
  readonly temporal: Client;
  /** Stops the service and starts it again on the same database and task queue; runs `meanwhile` in between. */
  readonly restart: (meanwhile?: () => Promise<void>) => Promise<TestService>;
  readonly close: () => Promise<void>;
}

export interface TestServiceOptions {
  readonly logger?: Logger;
  readonly settings?: Partial<ServiceSettings>;
  readonly temporalAddress?: string;
}

/** Starts a whole service in this process, with its own database and task queue on the test run's servers. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = await createTestDatabase();
  const address = options.temporalAddress ?? temporalAddress();
  const connection = await Connection.connect({ address: temporalAddress() });
  const temporal = new Client({ connection });

  const start = async (): Promise<TestService> => {
    const service = await startService({
      role: 'all',
      host: '127.0.0.1',
      port: 0,
      publicUrl: null,
      trustProxy: 0,
      rateLimits: NO_RATE_LIMITS,
      databaseUrl: database.url,
      temporal: { connection: { address }, namespace: 'default' },
      secretBox: createSecretBox([TEST_SECRETS_KEY]),
      logger: options.logger ?? pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' }),
      workflowBundle: async () => ({
        code: await readFile(path.join(projectRoot, 'dist/workflow-bundle.js'), 'utf8'),
      }),
      withSchedule: false,
      // Without a Schedule there is no sweep that would mature a commission that is due at once.
      shortestHoldMs: 0,
      lingerMs: 0,
      // Tests deliver one event after the other.
      keyGraceMs: 0,
      // The relay starts what nothing else starts, such as a reprocess run.
      relay: { overdueMs: 30_000, pauseMs: 500 },
      ...options.settings,
    });
    if (options.temporalAddress === undefined) await service.whenReady(20_000);
    return {
      ...service,
      url: service.url ?? '',
      database,
      temporal,
      restart: async (meanwhile) => {
        await service.stop();
        await meanwhile?.();
        return await start();
      },
      close: async () => {
        await service.stop();
        await connection.close();
        await database.drop();
      },
    };
  };
  try {
    return await start();
  } catch (error) {
    await connection.close();
    await database.drop();
    throw error;
  }
}

/** Creates an account with a key of every permission. */
export async function createFounder(
  service: Pick<Service, 'sql'>,
): Promise<{ accountId: AccountId; key: string }> {
  const account = await createAccount(service.sql, 'Test account');
  const { key } = await createAccountKey(service.sql, account.id, ['read', 'write', 'setup', 'payout']);
  return { accountId: account.id, key };
}
