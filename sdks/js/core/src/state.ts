import type { Referral } from './referral.ts';

/** A referral that was not answered yet. */
export interface Touch extends Referral {
  /** When it came, epoch ms. */
  at: number;
  isCorrected?: boolean;
  /** Whether the service refused the time. The code is then sent without one. */
  isUntimed?: boolean;
}

export interface User {
  readonly id: string;
  /** The signature of the app's server, if the app verifies user ids. */
  readonly signature?: string | undefined;
  /** When the user was identified, epoch ms. */
  at: number;
  /** `unattributed`: the service knows the pair; it is sent again after an install is attributed. */
  status: 'pending' | 'unattributed' | 'bound';
  isCorrected?: boolean;
}

/** A `Retry-After`. */
export interface Pause {
  /** No request before this instant, epoch ms. */
  notBefore: number;
  /** Its length, ms. A state of an earlier build has none. */
  pauseMs?: number;
}

/** Everything that the SDK stores. */
export interface State extends Pause {
  readonly version: 1;
  /** The base address that the state belongs to, with `#test` if the key is a test key. */
  readonly host: string;
  /** False after an opt-out, and while the consent is undecided. Everything else that is stored is then empty. */
  enabled: boolean;
  /** Whether the person was not asked yet. */
  isUndecided?: boolean | undefined;
  readonly deviceId: string;
  /** The first start on this device, epoch ms. Changes only if the clock of the device was wrong. */
  firstOpenAt: number;
  isFirstOpenCorrected?: boolean;
  affiliateId: string | null;
  touches: Touch[];
  users: User[];
  /** The identities of the latest answered touches, and whether the service accepted them. */
  answered: { readonly touch: string; readonly isAccepted: boolean }[];
  isDeferredAnswered: boolean;
}

/** Returns the device id, or null before the start and without a consent. */
export const deviceIdOf = (state?: Readonly<State>): string | null =>
  state?.enabled ? state.deviceId : null;

/** How many touches and how many users wait at most. */
export const MAX_WAITING = 5;
const MAX_ANSWERED = 10;
const DAY_MS = 86_400_000;
export const MAX_AGE_MS = 90 * DAY_MS;
/** How long after the first open a deferred match is asked for, and how long a `Retry-After` may be. */
export const ONE_DAY_MS = DAY_MS;

/** No clock that shows an earlier time is right: this SDK is younger. */
const EARLIEST_MS = 1.735e12;

/**
 * Returns the stored state, or undefined if there is none for this host. An opt-out counts for every host; of its state only
 * the consent, `isDeferredAnswered` and `firstOpenAt` may be used.
 */
export function parseState(text: string | null | undefined, host: string): State | undefined {
  try {
    const state = JSON.parse(text ?? '') as State;
    if (state.enabled === false) return state;
    const { touches, users, answered } = state;
    // What is no list throws, and so does an element without fields.
    const times = [...touches, ...users].map(({ at }) => at);
    const texts = [
      state.affiliateId ?? '',
      ...touches.flatMap(({ claimToken = '', code = '' }) => [claimToken, code]),
      ...users.flatMap(({ id, signature = '' }) => [id, signature]),
      ...answered.map(({ touch }) => touch),
    ];
    const isWhole =
      state.version === 1 &&
      state.host === host &&
      state.deviceId &&
      [state.firstOpenAt, state.notBefore, ...times].every(Number.isFinite) &&
      [state.deviceId, ...texts].every((text) => typeof text === 'string') &&
      users.every(({ status }) => /^(pending|unattributed|bound)$/.test(status));
    return isWhole ? state : undefined;
  } catch {
    return undefined;
  }
}

/** Returns what identifies a touch. Codes are compared without case. */
export function touchIdentity({ claimToken = '', code = '' }: Referral): string {
  return `${claimToken} ${code.toLowerCase()}`;
}

/** Marks a touch as answered. */
export function answerTouch(state: State, touch: Referral, isAccepted: boolean): void {
  const identity = touchIdentity(touch);
  state.touches = state.touches.filter((other) => touchIdentity(other) !== identity);
  state.answered = [
    ...state.answered.filter((other) => other.touch !== identity),
    { touch: identity, isAccepted },
  ].slice(-MAX_ANSWERED);
}

/**
 * Replaces times of a clock that was wrong and was set right meanwhile, and removes what has waited too long. Returns whether a time
 * was replaced. Corrected times are those of the service.
 */
export function settleTimes(state: State, now: number): boolean {
  let isChanged = false;
  const settled = (at: number, isCorrected?: boolean) => {
    if (isCorrected || (at <= now && (at >= EARLIEST_MS || now < EARLIEST_MS))) return at;
    isChanged = true;
    return now;
  };
  state.firstOpenAt = settled(state.firstOpenAt, state.isFirstOpenCorrected);
  for (const item of [...state.touches, ...state.users]) item.at = settled(item.at, item.isCorrected);
  state.touches = state.touches.filter(({ at }) => now - at <= MAX_AGE_MS);
  state.users = state.users.filter(({ at, status }) => status === 'bound' || now - at <= MAX_AGE_MS);
  return isChanged;
}
