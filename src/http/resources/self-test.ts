import * as z from 'zod';
import type { AccountId, AppId } from '../../domain/ids.ts';
import { runSelfTest } from '../../self-test/run-self-test.ts';
import type { SelfTestReport } from '../../self-test/run-self-test.ts';
import { APP_STEPS, PROVIDER_STEPS, STEP_LEVELS } from '../../self-test/steps.ts';
import type { Step, StepName } from '../../self-test/steps.ts';
import type { HttpDeps } from '../deps.ts';
import { ApiError } from '../errors.ts';
import * as enums from '../enum-fields.ts';
import { epochMs, orNull, textField } from '../fields.ts';
import type { RateLimits } from '../rate-limits.ts';
import { accountApp } from '../routing/callers.ts';
import { route } from '../routing/route.ts';

/** The number of running self-tests, by service and account. Each sends about twenty requests to this service. */
const running = new WeakMap<RateLimits, Map<AccountId, number>>();
const ACCOUNT_LIMIT = 2;
const PROCESS_LIMIT = 6;
const RETRY_AFTER_SECONDS = 10;

function step<const T extends readonly [string, ...string[]]>(names: T) {
  return z.object({
    step: z.enum(names).describe('The name of the step. Stable.'),
    level: z
      .enum(STEP_LEVELS)
      .describe('`error`: no sale counts until it is fixed. `advice`: worth checking.'),
    ok: z.boolean().describe('Whether it passed.'),
    detail: textField(
      'The service accepted a signed test purchase with 200 after 38 ms.',
      'What the step found, in one sentence.',
    ),
    fix: orNull(
      textField(
        'Ask the operator to set PUBLIC_URL to the address that it redirects to.',
        'What to change, and where.',
      ),
      'Null if nothing needs to change.',
    ),
  });
}

const selfTest = z
  .object({
    ok: z.boolean().describe('True if no step of level `error` failed.'),
    checkedAt: epochMs('When the self-test began.'),
    providers: z
      .array(
        z.object({
          provider: enums.provider,
          configured: z.boolean().describe('Whether it has a webhook secret. If not, nothing is tested.'),
          ok: z.boolean().describe('True if no step of level `error` failed.'),
          steps: z.array(step(PROVIDER_STEPS)).describe('The steps of a test purchase, in order.'),
        }),
      )
      .describe('One per provider.'),
    app: z.array(step(APP_STEPS)).describe('Steps that concern the whole app.'),
  })
  .meta({ id: 'SelfTest', description: 'The result of each step of the self-test.' });

function presentStep<N extends StepName>({ step: name, level, ok, detail, fix }: Step<N>) {
  return { step: name, level, ok, detail, fix };
}

/** Never shows a secret, or a user other than the test users. */
function presentReport({ ok, checkedAt, providers, app }: SelfTestReport) {
  return {
    ok,
    checkedAt,
    providers: providers.map((row) => ({
      provider: row.provider,
      configured: row.configured,
      ok: row.ok,
      steps: row.steps.map(presentStep),
    })),
    app: app.map(presentStep),
  };
}

/** Runs the self-test. Throws 503 if the account or the process runs too many of them. */
async function runWithinLimits(deps: HttpDeps, accountId: AccountId, appId: AppId): Promise<SelfTestReport> {
  const { sql, secretBox, now, publicUrl, ownUrl, refusals, rateLimits } = deps;
  const accounts = running.get(rateLimits) ?? new Map<AccountId, number>();
  running.set(rateLimits, accounts);
  const own = accounts.get(accountId) ?? 0;
  const all = [...accounts.values()].reduce((sum, count) => sum + count, 0);
  if (own >= ACCOUNT_LIMIT || all >= PROCESS_LIMIT) {
    throw new ApiError('unavailable', {
      detail: 'Too many self-tests are running. Try again after `Retry-After` seconds.',
      headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
    });
  }
  accounts.set(accountId, own + 1);
  try {
    return await runSelfTest(
      { sql, secretBox, now, publicUrl, ownUrl, flushRefusals: refusals.flush },
      appId,
    );
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
    caller: accountApp('setup'),
    operationId: 'runSelfTest',
    summary: 'Tests the setup of an app with a test purchase of each configured provider.',
    description:
      'Sends each purchase through the public URL and the whole pipeline, and reports what to fix. Takes less than a second ' +
      'for a working setup and at most about 20 seconds. Stores sandbox test events and never writes a commission.',
    response: { status: 200, schema: selfTest },
    handler: async ({ deps, caller, app }) =>
      presentReport(await runWithinLimits(deps, caller.accountId, app.id)),
  }),
];
