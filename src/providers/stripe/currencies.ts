import { withDecimals } from '../shared/minor-units.ts';
import type { MinorUnits } from '../shared/minor-units.ts';

/**
 * The decimals of Stripe's amounts. Its special cases:
 *
 * - ISK and UGX have no decimals, but are stated with two that are always 00: 500 is 5 ISK.
 * - HUF and TWD have no decimals in payouts to the account's bank only. Payments, refunds and disputes have two.
 * - MGA has no decimals, although ISO 4217 gives it two.
 */
export const STRIPE_MINOR_UNITS: MinorUnits = {
  source: {
    title: 'Supported currencies: minor units, zero-decimal, three-decimal, special cases',
    url: 'https://docs.stripe.com/currencies',
  },
  decimals: new Map([
    ...withDecimals(0, 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'),
    ...withDecimals(3, 'BHD JOD KWD OMR TND'),
  ]),
};
