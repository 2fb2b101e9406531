import type { Platform } from './platform.ts';
import type { State, Touch, User } from './state.ts';

/** A request: with a touch, with a user, or with neither for the deferred match. */
type Kind = 'token' | 'code' | 'deferred' | 'user';

/** What the SDK knows. SPEC.md defines the fields. There is no personal data in it. */
export interface DebugState {
  /** The name and version of the SDK. */
  readonly sdk: string;
  /** The base address, with `#test` if the key is a test key. */
  readonly host: string;
  readonly consent: 'granted' | 'undecided' | 'refused';
  /** The first eight characters of the device id, or null without a consent. */
  readonly deviceId: string | null;
  /** False if the storage failed: the state is in memory only. */
  readonly isStored: boolean;
  /** `attributed` with an affiliate; without one, `unknown` while something is queued, otherwise `none`. */
  readonly attribution: 'attributed' | 'unknown' | 'none';
  /** Whether a user was identified. */
  readonly hasUser: boolean;
  /** What is to be sent, in the order of sending. `ageSeconds` is how long it has waited, and null for `deferred`. */
  readonly queued: readonly { readonly kind: Kind; readonly ageSeconds: number | null }[];
  /** The last ten answers, the oldest first. */
  readonly answers: readonly {
    readonly kind: Kind;
    readonly outcome: 'accepted' | 'refused' | 'stopped' | 'failed';
    /** The HTTP status, or null if no response came. */
    readonly status: number | null;
    /** The code of the error, or null. */
    readonly code: string | null;
  }[];
  /** When what is queued is tried again, or null if nothing is planned or a request is under way. */
  readonly nextTryInSeconds: number | null;
}

/** What a client shows of itself. A list, because it is read by a file that is built apart. */
export type Inspection = readonly [
  platform: Platform,
  /** The `host` of the state. */
  owner: string,
  state: State,
  isStored: boolean,
  /** The last answers: the touch or the user, the outcome (a constant of send.ts), the status, and the code of the error. */
  answers: readonly (readonly [Touch | undefined, User | undefined, number, unknown, unknown])[],
  isDeferredWanted: boolean | undefined,
  /** When the next try is planned, epoch ms, or undefined. */
  nextTryAt: number | undefined,
];

const DEVICE_ID_LENGTH = 8;
const OUTCOMES = ['accepted', 'refused', 'stopped', 'failed'] as const;
/** A code of the service. A proxy may answer anything, also what it was sent. */
const PUBLIC_CODE = /^[a-z_]{1,64}$/;

function kindOf(touch?: Touch, user?: User): Kind {
  if (user) return 'user';
  if (!touch) return 'deferred';
  return touch.claimToken ? 'token' : 'code';
}

/** Returns what a client knows, for a developer, or null without a client. */
export function describe(inspection: Inspection | undefined): DebugState | null {
  if (!inspection) return null;
  const [platform, host, state, isStored, answers, isDeferredWanted, nextTryAt] = inspection;
  const { enabled, isUndecided, deviceId, affiliateId, touches, users } = state;
  const now = platform.now();
  const ageSeconds = ({ at }: Touch | User) => Math.floor(Math.max(0, now - at) / 1000);
  const queued = [
    ...touches.map((touch) => ({ kind: kindOf(touch), ageSeconds: ageSeconds(touch) })),
    ...(isDeferredWanted && (enabled || isUndecided) ? [{ kind: kindOf(), ageSeconds: null }] : []),
    ...users
      .filter(({ status }) => status === 'pending')
      .map((user) => ({ kind: kindOf(undefined, user), ageSeconds: ageSeconds(user) })),
  ];
  const isWaiting = queued.length > 0;
  return {
    sdk: platform.sdk,
    host,
    consent: enabled ? 'granted' : isUndecided ? 'undecided' : 'refused',
    deviceId: enabled ? deviceId.slice(0, DEVICE_ID_LENGTH) : null,
    isStored,
    attribution: affiliateId === null ? (isWaiting ? 'unknown' : 'none') : 'attributed',
    hasUser: users.length > 0,
    queued,
    answers: answers.map(([touch, user, outcome, status, code]) => ({
      kind: kindOf(touch, user),
      outcome: OUTCOMES[outcome]!,
      status: typeof status === 'number' ? status : null,
      code: typeof code === 'string' && PUBLIC_CODE.test(code) ? code : null,
    })),
    nextTryInSeconds:
      isWaiting && nextTryAt !== undefined ? Math.max(0, Math.ceil((nextTryAt - now) / 1000)) : null,
  };
}
