import { listCodesInUse } from '../db/code-arrivals.ts';
import { keepSelfTestResult } from '../db/self-tests.ts';
import type { AppId } from '../domain/ids.ts';
import { PROVIDER_NAMES } from '../providers/index.ts';
import { checkApp } from './app-checks.ts';
import { checkProvider } from './provider-checks.ts';
import type { ProviderReport } from './provider-checks.ts';
import { SelfTestSession } from './session.ts';
import type { SelfTestDeps } from './session.ts';
import { allPass } from './steps.ts';
import type { APP_STEPS, Step } from './steps.ts';

/** The result of a self-test. */
export interface SelfTestReport {
  /** Whether nothing keeps sales from counting. Advice does not matter here. */
  readonly ok: boolean;
  /** Epoch ms. */
  readonly checkedAt: number;
  readonly providers: readonly ProviderReport[];
  readonly app: readonly Step<(typeof APP_STEPS)[number]>[];
}

/**
 * Sends a test purchase of each configured provider through the whole pipeline, over HTTP, one after the other, and
 * reports each step. Every request is announced to the database first, so that it counts as a sandbox test and never
 * becomes money (docs/money.md). Ends within its time limit, whatever does not respond.
 */
export async function runSelfTest(deps: SelfTestDeps, appId: AppId): Promise<SelfTestReport> {
  const checkedAt = deps.now();
  const session = new SelfTestSession(deps, appId);
  const providers: ProviderReport[] = [];
  const codes = await listCodesInUse(deps.sql, appId);
  for (const provider of PROVIDER_NAMES) providers.push(await checkProvider(session, provider, codes));
  const connected = providers.filter(({ configured }) => configured).map(({ provider }) => provider);
  const app = await checkApp(session, connected, codes);
  const ok = providers.every((report) => report.ok) && allPass(app);
  await keepSelfTestResult(deps.sql, appId, ok ? checkedAt : null);
  return { ok, checkedAt, providers, app };
}
