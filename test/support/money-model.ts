/**
 * A small model of the money rules (docs/money.md), to compare the service with. It uses no code of the service, keeps no
 * ledger, and computes every sum afresh from the facts: only who was attributed, when, and at which rate is remembered.
 */

/** What an event of a billing provider states. References, keys and ids are unique over all providers. */
export interface Report {
  readonly eventId: string;
  readonly payment?: {
    readonly ref: string;
    readonly minor: number;
    readonly currency: Currency;
    /** Epoch ms. */
    readonly at: number;
    readonly users: readonly string[];
    readonly keys: readonly string[];
  };
  /** References that are one payment. */
  readonly same?: readonly (readonly [string, string])[];
  /** The user that a key of the provider belongs to. */
  readonly names?: { readonly key: string; readonly user: string };
  /** A refund or dispute takes money back, or gives back what it took. */
  readonly take?: {
    readonly id: string;
    readonly ref: string;
    readonly minor: number;
    readonly at: number;
    /** Whether it ends a dispute or a refund. The latest end decides. */
    readonly isEnd: boolean;
    readonly isBack: boolean;
    /** Takes with the same group are undone together. */
    readonly group: string;
  };
  /** Undoes every take of a group that is not later. */
  readonly undo?: { readonly group: string; readonly at: number };
}

export type Currency = 'usd' | 'eur' | 'jpy';

interface Binding {
  readonly creator: string;
  readonly step: number;
  readonly touchedAt: number;
}

interface Row {
  readonly payment: NonNullable<Report['payment']>;
  readonly users: string[];
  readonly keys: string[];
  readonly step: number;
  wasEvaluated: boolean;
  creator: string | null;
  base: bigint;
  earned: bigint;
  /** The order of earnings: the first one under several references stays. Infinite without an earning. */
  earnedAt: number;
  isDuplicate: boolean;
}

export interface Books {
  readonly creator: string | null;
  readonly earned: number;
  /** What is left of the earning. */
  readonly net: number;
  readonly revenue: number;
}

const NOTHING: Books = { creator: null, earned: 0, net: 0, revenue: 0 };

/** Divides two numbers that are not negative; a half is rounded up. */
const divided = (over: bigint, under: bigint) => (2n * over + under) / (2n * under);

export class MoneyModel {
  readonly #rows = new Map<string, Row>();
  readonly #reported = new Set<string>();
  readonly #same: (readonly [string, string])[] = [];
  readonly #names = new Map<string, string>();
  readonly #takes: NonNullable<Report['take']>[] = [];
  readonly #undos: NonNullable<Report['undo']>[] = [];
  readonly #bindings = new Map<string, Binding>();
  readonly #installs = new Map<string, { creator: string; at: number }>();
  readonly #identified: { device: string; user: string }[] = [];
  readonly #creators = new Map<string, { rateBps: number; isPaused: boolean }>();
  readonly #paid = new Map<string, number>();
  readonly #windowMs: number;
  readonly #toUsd: (minor: bigint, currency: Currency, at: number) => readonly [over: bigint, under: bigint];
  #step = 0;
  #earnings = 0;

  constructor(settings: {
    readonly windowMs: number;
    /** Returns an amount in US cents as a fraction. */
    readonly toUsd: (minor: bigint, currency: Currency, at: number) => readonly [over: bigint, under: bigint];
  }) {
    this.#windowMs = settings.windowMs;
    this.#toUsd = settings.toUsd;
  }

  setCreator(creator: string, terms: { readonly rateBps: number; readonly isPaused: boolean }): void {
    this.#creators.set(creator, terms);
  }

  install(device: string, creator: string, at: number): void {
    if (!this.#installs.has(device)) this.#installs.set(device, { creator, at });
    this.#next();
  }

  identify(device: string, user: string): void {
    this.#identified.push({ device, user });
    this.#next();
  }

  report(report: Report): void {
    if (!this.#reported.has(report.eventId)) {
      this.#reported.add(report.eventId);
      const { payment, names } = report;
      if (payment !== undefined) this.#addPayment(payment);
      if (names !== undefined && !this.#names.has(names.key)) this.#names.set(names.key, names.user);
      this.#same.push(...(report.same ?? []));
      if (report.take !== undefined) this.#takes.push(report.take);
      if (report.undo !== undefined) this.#undos.push(report.undo);
    }
    this.#next();
  }

  #addPayment(payment: NonNullable<Report['payment']>): void {
    const row = this.#rows.get(payment.ref);
    if (row !== undefined) {
      row.users.push(...payment.users.filter((user) => !row.users.includes(user)));
      row.keys.push(...payment.keys.filter((key) => !row.keys.includes(key)));
      return;
    }
    this.#rows.set(payment.ref, {
      payment,
      users: [...payment.users],
      keys: [...payment.keys],
      step: this.#step,
      wasEvaluated: false,
      creator: null,
      base: 0n,
      earned: 0n,
      earnedAt: Infinity,
      isDuplicate: false,
    });
  }

  /** Pays what is owed to a creator. Returns the amount. */
  pay(creator: string): number {
    const due = Math.max(0, this.netOf(creator) - this.paidTo(creator));
    this.#paid.set(creator, this.paidTo(creator) + due);
    return due;
  }

  paidTo(creator: string): number {
    return this.#paid.get(creator) ?? 0;
  }

  netOf(creator: string): number {
    return [...this.#rows.keys()]
      .map((ref) => this.booksOf(ref))
      .reduce((sum, books) => sum + (books.creator === creator ? books.net : 0), 0);
  }

  get refs(): readonly string[] {
    return [...this.#rows.keys()];
  }

  booksOf(ref: string): Books {
    const row = this.#rows.get(ref);
    if (row === undefined || row.creator === null) return NOTHING;
    const { creator, base, earned } = row;
    if (row.isDuplicate) return { creator, earned: Number(earned), net: 0, revenue: 0 };
    const whole = BigInt(row.payment.minor);
    const taken = this.#takenFrom(ref);
    const back = taken > whole ? whole : taken;
    const net = earned - divided(earned * back, whole);
    const revenue = base - divided(base * back, whole);
    return { creator, earned: Number(earned), net: Number(net), revenue: Number(revenue) };
  }

  /** All references of the payment that has this one. */
  #namesOf(ref: string): ReadonlySet<string> {
    const names = new Set([ref]);
    for (let size = 0; size !== names.size;) {
      size = names.size;
      for (const [a, b] of this.#same) {
        if (names.has(a)) names.add(b);
        if (names.has(b)) names.add(a);
      }
    }
    return names;
  }

  #takenFrom(ref: string): bigint {
    const names = this.#namesOf(ref);
    const mine = this.#takes.filter((take) => names.has(take.ref));
    let sum = 0n;
    for (const id of new Set(mine.map((take) => take.id))) {
      const states = mine.filter((take) => take.id === id);
      const ends = states.filter((take) => take.isEnd);
      const [last] = (ends.length > 0 ? ends : states).toSorted((a, b) => b.at - a.at);
      if (last === undefined || last.isBack) continue;
      const isUndone = this.#undos.some((undo) => undo.group === last.group && undo.at >= last.at);
      if (!isUndone) sum += BigInt(last.minor);
    }
    return sum;
  }

  #next(): void {
    this.#bind();
    for (const row of this.#rows.values()) this.#evaluate(row);
    for (const row of this.#rows.values()) this.#findDuplicate(row);
    this.#step += 1;
  }

  #bind(): void {
    for (const { device, user } of this.#identified) {
      const install = this.#installs.get(device);
      if (install === undefined || this.#bindings.has(user)) continue;
      this.#bindings.set(user, { creator: install.creator, step: this.#step, touchedAt: install.at });
    }
  }

  #evaluate(row: Row): void {
    if (row.creator !== null) return;
    const isFirst = !row.wasEvaluated;
    row.wasEvaluated = true;
    const names = this.#namesOf(row.payment.ref);
    if ([...names].some((name) => (this.#rows.get(name)?.creator ?? null) !== null)) return;
    const { payment } = row;
    const known = [...row.users, ...row.keys.flatMap((key) => this.#names.get(key) ?? [])];
    const binding = known
      .flatMap((user) => this.#bindings.get(user) ?? [])
      .find(
        ({ step, touchedAt }) =>
          isFirst ||
          step < row.step ||
          (payment.at >= touchedAt && Date.now() - payment.at <= this.#windowMs),
      );
    if (binding === undefined) return;
    const terms = this.#creators.get(binding.creator);
    row.creator = binding.creator;
    row.base = divided(...this.#toUsd(BigInt(payment.minor), payment.currency, payment.at));
    if (terms === undefined || terms.isPaused) return;
    row.earned = divided(row.base * BigInt(terms.rateBps), 10_000n);
    if (row.earned > 0n) row.earnedAt = this.#earnings += 1;
  }

  /** Of several attributed rows of one payment the first to earn stays, else the first that was reported. */
  #findDuplicate(row: Row): void {
    if (row.creator === null) return;
    const names = this.#namesOf(row.payment.ref);
    const attributed = [...this.#rows.values()].filter(
      (other) => names.has(other.payment.ref) && other.creator !== null,
    );
    const [first] = attributed.toSorted((a, b) =>
      a.earnedAt < b.earnedAt ? -1 : a.earnedAt > b.earnedAt ? 1 : 0,
    );
    if (first !== row) row.isDuplicate = true;
  }
}
