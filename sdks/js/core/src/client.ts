import type { MaybePromise, Platform, Storage } from './platform.ts';
import { asCode, referralFrom } from './referral.ts';
import type { Referral } from './referral.ts';
import { send } from './send.ts';
import type { Answer } from './send.ts';
import {
  answerTouch,
  dropExpired,
  MAX_WAITING,
  newState,
  ONE_DAY_MS,
  parseState,
  touchIdentity,
} from './state.ts';
import type { State, Touch, User } from './state.ts';

const TRIES = 6;
const LONGEST_BACKOFF_MS = 60_000;
const DEFERRED_DELAY_MS = 2_000;
const MAX_USER_ID_LENGTH = 512;

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
  readonly deferredMatch: boolean;
  /** Whether other processes write to the storage, such as other tabs. It must then be synchronous. */
  readonly isShared?: boolean;
  /** Writes a line that tells the developer what to change. */
  readonly warn: (line: string) => void;
  readonly debug: (line: string) => void;
  readonly onAttribution: (affiliateId: string) => void;
}

/** A request to send next. `deferred` has neither a touch nor a user. */
interface Job {
  readonly touch?: Touch;
  readonly user?: User;
}

/**
 * Delivers the referrals and users of one device, one request at a time. The rules are those of SPEC.md. No method
 * throws or rejects.
 */
export class Client {
  readonly #platform: Platform;
  readonly #options: ClientOptions;
  readonly #startedAt: number;
  #state: State;
  /** The stored text that `#state` was read from or written to. */
  #text: string | null;
  /** False if the storage failed: it may hold a state that must not be overwritten. */
  #isStorageUsable: boolean;
  #saved: Promise<void> = Promise.resolve();
  #deferredMatch: boolean;
  #isMisconfigured = false;
  #failures = 0;
  #isRunning = false;
  /** Ends when the current request is answered or the wait for the deferred match is over. */
  #step: Promise<boolean> = Promise.resolve(true);
  #request: AbortController | undefined;
  #cancelRetry: (() => void) | undefined;
  #wake: (() => void) | undefined;

  /** Takes the stored text; undefined if it could not be read. */
  constructor(platform: Platform, options: ClientOptions, text: string | null | undefined) {
    this.#platform = platform;
    this.#options = options;
    this.#startedAt = platform.now();
    this.#isStorageUsable = text !== undefined;
    this.#text = text ?? null;
    this.#state = this.#parse(this.#text);
    this.#deferredMatch = options.deferredMatch;
  }

  /** Takes the referrals of this start and begins to deliver. */
  start(referrals: readonly (Referral | undefined)[]): void {
    const state = this.#read();
    for (const referral of referrals) if (referral) this.#addTouch(state, referral);
    if (state.enabled) this.#save(state);
    this.#isMisconfigured = false;
    this.retry();
  }

  /** Tries again at once: the device is connected again, or the app is back in the foreground. */
  retry(): void {
    this.#failures = 0;
    this.#flush();
  }

  async identify(userId: string, signature?: string): Promise<boolean> {
    if (typeof userId !== 'string' || userId === '' || userId.length > MAX_USER_ID_LENGTH) {
      this.#options.warn('identify: the user id must be a text of 1 to 512 characters.');
      return false;
    }
    const state = this.#read();
    const known = state.users.find(({ id }) => id === userId);
    if (!state.enabled || known?.status === 'bound') return state.enabled;
    if (known?.status === 'unattributed' && known.signature === signature) return false;
    const isNew = known?.signature !== signature || known === undefined;
    if (isNew) {
      const user: User = { id: userId, at: this.#platform.now(), status: 'pending' };
      const others = state.users.filter(({ id }) => id !== userId);
      state.users = [...others, signature === undefined ? user : { ...user, signature }].slice(-MAX_WAITING);
      this.#save(state);
    }
    this.#deliver(isNew);
    return await this.#result(() => {
      const status = this.#read().users.find(({ id }) => id === userId)?.status ?? 'refused';
      return status === 'pending' ? undefined : status === 'bound';
    });
  }

  async attribute(url: string | URL): Promise<boolean> {
    return await this.refer(referralFrom(url), false);
  }

  async applyCode(text: string): Promise<boolean> {
    const code = asCode(text);
    return await this.refer(code === undefined ? undefined : { code }, true);
  }

  /** Delivers a referral. A referral that was refused is asked for again only if a user enters it (`isEntered`). */
  async refer(referral: Referral | undefined, isEntered: boolean): Promise<boolean> {
    const state = this.#read();
    if (!referral || !state.enabled) return false;
    const identity = touchIdentity(referral);
    const answer = (current: State) => current.answered.find(({ touch }) => touch === identity)?.isAccepted;
    if (isEntered && answer(state) === false)
      state.answered = state.answered.filter(({ touch }) => touch !== identity);
    const isNew = this.#addTouch(state, referral);
    if (isNew) this.#save(state);
    this.#deliver(isNew);
    return await this.#result(() => {
      const current = this.#read();
      const isWaiting = current.touches.some((touch) => touchIdentity(touch) === identity);
      return isWaiting ? undefined : (answer(current) ?? false);
    });
  }

  attributedAffiliateId(): string | null {
    return this.#read().affiliateId;
  }

  /** Deletes everything. An opt-out survives. */
  reset(): void {
    if (this.#read().enabled) this.#replace(true);
  }

  /** Deletes everything and sends nothing until it is enabled again. */
  setEnabled(enabled: boolean): void {
    if (this.#read().enabled !== enabled) this.#replace(enabled);
  }

  /** Whether something is not delivered yet. */
  get isWaiting(): boolean {
    const { touches, users } = this.#read();
    return touches.length > 0 || users.some(({ status }) => status === 'pending');
  }

  /** Resolves when nothing is being sent and everything is stored. */
  async idle(): Promise<void> {
    await this.#result(() => undefined);
    await this.#saved;
  }

  #replace(enabled: boolean): void {
    this.#deferredMatch = false;
    this.#request?.abort();
    this.#request = undefined;
    this.#cancelTimers();
    this.#failures = 0;
    this.#state = this.#newState(enabled);
    this.#text = enabled ? null : JSON.stringify(this.#state);
    this.#store(this.#text);
  }

  #newState(enabled: boolean): State {
    const { host, deviceId } = this.#options;
    const id = enabled ? (deviceId ?? this.#platform.newId()) : '';
    return newState(host, id, this.#platform.now(), enabled);
  }

  #parse(text: string | null): State {
    const state = parseState(text, this.#options.host);
    if (state === 'opt-out') return this.#newState(false);
    return state ?? this.#newState(true);
  }

  /** Returns the state. Reads it again if another process may have changed it. */
  #read(): State {
    const { isShared, storage, key } = this.#options;
    if (isShared !== true || !this.#isStorageUsable) return this.#state;
    try {
      const text = storage.get(key) as string | null;
      if (text !== this.#text) {
        this.#text = text;
        this.#state = this.#parse(text);
      }
    } catch {
      this.#isStorageUsable = false;
    }
    return this.#state;
  }

  #save(state: State): void {
    this.#text = JSON.stringify(state);
    this.#store(this.#text);
  }

  #store(text: string | null): void {
    if (!this.#isStorageUsable) return;
    const { storage, key } = this.#options;
    const write = (): MaybePromise<void> => (text === null ? storage.remove(key) : storage.set(key, text));
    const fail = () => {
      this.#isStorageUsable = false;
      this.#options.debug('The storage cannot be written. The state lives in memory only.');
    };
    if (this.#options.isShared !== true) {
      this.#saved = this.#saved.then(write).catch(fail);
      return;
    }
    try {
      void write();
    } catch {
      fail();
    }
  }

  /** Returns whether the touch is new. */
  #addTouch(state: State, referral: Referral): boolean {
    const identity = touchIdentity(referral);
    const isKnown =
      !state.enabled ||
      state.touches.some((touch) => touchIdentity(touch) === identity) ||
      state.answered.some(({ touch }) => touch === identity);
    if (isKnown) return false;
    state.touches = [...state.touches, { ...referral, at: this.#platform.now() }].slice(-MAX_WAITING);
    return true;
  }

  /** Delivers what a call added. A call that added nothing does not shorten the wait after a failure. */
  #deliver(isNew: boolean): void {
    if (isNew || this.#cancelRetry === undefined) this.#flush();
  }

  #flush(): void {
    this.#cancelTimers();
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  #cancelTimers(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#wake?.();
  }

  async #run(): Promise<void> {
    let mayContinue = true;
    while (mayContinue) {
      const job = this.#nextJob();
      if (job === undefined) break;
      this.#step = typeof job === 'number' ? this.#sleep(job) : this.#perform(job);
      mayContinue = await this.#step;
    }
    this.#isRunning = false;
  }

  async #sleep(ms: number): Promise<boolean> {
    await new Promise<void>((resolve) => {
      const cancel = this.#platform.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
    this.#wake = undefined;
    return true;
  }

  /** Returns what to send next, or how long to wait for it in ms, or undefined if there is nothing to send now. */
  #nextJob(): Job | number | undefined {
    const state = this.#read();
    const now = this.#platform.now();
    if (!state.enabled || this.#isMisconfigured) return undefined;
    dropExpired(state, now);
    const user = state.users.find(({ status }) => status === 'pending');
    const [touch] = state.touches;
    const needsDeferred =
      this.#deferredMatch &&
      !state.isDeferredAnswered &&
      state.affiliateId === null &&
      state.answered.length === 0 &&
      now - state.firstOpenAt <= ONE_DAY_MS;
    if (!touch && !needsDeferred && !user) return undefined;
    const pause = state.notBefore - now;
    if (pause > 0 && pause <= ONE_DAY_MS) {
      this.#retryAfter(pause);
      return undefined;
    }
    if (touch) return { touch };
    const deferredIn = this.#startedAt + DEFERRED_DELAY_MS - now;
    if (needsDeferred) return deferredIn > 0 ? deferredIn : {};
    return user ? { user } : undefined;
  }

  /** Sends a request and applies its answer. Returns whether the next one may follow. */
  async #perform(job: Job): Promise<boolean> {
    const { host, apiKey, debug } = this.#options;
    const request = new AbortController();
    this.#request = request;
    await this.#saved;
    const { deviceId, firstOpenAt } = this.#state;
    const { touch, user } = job;
    const common = { deviceId, acceptUnattributed: true, sdk: this.#platform.sdk };
    const [path, body] = user
      ? ['identify', { ...common, customerUserId: user.id, identifiedAt: user.at, signature: user.signature }]
      : [
          'install',
          {
            ...common,
            firstOpenAt,
            ...(touch ? { claimToken: touch.claimToken, affiliateCode: touch.code } : { deferred: true }),
          },
        ];
    if (this.#request !== request) return true;
    const answer = await send(this.#platform, `${host}/sdk/${path}`, apiKey, body, request);
    const state = this.#read();
    // An answer after a reset counts for nothing, also if another tab was reset.
    if (this.#request !== request || state.deviceId !== deviceId) return true;
    this.#request = undefined;
    debug(`${path}: ${answer.kind} ${JSON.stringify(answer)}`);
    return this.#apply(state, job, answer);
  }

  #apply(state: State, { touch, user }: Job, answer: Answer): boolean {
    if (answer.kind === 'misconfigured') {
      this.#isMisconfigured = true;
      this.#options.warn(
        `The service answered ${answer.status}. Check the SDK key and the base address. Nothing is sent until the next start.`,
      );
      return false;
    }
    if (answer.kind === 'failed') {
      this.#failures += 1;
      if (answer.afterMs > 0) {
        state.notBefore = this.#platform.now() + answer.afterMs;
        this.#save(state);
      }
      const backoff = Math.min(2 ** this.#failures * 1000, LONGEST_BACKOFF_MS);
      const delay = Math.max(backoff * (0.5 + this.#platform.random() / 2), answer.afterMs);
      if (this.#failures < TRIES) this.#retryAfter(delay);
      return false;
    }
    this.#failures = 0;
    const { body } = answer;
    const clockErrorMs = answer.kind === 'refused' ? answer.clockErrorMs : 0;
    const isAttributed = answer.kind === 'ok' && typeof body.attributionId === 'string';
    const stored = user && state.users.find(({ id }) => id === user.id);
    const names = (path: string) => body.errors?.some((error) => error.path === path) === true;
    if (stored) {
      if (clockErrorMs !== 0 && !stored.isCorrected && names('identifiedAt')) {
        stored.at += clockErrorMs;
        stored.isCorrected = true;
      } else if (isAttributed) stored.status = 'bound';
      else if (answer.kind === 'ok' || body.code === 'no_attribution') stored.status = 'unattributed';
      else {
        state.users = state.users.filter((other) => other !== stored);
        this.#options.warn(`identify: the service refused the user id (${body.code ?? 'no reason'}).`);
      }
    } else if (!user) {
      if (clockErrorMs !== 0 && !state.isFirstOpenCorrected && names('firstOpenAt')) {
        state.firstOpenAt += clockErrorMs;
        state.isFirstOpenCorrected = true;
      } else if (touch) answerTouch(state, touch, isAttributed && body.touch !== 'unknown');
      else state.isDeferredAnswered = true;
    }
    if (isAttributed) this.#attributed(state, body.affiliateId ?? null, user !== undefined);
    this.#save(state);
    return true;
  }

  #attributed(state: State, affiliateId: string | null, isOfUser: boolean): void {
    if (!isOfUser)
      for (const user of state.users) if (user.status === 'unattributed') user.status = 'pending';
    if (affiliateId === null || state.affiliateId === affiliateId) return;
    if (isOfUser && state.affiliateId !== null) return;
    state.affiliateId = affiliateId;
    try {
      this.#options.onAttribution(affiliateId);
    } catch (error) {
      this.#options.warn(`onAttribution threw: ${String(error)}`);
    }
  }

  #retryAfter(ms: number): void {
    this.#cancelRetry = this.#platform.after(ms, () => {
      this.#cancelRetry = undefined;
      this.#flush();
    });
  }

  /** Waits until `get` returns something or nothing more is being sent. */
  async #result(get: () => boolean | undefined): Promise<boolean> {
    for (;;) {
      const result = get();
      if (result !== undefined) return result;
      if (!this.#isRunning) return false;
      await this.#step;
      // Lets the loop take its next step.
      await null;
    }
  }
}
