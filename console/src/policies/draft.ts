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
const STORE_FEES: Readonly<Record<string, number>> = {
  app_store: 30,
  mac_app_store: 30,
  play_store: 30,
  stripe: 0,
  paddle: 0,
};

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

const contentOf = ({ rules, ...terms }: TermsDraft): string =>
  JSON.stringify({ ...terms, rules: rules.map((rule) => ({ ...rule, key: 0 })) }, (_, value: unknown) =>
    typeof value === 'number' ? String(value) : value,
  );

/** Whether two drafts hold the same, although the keys of their rules differ. */
export const isSameDraft = (one: TermsDraft, other: TermsDraft): boolean =>
  contentOf(one) === contentOf(other);

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

/** What is wrong with a field of the form: its path in the API, and what to do, as a sentence. */
export interface FieldProblem {
  readonly path: string;
  readonly message: string;
}

const isFromOne = (entered: Entered): boolean =>
  entered === '' || (Number.isInteger(Number(entered)) && Number(entered) >= 1);

/** Returns what is wrong with a range, by the field for its start or its end. */
function rangeProblems(
  range: RangeDraft | null,
  what: string,
): readonly { readonly at: keyof RangeDraft; readonly message: string }[] {
  if (range === null) return [];
  const wrong = (['from', 'to'] as const).filter((at) => !isFromOne(range[at]));
  if (wrong.length > 0) return wrong.map((at) => ({ at, message: 'Enter a whole number from 1.' }));
  const [from, to] = [numberOf(range.from) ?? 1, numberOf(range.to)];
  if (to !== undefined && from > to)
    return [{ at: 'to', message: `The last ${what} must not be before the first one.` }];
  return from === 1 && to === undefined
    ? [{ at: 'to', message: `Enter the last ${what}, or remove the condition.` }]
    : [];
}

function problemsOfRule(rule: RuleDraft, at: string): FieldProblem[] {
  const { kind, percent, dollars, months, payments, products, stores } = rule;
  const unless = (isRight: boolean, path: string, message: string) =>
    isRight ? [] : [{ path: `${at}.${path}`, message }];
  return [
    ...(kind === 'percent'
      ? unless(isWithin(percent, 0, MOST_PERCENT), 'percentBps', 'Enter a percentage up to 100.')
      : unless(
          isWithin(dollars, 1 / CENTS, MOST_DOLLARS),
          'flatCents',
          'Enter an amount from $0.01 to $1,000.',
        )),
    ...rangeProblems(months, 'month').map(({ at: end, message }) => ({
      path: `${at}.when.monthsSinceFirst.${end === 'from' ? 'from' : 'below'}`,
      message,
    })),
    ...rangeProblems(payments, 'payment').map(({ at: end, message }) => ({
      path: `${at}.when.paymentNumber.${end}`,
      message,
    })),
    ...unless(products === null || productsOf(products).length > 0, 'when.productIds', 'Enter a product.'),
    ...unless(stores === null || stores.length > 0, 'when.stores', 'Choose a store.'),
  ];
}

/** Returns what is wrong before the rules are complete, in the order of the fields of the form. */
export function problemsOf({ base, tax, fees, rules }: TermsDraft): readonly FieldProblem[] {
  const shares = [
    ...(base === 'gross' ? [] : [['assumed.taxBps', tax] as const]),
    ...(base === 'proceeds'
      ? Object.entries(fees).map(([store, fee]) => [`assumed.feeBps.${store}`, fee] as const)
      : []),
  ];
  return [
    ...shares
      .filter(([, share]) => !isWithin(share, 0, MOST_PERCENT))
      .map(([path]) => ({ path, message: 'Enter a share up to 100 %, or 0.' })),
    ...rules.flatMap((rule, index) => problemsOfRule(rule, `rules.${index}`)),
  ];
}

/** Returns a problem as a sentence that says where it is: "Rule 1: enter a product." */
export function problemWords({ path, message }: FieldProblem): string {
  const [, index] = /^rules\.(\d+)/.exec(path) ?? [];
  return index === undefined
    ? message
    : `Rule ${Number(index) + 1}: ${message.charAt(0).toLowerCase()}${message.slice(1)}`;
}

/** Returns the path of the field that shows an error of the service: a range has one for its end, and a list one for all. */
export const fieldPathOf = (path: string): string =>
  path
    .replace(/\.monthsSinceFirst$/, '.monthsSinceFirst.below')
    .replace(/\.paymentNumber$/, '.paymentNumber.to')
    .replace(/\.(productIds|stores)\.\d+$/, '.$1');

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
