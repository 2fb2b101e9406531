import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ID_PREFIXES } from '../../src/domain/ids.ts';
import type { IdKind } from '../../src/domain/ids.ts';
import { exampleId } from '../../src/http/fields.ts';
import type { Route } from '../../src/http/routing/route.ts';
import { routeGroups, routes } from '../../src/http/routes.ts';
import { apiPages, signatureOf } from '../../tools/site/api-reference.ts';
import { startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { newTenant } from '../support/tenant.ts';
import type { Tenant } from '../support/tenant.ts';

let api: TestApi;
let tenant: Tenant;

beforeAll(async () => {
  api = await startTestApi();
  tenant = await newTenant(api, 'mine');
});
afterAll(async () => {
  await api.close();
});

const reference = apiPages(routeGroups)
  .map(({ text }) => text)
  .join('\n');

/** Returns the command in the API reference that calls a route, with ids that exist. */
function commandOf(route: Route): string {
  const [, section = ''] = reference.split(`\n**${signatureOf(route)}**\n`);
  const [, command = ''] = /^```bash\n([\s\S]*?)\n```$/m.exec(section) ?? [];
  return (Object.keys(ID_PREFIXES) as IdKind[]).reduce(
    (text, kind) => text.replaceAll(exampleId(kind), tenant.ids[kind]),
    command,
  );
}

test('the service accepts the commands of the API reference that send an account key', async () => {
  // What is deleted is needed before.
  const called = routes
    .filter(({ auth }) => auth === 'account')
    .toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
  const script = [
    `curl() { command curl -o /dev/null -w '%{http_code}\\n' "$@"; }`,
    ...called.map((route) => commandOf(route)),
  ].join('\n');
  // The API runs in this process, so it must not wait.
  const { stdout } = await promisify(execFile)('bash', ['-euc', script], {
    env: { PATH: process.env['PATH'], API: api.url, KEY: tenant.key, APP: tenant.appId },
  });
  const statuses = stdout.trim().split('\n').map(Number);
  expect(statuses).toHaveLength(called.length);
  // A 409 is about the state of the app, such as a name that is taken. No workflow runs here, so an export is a 503.
  const refused = called.flatMap((route, index) => {
    const status = statuses[index] ?? 0;
    return status < 300 || [409, 503].includes(status) ? [] : [`${route.method} ${route.path}: ${status}`];
  });
  expect(refused).toEqual([]);
}, 180_000);
