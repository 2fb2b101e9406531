import type { SecretBox } from '../config/secret-box.ts';
import type { Sql } from '../db/sql.ts';
import type { AppId } from '../domain/ids.ts';
import { send } from './post.ts';
import type { PostResult } from './post.ts';

/** What a self-test needs of its surroundings. */
export interface SelfTestDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  /** Epoch ms; the clock that requests are signed by. */
  readonly now: () => number;
  /** The address that founders give to their providers, without a trailing slash. */
  readonly publicUrl: string;
  /** Where the service itself listens, as seen from here; null when it can't be reached past the public address. */
  readonly ownUrl: string | null;
  /** How long everything may take, ms; 20 s unless told otherwise. */
  readonly timeLimitMs?: number;
  /** Told of what is looked at now, in a few words. */
  readonly onProgress?: (line: string) => void;
}

/** No time is left for another request. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime';
}

/** Less than any client or proxy waits. */
const TIME_LIMIT_MS = 20_000;
/** The tightest provider gives up after so long, so later is too late. */
const REQUEST_LIMIT_MS = 5_000;

/** One self-test of one app: its surroundings, its time, and what it has learnt on the way. */
export class Run {
  readonly deps: SelfTestDeps;
  readonly appId: AppId;
  readonly #endsAt: number;
  /** Why the public address gave no answer at all. Looked at once: each further look would take as long. */
  publicFault: string | null = null;
  /** Whether a delivery stayed without an outcome: the others need not be waited for. */
  isWorkStuck = false;

  constructor(deps: SelfTestDeps, appId: AppId) {
    this.deps = deps;
    this.appId = appId;
    this.#endsAt = performance.now() + (deps.timeLimitMs ?? TIME_LIMIT_MS);
  }

  get timeLeftMs(): number {
    return Math.max(0, Math.floor(this.#endsAt - performance.now()));
  }

  /** Sends a request within the time that is left. Throws `OutOfTime` when that is none. */
  async send(url: string, request: Parameters<typeof send>[1]): Promise<PostResult> {
    const timeoutMs = Math.min(REQUEST_LIMIT_MS, this.timeLeftMs);
    if (timeoutMs === 0) throw new OutOfTime();
    return await send(url, request, timeoutMs);
  }
}
