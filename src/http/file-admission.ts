import type { ServerResponse } from 'node:http';
import { Admission } from './admission.ts';

/** How long a call waits for a place, ms. */
const WAIT_MS = 5_000;
/** How long a response may take to be read when another call needs its place, ms. */
const READING_MS = 30_000;

export interface FileLimits {
  /** How many files are made or sent at one time. */
  readonly places: number;
  /** How many of these a creator or an account has. */
  readonly perSharer: number;
  readonly waitMs?: number;
  readonly readingMs?: number;
}

/**
 * Limits the files that are made or sent at one time, each of which takes memory until the client has read it. Calls beyond that wait,
 * and then get 503 with `Retry-After`. A client that reads slowly keeps its place until another call needs it: then its connection
 * is closed.
 */
export class FileAdmission {
  readonly #admission: Admission;
  readonly #readingMs: number;
  /** The responses that are being sent, the oldest first. */
  readonly #sending = new Map<ServerResponse, { readonly sharer: string; readonly since: number }>();

  constructor({ places, perSharer, waitMs = WAIT_MS, readingMs = READING_MS }: FileLimits) {
    this.#admission = new Admission(places, { perApp: perSharer, waitMs, keptPart: 1 });
    this.#readingMs = readingMs;
  }

  /** Runs `make` of a sharer, whose result is sent as the response, when there is a place. Throws 503 if there is none in time. */
  async run<T>(sharer: string, response: ServerResponse, make: () => Promise<T>): Promise<T> {
    if (this.#admission.isFull(sharer)) this.#endSlowReader(sharer);
    return await this.#admission.run(sharer, async (keepPlace) => {
      const made = await make();
      keepPlace(this.#sent(sharer, response));
      return made;
    });
  }

  async #sent(sharer: string, response: ServerResponse): Promise<void> {
    if (response.closed || response.destroyed) return;
    this.#sending.set(response, { sharer, since: performance.now() });
    await new Promise((resolve) => response.once('close', resolve));
    this.#sending.delete(response);
  }

  /** Closes the connection of the oldest response that has taken too long: of the sharer, if it has all of its places. */
  #endSlowReader(sharer: string): void {
    const isOwn = this.#admission.hasItsPlaces(sharer);
    for (const [response, { sharer: of, since }] of this.#sending) {
      if (performance.now() - since < this.#readingMs) return;
      if (isOwn && of !== sharer) continue;
      response.destroy();
      return;
    }
  }
}
