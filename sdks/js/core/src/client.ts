import type { Inspection } from './debug.ts';
import { inTime } from './platform.ts';
import type { Platform, Storage } from './platform.ts';
import type { Referral } from './referral.ts';
import { clockErrorOf, FAILED, isStrange, MISCONFIGURED, OK, send } from './send.ts';
import type { Answer } from './send.ts';
import { answerTouch, MAX_WAITING, ONE_DAY_MS, parseState, settleTimes, touchIdentity } from './state.ts';
import type { Pause, State, Touch, User } from './state.ts';

/**
 * Whether other processes write to the storage, such as other tabs. The storage is then synchronous. A constant of the build, so
 * that each package contains one of the two ways only.
 */
declare const IS_SHARED: boolean;

/** After so many failures in a row the waits are long. */
const TRIES = 6;
const LONG_WAIT_MS = 600_000;
/** How long after a failure a start, a connection or the foreground waits. */
const EVENT_DELAY_MS = 5_000;
const DEFERRED_DELAY_MS = 2_000;
/** Within this time two first opens are one. */
const RIVAL_MS = 5_000;
const MAX_USER_ID_LENGTH = 512;
/** How many answers the debug state has. */
const MAX_ANSWERS = 10;

/** What the service said to a client, or to every client of a process. */
export interface Halt extends Pause {
  /** The key or the host is wrong. */
  isMisconfigured: boolean;
  /** Whether the log names an answer that was not of the service. */
  isReported?: boolean;
  /** How long after the answer that the key or the host is wrong it is tried again, ms. Otherwise at the next start. */
  readonly retryMs?: number;
}

export interface ClientOptions {
  readonly apiKey: string;
  /** The base address of the service, without a slash at its end. */
  readonly host: string;
  /** The storage key of the state. */
  readonly key: string;
  readonly storage: Storage;
  /** The device id, if the host app assigns it. Otherwise a new one is made and stored. */
  readonly deviceId?: string;
  /** Whether a first open without a referral asks for a deferred match. */
  readonly deferredMatch?: boolean | undefined;
  /** Writes a line that tells the developer what to change. */
  readonly warn: (line: string) => void;
  readonly debug: (line: string) => void;
  readonly onAttribution?: ((affiliateId: string) => void) | undefined;
  /** What several clients share. The start of one of them does not end it. */
  readonly halt?: Halt;
}

/** A request to send next. `deferred` has neither a touch nor a user. */
interface Job {
  readonly touch?: Touch;
  readonly user?: User;
}

/**
 * Delivers the referrals and users of one device, one request at a time. The rules are those of SPEC.md. No function
 * throws or rejects.
 */
export interface Client {
  /** Makes the calls that came before the start, and begins to deliver. */
  start(calls: readonly ((client: Client) => unknown)[]): void;
  /** Tries again: the device is connected again, or the app is back in the foreground. */
  retry(): void;
  identify(userId: string, signature?: string): Promise<boolean>;
  /** Delivers a referral. A referral that was refused is asked for again only if a user enters it (`isEntered`). */
  refer(referral: Referral | undefined, isEntered: boolean): Promise<boolean>;
  /** Returns what the SDK knows of the device. Without a consent (`enabled`) its device id may not leave the SDK. */
  current(): Readonly<State>;
  /** Returns what `describe` of debug.ts needs. */
  inspect(): Inspection;
  /** Deletes everything. An opt-out survives. */
  reset(): void;
  /**
   * True is the consent. Anything else before the start of a new installation means that the consent is undecided: referrals and
   * users wait in memory. Otherwise it is a refusal, which deletes everything.
   */
  setEnabled(enabled: unknown): void;
}

/** What a client also has if it alone writes to its storage (`IS_SHARED` is false). */
export interface OwnClient extends Client {
  start(calls: readonly ((client: OwnClient) => unknown)[]): void;
  /** Whether something is not delivered yet. */
  isWaiting(): boolean;
  /** Resolves when everything is stored. */
  saved(): Promise<void>;
  /** Resolves when nothing is being sent and everything is stored. */
  idle(): Promise<void>;
  /** Sends what waits, without waiting for the next try. Resolves when nothing is being sent and everything is stored. */
  deliver(): Promise<void>;
  /** Begins no further delivery. What is stored stays. */
  stop(): void;
}

/**
 * Creates the client of a device from its stored text; undefined means that it could not be read. `unnamedText` is what is stored for
 * the app without a name, whose refusal holds for a new installation of every app.
 */
export function createClient(
  platform: Platform,
  options: ClientOptions,
  storedText: string | null | undefined,
  unnamedText?: string | null,
): OwnClient {
  const { key, host, storage, warn, debug } = options;
  /** What the state belongs to. A live key reports everything anew: what a test key reported never earns. */
  const owner = `${options.apiKey}`.startsWith('pk_test_') ? `${host}#test` : host;
  const startedAt = platform.now();
  /** False if the storage failed: it may hold a state that must not be overwritten. */
  let isStorageUsable = storedText !== undefined;
  /** Whether what is stored was deleted by a call: every write then tries the storage, also after it failed. */
  let isReplaced = false;
  /** Whether this installation has no state yet. */
  let isFresh = false;
  /** The stored text that `latest` was read from or written to. */
  let latestText = storedText;
  let latest = parse();
  let saved: Promise<void> | undefined;
  let { deferredMatch } = options;
  const halt = (IS_SHARED ? undefined : options.halt) ?? { isMisconfigured: false, notBefore: 0 };
  let failures = 0;
  let failedAt = 0;
  let isRunning = false;
  let isHeld = false;
  /** Ends when the current request is answered or the wait for the deferred match is over. */
  let step: Promise<boolean> = Promise.resolve(true);
  let inFlight: AbortController | undefined;
  let cancelRetry: (() => void) | undefined;
  let wake: (() => void) | undefined;
  /** When the retry or the end of the sleep is due, epoch ms. */
  let nextTryAt = 0;
  let answers: Inspection[4] = [];
  if (!isStorageUsable) giveUpStorage();
  if (isFresh && isRefused(parseState(unnamedText, owner) ?? latest)) {
    latest = emptyState(false);
    isReplaced = isStorageUsable;
  }

  function giveUpStorage(): void {
    isStorageUsable = false;
    debug('The storage failed.');
  }

  function emptyState(enabled: boolean, isDeferredAnswered = false, isUndecided?: boolean): State {
    return {
      version: 1,
      host: owner,
      enabled,
      isUndecided,
      deviceId: enabled || isUndecided ? (!IS_SHARED && options.deviceId) || platform.newId() : '',
      firstOpenAt: platform.now(),
      affiliateId: null,
      touches: [],
      users: [],
      answered: [],
      isDeferredAnswered,
      notBefore: 0,
    };
  }

  function parse(): State {
    const stored = parseState(latestText, owner);
    isFresh = !stored;
    if (stored?.enabled !== false) return stored ?? emptyState(true);
    const state = emptyState(false, stored.isDeferredAnswered, stored.isUndecided);
    if (state.isUndecided && Number.isFinite(stored.firstOpenAt)) state.firstOpenAt = stored.firstOpenAt;
    return state;
  }

  /** Whether the person refused. While the consent is undecided, referrals and users wait in memory. */
  function isRefused({ enabled, isUndecided }: State): boolean {
    return !enabled && !isUndecided;
  }

  /** Returns the state. Reads it again if another process may have changed it. */
  function read(): State {
    if (IS_SHARED && isStorageUsable)
      try {
        const text = storage.get(key) as string | null;
        if (text !== latestText) {
          let other = latest;
          latestText = text;
          latest = parse();
          const isSame = other.deviceId === latest.deviceId;
          // Two pages of a first visit may each have made a state: browsers pass writes on with a delay.
          const isRival = text && other.enabled && !isSame;
          // What only this page has is kept, also what is in memory while the consent is undecided. After a reset the first open is another one.
          if (
            (isSame || isRival || other.isUndecided) &&
            !isRefused(latest) &&
            Math.abs(other.firstOpenAt - latest.firstOpenAt) < RIVAL_MS
          ) {
            if (isRival && rank(other) < rank(latest)) [other, latest] = [latest, other];
            // A full list stays as it is: two pages would replace what the other one added without end.
            for (const touch of other.touches) if (!latest.touches[MAX_WAITING - 1]) addTouch(latest, touch);
            // A user of the same device who is missing was refused or replaced.
            for (const user of other.users)
              if (!isSame && !latest.users.some(({ id }) => id === user.id))
                latest.users.push({ ...user, status: 'pending' });
            if (isRival) save(latest);
          }
        }
      } catch {
        giveUpStorage();
      }
    return latest;
  }

  /**
   * Orders the devices of a first visit. The first one stays, the same in every tab: the one with an attribution, then with a referral,
   * because a claim token belongs to the device that sent it, then with the smaller id.
   */
  function rank({ affiliateId, touches, answered, deviceId }: State): string {
    return `${[!affiliateId, !touches[0] && !answered[0], deviceId]}`;
  }

  function save(state: State): void {
    store(JSON.stringify(state.isUndecided ? { ...state, deviceId: '', touches: [], users: [] } : state));
  }

  function store(text: string | null): void {
    latestText = text;
    if (!isStorageUsable && !isReplaced) return;
    const write = () => (text === null ? storage.remove(key) : storage.set(key, text));
    if (IS_SHARED)
      try {
        void write();
        // Some storages ignore a write without a word, such as a cookie that is too long.
        if ((storage.get(key) ?? null) !== text) giveUpStorage();
      } catch {
        giveUpStorage();
      }
    else
      saved = Promise.resolve(saved)
        .then(() => inTime(platform, write()))
        .catch(giveUpStorage);
  }

  /** Deletes everything but the consent and whether the deferred match is done. */
  function replaceState(enabled: boolean, isDeferredAnswered: boolean, isUndecided?: boolean): void {
    deferredMatch = false;
    isReplaced = true;
    inFlight?.abort();
    inFlight = undefined;
    cancelTimers();
    failures = 0;
    latest = emptyState(enabled, isDeferredAnswered, isUndecided);
    if (enabled && !options.deferredMatch) store(null);
    else save(latest);
  }

  /** Returns whether the touch is new. */
  function addTouch(state: State, touch: Touch): boolean {
    const identity = touchIdentity(touch);
    const isKnown =
      state.touches.some((other) => touchIdentity(other) === identity) ||
      state.answered.some(({ touch: known }) => known === identity);
    if (isKnown) return false;
    state.touches = [...state.touches, touch].slice(-MAX_WAITING);
    save(state);
    return true;
  }

  /** Delivers what a call added. A call that added nothing does not shorten the wait after a failure. */
  function deliver(isNew: boolean): void {
    if (isNew || !cancelRetry) flush();
  }

  function flush(): void {
    cancelTimers();
    if (!isRunning && !isHeld) void run();
  }

  function cancelTimers(): void {
    cancelRetry?.();
    cancelRetry = undefined;
    wake?.();
  }

  /** Calls `run` after `ms`, when the next try is made. */
  function tryAfter(ms: number, run: () => void): () => void {
    nextTryAt = platform.now() + ms;
    return platform.after(ms, run);
  }

  function retryAfter(ms: number): void {
    cancelRetry?.();
    cancelRetry = tryAfter(ms, () => {
      cancelRetry = undefined;
      flush();
    });
  }

  /** Sends what waits. Never rejects: whatever a step throws, the next call can send again. */
  async function run(): Promise<void> {
    isRunning = true;
    try {
      for (let job = nextJob(); job !== undefined; job = nextJob()) {
        step = typeof job === 'number' ? sleep(job) : perform(job);
        if (!(await step)) break;
      }
    } catch {
      // What waits is sent with the next call or at the next start.
    }
    isRunning = false;
  }

  async function sleep(ms: number): Promise<boolean> {
    await new Promise<void>((resolve) => tryAfter(ms, (wake = resolve)));
    wake = undefined;
    return true;
  }

  /** Whether to ask for a deferred match. A state that can't be kept may not be that of a first open. */
  function isDeferredWanted(): boolean | undefined {
    return (
      isStorageUsable &&
      deferredMatch &&
      !latest.isDeferredAnswered &&
      !latest.affiliateId &&
      !latest.answered[0] &&
      // A corrected first open is in the time of the service, which the device's clock does not show.
      (latest.isFirstOpenCorrected || platform.now() - latest.firstOpenAt <= ONE_DAY_MS)
    );
  }

  /** Returns what to send next, or how long to wait for it in ms, or undefined if there is nothing to send now. */
  function nextJob(): Job | number | undefined {
    const state = read();
    const now = platform.now();
    if (!state.enabled) return undefined;
    if (settleTimes(state, now)) save(state);
    const user = state.users.find(({ status }) => status === 'pending');
    const [touch] = state.touches;
    const needsDeferred = isDeferredWanted();
    if (!touch && !needsDeferred && !user) return undefined;
    // Devices that received the same time do not come all at once.
    const factor = 1 + platform.random() / 2;
    if (halt.isMisconfigured) {
      if (!IS_SHARED && halt.retryMs) retryAfter(halt.retryMs * factor);
      return undefined;
    }
    const longer = IS_SHARED || state.notBefore >= halt.notBefore ? state : halt;
    const pause = longer.notBefore - now;
    // One that is longer than at its beginning is none: the clock was set back.
    if (pause > 0 && !(pause > longer.pauseMs!) && pause <= ONE_DAY_MS) {
      retryAfter(pause * factor);
      return undefined;
    }
    if (touch) return { touch };
    const deferredIn = startedAt + DEFERRED_DELAY_MS - now;
    // After the clock was set back the time is over, or nothing is known: a user behind it must not wait for the clock.
    if (needsDeferred) return deferredIn > 0 && deferredIn <= DEFERRED_DELAY_MS ? deferredIn : {};
    return user && { user };
  }

  /** Sends a request and applies its answer. Returns whether the next one may follow. */
  async function perform({ touch, user }: Job): Promise<boolean> {
    const request = (inFlight = new AbortController());
    // What the app refuses or deletes in the same task is not sent, also where nothing is waited for.
    await saved;
    if (inFlight !== request) return true;
    const { deviceId, firstOpenAt } = latest;
    const path = user ? 'identify' : 'install';
    const body = {
      deviceId,
      acceptUnattributed: true,
      sdk: platform.sdk,
      ...(user
        ? { customerUserId: user.id, identifiedAt: user.at, signature: user.signature }
        : {
            firstOpenAt,
            claimToken: touch?.claimToken,
            affiliateCode: touch?.code,
            codeEnteredAt: touch?.code && !touch.isUntimed ? touch.at : undefined,
            deferred: !touch || undefined,
          }),
    };
    const answer = await send(platform, `${host}/sdk/${path}`, options.apiKey, body, request);
    const state = read();
    // An answer after a reset counts for nothing, also if another tab was reset.
    if (inFlight !== request || state.deviceId !== deviceId) return true;
    inFlight = undefined;
    answers = [...answers, [touch, user, answer.meaning, answer.status, answer.body.code] as const].slice(
      -MAX_ANSWERS,
    );
    debug(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    if (answer.meaning === MISCONFIGURED) {
      // Requests of several clients may be under way.
      if (IS_SHARED || !halt.isMisconfigured)
        warn(`The service answered ${answer.status}: check apiKey and apiBaseUrl.`);
      halt.isMisconfigured = true;
      return true;
    }
    if (answer.meaning === FAILED) {
      failures += 1;
      failedAt = platform.now();
      if (isStrange(answer.status) && !halt.isReported) {
        halt.isReported = true;
        warn(`Something answered ${answer.status}: check apiBaseUrl.`);
      }
      if (answer.afterMs) {
        state.notBefore = failedAt + (state.pauseMs = answer.afterMs);
        save(state);
        // A 429 is about one device: no visitor stops the others of a server.
        if (!IS_SHARED && answer.status !== 429)
          [halt.notBefore, halt.pauseMs] = [state.notBefore, state.pauseMs];
      }
      const factor = 1 + platform.random() / 2;
      const wait = failures < TRIES ? 1000 * 2 ** failures : LONG_WAIT_MS;
      retryAfter(Math.max(wait * (factor - 0.5), answer.afterMs * factor));
      return false;
    }
    failures = 0;
    const isAttributed = answer.meaning === OK && typeof answer.body.attributionId === 'string';
    if (user) applyToUser(state, user, answer, isAttributed);
    else applyToTouch(state, touch, answer, isAttributed);
    save(state);
    return true;
  }

  function applyToTouch(state: State, touch: Touch | undefined, answer: Answer, isAttributed: boolean): void {
    const clockErrorMs = clockErrorOf(answer, 'firstOpenAt');
    if (clockErrorMs && !state.isFirstOpenCorrected) {
      state.firstOpenAt += clockErrorMs;
      state.isFirstOpenCorrected = true;
    } else if (touch) {
      const codeErrorMs = clockErrorOf(answer, 'codeEnteredAt');
      if (codeErrorMs === undefined || touch.isUntimed)
        answerTouch(state, touch, isAttributed && answer.body.touch !== 'unknown');
      // Without its time the code counts from the request, which is better than not at all.
      else if (!isCorrected(touch, codeErrorMs)) touch.isUntimed = true;
    } else state.isDeferredAnswered = true;
    if (!isAttributed) return;
    for (const user of state.users) if (user.status === 'unattributed') user.status = 'pending';
    attributed(state, answer.body.affiliateId);
  }

  function applyToUser(state: State, sent: User, answer: Answer, isAttributed: boolean): void {
    const user = state.users.find(({ id }) => id === sent.id);
    if (!user) return;
    if (isCorrected(user, clockErrorOf(answer, 'identifiedAt'))) return;
    if (isAttributed) {
      user.status = 'bound';
      // The device keeps its own attribution.
      if (!state.affiliateId) attributed(state, answer.body.affiliateId);
    } else if (answer.meaning === OK || answer.body.code === 'no_attribution') user.status = 'unattributed';
    // A user who came with another signature meanwhile is sent next.
    else if (sent.signature === user.signature) {
      state.users = state.users.filter((other) => other !== user);
      warn(`identify: the service refused the user id (${answer.body.code}).`);
    }
  }

  /** Moves a time that the service refused by the error of the clock, once. Returns whether it did. */
  function isCorrected(item: Touch | User, clockErrorMs?: number): boolean {
    if (!clockErrorMs || item.isCorrected) return false;
    item.at += clockErrorMs;
    return (item.isCorrected = true);
  }

  function attributed(state: State, affiliateId: string | null | undefined): void {
    if (typeof affiliateId === 'string' && affiliateId && state.affiliateId !== affiliateId)
      // Calls the app after the state is stored: the app may refuse or delete. It may also throw or reject, with anything.
      Promise.resolve((state.affiliateId = affiliateId))
        .then(options.onAttribution)
        .catch((error) => warn(`onAttribution threw: ${error as string}`))
        .catch(() => {});
  }

  /** Waits until `get` returns something or nothing more is being sent. */
  async function result(get: () => boolean | undefined): Promise<boolean> {
    for (;;) {
      const value = get();
      if (value !== undefined) return value;
      if (!isRunning) return false;
      await step.catch(() => {});
      // Lets the loop take its next step.
      await null;
    }
  }

  async function refer(referral: Referral | undefined, isEntered: boolean): Promise<boolean> {
    const state = read();
    if (!referral || isRefused(state)) return false;
    const identity = touchIdentity(referral);
    const answerIn = ({ answered }: State) => answered.find(({ touch }) => touch === identity)?.isAccepted;
    if (isEntered && answerIn(state) === false)
      state.answered = state.answered.filter(({ touch }) => touch !== identity);
    deliver(addTouch(state, { ...referral, at: platform.now() }));
    return await result(() => {
      const current = read();
      const isWaiting = current.touches.some((touch) => touchIdentity(touch) === identity);
      return isWaiting ? undefined : (answerIn(current) ?? false);
    });
  }

  const client: Client = {
    start: (calls) => {
      if (IS_SHARED || !options.halt) halt.isMisconfigured = false;
      // Nothing is stored or sent until every call is queued: touches go first, and an opt-out holds for this start.
      isHeld = true;
      for (const call of calls) void call(client);
      isHeld = false;
      const state = read();
      if (state.enabled || isReplaced) save(state);
      client.retry();
    },
    retry: () => {
      const wait = failedAt + EVENT_DELAY_MS - platform.now();
      // These events come often, also while the service is down. After the clock was set back nothing is known.
      if (failures > 0 && wait > 0 && wait <= EVENT_DELAY_MS) {
        cancelTimers();
        retryAfter(wait);
      } else flush();
    },
    identify: async (userId, given) => {
      if (typeof userId !== 'string' || !userId || userId.length > MAX_USER_ID_LENGTH) {
        warn('identify: the user id must be a text of 1 to 512 characters.');
        return false;
      }
      const state = read();
      const known = state.users.find(({ id }) => id === userId);
      if (isRefused(state)) return false;
      if (known?.status === 'bound') return true;
      // An empty signature is none.
      const signature = (typeof given === 'string' && given) || undefined;
      const isNew = !known || known.signature !== signature;
      if (isNew) {
        const user: User = {
          id: userId,
          at: platform.now(),
          status: 'pending',
          signature,
        };
        state.users = [...state.users.filter((other) => other !== known), user].slice(-MAX_WAITING);
        save(state);
      }
      deliver(isNew);
      return await result(() => {
        const status = read().users.find(({ id }) => id === userId)?.status;
        return status === 'pending' ? undefined : status === 'bound';
      });
    },
    refer,
    current: read,
    inspect: () => [
      platform,
      owner,
      read(),
      isStorageUsable,
      answers,
      isDeferredWanted(),
      inFlight || !(cancelRetry || wake) ? undefined : nextTryAt,
    ],
    reset: () => {
      // The next person on this device has not come from a link of this one.
      const { enabled, isUndecided } = read();
      replaceState(enabled, true, isUndecided);
    },
    setEnabled: (given) => {
      const state = read();
      // Whatever a consent tool passes: only true is a consent.
      const enabled = given === true;
      if (enabled && state.isUndecided) {
        state.enabled = true;
        state.isUndecided = undefined;
        save(state);
        flush();
      } else if (isHeld && !enabled && (isFresh || state.isUndecided)) {
        // Before the start this is no decision of the person.
        state.enabled = false;
        state.isUndecided = true;
        save(state);
      } else if (state.enabled !== enabled || state.isUndecided)
        replaceState(enabled, state.isDeferredAnswered);
    },
  };
  if (IS_SHARED) return client as OwnClient;
  const idle = async () => {
    await result(() => undefined);
    await saved;
  };
  return Object.assign(client, {
    isWaiting: () => {
      const { touches, users } = read();
      return touches.length > 0 || users.some(({ status }) => status === 'pending');
    },
    saved: () => Promise.resolve(saved),
    idle,
    deliver: () => {
      flush();
      return idle();
    },
    stop: () => {
      isHeld = true;
      cancelTimers();
    },
  });
}
