/** How many times the shortest duration calls may take on average before the limit falls. */
const TOLERANCE = 4;
/** How many calls may be in progress beyond those that finish within the tolerated duration: without any, a limit never rises. */
const HEADROOM = 4;
/** The weight of the last call: a limit follows a change within some ten calls. */
const WEIGHT = 0.1;
/** One measurement at most halves the aim, so that a pause of the whole process does not end all work. */
const LEAST_GRADIENT = 0.5;
/** For how long the shortest duration is remembered at least, ms; twice as long at most. */
const REMEMBER_MS = 30 * 60_000;

/**
 * How many calls a process works on at one time, from how long they take. While they take a few times as long as the shortest one, the limit
 * is `most`. When they take longer, they wait for each other, for a processor or for a database: fewer at a time then finish as many a
 * second, each of them sooner. This is the "gradient" of adaptive concurrency limits.
 */
export class AdaptiveLimit {
  readonly #least: number;
  readonly #most: number;
  readonly #elapsed: () => number;
  #limit: number;
  #averageMs: number | null = null;
  /** The shortest duration of this period and of the one before, ms. */
  #shortest = Number.POSITIVE_INFINITY;
  #shortestBefore = Number.POSITIVE_INFINITY;
  #periodFrom: number;

  /** `elapsed` returns a time that only advances, ms. */
  constructor(
    { least, most }: { readonly least: number; readonly most: number },
    elapsed: () => number = () => performance.now(),
  ) {
    this.#least = Math.min(least, most);
    this.#most = most;
    this.#limit = most;
    this.#elapsed = elapsed;
    this.#periodFrom = elapsed();
  }

  get value(): number {
    return Math.floor(this.#limit);
  }

  /** Notes how long a call took, ms, and how many were in progress when it ended. */
  note(durationMs: number, inProgress: number): void {
    const now = this.#elapsed();
    if (now - this.#periodFrom >= REMEMBER_MS) {
      this.#shortestBefore = this.#shortest;
      this.#shortest = Number.POSITIVE_INFINITY;
      this.#periodFrom = now;
    }
    this.#shortest = Math.min(this.#shortest, durationMs);
    this.#averageMs ??= durationMs;
    this.#averageMs += (durationMs - this.#averageMs) * WEIGHT;
    const tolerated = Math.min(this.#shortest, this.#shortestBefore) * TOLERANCE;
    const gradient = Math.max(LEAST_GRADIENT, Math.min(1, tolerated / this.#averageMs));
    const change = (this.#limit * gradient + HEADROOM - this.#limit) * WEIGHT;
    // A limit that nothing reaches says nothing about more calls.
    if (change > 0 && inProgress * 2 < this.#limit) return;
    this.#limit = Math.max(this.#least, Math.min(this.#most, this.#limit + change));
  }
}
