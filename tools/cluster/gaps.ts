import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer } from '../production-stack/http.ts';

const INTERVAL_MS = 200;
/** Longer than any answer of a service that waits for a database. */
const TIMEOUT_MS = 10_000;

/** How long a kind of request went without a good answer. */
export interface Gap {
  readonly kind: string;
  /** From the last good answer before to the first one after, ms. */
  readonly ms: number;
}

/** Asks again and again by each kind of request, one at a time, and notes when a good answer came. */
export class AnswerWatch {
  readonly #answeredAt = new Map<string, number[]>();
  readonly #running: Promise<void>[];
  #isRunning = true;

  constructor(kinds: Readonly<Record<string, () => Promise<Answer>>>) {
    this.#running = Object.entries(kinds).map(async ([kind, ask]) => {
      const times: number[] = [];
      this.#answeredAt.set(kind, times);
      while (this.#isRunning) {
        const answer = await Promise.race([ask().catch(() => undefined), sleep(TIMEOUT_MS)]);
        if (answer !== undefined && answer.status < 400) times.push(Date.now());
        await sleep(INTERVAL_MS);
      }
    });
  }

  /** Returns the longest gap of each kind that ends after `since` (epoch ms); the gap until now counts, too. */
  gapsSince(since: number): readonly Gap[] {
    return [...this.#answeredAt].map(([kind, times]) => {
      const before = times.findLast((time) => time < since) ?? since;
      const points = [before, ...times.filter((time) => time >= since), Date.now()];
      const ms = Math.max(...points.slice(1).map((time, n) => time - (points[n] ?? time)));
      return { kind, ms };
    });
  }

  /** Whether every kind had a good answer after a moment (epoch ms). */
  hasAnsweredSince(since: number): boolean {
    return [...this.#answeredAt.values()].every((times) => (times.at(-1) ?? 0) >= since);
  }

  async end(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#running);
  }
}
