import type { ServerResponse } from 'node:http';
import { Admission } from './admission.ts';

/** How long a call waits for a slot, ms. */
const WAIT_MS = 5_000;
/** How long a response may take to be read when another call needs its slot, ms. */
const READING_MS = 30_000;

export interface FileLimits {
  /** How many files are made or sent at one time. */
  readonly slots: number;
  /** How many of these a creator or an account has. */
  readonly perHolder: number;
  readonly waitMs?: number;
  readonly readingMs?: number;
}

/**
 * Limits the files that are made or sent at one time, each of which takes memory until the client has read it. Calls beyond that wait,
 * and then get 503 with `Retry-After`. A client that reads slowly holds its slot until another call needs it: then its connection
 * is closed.
 */
export class FileAdmission {
  readonly #admission: Admission;
  readonly #readingMs: number;
  /** The responses that are being sent, the oldest first. */
  readonly #sending = new Map<ServerResponse, { readonly holder: string; readonly since: number }>();

  constructor({ slots, perHolder, waitMs = WAIT_MS, readingMs = READING_MS }: FileLimits) {
    this.#admission = new Admission(slots, { perHolder, waitMs, heldPart: 1 });
    this.#readingMs = readingMs;
  }

  /** Runs `make` of a holder, whose result is sent as the response, when a slot is free. Throws 503 if none is in time. */
  async run<T>(holder: string, response: ServerResponse, make: () => Promise<T>): Promise<T> {
    if (this.#admission.isFull(holder)) this.#endSlowReader(holder);
    return await this.#admission.run(holder, async (holdSlot) => {
      const made = await make();
      holdSlot(this.#sent(holder, response));
      return made;
    });
  }

  async #sent(holder: string, response: ServerResponse): Promise<void> {
    if (response.closed || response.destroyed) return;
    this.#sending.set(response, { holder, since: performance.now() });
    await new Promise((resolve) => response.once('close', resolve));
    this.#sending.delete(response);
  }

  /** Closes the connection of the oldest response that has taken too long: of the holder, if it has all of its slots. */
  #endSlowReader(holder: string): void {
    const isOwn = this.#admission.hasAllItsSlots(holder);
    for (const [response, { holder: of, since }] of this.#sending) {
      if (performance.now() - since < this.#readingMs) return;
      if (isOwn && of !== holder) continue;
      response.destroy();
      return;
    }
  }
}
