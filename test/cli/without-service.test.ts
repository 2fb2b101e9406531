import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { insertEarning } from '../support/ledger.ts';
import { csvOf, revenuecatRows } from '../support/provider-exports.ts';
import { TEST_SECRETS_KEY } from '../support/service.ts';

// Commands whose work a running service does, on a database that none uses.

let api: TestApi;
let folder: string;

beforeAll(async () => {
  api = await startTestApi();
  folder = await mkdtemp(path.join(tmpdir(), 'without-service-'));
});
afterAll(async () => {
  await api.close();
  await rm(folder, { recursive: true });
});

async function admin(...args: string[]) {
  let [out, err] = ['', ''];
  const { url } = api.database;
  const status = await runAdmin(args, {
    openDatabase: async () => ({ url, ownerUrl: url, close: async () => {} }),
    secretsKeys: { read: async () => [TEST_SECRETS_KEY], require: async () => {} },
    findService: async () => null,
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    serviceTimeoutMs: 500,
  });
  return { status, out, err };
}

// @promise recover-command
test('recover reports payments as started only once they were evaluated, and ends with status 1 otherwise', async () => {
  const app = await newApp(api);
  const occurredAt = Date.now() - 40 * DAY_MS;
  await insertEarning(api, app, {
    affiliateId: await newAffiliate(api, app),
    amountCents: 100,
    occurredAt,
    dueAt: occurredAt + DAY_MS,
  });
  await api.sql`update bindings set healed_at = now()`;
  await api.sql`update payments set recheck_since = now()`;
  const recover = async () => {
    const { status, out, err } = await admin('recover');
    const row = out.split('\n').find((line) => line.includes('payments to evaluate again'));
    return { status, counts: row?.match(/\d+/g), isSaid: err.includes('A part was not started') };
  };
  expect(await recover()).toEqual({ status: 1, counts: ['1', '0'], isSaid: true });
  await api.sql`update payments set recheck_since = null`;
  expect(await recover()).toEqual({ status: 0, counts: ['0', '0'], isSaid: false });
});

// @promise reconcile-feeds-back
test('reconcile ends with status 3 when nothing processes what it adds, and says how much it did not add', async () => {
  const app = await newApp(api);
  const body = { environment: 'production' };
  await api.call('PUT', `/apps/${app.appId}/webhooks/revenuecat/secret`, { key: app.key, body });
  const second = Math.floor(Date.now() / 1000) * 1000;
  const sales = Array.from({ length: 203 }, (_, n) => ({
    userId: `user-${n}`,
    cents: 1_200,
    ref: `sale-${n}`,
    occurredAt: second - DAY_MS - n * 1_000,
    refundedAt: null,
  }));
  const file = path.join(folder, 'export.csv');
  await writeFile(file, csvOf(revenuecatRows(sales)));
  const options = ['--app', app.appId, '--provider', 'revenuecat', '--feed-back', '--without-match'];
  const { status, err } = await admin('reconcile', file, ...options);
  expect({ status, err }).toEqual({
    status: 3,
    err: expect.stringContaining(
      'has processed 200 of the added events in time. They are stored: a running service processes them. 3 other events were not added.',
    ),
  });
});
