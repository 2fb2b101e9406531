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
    /** The subscription, or the anonymous customer. */
    readonly keys: readonly string[];
    /** The customer, who may be a company with many users. */
    readonly customers?: readonly string[];
    /** Whether it is a part of an invoice that is paid in several, or that invoice. */
    readonly share?: 'part' | 'whole';
    /** Whether it was added from an export of the provider. */
    readonly isExported?: boolean;
  };
  /** References that are one payment: the second one is an alias of the first. */
  readonly same?: readonly (readonly [string, string])[];
  /** The codes that payments came with. */
  readonly codes?: readonly { readonly ref: string; readonly code: string }[];
  /** The code with which a subscription began without a payment, and the users whom that event names. */
  readonly began?: {
    readonly key: string;
    readonly code: string;
    readonly at: number;
    readonly users: readonly string[];
    /** The anonymous customer, if it names no user. */
    readonly anonymous?: string;
  };
  /** The users that keys of the provider belong to. */
  readonly names?: readonly { readonly key: string; readonly user: string }[];
  /** A refund or dispute takes money back, or gives back what it took. */
  readonly take?: {
    readonly id: string;
    readonly ref: string;
    readonly minor: number;
    readonly at: number;
    /** Whether it ends a refund, or states what is so of a dispute. The latest one decides. */
    readonly isEnd: boolean;
    readonly isBack: boolean;
    /** Takes with the same group are undone together. */
    readonly group: string;
  };
  /** Undoes every take of a group that is not later. */
  readonly undo?: { readonly group: string; readonly at: number };
}

type Payment = NonNullable<Report['payment']>;

export type Currency = 'usd' | 'eur' | 'jpy';

interface Binding {
  /** Whose payments are numbered together: a user, or what a code bound in place of one. */
  readonly user: string;
  readonly creator: string;
  readonly step: number;
  readonly touchedAt: number;
  /** A founder or a code said so. A founder's word counts from its instant on, in any evaluation; a code's never before it. */
  readonly by?: 'founder' | 'code';
}

interface Terms {
  readonly rateBps: number;
  readonly isPaused: boolean;
  /** Whether the rate is the creator's own, which goes before the policy of a group. */
  readonly isOwnRate?: boolean;
}

/** A percentage of the price, or a fixed amount of at most the price. */
export type Earns = { readonly percentBps: number } | { readonly flatCents: number };

/** A rule of a policy. A missing condition is met. */
export type Rule = Earns & {
  readonly firstPayments?: number;
  readonly firstMonths?: number;
};

/** The rules by which a creator earns from an instant on. */
export interface Policy {
  readonly from: number;
  readonly isOfGroup: boolean;
  readonly rules: readonly Rule[];
}

interface Row {
  readonly payment: Payment;
  readonly users: string[];
  readonly keys: string[];
  readonly customers: string[];
  readonly step: number;
  wasEvaluated: boolean;
  creator: string | null;
  base: bigint;
  earned: bigint;
  /** How it earned. Null: nothing. */
  earns: Earns | null;
  place: Place | null;
  /** The order of earnings: the first one under several references stays. Infinite without an earning. */
  earnedAt: number;
  isDuplicate: boolean;
}

export interface Books {
  readonly creator: string | null;
  /** Null under several references: a part may have earned before. */
  readonly earned: number | null;
  /** What is left of the earning. */
  readonly net: number;
  readonly revenue: number;
}

const NOTHING = { creator: null, earned: 0, net: 0, revenue: 0 };

/** Divides two numbers that are not negative; a half is rounded up. */
const divided = (over: bigint, under: bigint) => (2n * over + under) / (2n * under);

/** The place of a payment among those of its user. */
interface Place {
  readonly number: number;
  /** When the user paid first. */
  readonly firstAt: number;
}

/** Whole months of the calendar between two instants. A payment up to two days before the end of a month is after it. */
function monthsBetween(first: number, paid: number): number {
  const from = new Date(first);
  const endOf = (months: number) => {
    const lastDay = new Date(
      Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months + 1, 0),
    ).getUTCDate();
    const day = Math.min(from.getUTCDate(), lastDay);
    return Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months, day) + (first % 86_400_000);
  };
  let months = 0;
  while (endOf(months + 1) <= paid + 2 * 86_400_000) months += 1;
  return months;
}

function earnedOn(base: bigint, earns: Earns): bigint {
  if ('percentBps' in earns) return divided(base * BigInt(earns.percentBps), 10_000n);
  const flat = BigInt(earns.flatCents);
  return flat < base ? flat : base;
}

const byEarning = (a: Row, b: Row) => (a.earnedAt < b.earnedAt ? -1 : a.earnedAt > b.earnedAt ? 1 : 0);

const addNew = (all: string[], more: readonly string[]) =>
  all.push(...more.filter((one) => !all.includes(one)));

export class MoneyModel {
  readonly #rows = new Map<string, Row>();
  readonly #reported = new Set<string>();
  readonly #same: (readonly [string, string])[] = [];
  readonly #names = new Map<string, string>();
  readonly #owners = new Map<string, string>();
  readonly #codes: { readonly ref: string; readonly code: string }[] = [];
  readonly #began: NonNullable<Report['began']>[] = [];
  readonly #takes: NonNullable<Report['take']>[] = [];
  readonly #undos: NonNullable<Report['undo']>[] = [];
  readonly #bindings = new Map<string, Binding>();
  /** The subscriptions and anonymous customers that codes bound. */
  readonly #boundKeys = new Map<string, Binding>();
  readonly #installs = new Map<string, { creator: string; touchedAt: number }>();
  readonly #identified: { device: string; user: string }[] = [];
  readonly #creators = new Map<string, Terms>();
  readonly #policies = new Map<string, Policy[]>();
  /** The time of the first payment of each user, and how many there are. */
  readonly #paying = new Map<string, { readonly firstAt: number; payments: number }>();
  readonly #paid = new Map<string, number>();
  readonly #entries = new Map<
    string,
    { readonly creator: string; readonly cents: number; isUndone: boolean }
  >();
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

  setCreator(creator: string, terms: Terms): void {
    this.#creators.set(creator, terms);
  }

  /** Gives a creator a policy. */
  addPolicy(creator: string, policy: Policy): void {
    this.#policies.set(creator, [...(this.#policies.get(creator) ?? []), policy]);
  }

  /** Gives a code to a creator. */
  register(code: string, creator: string): void {
    this.#owners.set(code, creator);
  }

  /** A device keeps its first attribution. */
  install(device: string, creator: string, touchedAt: number): void {
    if (!this.#installs.has(device)) this.#installs.set(device, { creator, touchedAt });
    this.#next();
  }

  /** A founder gives a user without a creator to one, for payments from an instant on. */
  give(user: string, creator: string, from: number): void {
    if (!this.#bindings.has(user))
      this.#bindings.set(user, { user, creator, step: this.#step, touchedAt: from, by: 'founder' });
    this.#next();
  }

  identify(device: string, user: string): void {
    this.#identified.push({ device, user });
    this.#next();
  }

  report(report: Report): void {
    if (!this.#reported.has(report.eventId)) {
      this.#reported.add(report.eventId);
      const { payment, names = [], began } = report;
      if (payment !== undefined) this.#addPayment(payment);
      for (const { key, user } of names) if (!this.#names.has(key)) this.#names.set(key, user);
      this.#same.push(...(report.same ?? []));
      this.#codes.push(...(report.codes ?? []));
      if (began !== undefined) this.#began.push(began);
      if (report.take !== undefined) this.#takes.push(report.take);
      if (report.undo !== undefined) this.#undos.push(report.undo);
      const { keys = [], users = [] } = payment ?? {};
      const beganBy = began?.users.map((user) => ({ key: began.key, user })) ?? [];
      this.#signIn([...names, ...beganBy, ...keys.flatMap((key) => users.map((user) => ({ key, user })))]);
    }
    this.#next();
  }

  /** Adds what an export of the provider states, where the ledger lacks it. Without a time, a state is as of now. */
  feedBack(report: Report): void {
    const { payment, take } = report;
    if (payment !== undefined && this.#rows.has(payment.ref)) return;
    if (take === undefined) {
      this.report(report);
      return;
    }
    const state = this.#stateOf(take.id);
    if (state?.isBack === take.isBack) return;
    this.report({ ...report, take: { ...take, at: Math.min(take.at, Date.now()) } });
  }

  #addPayment(payment: Payment): void {
    const row = this.#rows.get(payment.ref);
    if (row !== undefined) {
      addNew(row.users, payment.users);
      addNew(row.keys, payment.keys);
      addNew(row.customers, payment.customers ?? []);
      return;
    }
    this.#rows.set(payment.ref, {
      payment,
      users: [...payment.users],
      keys: [...payment.keys],
      customers: [...(payment.customers ?? [])],
      // What an export adds counts as received when it occurred, before any binding, and as evaluated since.
      step: payment.isExported === true ? -1 : this.#step,
      wasEvaluated: payment.isExported === true,
      creator: null,
      base: 0n,
      earned: 0n,
      earns: null,
      place: null,
      earnedAt: Infinity,
      isDuplicate: false,
    });
  }

  /** Adds money for a creator, or deducts it. */
  enter(id: string, creator: string, cents: number): void {
    this.#entries.set(id, { creator, cents, isUndone: false });
  }

  /** Undoes an entry. A second time changes nothing. */
  undoEntry(id: string): void {
    const entry = this.#entries.get(id);
    if (entry !== undefined) entry.isUndone = true;
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
    const entered = [...this.#entries.values()].map((entry) => ({
      creator: entry.creator,
      net: entry.isUndone ? 0 : entry.cents,
    }));
    return [...this.books().values(), ...entered].reduce(
      (sum, books) => sum + (books.creator === creator ? books.net : 0),
      0,
    );
  }

  /** Returns the books under each reference; of an invoice that is paid in parts, under all of them together. */
  books(): ReadonlyMap<readonly string[], Books> {
    const books = new Map<readonly string[], Books>();
    const seen = new Set<string>();
    for (const [ref, row] of this.#rows) {
      if (seen.has(ref)) continue;
      const refs = row.payment.share === undefined ? [ref] : this.#rowsOf(ref).map((r) => r.payment.ref);
      for (const one of refs) seen.add(one);
      books.set(refs, row.payment.share === undefined ? this.#booksOf(row) : this.#booksOfParts(ref));
    }
    return books;
  }

  #booksOf({ creator, base, earned, isDuplicate, payment }: Row): Books {
    if (creator === null) return NOTHING;
    if (isDuplicate) return { creator, earned: Number(earned), net: 0, revenue: 0 };
    return this.#left({ creator, base, earned }, payment.ref, BigInt(payment.minor));
  }

  /** One invoice has one earning, on what was paid in all. As long as it is unknown, each of its parts is a payment. */
  #booksOfParts(ref: string): Books {
    const rows = this.#rowsOf(ref);
    const attributed = rows.find(({ creator }) => creator !== null);
    if (attributed?.creator == null) return rows.length === 1 ? NOTHING : { ...NOTHING, earned: null };
    const { creator } = attributed;
    const { currency, at } = attributed.payment;
    const paid = rows.find(({ payment }) => payment.share === 'whole') ?? attributed;
    const whole = BigInt(paid.payment.minor);
    const base = divided(...this.#toUsd(whole, currency, at));
    const books = this.#left({ creator, base, earned: this.#earn(creator, base) }, ref, whole);
    return rows.length === 1 ? books : { ...books, earned: null };
  }

  #left(
    { creator, base, earned }: { creator: string; base: bigint; earned: bigint },
    ref: string,
    whole: bigint,
  ): Books {
    const taken = this.#takenFrom(ref);
    const back = taken > whole ? whole : taken;
    const net = earned - divided(earned * back, whole);
    const revenue = base - divided(base * back, whole);
    return { creator, earned: Number(earned), net: Number(net), revenue: Number(revenue) };
  }

  #earn(creator: string, base: bigint): bigint {
    const terms = this.#creators.get(creator);
    return terms === undefined || terms.isPaused ? 0n : divided(base * BigInt(terms.rateBps), 10_000n);
  }

  /** Whether money was reported under a reference, or it is an alias. An unknown invoice does not tie its parts together. */
  #isKnown(ref: string): boolean {
    return this.#rows.has(ref) || this.#same.some(([, alias]) => alias === ref);
  }

  /** All references of the payment that has this one. */
  #namesOf(ref: string): ReadonlySet<string> {
    const names = new Set([ref]);
    const ties = this.#same.filter(([one]) => this.#isKnown(one));
    for (let size = 0; size !== names.size;) {
      size = names.size;
      for (const [a, b] of ties) {
        if (names.has(a)) names.add(b);
        if (names.has(b)) names.add(a);
      }
    }
    return names;
  }

  #rowsOf(ref: string): readonly Row[] {
    const names = this.#namesOf(ref);
    return [...this.#rows.values()].filter((row) => names.has(row.payment.ref));
  }

  #takenFrom(ref: string): bigint {
    const names = this.#namesOf(ref);
    let sum = 0n;
    for (const id of new Set(this.#takes.flatMap((take) => (names.has(take.ref) ? [take.id] : [])))) {
      const last = this.#stateOf(id);
      if (last === undefined || last.isBack) continue;
      const isUndone = this.#undos.some((undo) => undo.group === last.group && undo.at >= last.at);
      if (!isUndone) sum += BigInt(last.minor);
    }
    return sum;
  }

  /** The state of a refund or a dispute that decides. */
  #stateOf(id: string): NonNullable<Report['take']> | undefined {
    const states = this.#takes.filter((take) => take.id === id);
    const ends = states.filter((take) => take.isEnd);
    return (ends.length > 0 ? ends : states).toSorted((a, b) => b.at - a.at)[0];
  }

  #next(): void {
    this.#bind();
    this.#evaluateAll();
    for (const row of this.#rows.values()) this.#findDuplicate(row);
    this.#step += 1;
  }

  /** Evaluates every payment. What a code binds counts for all payments of the user, the earlier ones first. */
  #evaluateAll(): void {
    const count = () => this.#bindings.size + this.#boundKeys.size;
    for (let bindings = -1; bindings !== count();) {
      bindings = count();
      for (const row of this.#rows.values()) {
        this.#evaluate(row);
        if (count() > bindings) break;
      }
    }
  }

  /** Users whom an event names with a key that a code bound belong to its creator, if they have none. */
  #signIn(pairs: readonly { readonly key: string; readonly user: string }[]): void {
    for (const user of new Set(pairs.map((pair) => pair.user))) {
      const keys = new Set(pairs.filter((pair) => pair.user === user).map((pair) => pair.key));
      const [bound, ...more] = [...keys]
        .flatMap((key) => this.#boundKeys.get(key) ?? [])
        .toSorted((a, b) => a.step - b.step);
      const isOfOne = more.every(({ creator }) => creator === bound?.creator);
      if (bound === undefined || !isOfOne || this.#bindings.has(user)) continue;
      this.#bindings.set(user, { ...bound, step: this.#step });
    }
  }

  /** Binds a key, and the users whom events have named with it. */
  #bindKey(key: string, binding: Binding): void {
    this.#boundKeys.set(key, binding);
    const linked = this.#names.get(key);
    const named = [...this.#rows.values()]
      .filter(({ keys }) => keys.includes(key))
      .flatMap(({ users }) => users);
    this.#signIn([...(linked === undefined ? [] : [linked]), ...named].map((user) => ({ key, user })));
  }

  #bind(): void {
    for (const { device, user } of this.#identified) {
      const install = this.#installs.get(device);
      if (install === undefined || this.#bindings.has(user)) continue;
      this.#bindings.set(user, { ...install, user, step: this.#step });
    }
  }

  #evaluate(row: Row): void {
    if (row.creator !== null) return;
    const isFirst = !row.wasEvaluated;
    row.wasEvaluated = true;
    const { payment } = row;
    const others = this.#rowsOf(payment.ref).filter((other) => other !== row);
    const attributed = others.filter((other) => other.creator !== null);
    if (this.#isPart(row) || attributed.some((other) => !this.#isPart(other))) return;
    const [part] = attributed.toSorted(byEarning);
    const binding =
      this.#bindingOf(row, others, isFirst) ??
      (part === undefined ? this.#bindByCode(row, others, isFirst) : null);
    const creator = part?.creator ?? binding?.creator ?? null;
    if (creator === null) return;
    // What a code has bound is a person, with all keys.
    if (part === undefined && binding?.by === 'code')
      this.#bindKeys(
        [row, ...others].flatMap((one) => one.keys),
        binding,
      );
    row.creator = creator;
    row.base = divided(...this.#toUsd(BigInt(payment.minor), payment.currency, payment.at));
    // The whole has the place of the part that it replaces.
    row.place = part?.place ?? (binding === null ? null : this.#count(binding.user, payment.at));
    row.earns =
      part !== undefined && part.earned > 0n ? part.earns : this.#earnsOf(creator, payment.at, row.place);
    row.earned = row.earns === null ? 0n : earnedOn(row.base, row.earns);
    if (row.earned > 0n) row.earnedAt = this.#earnings += 1;
  }

  /** Numbers a payment of a user, from 1. */
  #count(user: string, at: number): Place {
    const paying = this.#paying.get(user) ?? { firstAt: at, payments: 0 };
    paying.payments += 1;
    this.#paying.set(user, paying);
    return { number: paying.payments, firstAt: paying.firstAt };
  }

  /** Returns how a payment earns: by the policy of its day, else by the rate of today. Null for nothing. */
  #earnsOf(creator: string, at: number, place: Place | null): Earns | null {
    const terms = this.#creators.get(creator);
    if (terms === undefined || terms.isPaused) return null;
    const [policy] = (this.#policies.get(creator) ?? [])
      .filter(({ from }) => from <= at)
      // Of the same instant, the last one counts.
      .toReversed()
      .toSorted((a, b) => Number(a.isOfGroup) - Number(b.isOfGroup) || b.from - a.from);
    if (policy === undefined || place === null || (policy.isOfGroup && terms.isOwnRate === true))
      return { percentBps: terms.rateBps };
    const rule = policy.rules.find(
      ({ firstPayments = Infinity, firstMonths = Infinity }) =>
        place.number <= firstPayments && monthsBetween(place.firstAt, at) < firstMonths,
    );
    return rule ?? null;
  }

  /**
   * Returns the binding of a key, else that of the first user who may be the payer. A user whom a founder gave to a creator goes before a
   * key.
   */
  #bindingOf(row: Row, others: readonly Row[], isFirst: boolean): Binding | null {
    const { payment } = row;
    const all = [row, ...others];
    const mayAttribute = ({ step, touchedAt, by, creator }: Binding) => {
      // A purchase with a code of the same creator is a touch itself.
      const owners = by === 'code' ? this.#firstUse(row, others).owners : [];
      const isAfter = payment.at >= touchedAt || (owners.length === 1 && owners[0] === creator);
      if (by !== undefined && !isAfter) return false;
      return by === 'founder' || isFirst || step < row.step || (isAfter && this.#isRecent(payment));
    };
    const bindingsOf = (users: readonly string[]) => users.flatMap((user) => this.#bindings.get(user) ?? []);
    const keys = all.flatMap((one) => one.keys);
    const near = bindingsOf([...all.flatMap((one) => one.users), ...this.#usersOf(keys)]);
    const isByHand = near.some((binding) => binding.by === 'founder' && mayAttribute(binding));
    // The subscription comes before the anonymous customer.
    const bound = isByHand
      ? []
      : all.flatMap((one) => one.keys.toReversed()).flatMap((key) => this.#boundKeys.get(key) ?? []);
    return [...bound, ...bindingsOf(this.#payersOf(row, others))].find(mayAttribute) ?? null;
  }

  /** Whether a payment is as recent as an evaluation after the first one requires. */
  #isRecent({ at }: Payment): boolean {
    return Date.now() - at <= this.#windowMs;
  }

  /**
   * Binds the user of a payment with a code, else its subscription or anonymous customer, else the payment alone, if nobody whom it
   * leads to has a creator, and its codes are of one.
   */
  #bindByCode(row: Row, others: readonly Row[], isFirst: boolean): Binding | null {
    const all = [row, ...others];
    const keys = all.flatMap((one) => one.keys);
    const users = [...all.flatMap((one) => one.users), ...this.#usersOf(keys)];
    const customers = this.#usersOf(all.flatMap((one) => one.customers));
    const { owners, at } = this.#firstUse(row, others);
    const [creator, ...more] = owners;
    const payers = users.length === 0 ? [] : this.#payersOf(row, others);
    const user = payers.find((one) => this.#identified.some((known) => known.user === one)) ?? payers[0];
    const isFree =
      ![...users, ...customers].some((one) => this.#bindings.has(one)) &&
      keys.every((key) => this.#ownersOf(key).length === 0) &&
      !keys.some((key) => this.#boundKeys.has(key));
    if (creator === undefined || more.length > 0 || !isFree) return null;
    if (!isFirst && !this.#isRecent(row.payment)) return null;
    const [key] = keys;
    const binding = {
      user: user ?? key ?? row.payment.ref,
      creator,
      step: this.#step,
      touchedAt: at,
      by: 'code' as const,
    };
    if (user !== undefined) this.#bindings.set(user, binding);
    else if (key !== undefined) this.#bindKey(key, binding);
    return binding;
  }

  /** Binds those of the keys that nobody else has. */
  #bindKeys(keys: readonly string[], binding: Binding): void {
    const free = keys.filter(
      (key) => !this.#boundKeys.has(key) && this.#ownersOf(key).every((owner) => owner.user === binding.user),
    );
    for (const key of free) this.#bindKey(key, { ...binding, step: this.#step });
  }

  /** Returns the bindings of those whom events name with a key. */
  #ownersOf(key: string): readonly Binding[] {
    const begun = this.#began.filter((one) => one.key === key);
    const rows = [...this.#rows.values()].filter(({ keys }) => keys.includes(key));
    const users = [...begun, ...rows].flatMap((one) => one.users);
    const anonymous = begun.flatMap((one) => one.anonymous ?? []);
    return [
      ...users.flatMap((user) => this.#bindings.get(user) ?? []),
      ...anonymous.flatMap((one) => this.#boundKeys.get(one) ?? []),
    ];
  }

  /** Returns when a code of somebody was first used: with the payment, or when its subscription began; and the creators of the codes of then. */
  #firstUse(row: Row, others: readonly Row[]): { readonly at: number; readonly owners: readonly string[] } {
    const names = this.#namesOf(row.payment.ref);
    const { at: paidAt } = row.payment;
    const own = this.#codes.filter(({ ref }) => names.has(ref)).map(({ code }) => ({ code, at: paidAt }));
    const uses = [...own, ...this.#begunCodes(row, others)].flatMap(({ code, at }) => {
      const owner = this.#owners.get(code);
      return owner === undefined ? [] : [{ owner, at }];
    });
    const first = Math.min(...uses.map(({ at }) => at));
    const owners = uses.filter(({ at }) => at === first).map(({ owner }) => owner);
    return { at: first, owners: [...new Set(owners)] };
  }

  /** Returns with which codes the subscription of a payment began. */
  #begunCodes(row: Row, others: readonly Row[]): readonly NonNullable<Report['began']>[] {
    const keys = [row, ...others].flatMap((one) => one.keys);
    return this.#began.filter(({ key, at }) => keys.includes(key) && at <= row.payment.at);
  }

  #usersOf(keys: readonly string[]): readonly string[] {
    return keys.flatMap((key) => this.#names.get(key) ?? []);
  }

  /**
   * Keys count only where no event of the payment names a user, and customers only where no subscription leads to one. The users that
   * events name have the order of their ids, whichever event arrived first.
   */
  #payersOf(row: Row, others: readonly Row[]): readonly string[] {
    const named = [...row.users.toSorted(), ...others.flatMap(({ users }) => users).toSorted()];
    if (named.length > 0) return named;
    const subscribers = [row, ...others].flatMap(({ keys }) => this.#usersOf(keys));
    return subscribers.length > 0
      ? subscribers
      : [row, ...others].flatMap(({ customers }) => this.#usersOf(customers));
  }

  /** Whether less was paid under the reference of this row than under one that is no alias, which it belongs to. */
  #isPart(row: Row): boolean {
    const roots = this.#rowsOf(row.payment.ref).filter(
      ({ payment, isDuplicate }) => !isDuplicate && !this.#same.some(([, alias]) => alias === payment.ref),
    );
    return roots.some(({ payment }) => payment.minor > row.payment.minor);
  }

  /** Of several attributed rows of one payment the whole stays, else the first to earn, else the first that was reported. */
  #findDuplicate(row: Row): void {
    if (row.creator === null) return;
    const [first] = this.#rowsOf(row.payment.ref)
      .filter(({ creator }) => creator !== null)
      .toSorted(
        (a, b) =>
          Number(a.isDuplicate) - Number(b.isDuplicate) ||
          Number(a.earned === 0n) - Number(b.earned === 0n) ||
          Number(this.#isPart(a)) - Number(this.#isPart(b)) ||
          byEarning(a, b),
      );
    if (first !== row) row.isDuplicate = true;
  }
}
