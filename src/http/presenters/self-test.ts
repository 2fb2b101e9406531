import type { SelfTestReport } from '../../self-test/run-self-test.ts';
import type { Step, StepName } from '../../self-test/steps.ts';

function presentStep<N extends StepName>({ step, level, ok, detail, fix }: Step<N>) {
  return { step, level, ok, detail, fix };
}

/** How an app's set-up came out. Names no secret and no user but those that were made up for it. */
export function presentSelfTest({ ok, checkedAt, providers, app }: SelfTestReport) {
  return {
    ok,
    checkedAt,
    providers: providers.map(({ provider, configured, ok: isFine, steps }) => ({
      provider,
      configured,
      ok: isFine,
      steps: steps.map(presentStep),
    })),
    app: app.map(presentStep),
  };
}
