import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startTestService, temporalAddress } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let api: TestService;
let worker: TestService;
let founder: Founder;

beforeAll(async () => {
  api = await startTestService({ settings: { role: 'api' } });
  worker = await startTestService({
    settings: {
      role: 'worker',
      databaseUrl: api.database.url,
      temporal: {
        connection: { address: temporalAddress() },
        namespace: 'default',
        taskQueue: api.taskQueue,
      },
    },
  });
  founder = await setUpFounder(api);
});
afterAll(async () => {
  await api.close();
  await worker.close();
});

// @promise role-api-and-worker
test('a webhook and an export succeed when the API and the worker are separate services', async () => {
  const user = await founder.customer();
  const bought = await founder.purchase(user, 10);
  expect(bought.body.commissionId).toMatch(/^com_/);
  const csv = await founder.exportCsv();
  expect(csv.status).toBe(200);
  expect(csv.text.trimEnd().split('\r\n')).toHaveLength(2);
});
