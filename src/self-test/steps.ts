/** What a self-test looks at, of one provider and of the app as a whole. Stable names. */
export const PROVIDER_STEPS = [
  'secret',
  'public_address',
  'accepted',
  'processed',
  'tampered_refused',
  'read',
  'repeat_is_duplicate',
  'counted_once',
  'no_money',
  'real_deliveries',
  'in_time',
] as const;
export const APP_STEPS = [
  'providers',
  'public_url',
  'links',
  'clicks',
  'installs',
  'identified',
  'user_ids',
  'exchange_rates',
] as const;
export type StepName = (typeof PROVIDER_STEPS)[number] | (typeof APP_STEPS)[number];

/** `error`: no sale can count while it is so. `advice`: may be as it should be, and is worth a look. */
export const STEP_LEVELS = ['error', 'advice'] as const;
type StepLevel = (typeof STEP_LEVELS)[number];

/** How one thing came out. */
export interface Step<N extends StepName = StepName> {
  readonly step: N;
  readonly level: StepLevel;
  readonly ok: boolean;
  /** What was seen, in one sentence. */
  readonly detail: string;
  /** What to change, and where; null when nothing has to be. */
  readonly fix: string | null;
}

/** A step that came out as it should. */
export function works<N extends StepName>(step: N, detail: string, level: StepLevel = 'error'): Step<N> {
  return { step, level, ok: true, detail, fix: null };
}

/** A step that keeps sales from counting, and what has to be changed. */
export function fails<N extends StepName>(step: N, detail: string, fix: string): Step<N> {
  return { step, level: 'error', ok: false, detail, fix };
}

/** Something that may be as it should be, and what to do if it is not. */
export function advises<N extends StepName>(step: N, detail: string, fix: string): Step<N> {
  return { step, level: 'advice', ok: false, detail, fix };
}

/** Whether nothing in a list of steps keeps sales from counting. */
export function isSound(steps: readonly Step[]): boolean {
  return steps.every(({ ok, level }) => ok || level === 'advice');
}
