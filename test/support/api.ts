import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import type { Sql, SqlOptions } from '../../src/db/sql.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import type { AccountId, BindingId } from '../../src/domain/ids.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import type { Permission } from '../../src/domain/keys.ts';
import { createAddressHasher } from '../../src/commands/address-hasher.ts';
import { WebhookCache } from '../../src/commands/webhook-cache.ts';
import { createRefusalCounter } from '../../src/commands/refusal-counter.ts';
import { recordRefusedRequests } from '../../src/db/deliveries.ts';
import { createLimitedServer, SERVER_LIMITS } from '../../src/http-server.ts';
import type { ServerLimits } from '../../src/http-server.ts';
import { createApp } from '../../src/http/app.ts';
import { NO_ADMISSION_LIMITS } from '../../src/http/admission.ts';
import { createIntake } from '../../src/http/intake.ts';
import { createBodyBudget } from '../../src/http/body-budget.ts';
import { createKnownCallers } from '../../src/http/known-callers.ts';
import type { HttpDeps } from '../../src/http/deps.ts';
import { createRateLimits, NO_RATE_LIMITS } from '../../src/http/rate-limits.ts';
import { createTestDatabase } from './database.ts';
import type { TestDatabase } from './database.ts';
import { sendRequest } from './http-client.ts';
import type { ApiResponse, RequestOptions } from './http-client.ts';
import { IDLE_WORKFLOWS } from './idle-workflows.ts';

/** The HTTP layer on a loopback port with its own database. Workflows are not run. */
export interface TestApi {
  readonly url: string;
  readonly database: TestDatabase;
  readonly sql: Sql;
  /** The bindings for which a heal was requested. */
  readonly healed: BindingId[];
  readonly clock: { now: number };
  /** Writes the refused webhooks that were counted until now. */
  readonly flushRefusals: () => Promise<void>;
  readonly call: <T = Record<string, unknown>>(
    method: string,
    path: string,
    options?: RequestOptions,
  ) => Promise<ApiResponse<T>>;
  readonly close: () => Promise<void>;
}

/** A fake encryption key. */
export const TEST_KEY = Buffer.alloc(32, 9);

/** Starts the API. `overrides` replace dependencies. */
export async function startTestApi(
  overrides: Partial<HttpDeps> = {},
  sqlOptions?: Partial<SqlOptions>,
  serverLimits: Partial<ServerLimits> = {},
): Promise<TestApi> {
  const database = await createTestDatabase(sqlOptions);
  const healed: BindingId[] = [];
  const clock = { now: Date.UTC(2026, 5, 15, 12) };
  const logger = pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' });
  const secretBox = createSecretBox([TEST_KEY]);
  const refusals = createRefusalCounter({
    logger,
    record: async (rows) => await recordRefusedRequests(overrides.sql ?? database.sql, rows),
  });
  const server = createLimitedServer({ ...SERVER_LIMITS, ...serverLimits });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const app = createApp({
    sql: database.sql,
    creatorSql: overrides.sql ?? database.sql,
    // As many connections as in a service with a pool of 20.
    patientSql: (overrides.sql ?? database.sql).share(2),
    logger,
    now: () => clock.now,
    publicUrl: 'https://api.example.test',
    ownUrl: url,
    trustProxy: 0,
    rateLimits: createRateLimits(NO_RATE_LIMITS),
    maxPaymentCents: DEFAULT_LIMITS.maxPaymentCents,
    bodyBudget: createBodyBudget(),
    knownSenders: createKnownCallers(),
    knownCredentials: createKnownCallers(),
    knownLinks: createKnownCallers(),
    refusals,
    intake: createIntake(overrides.sql ?? database.sql, NO_ADMISSION_LIMITS, 'all', overrides.elapsed),
    secretBox,
    addressHasher: createAddressHasher({ sql: overrides.sql ?? database.sql, secretBox, logger }),
    workflows: {
      ...IDLE_WORKFLOWS,
      healBinding: (bindingId) => void healed.push(bindingId),
    },
    webhookCache: new WebhookCache(),
    readiness: async () => [{ name: 'clock', ok: true, detail: null, optional: true }],
    ...overrides,
  });
  const handle = app.callback();
  server.on('request', (request, response) => void handle(request, response));

  return {
    url,
    database,
    sql: database.sql,
    healed,
    clock,
    flushRefusals: refusals.flush,
    call: (method, path, options) => sendRequest(url, method, path, options),
    close: async () => {
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
      await refusals.flush();
      await database.drop();
    },
  };
}

export interface TestAccount {
  readonly accountId: AccountId;
  readonly key: string;
}

/** Creates an account with a key of these permissions. */
export async function newAccount(
  api: TestApi,
  permissions: readonly Permission[] = PERMISSIONS,
): Promise<TestAccount> {
  const { id } = await createAccount(api.sql, 'Account');
  const { key } = await createAccountKey(api.sql, id, permissions);
  return { accountId: id, key };
}

export interface TestApp extends TestAccount {
  readonly appId: string;
  readonly sdkKey: string;
  readonly linkSubdomain: string;
}

/** Creates an app, of a new account unless one is given. */
export async function newApp(api: TestApi, account?: TestAccount, settings: object = {}): Promise<TestApp> {
  const owner = account ?? (await newAccount(api));
  const { status, body } = await api.call<{ id: string; sdkKey: string; linkSubdomain: string }>(
    'POST',
    '/apps',
    {
      key: owner.key,
      body: { name: 'App', ...settings },
    },
  );
  if (status !== 201) throw new Error(`POST /apps: ${status} ${JSON.stringify(body)}`);
  const { id: appId, sdkKey, linkSubdomain } = body;
  return { ...owner, appId, sdkKey, linkSubdomain };
}

/** Creates an affiliate of an app. Returns its id. */
export async function newAffiliate(api: TestApi, app: TestApp, fields: object = {}): Promise<string> {
  const { status, body } = await api.call<{ id: string }>('POST', `/apps/${app.appId}/affiliates`, {
    key: app.key,
    body: { name: 'Creator', ...fields },
  });
  if (status !== 201) throw new Error(`POST affiliates: ${status} ${JSON.stringify(body)}`);
  return body.id;
}

/** Creates a link of an affiliate. */
export async function newLink(
  api: TestApi,
  app: TestApp,
  affiliateId: string,
  fields: object = {},
): Promise<{ id: string; slug: string }> {
  const { status, body } = await api.call<{ id: string; slug: string }>('POST', `/apps/${app.appId}/links`, {
    key: app.key,
    body: { affiliateId, destinationUrl: 'https://example.com/get', ...fields },
  });
  if (status !== 201) throw new Error(`POST links: ${status} ${JSON.stringify(body)}`);
  return body;
}
