import type { Schemas } from '../api/client.ts';
import { formatRate } from '../format.ts';
import type { Base, TermsDraft } from './draft.ts';

/** What a rate applies to, as options of a form. */
export const BASES: Readonly<Record<Base, { readonly name: string; readonly meaning: string }>> = {
  gross: {
    name: 'The price',
    meaning: 'Simple to explain. The rate also applies to tax and the store fee, which you do not receive.',
  },
  net_of_tax: {
    name: 'The price without tax',
    meaning: 'Tax is taken off before the rate applies. The fee of the store is not.',
  },
  proceeds: {
    name: 'The proceeds',
    meaning: 'About what you receive: tax and the fee of the store are taken off before the rate applies.',
  },
};

/** The fields of a rule, by their paths within it. */
const RULE_FIELDS: Readonly<Record<string, string>> = {
  percentBps: 'percentage',
  flatCents: 'amount',
  'when.monthsSinceFirst.from': 'first month',
  'when.monthsSinceFirst.below': 'last month',
  'when.paymentNumber.from': 'first payment',
  'when.paymentNumber.to': 'last payment',
  'when.productIds': 'products',
  'when.stores': 'stores',
};

/** Returns what the form calls its fields, by their paths in the API. */
export const labelsOf = ({ rules, fees }: TermsDraft): Readonly<Record<string, string>> => ({
  name: 'Name',
  base: 'A percentage applies to',
  'assumed.taxBps': 'Tax',
  ...Object.fromEntries(
    Object.keys(fees).map((store) => [`assumed.feeBps.${store}`, `Fee of ${storeName(store)}`]),
  ),
  ...Object.fromEntries(
    rules.flatMap((_, index) =>
      Object.entries(RULE_FIELDS).map(([path, name]) => [
        `rules.${index}.${path}`,
        `Rule ${index + 1}, ${name}`,
      ]),
    ),
  ),
  effectiveFrom: 'Takes effect',
});

/** The bases within a sentence. */
export const BASE_WORDS: Readonly<Record<Base, string>> = {
  gross: 'price',
  net_of_tax: 'price without tax',
  proceeds: 'proceeds',
};

const STORES: Readonly<Record<string, string>> = {
  app_store: 'App Store',
  mac_app_store: 'Mac App Store',
  play_store: 'Google Play',
  stripe: 'Stripe',
  paddle: 'Paddle',
};

export const STORE_IDS: readonly string[] = Object.keys(STORES);

/** Returns the name of a store. One that the pages do not know has its id. */
export const storeName = (store: string): string => (Object.hasOwn(STORES, store) && STORES[store]) || store;

/** Returns what a policy is assigned to, in words: "the group VIPs". */
export function scopeWords({
  scope,
  scopeName,
}: Pick<Schemas['PolicyAssignment'], 'scope' | 'scopeName'>): string {
  switch (scope) {
    case 'app':
      return 'all creators of the app';
    case 'group':
      return `the group ${scopeName}`;
    case 'affiliate':
      return scopeName;
  }
}

const PERCENT_IN_BPS = 100;
const percentOf = (percent: number | string): string => formatRate(Number(percent) * PERCENT_IN_BPS);

/** Returns what a version assumes, in words: "Where the provider states nothing, the policy assumes 19 % tax and the fees: App Store 15 %, …" */
export function assumptionWords({ base, tax, fees }: Pick<TermsDraft, 'base' | 'tax' | 'fees'>): string {
  const ofStores = Object.entries(fees).map(
    ([store, percent]) => `${storeName(store)} ${percentOf(percent)}`,
  );
  const andFees = base === 'proceeds' ? ` and the fees: ${ofStores.join(', ')}` : '';
  return `Where the provider states nothing, the policy assumes ${percentOf(tax)} tax${andFees}.`;
}
