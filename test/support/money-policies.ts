import type { Payment } from './money-facts.ts';

// The policies of the model of the money (money-model.ts): what is in effect when, and what a payment earns by it.

export type Store = 'stripe' | 'paddle' | 'app_store';

/** A percentage of the base, or a fixed amount of at most the base. */
export type Earns = { readonly percentBps: number } | { readonly flatCents: number };

/** A rule of a policy. A missing condition is met. */
export type Rule = Earns & {
  readonly firstPayments?: number;
  readonly firstMonths?: number;
  readonly products?: readonly string[];
  readonly stores?: readonly Store[];
};

export interface Policy {
  readonly base: 'gross' | 'net_of_tax' | 'proceeds';
  /** What counts of a payment for which nobody states it, basis points. */
  readonly assumed: {
    readonly taxBps?: number;
    readonly feeBps?: Readonly<Partial<Record<Store, number>>>;
  };
  readonly rules: readonly Rule[];
}

/** By what a payment earns: by a rate of its price, or by a rule of a policy. */
export type Terms = { readonly rateBps: number } | { readonly policy: Policy; readonly rule: Rule };

/** A tax or a fee: an amount that a provider states, or a share in parts per million, which is an estimate. */
export type Component = { readonly minor: number } | { readonly ppm: number };

/** What an event states of a payment beside its money. */
export interface Statement {
  readonly ref: string;
  readonly source: string;
  /** The amount that the event states of the payment, in minor units. */
  readonly minor: number;
  readonly tax?: Component;
  readonly fee?: Component;
  readonly product?: string;
}

/** The place of a payment among those of its user. */
export interface Place {
  readonly number: number;
  /** When the user paid first. */
  readonly firstAt: number;
}

/** Divides two numbers that are not negative; a half is rounded up. */
export const divided = (over: bigint, under: bigint) => (2n * over + under) / (2n * under);

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

interface Dated<T> {
  readonly from: number;
  readonly what: T;
}

/** Returns what is in effect at an instant. Of the same instant, the last one counts. */
const inEffectAt = <T>(all: readonly Dated<T>[], at: number): T | undefined =>
  all
    .filter(({ from }) => from <= at)
    .toReversed()
    .toSorted((a, b) => b.from - a.from)[0]?.what;

/** Which policies are in effect for whom. */
export class Policies {
  readonly #versions = new Map<string, Dated<Policy>[]>();
  readonly #assigned = new Map<string, Dated<string | null>[]>();

  publish(policy: string, from: number, terms: Policy): void {
    this.#versions.set(policy, [...(this.#versions.get(policy) ?? []), { from, what: terms }]);
  }

  /** Assigns a policy to a scope, or none. The scopes of a creator are in `inEffect`. */
  assign(scope: string, from: number, policy: string | null): void {
    this.#assigned.set(scope, [...(this.#assigned.get(scope) ?? []), { from, what: policy }]);
  }

  /** Returns the policy of the narrowest scope that has one in effect. */
  inEffect(creator: string, at: number): { readonly isOfCreator: boolean; readonly policy: Policy } | null {
    for (const scope of [creator, `group of ${creator}`, 'app']) {
      const assigned = inEffectAt(this.#assigned.get(scope) ?? [], at);
      const policy = assigned == null ? undefined : inEffectAt(this.#versions.get(assigned) ?? [], at);
      if (policy !== undefined) return { isOfCreator: scope === creator, policy };
    }
    return null;
  }
}

interface Sale {
  readonly payment: Payment;
  /** US cents. */
  readonly gross: bigint;
  /** What events state of the payment, under all its references, in the order of their arrival. */
  readonly statements: readonly Statement[];
}

/** Those of the payment's own provider come first, then those that arrived first. */
function inOrder({ payment, statements }: Pick<Sale, 'payment' | 'statements'>): readonly Statement[] {
  const own = statements.find(({ ref }) => ref === payment.ref)?.source;
  return statements.toSorted((a, b) => Number(a.source !== own) - Number(b.source !== own));
}

/** Returns the first rule that applies. */
export function ruleOf(policy: Policy, sale: Omit<Sale, 'gross'>, place: Place): Rule | undefined {
  const product = inOrder(sale).find((one) => one.product !== undefined)?.product;
  const { at, store } = sale.payment;
  return policy.rules.find(
    ({ firstPayments = Infinity, firstMonths = Infinity, products, stores }) =>
      place.number <= firstPayments &&
      monthsBetween(place.firstAt, at) < firstMonths &&
      (products === undefined || (product !== undefined && products.includes(product))) &&
      (stores === undefined || stores.includes(store)),
  );
}

/** Returns what a payment earns, in US cents. */
export function earnedBy(terms: Terms, sale: Sale): bigint {
  if ('rateBps' in terms) return divided(sale.gross * BigInt(terms.rateBps), 10_000n);
  const { policy, rule } = terms;
  const base = baseOf(policy, sale);
  if ('percentBps' in rule) return divided(base * BigInt(rule.percentBps), 10_000n);
  const flat = BigInt(rule.flatCents);
  return flat < base ? flat : base;
}

function baseOf({ base, assumed }: Policy, sale: Sale): bigint {
  const { payment, gross } = sale;
  const paid = BigInt(payment.minor);
  const of = (part: bigint, bps: number) => divided(part * BigInt(bps), 10_000n);
  if (base === 'gross') return gross;
  const tax = known('tax', sale) ?? of(paid, assumed.taxBps ?? 0);
  const fee = () => {
    const bps = assumed.feeBps?.[payment.store] ?? (payment.store === 'app_store' ? 3_000 : 0);
    return known('fee', sale) ?? of(paid > tax ? paid - tax : 0n, bps);
  };
  const kept = paid - tax - (base === 'proceeds' ? fee() : 0n);
  return kept <= 0n ? 0n : divided(gross * kept, paid);
}

/** What is stated goes before what is estimated. An amount is a part of what the same event says was paid. */
function known(name: 'tax' | 'fee', sale: Sale): bigint | undefined {
  const { minor } = sale.payment;
  const all = inOrder(sale).flatMap((one) => {
    const component = one[name];
    return component === undefined || ('minor' in component && one.minor !== minor) ? [] : [component];
  });
  const component = all.find((one) => 'minor' in one) ?? all[0];
  if (component === undefined) return undefined;
  return 'minor' in component
    ? BigInt(component.minor)
    : divided(BigInt(minor) * BigInt(component.ppm), 1_000_000n);
}
