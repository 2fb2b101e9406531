import type { Facts, Report } from './money-facts.ts';

/** How somebody came to a creator. */
export interface Claim {
  readonly creator: string;
  readonly touchedAt: number;
  /** A founder or a code said so. A founder's word counts from its instant on, in any evaluation; a code's never before it. */
  readonly by?: 'founder' | 'code';
  /** When a founder said it, which may be later than the instant from which on it counts. */
  readonly saidAt?: number;
}

/** A user, or a key that stands in place of one, who belongs to a creator. */
export interface Binding {
  readonly name: string;
  readonly isKey: boolean;
  /** Whose payments are numbered together: who was bound first of all who share it. */
  person: string;
  readonly claim: Claim;
  readonly step: number;
}

/** What a founder has said about somebody who belonged to a creator. Null: later payments belong to nobody. */
interface Word {
  readonly about: Binding;
  readonly claim: Claim | null;
  readonly at: number;
  /** Whether it holds for all keys of the person: it is about one, or about the only user. */
  readonly isOfKeys: boolean;
}

/** The claim that counts, and since when a founder's word does. */
export interface Counting {
  readonly binding: Binding;
  /** Null: a founder said that it belongs to nobody. */
  readonly claim: Claim | null;
  /** When the founder said it. Before everything without such a word. */
  readonly saidAt: number;
}

/** Whether both belong to a creator by one claim. */
export function isSamePerson(one: Counting, other: Counting): boolean {
  return (
    one.claim !== null &&
    one.binding.person === other.binding.person &&
    one.claim.creator === other.claim?.creator &&
    one.claim.by === other.claim.by &&
    one.saidAt === other.saidAt
  );
}

/** The users and the keys that belong to creators. */
export class People {
  readonly users = new Map<string, Binding>();
  /** The subscriptions and anonymous customers that codes or founders bound. */
  readonly keys = new Map<string, Binding>();
  readonly #facts: Facts;
  /** Whether a payment of a person was attributed. */
  readonly #hasPaid: (person: string) => boolean;
  readonly #words: Word[] = [];
  readonly #transfers: NonNullable<Report['transfer']>[] = [];
  /** Users with a new binding, whose transfers pass it on. */
  readonly #newUsers: Binding[] = [];
  /** New bindings whose payments were not evaluated again, the oldest first. */
  readonly #toHeal: Binding[] = [];

  constructor(facts: Facts, hasPaid: (person: string) => boolean) {
    this.#facts = facts;
    this.#hasPaid = hasPaid;
  }

  get count(): number {
    return this.users.size + this.keys.size;
  }

  /** Takes the oldest binding whose payments are to be evaluated again. */
  nextToHeal(): Binding | undefined {
    return this.#toHeal.shift();
  }

  bindUser(binding: Omit<Binding, 'isKey'>): void {
    const user = { ...binding, isKey: false };
    this.users.set(user.name, user);
    this.#newUsers.push(user);
    this.#toHeal.push(user);
  }

  /** Binds a key, and the users whom events have named with it. */
  bindKey(binding: Omit<Binding, 'isKey'>): void {
    const { name: key, step } = binding;
    const bound = { ...binding, isKey: true };
    this.keys.set(key, bound);
    this.#toHeal.push(bound);
    const named = [...this.#facts.usersOf([key]), ...this.#facts.payersWith(key)];
    this.signIn(
      named.map((user) => ({ key, user })),
      step,
    );
  }

  /** A founder gives somebody who belongs to a creator to another one, or to nobody. */
  say(about: Binding, claim: Claim | null, at: number): void {
    const isOnlyUser = ![...this.users.values()].some(
      (other) => other !== about && other.person === about.person,
    );
    this.#words.push({ about, claim, at, isOfKeys: about.isKey || isOnlyUser });
  }

  /** Returns what counts for somebody's payments of an instant: the last word of a founder until then. */
  at(binding: Binding, at = Infinity): Counting {
    const isAbout = ({ about, isOfKeys }: Word) =>
      about === binding || (binding.isKey && isOfKeys && about.person === binding.person);
    const word = this.#words.findLast((one) => one.at <= at && isAbout(one));
    const { claim } = word ?? binding;
    // Who got it from somebody whom a founder gave to a creator belongs to that creator since then.
    const isOfOther = binding.person !== binding.name && claim?.by === 'founder';
    return {
      binding,
      claim: isOfOther ? { ...claim, touchedAt: claim.saidAt ?? claim.touchedAt } : claim,
      saidAt: word?.at ?? claim?.saidAt ?? -Infinity,
    };
  }

  transfer(transfer: NonNullable<Report['transfer']>, step: number): void {
    this.#transfers.push(transfer);
    this.#receive([transfer], step);
  }

  /** Has users who are new pass on what they transferred before. Returns whether there were any. */
  passOn(step: number): boolean {
    const givers = this.#newUsers.splice(0);
    for (const { name } of givers)
      this.#receive(
        this.#transfers.filter(({ from }) => from.includes(name)),
        step,
      );
    return givers.length > 0;
  }

  /**
   * The receivers without a creator get that of the giver, if exactly one giver has one before any of the transfers is passed on. They count
   * as the giver does, and so do those of the same installation who have not paid, with whom nobody counts and of whom a founder has said nothing.
   */
  #receive(transfers: readonly NonNullable<Report['transfer']>[], step: number): void {
    const received = transfers.map(({ from, to }) => ({ to, giver: this.#giverOf(from) }));
    for (const { to, giver } of received) {
      if (giver?.claim == null) continue;
      for (const name of to) {
        const bound = this.users.get(name);
        if (bound !== undefined) this.#join(bound, giver);
        else this.bindUser({ name, person: giver.binding.person, claim: giver.claim, step });
      }
    }
  }

  /** Returns the only one of these users who has a creator, or the first of several who are one person. */
  #giverOf(from: readonly string[]): Counting | undefined {
    const [giver, ...more] = [...new Set(from)]
      .flatMap((user) => this.users.get(user) ?? [])
      .map((user) => this.at(user))
      .filter(({ claim }) => claim !== null);
    return giver !== undefined && more.every((other) => isSamePerson(giver, other)) ? giver : undefined;
  }

  #join(bound: Binding, { binding: giver, claim }: Counting): void {
    const isAlone = ![...this.users.values(), ...this.keys.values()].some(
      (other) => other !== bound && other.person === bound.name,
    );
    const isOfInstallation = bound.claim === giver.claim || bound.claim === claim;
    const isTold = this.#words.some(({ about }) => about === bound);
    if (bound.person === bound.name && isAlone && isOfInstallation && !isTold && !this.#hasPaid(bound.name))
      bound.person = giver.person;
  }

  /** Users whom an event names with a key that is bound belong to its creator, if they have none. */
  signIn(pairs: readonly { readonly key: string; readonly user: string }[], step: number): void {
    for (const user of new Set(pairs.map((pair) => pair.user))) {
      const keys = new Set(pairs.filter((pair) => pair.user === user).map((pair) => pair.key));
      const bound = [...keys]
        .flatMap((key) => this.keys.get(key) ?? [])
        .toSorted((a, b) => a.step - b.step)
        .map((binding) => this.at(binding));
      const [first] = bound;
      const isOfOne = bound.every(({ claim }) => claim !== null && claim.creator === first?.claim?.creator);
      if (first?.claim == null || !isOfOne || this.users.has(user)) continue;
      this.bindUser({ name: user, person: first.binding.person, claim: first.claim, step });
    }
  }

  /** Returns the bindings of those whom events name with a key. */
  ownersOf(key: string): readonly Binding[] {
    const anonymous = this.#begunWith(key).flatMap((one) => one.anonymous ?? []);
    return [
      ...this.#usersOf(key).flatMap((user) => this.users.get(user) ?? []),
      ...anonymous.flatMap((one) => this.keys.get(one) ?? []),
    ];
  }

  /** Returns the users with whom a key began, or whom a payment with it names. */
  #usersOf(key: string): readonly string[] {
    return [...this.#begunWith(key).flatMap(({ users }) => users), ...this.#facts.payersWith(key)];
  }

  #begunWith(key: string) {
    return this.#facts.began.filter((one) => one.key === key);
  }
}
