import type { SecretBox } from '../config/secret-box.ts';
import type { Sql } from '../db/sql.ts';
import type { AppId } from '../domain/ids.ts';
import { sendRequest } from './send-request.ts';
import type { SendResult } from './send-request.ts';

/** The dependencies of a self-test. */
export interface SelfTestDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  /** Epoch ms; requests are signed by this clock. */
  readonly now: () => number;
  /** The address that founders give to their providers, without a trailing slash. */
  readonly publicUrl: string;
  /** Where the service itself listens, as reached from this process; null when it is reachable at `publicUrl` only. */
  readonly ownUrl: string | null;
  /** The time limit of the whole self-test, ms; 20 s by default. */
  readonly timeLimitMs?: number;
  /** Writes the refused requests that this process has counted; absent where another process receives them. */
  readonly flushRefusals?: () => Promise<void>;
  /** Called with a short line after each step. */
  readonly onProgress?: (line: string) => void;
}

/** Thrown when no time is left for another request. */
export class OutOfTime extends Error {
  override readonly name = 'OutOfTime';
}

/** Shorter than the timeouts of clients and proxies. */
const TIME_LIMIT_MS = 20_000;
/** The strictest provider gives up after this time, so a later response is too late. */
const REQUEST_LIMIT_MS = 5_000;

/** One self-test of one app: its dependencies, its time limit, and what it has found so far. */
export class SelfTestSession {
  readonly deps: SelfTestDeps;
  readonly appId: AppId;
  readonly #endsAt: number;
  /** Why the public address gave no response at all. Checked once: every further attempt would take as long. */
  publicAddressFault: string | null = null;
  /** Whether a refused request was not recorded here in time. The session does not wait for the others then. */
  isRefusedElsewhere = false;
  /** Whether a delivery got no outcome in time. The session does not wait for the others then. */
  isProcessingStuck = false;

  constructor(deps: SelfTestDeps, appId: AppId) {
    this.deps = deps;
    this.appId = appId;
    this.#endsAt = performance.now() + (deps.timeLimitMs ?? TIME_LIMIT_MS);
  }

  get timeLeftMs(): number {
    return Math.max(0, Math.floor(this.#endsAt - performance.now()));
  }

  /** Sends a request within the remaining time. Throws `OutOfTime` when none is left. */
  async send(url: string, request: Parameters<typeof sendRequest>[1]): Promise<SendResult> {
    const timeoutMs = Math.min(REQUEST_LIMIT_MS, this.timeLeftMs);
    if (timeoutMs === 0) throw new OutOfTime();
    return await sendRequest(url, request, timeoutMs);
  }
}
