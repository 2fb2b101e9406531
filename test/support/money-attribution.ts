import { keysInOrder } from './money-facts.ts';
import type { Facts, Payment, Report, Row } from './money-facts.ts';
import { isSamePerson, People } from './money-people.ts';
import type { Binding, Claim, Counting } from './money-people.ts';

/** How a payment was attributed. */
export interface Attributed {
  readonly claim: Claim;
  readonly binding: Binding;
}

/** To whom payments belong, of the model of the money (money-model.ts). */
export class Attribution {
  readonly #facts: Facts;
  readonly #people: People;
  readonly #windowMs: number;
  readonly #installs = new Map<string, { creator: string; touchedAt: number }>();
  readonly #identified: { device: string; user: string }[] = [];

  /** `hasPaid` returns whether a payment of a person was attributed. */
  constructor(facts: Facts, windowMs: number, hasPaid: (person: string) => boolean) {
    this.#facts = facts;
    this.#people = new People(facts, hasPaid);
    this.#windowMs = windowMs;
  }

  /** How many users and keys belong to creators. */
  get count(): number {
    return this.#people.count;
  }

  /** A device keeps its first attribution. */
  install(device: string, creator: string, touchedAt: number): void {
    if (!this.#installs.has(device)) this.#installs.set(device, { creator, touchedAt });
  }

  identify(device: string, user: string): void {
    this.#identified.push({ device, user });
  }

  /** Forgets that devices have reported a user, who belongs to the same creator as before. */
  erase(user: string): void {
    const left = this.#identified.filter((known) => known.user !== user);
    this.#identified.splice(0, Infinity, ...left);
  }

  /** Binds the users whom devices have reported. */
  bindIdentified(step: number): void {
    for (const { device, user } of this.#identified) {
      const claim = this.#installs.get(device);
      if (claim === undefined || this.#people.users.has(user)) continue;
      this.#people.bindUser({ name: user, person: user, claim, step });
    }
  }

  /** Binds the users to whom users who are new transferred purchases before. */
  passOn(step: number): void {
    while (this.#people.passOn(step));
  }

  /** Returns the payments of whom was bound next, in the order of their first events; undefined if nobody was bound since. */
  nextToHeal(): readonly Row[] | undefined {
    const binding = this.#people.nextToHeal();
    if (binding === undefined) return undefined;
    const { name, isKey } = binding;
    return [...this.#facts.rows.values()].filter(({ keys, users, customers }) =>
      isKey
        ? keys.includes(name)
        : [...users, ...this.#facts.usersOf([...keys, ...customers])].includes(name),
    );
  }

  /** Returns whether a payment has this key. */
  isKey(name: string): boolean {
    return [...this.#facts.rows.values()].some(({ keys }) => keys.includes(name));
  }

  bindingOf(name: string): Binding | undefined {
    return this.#people.users.get(name) ?? this.#people.keys.get(name);
  }

  /** A founder gives a user or a key that belongs to nobody to a creator, for payments from an instant on. */
  give(name: string, creator: string, { from, at, step }: { from: number; at: number; step: number }): void {
    if (this.bindingOf(name) !== undefined) return;
    const claim = { creator, touchedAt: from, by: 'founder' as const, saidAt: at };
    const binding = { name, person: name, claim, step };
    if (this.isKey(name)) this.#people.bindKey(binding);
    else this.#people.bindUser(binding);
  }

  /** A founder gives somebody to a creator, or to nobody, for payments from now on. Nobody can be taken from nobody. */
  say(name: string, creator: string | null, { at, step }: { at: number; step: number }): void {
    const about = this.bindingOf(name);
    if (about !== undefined)
      this.#people.say(
        about,
        creator === null ? null : { creator, touchedAt: at, by: 'founder', saidAt: at },
        at,
      );
    else if (creator !== null) this.give(name, creator, { from: at, at, step });
  }

  /** Binds the users to whom a report transfers purchases, or whom it names with a key that belongs to somebody. */
  bindReported({ payment, names = [], began, transfer }: Report, step: number): void {
    if (transfer !== undefined) this.#people.transfer(transfer, step);
    // Whichever event of the payment named them.
    const { keys = [], users = [] } = (payment && this.#facts.rows.get(payment.ref)) ?? {};
    const beganBy = began?.users.map((user) => ({ key: began.key, user })) ?? [];
    const paidBy = keys.flatMap((key) => users.map((user) => ({ key, user })));
    this.#people.signIn([...names, ...beganBy, ...paidBy], step);
  }

  /**
   * Returns through whom a payment earns: a key that belongs to somebody, else the first user who may be the payer. A user about whom a
   * founder has spoken after speaking about the keys goes before a key.
   */
  of(row: Row, others: readonly Row[], isFirst: boolean): Attributed | null {
    const { payment } = row;
    const all = [row, ...others];
    const counting = (binding: Binding) => this.#people.at(binding, payment.at);
    const mayAttribute = (one: Counting): one is Counting & Attributed => {
      if (one.claim === null) return false;
      const { touchedAt, by, creator } = one.claim;
      // A purchase with a code of the same creator is a touch itself.
      const owners = by === 'code' ? this.#facts.firstUse(row, others).owners : [];
      const isAfter = payment.at >= touchedAt || (owners.length === 1 && owners[0] === creator);
      if (by !== undefined && !isAfter) return false;
      const isEarlier = one.binding.step < row.step;
      return by === 'founder' || isFirst || isEarlier || (isAfter && this.#isRecent(payment));
    };
    const bindingsOf = (users: readonly string[]) =>
      users.flatMap((user) => this.#people.users.get(user) ?? []).map(counting);
    const keys = all.flatMap((one) => one.keys);
    const near = bindingsOf([...all.flatMap((one) => one.users), ...this.#facts.usersOf(keys)]);
    // The subscription comes before the anonymous customer.
    const boundKeys = all
      .flatMap((one) => keysInOrder(one, true))
      .flatMap((key) => this.#people.keys.get(key) ?? [])
      .map(counting);
    const bound = boundKeys.filter((one) => one.claim === null || mayAttribute(one));
    const ofKeys = Math.max(...bound.map(({ saidAt }) => saidAt));
    const isSaidLater = (one: Counting) =>
      one.saidAt > ofKeys && (one.claim === null || (one.claim.by === 'founder' && mayAttribute(one)));
    const [key] = near.some(isSaidLater) ? [] : bound;
    if (key !== undefined) return mayAttribute(key) ? key : null;
    const payers = bindingsOf(this.#facts.payersOf(row, others));
    // Who signed in with a key stands for it, and does not go before whom a founder gave away later.
    const standsForKey = (one: Counting) => boundKeys.some((other) => isSamePerson(one, other));
    const mayPay = payers.some(isSaidLater) ? payers.filter((one) => !standsForKey(one)) : payers;
    return mayPay.find(mayAttribute) ?? null;
  }

  /** Whether a payment is as recent as an evaluation after the first one requires. */
  #isRecent({ at }: Payment): boolean {
    return Date.now() - at <= this.#windowMs;
  }

  /**
   * Binds the user of a payment with a code, else its subscription or anonymous customer, else the payment alone, if nobody whom it
   * leads to has a creator, and its codes are of one.
   */
  bindByCode(row: Row, others: readonly Row[], isFirst: boolean, step: number): Attributed | null {
    const all = [row, ...others];
    const keys = all.flatMap((one) => keysInOrder(one));
    const users = [...all.flatMap((one) => one.users), ...this.#facts.usersOf(keys)];
    const customers = this.#facts.usersOf(all.flatMap((one) => one.customers));
    const { owners, at } = this.#facts.firstUse(row, others);
    const [creator, ...more] = owners;
    const payers = users.length === 0 ? [] : this.#facts.payersOf(row, others);
    const user = payers.find((one) => this.#identified.some((known) => known.user === one)) ?? payers[0];
    const people = this.#people;
    const isFree =
      ![...users, ...customers].some((one) => people.users.has(one)) &&
      keys.every((key) => people.ownersOf(key).length === 0) &&
      !keys.some((key) => people.keys.has(key));
    if (creator === undefined || more.length > 0 || !isFree) return null;
    if (!isFirst && !this.#isRecent(row.payment)) return null;
    const [key] = keys;
    const name = user ?? key ?? row.payment.ref;
    const claim = { creator, touchedAt: at, by: 'code' as const };
    const binding = { name, person: name, claim, step };
    if (user !== undefined) people.bindUser(binding);
    else if (key !== undefined) people.bindKey(binding);
    return { claim, binding: { ...binding, isKey: user === undefined } };
  }

  /** Binds those of the keys that nobody else has. */
  bindKeys(keys: readonly string[], { binding, claim }: Attributed, step: number): void {
    const people = this.#people;
    const isSame = (owner: Binding) => owner.person === binding.person;
    const free = keys.filter((key) => !people.keys.has(key) && people.ownersOf(key).every(isSame));
    for (const name of free) people.bindKey({ name, person: binding.person, claim, step });
  }
}
