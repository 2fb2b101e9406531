import { given } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import type { Entered } from '../parts/number-field.tsx';

/** The contents of a version. */
export type Terms = Omit<Schemas['NewPolicyVersion'], 'effectiveFrom'>;
export type Base = Terms['base'];
type Rule = Schemas['PolicyRule'];

const PERCENT_IN_BPS = 100;
const CENTS = 100;
const MOST_PERCENT = 100;
const MOST_DOLLARS = 1_000;

/** Number of rules of a version at most. */
export const MOST_RULES = 20;

/** Whole numbers from 1, both inclusive. An empty one is no limit. */
export interface RangeDraft {
  readonly from: Entered;
  readonly to: Entered;
}

/** A rule that is being entered. A condition is null if the rule does not have it. */
export interface RuleDraft {
  /** Tells the rules apart while they move. */
  readonly key: number;
  readonly kind: 'percent' | 'fixed';
  readonly percent: Entered;
  readonly dollars: Entered;
  readonly aboveBase: boolean;
  /** Months of a customer: 1 is the first. */
  readonly months: RangeDraft | null;
  /** Payments of a customer: 1 is the first. */
  readonly payments: RangeDraft | null;
  /** Ids, separated by commas. */
  readonly products: string | null;
  readonly stores: readonly string[] | null;
}

export interface TermsDraft {
  readonly base: Base;
  /** What is assumed of a payment, percent. */
  readonly tax: Entered;
  /** By store, percent. */
  readonly fees: Readonly<Record<string, Entered>>;
  readonly rules: readonly RuleDraft[];
}

/** The stores that the form offers, with the fee that the service assumes by itself, percent. */
const STORE_FEES: Readonly<Record<string, number>> = { app_store: 30, play_store: 30, stripe: 0, paddle: 0 };

let lastKey = 0;

/** Returns a rule that gives a percentage of each payment. */
export function newRule(rule: Partial<RuleDraft> = {}): RuleDraft {
  lastKey += 1;
  return {
    key: lastKey,
    kind: 'percent',
    percent: '',
    dollars: '',
    aboveBase: false,
    months: null,
    payments: null,
    products: null,
    stores: null,
    ...rule,
  };
}

const newTerms = (terms: Partial<TermsDraft>): TermsDraft => ({
  base: 'gross',
  tax: 0,
  fees: STORE_FEES,
  rules: [],
  ...terms,
});

/** What a new policy can begin with. */
export const TEMPLATES = {
  one: { name: 'One rate', begin: () => newTerms({ rules: [newRule({ percent: 20 })] }) },
  year: {
    name: 'More in the first year',
    begin: () =>
      newTerms({
        base: 'proceeds',
        rules: [newRule({ percent: 50, months: { from: 1, to: 12 } }), newRule({ percent: 20 })],
      }),
  },
  first: {
    name: 'Fixed amount for a new customer',
    begin: () => newTerms({ rules: [newRule({ kind: 'fixed', dollars: 5, payments: { from: 1, to: 1 } })] }),
  },
} as const;

const draftOfRule = ({ when = {}, percentBps, flatCents, aboveBase }: Rule): RuleDraft =>
  newRule({
    kind: flatCents === undefined ? 'percent' : 'fixed',
    percent: percentBps === undefined ? '' : percentBps / PERCENT_IN_BPS,
    dollars: flatCents === undefined ? '' : flatCents / CENTS,
    aboveBase: aboveBase === true,
    months:
      when.monthsSinceFirst === undefined
        ? null
        : { from: (when.monthsSinceFirst.from ?? 0) + 1, to: when.monthsSinceFirst.below ?? '' },
    payments:
      when.paymentNumber === undefined
        ? null
        : { from: when.paymentNumber.from ?? 1, to: when.paymentNumber.to ?? '' },
    products: when.productIds?.join(', ') ?? null,
    stores: when.stores ?? null,
  });

/** Returns the contents of a version, to be changed for the next one. */
export function draftOf({ base, assumed = {}, rules }: Terms): TermsDraft {
  const stated = Object.entries(assumed.feeBps ?? {}).map(([store, bps]) => [store, bps / PERCENT_IN_BPS]);
  return {
    base,
    tax: (assumed.taxBps ?? 0) / PERCENT_IN_BPS,
    fees: { ...STORE_FEES, ...(Object.fromEntries(stated) as Record<string, number>) },
    rules: rules.map(draftOfRule),
  };
}

/** Returns the ids of products that a text names. */
export const productsOf = (text: string): string[] =>
  text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');

const numberOf = (entered: Entered): number | undefined => (entered === '' ? undefined : Number(entered));

const isWithin = (entered: Entered, least: number, most: number): boolean => {
  const number = numberOf(entered);
  return number !== undefined && number >= least && number <= most;
};

function rangeProblem(range: RangeDraft | null, what: string): string | null {
  if (range === null) return null;
  const [from, to] = [numberOf(range.from) ?? 1, numberOf(range.to)];
  if (![from, to ?? from].every((one) => Number.isInteger(one) && one >= 1))
    return `enter whole numbers from 1 for the first and the last ${what}`;
  if (to !== undefined && from > to) return `the last ${what} must not be before the first one`;
  return from === 1 && to === undefined ? `enter the last ${what}, or remove the condition` : null;
}

function problemOfRule({
  kind,
  percent,
  dollars,
  months,
  payments,
  products,
  stores,
}: RuleDraft): string | null {
  if (kind === 'percent' && !isWithin(percent, 0, MOST_PERCENT)) return 'enter a percentage up to 100';
  if (kind === 'fixed' && !isWithin(dollars, 1 / CENTS, MOST_DOLLARS))
    return 'enter an amount from $0.01 to $1,000';
  if (products !== null && productsOf(products).length === 0) return 'enter a product';
  if (stores !== null && stores.length === 0) return 'choose a store';
  return rangeProblem(months, 'month') ?? rangeProblem(payments, 'payment');
}

/** Returns what is missing before the rules are complete, as a sentence. Null for nothing. */
export function problemOf({ base, tax, fees, rules }: TermsDraft): string | null {
  for (const [index, rule] of rules.entries()) {
    const problem = problemOfRule(rule);
    if (problem !== null) return `Rule ${index + 1}: ${problem}.`;
  }
  const assumed = [...(base === 'gross' ? [] : [tax]), ...(base === 'proceeds' ? Object.values(fees) : [])];
  return assumed.every((share) => isWithin(share, 0, MOST_PERCENT))
    ? null
    : 'Enter each assumed share up to 100 %, or 0.';
}

const bpsOf = (percent: Entered) => Math.round(Number(percent) * PERCENT_IN_BPS);

function conditionOf({ months, payments, products, stores }: RuleDraft): Rule['when'] {
  const firstMonth = numberOf(months?.from ?? '');
  const when = {
    ...(months === null
      ? {}
      : {
          monthsSinceFirst: given({
            from: firstMonth === undefined || firstMonth === 1 ? undefined : firstMonth - 1,
            below: numberOf(months.to),
          }),
        }),
    ...(payments === null
      ? {}
      : { paymentNumber: given({ from: numberOf(payments.from), to: numberOf(payments.to) }) }),
    ...(products === null ? {} : { productIds: productsOf(products) }),
    ...(stores === null ? {} : { stores: [...stores] }),
  };
  return Object.keys(when).length === 0 ? undefined : when;
}

function ruleOf(rule: RuleDraft): Rule {
  const when = conditionOf(rule);
  return {
    ...(when === undefined ? {} : { when }),
    ...(rule.kind === 'percent'
      ? { percentBps: bpsOf(rule.percent) }
      : {
          flatCents: Math.round(Number(rule.dollars) * CENTS),
          ...(rule.aboveBase ? { aboveBase: true as const } : {}),
        }),
  };
}

/** Returns what the service stores of a draft that is complete. */
export function termsOf({ base, tax, fees, rules }: TermsDraft): Terms {
  const assumed = {
    taxBps: bpsOf(tax),
    ...(base === 'proceeds'
      ? {
          feeBps: Object.fromEntries(Object.entries(fees).map(([store, share]) => [store, bpsOf(share)])),
        }
      : {}),
  };
  return { base, ...(base === 'gross' ? {} : { assumed }), rules: rules.map(ruleOf) };
}

/** Whether a version of these rules needs a session that may pay. */
export const needsToPay = ({ rules }: Terms): boolean => rules.some(({ aboveBase }) => aboveBase === true);

/** Returns the index of the first rule that never applies, because one without conditions is above it. -1 for none. */
export function unreachableRule(rules: readonly RuleDraft[]): number {
  const always = rules.findIndex(
    ({ months, payments, products, stores }) =>
      months === null && payments === null && products === null && stores === null,
  );
  return always === -1 || always === rules.length - 1 ? -1 : always + 1;
}
