import type { AppId } from '../domain/ids.ts';
import { PROVIDER_NAMES } from '../providers/provider.ts';
import { testApp } from './app-steps.ts';
import { testProvider } from './provider-steps.ts';
import type { ProviderReport } from './provider-steps.ts';
import { Run } from './run.ts';
import type { SelfTestDeps } from './run.ts';
import { isSound } from './steps.ts';
import type { APP_STEPS, Step } from './steps.ts';

/** How an app's set-up came out. */
export interface SelfTestReport {
  /** Whether nothing was found that keeps sales from counting. Advice does not count. */
  readonly ok: boolean;
  /** Epoch ms. */
  readonly checkedAt: number;
  readonly providers: readonly ProviderReport[];
  readonly app: readonly Step<(typeof APP_STEPS)[number]>[];
}

/**
 * Plays a made-up purchase of each configured provider through the whole pipeline, over HTTP, one after the other, and
 * says step by step what works. Whatever it sends is announced to the database first, so that it is a test of the
 * sandbox and can't become money (docs/money.md). It ends within its time limit, whatever does not answer.
 */
export async function runSelfTest(deps: SelfTestDeps, appId: AppId): Promise<SelfTestReport> {
  const checkedAt = deps.now();
  const run = new Run(deps, appId);
  const providers: ProviderReport[] = [];
  for (const provider of PROVIDER_NAMES) providers.push(await testProvider(run, provider));
  const app = await testApp(run, providers.filter(({ configured }) => configured).length);
  return { ok: providers.every(({ ok }) => ok) && isSound(app), checkedAt, providers, app };
}
