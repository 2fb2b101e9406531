import { formatMoney } from './money.ts';
import type { BaseKind, PolicyCondition, PolicyRule, PolicyTerms } from './policy.ts';

/** What a rate applies to, for people. */
export const BASE_WORDS: Readonly<Record<BaseKind, string>> = {
  gross: 'the price',
  net_of_tax: 'the price without tax',
  proceeds: 'the proceeds',
};

const listed = (words: readonly string[]) =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

const STORE_NAMES: Readonly<Record<string, string>> = {
  app_store: 'the App Store',
  mac_app_store: 'the Mac App Store',
  play_store: 'Google Play',
  stripe: 'Stripe',
  paddle: 'Paddle',
};

/**
 * Returns each rule of a policy as a sentence for people, in order. A rule behind one that always applies is left out. If none always
 * applies, the last sentence says what the others earn: nothing.
 */
export function policySentences({ base, rules }: PolicyTerms): string[] {
  const worded = rules.map((rule) => ({
    amount: amountWords(rule, base),
    conditions: conditionWords(rule.when ?? {}),
  }));
  const always = worded.findIndex(({ conditions }) => conditions === '');
  const counting =
    always === -1 ? [...worded, { amount: 'nothing', conditions: '' }] : worded.slice(0, always + 1);
  return counting.map(({ amount, conditions }, index) => {
    if (conditions !== '') return `${capitalized(amount)} ${conditions}.`;
    return index === 0 ? `${capitalized(amount)} for each payment.` : `Otherwise ${amount}.`;
  });
}

const storeName = (store: string): string =>
  (Object.hasOwn(STORE_NAMES, store) ? STORE_NAMES[store] : undefined) ?? store;

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

function amountWords({ percentBps = 0, flatCents, aboveBase }: PolicyRule, base: BaseKind): string {
  if (flatCents === undefined)
    return percentBps === 0 ? 'nothing' : `${percentBps / 100} % of ${BASE_WORDS[base]}`;
  const amount = formatMoney(flatCents, 'USD');
  return aboveBase === true ? amount : `${amount} (at most ${BASE_WORDS[base]})`;
}

function conditionWords({ productIds, stores, paymentNumber, monthsSinceFirst }: PolicyCondition): string {
  return [
    paymentNumber === undefined ? '' : paymentWords(paymentNumber),
    monthsSinceFirst === undefined ? '' : monthWords(monthsSinceFirst),
    productIds === undefined ? '' : `for the product ${listed(productIds)}`,
    stores === undefined ? '' : `from ${listed(stores.map(storeName))}`,
  ]
    .filter((words) => words !== '')
    .join(' ');
}

function paymentWords({ from = 1, to }: NonNullable<PolicyCondition['paymentNumber']>): string {
  if (to === undefined) return from === 1 ? '' : `from the payment number ${from} of a customer on`;
  if (from === to)
    return from === 1
      ? 'for the first payment of a customer'
      : `for the payment number ${from} of a customer`;
  return from === 1
    ? `for the first ${to} payments of a customer`
    : `for the payments ${from} to ${to} of a customer`;
}

function monthWords({ from = 0, below }: NonNullable<PolicyCondition['monthsSinceFirst']>): string {
  if (below === undefined) return from === 0 ? '' : `after the first ${months(from)} of a customer`;
  if (from === 0) return `in the first ${months(below)} of a customer`;
  return from + 1 === below
    ? `in month ${below} of a customer`
    : `in the months ${from + 1} to ${below} of a customer`;
}

const months = (count: number) => (count === 1 ? 'month' : `${count} months`);
