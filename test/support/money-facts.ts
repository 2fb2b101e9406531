import type { Place, Statement, Store, Terms } from './money-policies.ts';

/** The facts that the model of the money (money-model.ts) computes from, and what they tie together. */

/** What an event of a billing provider states. References, keys and ids are unique over all providers. */
export interface Report {
  readonly eventId: string;
  readonly payment?: {
    readonly ref: string;
    readonly store: Store;
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
  /** Tax, fee and product of payments. */
  readonly states?: readonly Statement[];
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
  /** Users whose purchases became those of others. */
  readonly transfer?: { readonly from: readonly string[]; readonly to: readonly string[] };
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

export type Payment = NonNullable<Report['payment']>;

export type Currency = 'usd' | 'eur' | 'jpy';

export interface Row {
  readonly payment: Payment;
  readonly users: string[];
  /** The first place that an event gives each user among those whom it names. */
  readonly placeOf: Map<string, number>;
  readonly keys: string[];
  /** The last place that an event gives each key among those of the payment: that of the event which names most. */
  readonly placeOfKey: Map<string, number>;
  readonly customers: string[];
  readonly step: number;
  wasEvaluated: boolean;
  creator: string | null;
  base: bigint;
  earned: bigint;
  /** By what it earned. Null: by nothing. */
  terms: Terms | null;
  place: Place | null;
  /** The order of earnings: the first one under several references stays. Infinite without an earning. */
  earnedAt: number;
  isDuplicate: boolean;
}

const addNew = (all: string[], more: readonly string[]) =>
  all.push(...more.filter((one) => !all.includes(one)));

/** The keys of a row in the order of their places: the anonymous customer comes before the subscription. */
export function keysInOrder({ keys, placeOfKey }: Row, isReversed = false): string[] {
  const placeOf = (key: string) => (isReversed ? -1 : 1) * (placeOfKey.get(key) ?? 0);
  return keys.toSorted((a, b) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1));
}

/** The facts that providers have stated. */
export class Facts {
  readonly rows = new Map<string, Row>();
  readonly same: (readonly [string, string])[] = [];
  readonly began: NonNullable<Report['began']>[] = [];
  readonly #names = new Map<string, string>();
  readonly #codes: { readonly ref: string; readonly code: string }[] = [];
  readonly #owners = new Map<string, string>();
  readonly #statements: Statement[] = [];
  readonly #erased = new Set<string>();

  /** Gives a code to a creator. */
  register(code: string, creator: string): void {
    this.#owners.set(code, creator);
  }

  /** An erased user is the same one under another name, which sorts before those of others. */
  erase(user: string): void {
    this.#erased.add(user);
  }

  #inOrder(rows: readonly Row[]): readonly string[] {
    const nameOf = (user: string) => (this.#erased.has(user) ? '' : user);
    return rows
      .flatMap(({ users, placeOf }) => users.map((user) => ({ user, place: placeOf.get(user) ?? 0 })))
      .toSorted((a, b) => a.place - b.place || (nameOf(a.user) < nameOf(b.user) ? -1 : 1))
      .map(({ user }) => user);
  }

  add(report: Report, step: number): void {
    const { payment, names = [], began } = report;
    if (payment !== undefined) this.#addPayment(payment, step);
    for (const { key, user } of names) if (!this.#names.has(key)) this.#names.set(key, user);
    this.same.push(...(report.same ?? []));
    this.#statements.push(...(report.states ?? []));
    this.#codes.push(...(report.codes ?? []));
    if (began !== undefined) this.began.push(began);
  }

  #addPayment(payment: Payment, step: number): void {
    const row = this.rows.get(payment.ref);
    if (row !== undefined) {
      addNew(row.users, payment.users);
      for (const [place, user] of payment.users.entries())
        row.placeOf.set(user, Math.min(place, row.placeOf.get(user) ?? place));
      addNew(row.keys, payment.keys);
      for (const [place, key] of payment.keys.entries())
        row.placeOfKey.set(key, Math.max(place, row.placeOfKey.get(key) ?? place));
      addNew(row.customers, payment.customers ?? []);
      return;
    }
    this.rows.set(payment.ref, {
      payment,
      users: [...payment.users],
      placeOf: new Map(payment.users.map((user, place) => [user, place])),
      keys: [...payment.keys],
      placeOfKey: new Map(payment.keys.map((key, place) => [key, place])),
      customers: [...(payment.customers ?? [])],
      // What an export adds counts as received when it occurred, before any binding, and as evaluated since.
      step: payment.isExported === true ? -1 : step,
      wasEvaluated: payment.isExported === true,
      creator: null,
      base: 0n,
      earned: 0n,
      terms: null,
      place: null,
      earnedAt: Infinity,
      isDuplicate: false,
    });
  }

  /** Whether money was reported under a reference, or it is an alias. An unknown invoice does not tie its parts together. */
  #isKnown(ref: string): boolean {
    return this.rows.has(ref) || this.same.some(([, alias]) => alias === ref);
  }

  /** All references of the payment that has this one. */
  namesOf(ref: string): ReadonlySet<string> {
    const names = new Set([ref]);
    const ties = this.same.filter(([one]) => this.#isKnown(one));
    for (let size = 0; size !== names.size;) {
      size = names.size;
      for (const [a, b] of ties) {
        if (names.has(a)) names.add(b);
        if (names.has(b)) names.add(a);
      }
    }
    return names;
  }

  rowsOf(ref: string): readonly Row[] {
    const names = this.namesOf(ref);
    return [...this.rows.values()].filter((row) => names.has(row.payment.ref));
  }

  /** What events state of a payment, in the order of their arrival. */
  statementsOf(ref: string): readonly Statement[] {
    const names = this.namesOf(ref);
    return this.#statements.filter((one) => names.has(one.ref));
  }

  /** Returns when a code of somebody was first used: with the payment, or when its subscription began; and the creators of the codes of then. */
  firstUse(row: Row, others: readonly Row[]): { readonly at: number; readonly owners: readonly string[] } {
    const names = this.namesOf(row.payment.ref);
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
    return this.began.filter(({ key, at }) => keys.includes(key) && at <= row.payment.at);
  }

  /** The users whom other events tie to the keys. */
  usersOf(keys: readonly string[]): readonly string[] {
    return keys.flatMap((key) => this.#names.get(key) ?? []);
  }

  /** The users whom payments name with a key. */
  payersWith(key: string): readonly string[] {
    return [...this.rows.values()].filter(({ keys }) => keys.includes(key)).flatMap(({ users }) => users);
  }

  /**
   * Keys count only where no event of the payment names a user, and customers only where no subscription leads to one. The users that
   * events name have the order in which one event names them, then that of their ids, whichever event arrived first.
   */
  payersOf(row: Row, others: readonly Row[]): readonly string[] {
    const named = [...this.#inOrder([row]), ...this.#inOrder(others)];
    if (named.length > 0) return named;
    const subscribers = [row, ...others].flatMap(({ keys }) => this.usersOf(keys));
    return subscribers.length > 0
      ? subscribers
      : [row, ...others].flatMap(({ customers }) => this.usersOf(customers));
  }

  /** Whether less was paid under the reference of this row than under one that is no alias, which it belongs to. */
  isPart(row: Row): boolean {
    const roots = this.rowsOf(row.payment.ref).filter(
      ({ payment, isDuplicate }) => !isDuplicate && !this.same.some(([, alias]) => alias === payment.ref),
    );
    return roots.some(({ payment }) => payment.minor > row.payment.minor);
  }
}
