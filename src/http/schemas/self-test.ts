import * as z from 'zod';
import { PROVIDER_NAMES } from '../../providers/index.ts';
import { APP_STEPS, PROVIDER_STEPS, STEP_LEVELS } from '../../self-test/steps.ts';
import { epochMs, textLike } from './common.ts';

function step<const T extends readonly [string, ...string[]]>(names: T) {
  return z.object({
    step: z.enum(names),
    level: z.enum(STEP_LEVELS).describe('`error`: no sale can count while it is so; `advice`: worth a look'),
    ok: z.boolean(),
    detail: textLike('A signed purchase was answered 200 after 38 ms.', 'what was seen, in one sentence'),
    fix: textLike(
      'Have the operator set PUBLIC_URL to the address that is redirected to.',
      'what to change, and where; null when nothing has to be',
    ).nullable(),
  });
}

export const selfTest = z.object({
  ok: z.boolean().describe('true when no step of level `error` failed'),
  checkedAt: epochMs,
  providers: z.array(
    z.object({
      provider: z.enum(PROVIDER_NAMES),
      configured: z.boolean(),
      ok: z.boolean(),
      steps: z.array(step(PROVIDER_STEPS)),
    }),
  ),
  app: z.array(step(APP_STEPS)),
});
