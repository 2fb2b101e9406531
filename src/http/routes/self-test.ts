import type { Sql } from '../../db/sql.ts';
import type { AccountId, AppId } from '../../domain/ids.ts';
import { runSelfTest } from '../../self-test/run-self-test.ts';
import type { SelfTestReport } from '../../self-test/run-self-test.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { presentSelfTest } from '../presenters/self-test.ts';
import { route } from '../route.ts';
import * as schemas from '../schemas/self-test.ts';

/** Self-tests that run now, by database and account: each sends some twenty requests to this very service. */
const running = new WeakMap<Sql, Map<AccountId, number>>();
const OF_AN_ACCOUNT = 2;
const OF_ALL = 6;
const RETRY_AFTER_SECONDS = 10;

async function runOneOfFew(deps: HttpDeps, accountId: AccountId, appId: AppId): Promise<SelfTestReport> {
  const { sql, secretBox, now, publicUrl, ownUrl } = deps;
  const accounts = running.get(sql) ?? new Map<AccountId, number>();
  running.set(sql, accounts);
  const own = accounts.get(accountId) ?? 0;
  const all = [...accounts.values()].reduce((sum, count) => sum + count, 0);
  if (own >= OF_AN_ACCOUNT || all >= OF_ALL) {
    throw new ApiError('unavailable', {
      detail: 'Other self-tests are running.',
      headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
    });
  }
  accounts.set(accountId, own + 1);
  try {
    return await runSelfTest({ sql, secretBox, now, publicUrl, ownUrl }, appId);
  } finally {
    const left = (accounts.get(accountId) ?? 1) - 1;
    if (left === 0) accounts.delete(accountId);
    else accounts.set(accountId, left);
  }
}

export const selfTestRoutes = [
  route({
    method: 'POST',
    path: '/apps/:appId/self-test',
    auth: 'account',
    permission: 'setup',
    operationId: 'runSelfTest',
    summary:
      'Plays a made-up purchase of each configured provider through everything, and says what to mend.',
    description:
      'Takes less than a second when all is well, and about 20 seconds at most. Leaves test events of the sandbox and never money.',
    response: { status: 200, schema: schemas.selfTest },
    handler: async ({ deps, caller, app }) =>
      presentSelfTest(await runOneOfFew(deps, caller.accountId, app.id)),
  }),
];
