/** How calls that take longer lower a limit. */
interface Aim {
  /** The limit never falls below this. */
  readonly least: number;
  /** How many times the shortest average calls may take on average before the limit falls. */
  readonly tolerance: number;
  /** How many calls may be in progress beyond those that finish within the tolerated duration: without any, a limit never rises. */
  readonly headroom: number;
}

/** For calls of one holder: as many a second as possible. Other work on the machine makes them slow as well, so the least is high. */
const ONE_HOLDER: Aim = { least: 8, tolerance: 4, headroom: 4 };
/** For calls of several: the one with most calls is to leave the others nearly as fast as without it. */
const SEVERAL_HOLDERS: Aim = { least: 2, tolerance: 2, headroom: 1 };
/** The weight of the last call: a limit follows a change within some ten calls. */
const WEIGHT = 0.1;
/** After how many calls an average is one. */
const LEAST_CALLS = 10;
/** One measurement at most halves the aim, so that a pause of the whole process does not end all work. */
const LEAST_GRADIENT = 0.5;
/** For how long the shortest average is remembered at least, ms; twice as long at most. */
const REMEMBER_MS = 30 * 60_000;

/**
 * How many calls a process works on at one time, from how long they take. While they take at most a few times as long as they have taken on
 * average when they were shortest, the limit is `most`. When they take longer, they wait for each other, for a processor or for a database:
 * fewer at a time then finish as many a second, each of them sooner. This is the "gradient" of adaptive concurrency limits. While several
 * holders share the slots, the limit falls earlier.
 */
export class AdaptiveLimit {
  readonly #most: number;
  readonly #elapsed: () => number;
  #limit: number;
  #averageMs: number | null = null;
  #calls = 0;
  /** The shortest average of this period and of the one before, ms. A single call may be shorter than any that does all its work. */
  #shortest = Number.POSITIVE_INFINITY;
  #shortestBefore = Number.POSITIVE_INFINITY;
  #periodFrom: number;

  /** `elapsed` returns a time that only advances, ms. */
  constructor(most: number, elapsed: () => number = () => performance.now()) {
    this.#most = most;
    this.#limit = most;
    this.#elapsed = elapsed;
    this.#periodFrom = elapsed();
  }

  get value(): number {
    return Math.floor(this.#limit);
  }

  /** Notes how long a call took, ms, how many were in progress when it ended, and whether several holders share the slots. */
  note(durationMs: number, inProgress: number, areShared: boolean): void {
    const { least, tolerance, headroom } = areShared ? SEVERAL_HOLDERS : ONE_HOLDER;
    const now = this.#elapsed();
    if (now - this.#periodFrom >= REMEMBER_MS) {
      this.#shortestBefore = this.#shortest;
      this.#shortest = Number.POSITIVE_INFINITY;
      this.#periodFrom = now;
    }
    this.#averageMs ??= durationMs;
    this.#averageMs += (durationMs - this.#averageMs) * WEIGHT;
    this.#calls += 1;
    if (this.#calls >= LEAST_CALLS) this.#shortest = Math.min(this.#shortest, this.#averageMs);
    const tolerated = Math.min(this.#shortest, this.#shortestBefore) * tolerance;
    const gradient = Math.max(LEAST_GRADIENT, Math.min(1, tolerated / this.#averageMs));
    const change = (this.#limit * gradient + headroom - this.#limit) * WEIGHT;
    // A limit that nothing reaches says nothing about more calls.
    if (change > 0 && inProgress * 2 < this.#limit) return;
    this.#limit = Math.min(this.#most, Math.max(least, this.#limit + change));
  }
}
