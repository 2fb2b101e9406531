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
import { PUBLIC_URL, signInCreator, signInOperator } from '../support/sessions.ts';
import { signInManager } from '../support/members.ts';
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
  // The service is known under another address than the one at which it listens here.
  const fromOwnPage = command.replace('Origin: $API', `Origin: ${PUBLIC_URL}`);
  return (Object.keys(ID_PREFIXES) as IdKind[]).reduce(
    (text, kind) => text.replaceAll(exampleId(kind), tenant.ids[kind]),
    fromOwnPage,
  );
}

/** Signs in as each kind of caller that has a session. Returns the value of its cookie. */
const signInAs: Partial<Record<Route['auth'], () => Promise<{ readonly cookie: string }>>> = {
  session: async () => await signInManager(api, tenant),
  creator: async () => await signInCreator(api, tenant, tenant.ids.affiliate),
  operator: async () => await signInOperator(api),
};

/** Calls that are refused here: the example names nothing that exists, or needs the session of a member. */
const REFUSED: ReadonlyMap<string, number> = new Map([
  ['POST /session/mail-link', 403],
  ['POST /session/passkeys/raise-options', 403],
  ['POST /session/passkeys/options', 403],
  ['GET /session/passkeys', 403],
  ['POST /session/passkeys', 403],
  ['POST /session/passkeys/:passkeyId/revoke', 403],
  ['POST /session/raise', 403],
  ['POST /creator/payee-changes/:id/confirm', 404],
  ['POST /creator/sessions/:id/end', 404],
]);

/** Returns the lines that call a route as its reader would. Each has a session of its own: some calls end theirs. */
async function callOf(route: Route): Promise<string> {
  const session = await signInAs[route.auth]?.();
  const value = session === undefined ? [] : [`SESSION=${session.cookie.split('=')[1]}`];
  return [...value, commandOf(route)].join('\n');
}

test.each(['account', 'sdk', 'session', 'creator', 'operator'] as const)(
  'the service accepts the commands of the API reference for a caller of the kind "%s"',
  async (auth) => {
    // What is deleted or ended is needed before.
    const isLast = ({ method, path }: Route) => Number(method === 'DELETE' || /\/end(-all)?$/.test(path));
    const called = routes.filter((route) => route.auth === auth).toSorted((a, b) => isLast(a) - isLast(b));
    const calls = await Promise.all(called.map(async (route) => await callOf(route)));
    const script = [`curl() { command curl -o /dev/null -w '%{http_code}\\n' "$@"; }`, ...calls].join('\n');
    // The API runs in this process, so it must not wait.
    const { stdout } = await promisify(execFile)('bash', ['-euc', script], {
      env: {
        PATH: process.env['PATH'],
        API: api.url,
        KEY: tenant.key,
        SDK_KEY: tenant.sdkKey,
        APP: tenant.appId,
      },
    });
    const statuses = stdout.trim().split('\n').map(Number);
    expect(statuses).toHaveLength(called.length);
    // A 409 is about the state of the app, such as a name that is taken. No workflow runs here, so an export is a 503.
    const refused = called.flatMap((route, index) => {
      const name = `${route.method} ${route.path}`;
      const status = statuses[index] ?? 0;
      const isAccepted = status < 300 || [409, 503, REFUSED.get(name)].includes(status);
      return isAccepted ? [] : [`${name}: ${status}`];
    });
    expect(refused).toEqual([]);
  },
  180_000,
);
