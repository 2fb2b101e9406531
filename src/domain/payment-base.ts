import type { EvaluationLimits } from './evaluation.ts';
import { convertToUsdCents } from './exchange-rate.ts';
import type { LikelyCause } from './likely-causes.ts';
import type { FrozenRate, PaymentSnapshot } from './payment-snapshot.ts';

/** The amount in US cents that a commission is calculated from, or why there is none. */
type Base = { readonly cents: number; readonly fx: FrozenRate | null } | { readonly missing: LikelyCause };

/** Returns the base of a payment: the one it has, the amount in US dollars that the provider states, or the amount at the reference rate. */
export function baseOf(payment: PaymentSnapshot, { maxPaymentCents }: EvaluationLimits): Base {
  if (payment.baseCents !== null) return { cents: payment.baseCents, fx: null };
  const base = statedBase(payment) ?? convertedBase(payment);
  return 'cents' in base && base.cents > maxPaymentCents ? { missing: 'price_unknown' } : base;
}

/** Returns the amount in USD as the provider states it, or null. */
function statedBase({ usdCents, currency, amountMinor }: PaymentSnapshot): Base | null {
  if (usdCents !== null) return { cents: usdCents, fx: null };
  return currency === 'USD' ? { cents: amountMinor, fx: null } : null;
}

function convertedBase({ referenceRate: fx, amountMinor, currency }: PaymentSnapshot): Base {
  if (fx === null) return { missing: 'missing_exchange_rate' };
  const cents = convertToUsdCents(amountMinor, currency, fx);
  return cents === null ? { missing: 'price_unknown' } : { cents, fx };
}
