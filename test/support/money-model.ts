import { Attribution } from './money-attribution.ts';
import { Facts } from './money-facts.ts';
import type { Currency, Report, Row } from './money-facts.ts';
import { divided, earnedBy, Policies, ruleOf } from './money-policies.ts';
import type { Place, Terms } from './money-policies.ts';

/**
 * A small model of the money rules (docs/money.md), to compare the service with. It uses no code of the service, keeps no
 * ledger, and computes every sum afresh from the facts (money-facts.ts): only who was attributed (money-attribution.ts), when, and
 * at which rate is remembered.
 */

interface Creator {
  readonly rateBps: number;
  readonly isPaused: boolean;
  /** Whether the rate is the creator's own, which goes before the policies of group and app. */
  readonly isOwnRate?: boolean;
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

const byEarning = (a: Row, b: Row) => (a.earnedAt < b.earnedAt ? -1 : a.earnedAt > b.earnedAt ? 1 : 0);

export class MoneyModel {
  readonly #facts = new Facts();
  readonly #attribution: Attribution;
  readonly #reported = new Set<string>();
  readonly #takes: NonNullable<Report['take']>[] = [];
  readonly #undos: NonNullable<Report['undo']>[] = [];
  readonly #creators = new Map<string, Creator>();
  readonly policies = new Policies();
  /** The time of the first payment of each user, and how many there are. */
  readonly #paying = new Map<string, { readonly firstAt: number; payments: number }>();
  readonly #paid = new Map<string, number>();
  readonly #entries = new Map<
    string,
    { readonly creator: string; readonly cents: number; isUndone: boolean }
  >();
  readonly #toUsd: (minor: bigint, currency: Currency, at: number) => readonly [over: bigint, under: bigint];
  #step = 0;
  #earnings = 0;

  constructor(settings: {
    readonly windowMs: number;
    /** Returns an amount in US cents as a fraction. */
    readonly toUsd: (minor: bigint, currency: Currency, at: number) => readonly [over: bigint, under: bigint];
  }) {
    this.#attribution = new Attribution(this.#facts, settings.windowMs, (person) => this.#paying.has(person));
    this.#toUsd = settings.toUsd;
  }

  setCreator(name: string, creator: Creator): void {
    this.#creators.set(name, creator);
  }

  /** Gives a code to a creator. */
  register(code: string, creator: string): void {
    this.#facts.register(code, creator);
  }

  /** A device keeps its first attribution. */
  install(device: string, creator: string, touchedAt: number): void {
    this.#attribution.install(device, creator, touchedAt);
    this.#next();
  }

  /** A founder gives a user or a key without a creator to one, for payments from an instant on. */
  give(name: string, creator: string, from: number): void {
    this.#attribution.give(name, creator, { from, at: Date.now(), step: this.#step });
    this.#next();
  }

  /** A founder gives a user or a key to a creator, or to nobody, for payments from now on. */
  say(name: string, creator: string | null, at: number): void {
    this.#attribution.say(name, creator, { at, step: this.#step });
    this.#next();
  }

  /** Whether a payment has this key. */
  isKey(name: string): boolean {
    return this.#attribution.isKey(name);
  }

  identify(device: string, user: string): void {
    this.#attribution.identify(device, user);
    this.#next();
  }

  /** Erases a user. No payment gets or loses a creator by that. */
  erase(user: string): void {
    this.#facts.erase(user);
    this.#attribution.erase(user);
    this.#next();
  }

  report(report: Report): void {
    if (!this.#reported.has(report.eventId)) {
      this.#reported.add(report.eventId);
      this.#facts.add(report, this.#step);
      if (report.take !== undefined) this.#takes.push(report.take);
      if (report.undo !== undefined) this.#undos.push(report.undo);
      this.#attribution.bindReported(report, this.#step);
    }
    this.#next(report);
  }

  /** Adds what an export of the provider states, where the ledger lacks it. Without a time, a state is as of now. */
  feedBack(report: Report): void {
    const { payment, take } = report;
    if (payment !== undefined && this.#facts.rows.has(payment.ref)) return;
    if (take === undefined) {
      this.report(report);
      return;
    }
    const state = this.#stateOf(take.id);
    if (state?.isBack === take.isBack) return;
    this.report({ ...report, take: { ...take, at: Math.min(take.at, Date.now()) } });
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

  /** Returns all references of a payment. */
  referencesOf(ref: string): readonly string[] {
    return this.#facts.rowsOf(ref).map(({ payment }) => payment.ref);
  }

  /** Returns the books under each reference; of an invoice that is paid in parts, under all of them together. */
  books(): ReadonlyMap<readonly string[], Books> {
    const books = new Map<readonly string[], Books>();
    const seen = new Set<string>();
    for (const [ref, row] of this.#facts.rows) {
      if (seen.has(ref)) continue;
      const refs =
        row.payment.share === undefined ? [ref] : this.#facts.rowsOf(ref).map((r) => r.payment.ref);
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
    const rows = this.#facts.rowsOf(ref);
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

  #takenFrom(ref: string): bigint {
    const names = this.#facts.namesOf(ref);
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

  #next(report?: Report): void {
    this.#attribution.bindIdentified(this.#step);
    if (report !== undefined) this.#evaluateReported(report);
    this.#evaluateAll();
    for (const row of this.#facts.rows.values()) this.#findDuplicate(row);
    this.#step += 1;
  }

  /** Evaluates the payments with a key of which an event states something, then the one that it reports. */
  #evaluateReported({ payment, names = [], began }: Report): void {
    const keys = [...names.map(({ key }) => key), ...(began === undefined ? [] : [began.key])];
    const rows = [...this.#facts.rows.values()];
    const reported = rows.filter((row) => row.payment.ref === payment?.ref);
    const own = this.#withOthers(reported);
    const linked = this.#withOthers(
      rows.filter((row) => [...row.keys, ...row.customers].some((key) => keys.includes(key))),
    );
    for (const row of [...linked.filter((one) => !own.includes(one)), ...own]) this.#evaluate(row);
  }

  /**
   * Evaluates the payments of each one who was bound since, in the order of the bindings; then all. A payment is evaluated with all
   * its rows. What a code binds counts for all payments of the user.
   */
  #evaluateAll(): void {
    for (let bindings = -1; bindings !== this.#attribution.count;) {
      this.#heal();
      bindings = this.#attribution.count;
      for (const one of this.#facts.rows.values()) {
        this.#evaluate(one);
        if (this.#attribution.count > bindings) break;
      }
    }
  }

  #heal(): void {
    this.#attribution.passOn(this.#step);
    for (
      let rows = this.#attribution.nextToHeal();
      rows !== undefined;
      rows = this.#attribution.nextToHeal()
    ) {
      for (const row of this.#withOthers(rows)) this.#evaluate(row);
      this.#attribution.passOn(this.#step);
    }
  }

  /** All rows of these payments, in the order in which they were reported, parts last. */
  #withOthers(rows: readonly Row[]): readonly Row[] {
    const all = new Set(rows.flatMap((row) => [...this.#facts.rowsOf(row.payment.ref)]));
    return [...this.#facts.rows.values()]
      .filter((one) => all.has(one))
      .toSorted((a, b) => Number(this.#facts.isPart(a)) - Number(this.#facts.isPart(b)));
  }

  #evaluate(row: Row): void {
    if (row.creator !== null) return;
    const isFirst = !row.wasEvaluated;
    row.wasEvaluated = true;
    const { payment } = row;
    const others = this.#facts.rowsOf(payment.ref).filter((other) => other !== row);
    const attributed = others.filter((other) => other.creator !== null);
    if (this.#facts.isPart(row) || attributed.some((other) => !this.#facts.isPart(other))) return;
    const [part] = attributed.toSorted(byEarning);
    const through =
      this.#attribution.of(row, others, isFirst) ??
      (part === undefined ? this.#attribution.bindByCode(row, others, isFirst, this.#step) : null);
    const creator = part?.creator ?? through?.claim.creator ?? null;
    if (creator === null) return;
    // What a code has bound is a person, with all keys.
    if (part === undefined && through?.claim.by === 'code')
      this.#attribution.bindKeys(
        [row, ...others].flatMap((one) => one.keys),
        through,
        this.#step,
      );
    row.creator = creator;
    row.base = divided(...this.#toUsd(BigInt(payment.minor), payment.currency, payment.at));
    // The whole has the place of the part that it replaces.
    row.place = part?.place ?? (through === null ? null : this.#count(through.binding.person, payment.at));
    row.terms = part !== undefined && part.earned > 0n ? part.terms : this.#termsOf(creator, row);
    const sale = { payment, gross: row.base, statements: this.#facts.statementsOf(payment.ref) };
    row.earned = row.terms === null ? 0n : earnedBy(row.terms, sale);
    if (row.earned > 0n) row.earnedAt = this.#earnings += 1;
  }

  /** Numbers a payment of a user, from 1. */
  #count(user: string, at: number): Place {
    const paying = this.#paying.get(user) ?? { firstAt: at, payments: 0 };
    paying.payments += 1;
    this.#paying.set(user, paying);
    return { number: paying.payments, firstAt: paying.firstAt };
  }

  /** Returns by what a payment earns: by the policy of its day, else by the rate of today. Null for nothing. */
  #termsOf(name: string, { payment, place }: Row): Terms | null {
    const creator = this.#creators.get(name);
    if (creator === undefined || creator.isPaused) return null;
    const assigned = this.policies.inEffect(name, payment.at);
    if (assigned === null || place === null || (!assigned.isOfCreator && creator.isOwnRate === true))
      return { rateBps: creator.rateBps };
    const { policy } = assigned;
    const statements = this.#facts.statementsOf(payment.ref);
    const rule = ruleOf(policy, { payment, statements }, place);
    return rule === undefined ? null : { policy, rule };
  }

  /** Of several attributed rows of one payment the whole stays, else the first to earn, else the first that was reported. */
  #findDuplicate(row: Row): void {
    if (row.creator === null) return;
    const [first] = this.#facts
      .rowsOf(row.payment.ref)
      .filter(({ creator }) => creator !== null)
      .toSorted(
        (a, b) =>
          Number(a.isDuplicate) - Number(b.isDuplicate) ||
          Number(a.earned === 0n) - Number(b.earned === 0n) ||
          Number(this.#facts.isPart(a)) - Number(this.#facts.isPart(b)) ||
          byEarning(a, b),
      );
    if (first !== row) row.isDuplicate = true;
  }
}
