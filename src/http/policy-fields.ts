import * as z from 'zod';
import { BASE_KINDS } from '../domain/policy.ts';
import type { PolicyTerms } from '../domain/policy.ts';
import { policySentences } from '../domain/policy-sentences.ts';
import { cents, count, epochMs, idOf, orNull, rateBps, textField, wholeNumber } from './fields.ts';

// What resources show of commission policies, and what callers send.

const BASE =
  'What a rate applies to. `gross`: what the customer paid. `net_of_tax`: without tax. `proceeds`: without tax and what the store keeps.';

export const baseKind = z.enum(BASE_KINDS).describe(BASE);

/** The policy of a commission. */
export const shownPolicy = z
  .object({
    policyId: idOf('policy'),
    name: textField('Standard', 'The current name of the policy.'),
    policyVersionId: idOf(
      'policyVersion',
      'The id of the version that was in effect when the customer paid.',
    ),
    version: wholeNumber(1, 1_000_000).describe('The number of the version.'),
    ruleIndex: wholeNumber(0, 19).describe('The rule that applied: 0 is the first.'),
    base: baseKind,
    baseEstimated: z
      .boolean()
      .describe(
        'Whether tax or store fee in the base were estimated by a provider or assumed by the policy.',
      ),
    flatCents: wholeNumber(1, 100_000)
      .meta({
        description: 'The fixed amount of the rule, US cents. Absent for a percentage.',
        examples: [1500],
      })
      .optional(),
  })
  .meta({
    id: 'CommissionPolicy',
    description:
      'The policy that the rate of a commission is of. Absent for the rate of an affiliate or the app.',
  });

const product = textField('pro_monthly', 'The id of a product, as the provider reports it.');
/** A store, as events name it. */
export const store = z
  .string()
  .regex(/^[a-z][a-z_]{0,39}$/)
  .meta({ description: 'A store, as events name it.', examples: ['app_store'] });

const MOST_PAYMENTS = 100_000;
const MOST_MONTHS = 1_200;

const paymentRange = z
  .strictObject({
    from: wholeNumber(1, MOST_PAYMENTS).describe('The first payment, from 1. Default: 1.').optional(),
    to: wholeNumber(1, MOST_PAYMENTS).describe('The last payment, inclusive. Default: none.').optional(),
  })
  .refine(({ from = 1, to = MOST_PAYMENTS }) => from <= to, '`from` must not be greater than `to`.');

const monthRange = z
  .strictObject({
    from: wholeNumber(0, MOST_MONTHS).describe('The first month, from 0. Default: 0.').optional(),
    below: wholeNumber(1, MOST_MONTHS).describe('The month after the last one. Default: none.').optional(),
  })
  .refine(({ from = 0, below = MOST_MONTHS + 1 }) => from < below, '`from` must be less than `below`.');

const condition = z
  .strictObject({
    productIds: z.array(product.min(1).max(200)).min(1).max(50).describe('One of these products.').optional(),
    stores: z.array(store).min(1).max(20).describe('One of these stores.').optional(),
    paymentNumber: paymentRange
      .describe('The place of the payment among those of its customer. Free trials are no payments.')
      .optional(),
    monthsSinceFirst: monthRange
      .describe("Whole months since the customer's first payment: 0 in the first month.")
      .optional(),
  })
  .describe('When the rule applies: all conditions that are given are met. Absent: always.');

const rule = z
  .strictObject({
    when: condition.optional(),
    percentBps: rateBps('A part of the base.').optional(),
    flatCents: wholeNumber(1, 100_000, { unit: 'cents' })
      .meta({ description: 'A fixed amount per payment, US cents: at most the base.', examples: [1500] })
      .optional(),
    aboveBase: z
      .literal(true)
      .describe('Whether `flatCents` is earned even if the base is smaller. Needs the permission `payout`.')
      .optional(),
  })
  .refine(
    ({ percentBps, flatCents }) => (percentBps === undefined) !== (flatCents === undefined),
    'Must have either `percentBps` or `flatCents`.',
  )
  .refine(
    ({ flatCents, aboveBase }) => aboveBase === undefined || flatCents !== undefined,
    'Only `flatCents` can be above the base.',
  )
  .meta({
    id: 'PolicyRule',
    examples: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps: 5000 }],
    description: 'What a payment earns, and when. Either `percentBps` or `flatCents`.',
  });

/** The contents of a policy version. */
export const policyTerms = {
  base: baseKind,
  assumed: z
    .strictObject({
      taxBps: rateBps('The tax, as a part of what was paid. Default: 0.').optional(),
      feeBps: z
        .record(store, rateBps('What the store keeps of what was paid without tax.'))
        .refine((stores) => Object.keys(stores).length <= 20, 'Must have at most 20 stores.')
        .meta({
          description:
            'By store. Basis points. Default: 3000 for `app_store`, `mac_app_store` and `play_store`, otherwise 0.',
          examples: [{ app_store: 1500 }],
        })
        .optional(),
    })
    .describe('What counts where no provider says anything about tax or store fee of a payment.')
    .optional(),
  rules: z
    .array(rule)
    .min(1)
    .max(20)
    .describe('The first rule that applies counts. Without one, nothing is earned.'),
};

/** The contents of a policy version, in a response. */
export const presentedTerms = z.object(policyTerms).describe('What payments earn.');
type PresentedTerms = z.input<typeof presentedTerms>;

export const sentences = z.array(z.string()).meta({
  description: 'What the rules say, as sentences for people, in order.',
  examples: [
    ['50 % of the proceeds in the first 12 months of a customer.', 'Otherwise 20 % of the proceeds.'],
  ],
});

const countedComponent = z.object({
  minor: z.int().meta({ description: "Whole minor units of the payment's currency.", examples: [159] }),
  origin: z
    .enum(['stated', 'estimated', 'assumed'])
    .describe('`stated` or `estimated` by a provider, or `assumed` by the policy.'),
});

/** What an earning by a policy was computed from. */
export const policyInputs = z
  .object({
    grossCents: cents('What the customer paid.'),
    paidMinor: z.int().meta({ description: 'The same, in minor units of its currency.', examples: [999] }),
    tax: orNull(countedComponent.describe('The tax.'), 'Null if the base includes it.'),
    storeFee: orNull(countedComponent.describe('What the store keeps.'), 'Null if the base includes it.'),
    store: textField('app_store', 'The store.'),
    productId: orNull(product, 'Null if the event names none.'),
    paymentNumber: count('The place of the payment among those of its customer, from 1.'),
    firstPaidAt: epochMs("The time of the customer's first payment."),
    monthsSinceFirst: count('Whole months since then.'),
  })
  .meta({ id: 'PolicyInputs', description: 'What the earning was computed from. Absent for other rows.' });

/** The policy in effect for a creator. */
export const policyInEffect = z
  .object({
    scope: z
      .enum(['affiliate', 'group', 'app'])
      .describe('What the policy is assigned to: the affiliate, its group or the app.'),
    policyId: idOf('policy'),
    policyName: textField('Standard', 'The current name of the policy.'),
    policyVersionId: idOf('policyVersion'),
    version: wholeNumber(1, 1_000_000).describe('The number of the version.'),
    terms: presentedTerms,
    sentences,
  })
  .meta({ id: 'PolicyInEffect', description: 'The version of a policy that is in effect.' });

/** Presents terms with sentences for people. */
export function presentTerms(of: PolicyTerms) {
  // The schema has arrays that can be changed.
  return { terms: of as PresentedTerms, sentences: policySentences(of) };
}

/** Returns the length of terms as JSON. */
export const termsBytes = (of: PolicyTerms): number => Buffer.byteLength(JSON.stringify(of));
