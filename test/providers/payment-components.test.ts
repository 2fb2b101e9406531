import { describe, expect, test } from '@jest/globals';
import { componentMinor } from '../../src/domain/events.ts';
import type { PaymentComponents } from '../../src/domain/events.ts';
import { providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { decimalAmount, paidShare, withComponents } from '../../src/providers/shared/payment-components.ts';
import type { Payload } from '../../src/providers/shared/sample.ts';
import { bodyOf, eventOf, fixture, fixtureNames } from '../support/provider-fixtures.ts';

const part = (minor: number) => ({ minor });
const shares = (tax: number, storeFee: number) => ({ tax: { ppm: tax }, storeFee: { ppm: storeFee } });
const amounts = (tax: number, storeFee: number) => ({ tax: part(tax), storeFee: part(storeFee) });

const allWith = (components: PaymentComponents, ...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, components]));

/** The fixtures with a payment, and what they state about tax and fee, computed by hand from their bodies. */
const FIXTURES: Readonly<Record<ProviderName, Readonly<Record<string, PaymentComponents>>>> = {
  revenuecat: allWith(
    shares(0, 150_000),
    'initial_purchase',
    'initial_purchase_eur',
    'non_renewing_purchase',
    'only_anonymous',
    'renewal',
    'renewal_kwd',
    'sandbox_purchase',
    'trial_converted',
  ),
  superwall: allWith(
    shares(0, 150_000),
    'initial_purchase',
    'initial_purchase_intro_eur',
    'non_renewing_purchase',
    'only_anonymous',
    'renewal',
    'renewal_kwd',
    'sandbox_purchase',
    'trial_converted',
    'user_attribute',
    'web_purchase',
  ),
  adapty: {
    // 11.49 less proceeds of 9.7665, which are 977 cents.
    ...allWith(
      amounts(0, 172),
      'no_event_id',
      'no_user',
      'sandbox_purchase',
      'subscription_initial_purchase',
      'subscription_renewed',
      'subscription_started',
    ),
    // 4.015 dollars are 402 cents, and 3.41275 are 341.
    non_subscription_purchase: amounts(0, 61),
    // 10.99 euros less 9.3415.
    subscription_started_eur: amounts(0, 165),
    // 2.495 dinars less 2.12075, in thousandths.
    subscription_renewed_kwd: amounts(0, 374),
    // 2980 yen less 2533. Adapty states no tax for this event.
    trial_converted: { storeFee: part(447) },
  },
  paddle: {
    'transaction.completed.jpy': amounts(0, 83),
    'transaction.completed.no_user': amounts(0, 60),
    // 15.00 of 24.00 were paid by card: nothing says which part of the fee is theirs.
    'transaction.completed.part_credit': { tax: part(0) },
    'transaction.completed.payout_unknown': amounts(0, 495),
    'transaction.completed.simulated': amounts(0, 60),
    'transaction.completed.subscription_charge': amounts(0, 155),
    'transaction.completed.subscription_recurring': amounts(358, 108),
    'transaction.completed.subscription_update': amounts(0, 39),
    'transaction.completed.web': amounts(543, 327),
  },
  stripe: {
    'invoice.paid.subscription_cycle': { tax: part(149) },
    ...allWith(
      { tax: part(0) },
      'checkout.session.async_payment_succeeded',
      'checkout.session.completed.payment',
      'checkout.session.completed.payment_with_invoice',
    ),
  },
};

const NAMES = Object.keys(FIXTURES) as ProviderName[];

/** Returns the payment of a fixture with changed fields at `path`. */
function changed(provider: ProviderName, name: string, path: readonly string[], fields: Payload) {
  const body = JSON.parse(fixture(provider, name).toString()) as Record<string, unknown>;
  const target = path.reduce<Record<string, unknown>>((at, key) => at[key] as Record<string, unknown>, body);
  Object.assign(target, fields);
  return eventOf(providers[provider].parse(bodyOf(body))).payment;
}

describe('the tax and the store fee of a payment', () => {
  // @promise payment-components
  test.each(NAMES)('each fixture of %s is read with what it states, and no other one has any', (provider) => {
    const found = fixtureNames(provider).flatMap((name) => {
      const result = providers[provider].parse(fixture(provider, name));
      const components = result.outcome === 'event' ? result.event.payment?.components : undefined;
      return components === undefined ? [] : [[name, components] as const];
    });
    expect(Object.fromEntries(found)).toEqual(FIXTURES[provider]);
  });

  const RC = ['revenuecat', 'renewal', ['event'], 'tax_percentage', 'commission_percentage'] as const;
  const SW = ['superwall', 'renewal', ['data'], 'taxPercentage', 'commissionPercentage'] as const;
  test.each([RC, SW])('%s: a share is an estimate in parts per million', (provider, name, path, tax, fee) => {
    const payment = changed(provider, name, path, { [tax]: 0.159_664, [fee]: 0.3 });
    expect(payment?.components).toEqual(shares(159_664, 300_000));
    const edges = changed(provider, name, path, { [tax]: 0, [fee]: 1 });
    expect(edges?.components).toEqual(shares(0, 1_000_000));
    expect(componentMinor({ ppm: 159_664 }, 1_149)).toBe(183);
    expect(componentMinor({ minor: 7 }, 1_149)).toBe(7);
  });

  // @promise payment-components
  test.each(
    [RC, SW].flatMap(([provider, name, path, tax, fee]) =>
      [null, '0.19', 1.01, -0.01, 1e300, {}].map(
        (value) => [provider, JSON.stringify(value), name, path, { [tax]: value, [fee]: value }] as const,
      ),
    ),
  )(
    '%s: a share of %s is unknown, and the payment counts all the same',
    (provider, _, name, path, fields) => {
      const payment = changed(provider, name, path, fields);
      expect(payment).not.toHaveProperty('components');
      expect(payment?.amountMinor).toBe(1_149);
    },
  );

  test('adapty: proceeds still contain the tax, so the fee is the difference to the price', () => {
    const fields = { price_usd: 11.9, proceeds_usd: 10.115, tax_amount_usd: 1.9, net_revenue_usd: 8.215 };
    const payment = changed('adapty', 'subscription_renewed', ['event_properties'], fields);
    expect(payment?.components).toEqual(amounts(190, 178));
  });

  test('adapty: a price that is known only in the currency of the purchase has the parts of that one', () => {
    const fields = {
      price_usd: null,
      proceeds_usd: null,
      tax_amount_usd: null,
      price_local: 10,
      proceeds_local: 8.5,
      tax_amount_local: 1.6,
    };
    for (const currency of ['USD', 'EUR']) {
      const payment = changed('adapty', 'subscription_renewed', ['event_properties'], {
        ...fields,
        currency,
      });
      expect(payment).toMatchObject({ currency, amountMinor: 1_000, components: amounts(160, 150) });
    }
  });

  test.each([
    ['proceeds above the price', { proceeds_usd: 12, tax_amount_usd: 1 }, { tax: part(100) }],
    ['a negative tax', { proceeds_usd: 11.49, tax_amount_usd: -1 }, { storeFee: part(0) }],
    ['a tax above the price', { proceeds_usd: 11.49, tax_amount_usd: 11.5 }, { storeFee: part(0) }],
    ['a text', { proceeds_usd: '9', tax_amount_usd: 1 }, { tax: part(100) }],
    ['nothing', { proceeds_usd: null, tax_amount_usd: null }, undefined],
  ])('adapty: %s is unknown', (_title, fields, expected) => {
    const payment = changed('adapty', 'subscription_renewed', ['event_properties'], fields);
    expect(payment?.components).toEqual(expected);
    expect(payment?.amountMinor).toBe(1_149);
  });

  test.each([
    ['several taxes', { total_taxes: [{ amount: 100 }, { amount: 49 }] }, 149],
    ['an empty list: there is no tax', { total_taxes: [] }, 0],
    [
      'the list of versions before 2025-03-31',
      { total_taxes: null, total_tax_amounts: [{ amount: 120 }] },
      120,
    ],
    ['the oldest form', { total_taxes: null, tax: 90 }, 90],
    ['an invoice that credit paid in part', { amount_paid: 1_000 }, 69],
    ['a list without an amount', { total_taxes: [{ amount: 1 }, {}] }, null],
    ['a list whose first item has no amount', { total_taxes: [{}, { amount: 1 }] }, null],
    ['a negative amount', { total_taxes: [{ amount: -1 }] }, null],
    ['an invoice without a total', { total: null }, null],
    ['a tax above the total', { total_taxes: [{ amount: 2_150 }] }, null],
    ['no tax at all', { total_taxes: null }, null],
  ])('stripe: %s', (_title, fields, expected) => {
    const payment = changed('stripe', 'invoice.paid.subscription_cycle', ['data', 'object'], fields);
    expect(payment?.components).toEqual(expected === null ? undefined : { tax: part(expected) });
    expect(payment?.amountMinor).toBe('amount_paid' in fields ? 1_000 : 2_149);
  });

  test.each([
    ['a fee that is not known yet', { fee: null, tax: '543' }, { tax: part(543) }],
    ['a number instead of a text', { fee: 327, tax: '543' }, { tax: part(543) }],
    ['a negative tax', { fee: '327', tax: '-1' }, { storeFee: part(327) }],
    ['nothing', { fee: null, tax: null }, undefined],
  ])('paddle: %s', (_title, fields, expected) => {
    const payment = changed('paddle', 'transaction.completed.web', ['data', 'details', 'totals'], fields);
    expect(payment?.components).toEqual(expected);
    expect(payment?.amountMinor).toBe(6_543);
  });
});

describe('a part of a payment', () => {
  test('may be as much as the payment, but not more and not negative', () => {
    const payment = { store: 'stripe', ref: 'in_1', currency: 'USD', amountMinor: 500, usdCents: 500 };
    const withTax = (minor: number) => withComponents(payment, { tax: part(minor), storeFee: null });
    for (const minor of [0, 500]) {
      expect(withTax(minor)).toEqual({ ...payment, components: { tax: part(minor) } });
    }
    for (const minor of [-1, 501]) expect(withTax(minor)).toBe(payment);
  });

  test('is unknown where it is a number that JSON can state and no amount can be', () => {
    expect(decimalAmount.parse(JSON.parse('1e999'))).toBeNull();
    expect(decimalAmount.parse(4.015)).toBe(4.015);
  });

  test.each([
    ['all of it where all was paid', 149, { paid: 2_149, total: 2_149 }, 149],
    ['in proportion where a part was paid, rounded once', 149, { paid: 1_000, total: 2_149 }, 69],
    ['all of it where more than the total was paid', 149, { paid: 3_000, total: 2_149 }, 149],
    ['nothing where nothing was paid', 149, { paid: 0, total: 2_149 }, 0],
    ['unknown where it is not stated, which is not zero', null, { paid: 1_000, total: 2_149 }, null],
    ['unknown where the total is not stated', 149, { paid: 1_000, total: null }, null],
    ['unknown where the total is zero', 149, { paid: 0, total: 0 }, null],
    ['unknown where the total is negative', 149, { paid: 0, total: -5 }, null],
    ['unknown where it is negative and all was paid', -1, { paid: 2_149, total: 2_149 }, null],
    ['unknown where it is negative and a part was paid', -1, { paid: 1_000, total: 2_149 }, null],
  ])('belongs to what was paid: %s', (_, minor, total, expected) => {
    expect(paidShare(minor, total)).toBe(expected);
  });
});
