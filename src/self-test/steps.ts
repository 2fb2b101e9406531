/** The steps of one provider and of the app as a whole. The names are part of the API and never change. */
export const PROVIDER_STEPS = [
  'secret',
  'public_address',
  'accepted',
  'processed',
  'tampered_refused',
  'read',
  'code_read',
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
  'purchase_codes',
  'exchange_rates',
] as const;
export type StepName = (typeof PROVIDER_STEPS)[number] | (typeof APP_STEPS)[number];

/** `error`: no sale can count until it is fixed. `advice`: it may be correct and is worth checking. */
export const STEP_LEVELS = ['error', 'advice'] as const;
type StepLevel = (typeof STEP_LEVELS)[number];

/** The result of one step. */
export interface Step<N extends StepName = StepName> {
  readonly step: N;
  readonly level: StepLevel;
  readonly ok: boolean;
  /** What was found, in one sentence. */
  readonly detail: string;
  /** What to change and where; null when nothing has to change. */
  readonly fix: string | null;
}

/** A step that concerns the whole app. */
export type AppStep = Step<(typeof APP_STEPS)[number]>;

/** Returns a step that passed. */
export function passed<N extends StepName>(step: N, detail: string, level: StepLevel = 'error'): Step<N> {
  return { step, level, ok: true, detail, fix: null };
}

/** Returns a step whose failure keeps sales from counting, and how to fix it. */
export function failed<N extends StepName>(step: N, detail: string, fix: string): Step<N> {
  return { step, level: 'error', ok: false, detail, fix };
}

/** Returns a step that may be correct, and what to do if it is not. */
export function advice<N extends StepName>(step: N, detail: string, fix: string): Step<N> {
  return { step, level: 'advice', ok: false, detail, fix };
}

/** Returns whether no step keeps sales from counting. */
export function allPass(steps: readonly Step[]): boolean {
  return steps.every(({ ok, level }) => ok || level === 'advice');
}
