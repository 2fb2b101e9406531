import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLogger } from '../../src/config/logger.ts';
import { newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { runOn } from '../support/postgres-admin.ts';

interface Line {
  readonly level: string;
  readonly msg?: string;
  readonly problem?: string;
}

const lines: Line[] = [];
let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  const logger = createLogger('info', {
    write: (text) =>
      void lines.push(
        ...text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as Line),
      ),
  });
  api = await startTestApi({ logger });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

// @promise log-repeats
test('requests that Postgres refuses for a reason that lasts are one error in the log', async () => {
  await runOn(api.database.url, 'alter table links rename to renamed_links');
  for (let n = 0; n < 20; n += 1)
    expect((await api.call('GET', `/apps/${app.appId}/links`, { key: app.key })).status).toBe(503);
  await runOn(api.database.url, 'alter table renamed_links rename to links');
  const errors = lines.filter(({ level }) => level === 'error');
  expect(errors).toMatchObject([{ msg: 'request failed', problem: expect.stringContaining('migrations') }]);
});
