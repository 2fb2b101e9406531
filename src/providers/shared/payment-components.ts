import { PPM } from '../../domain/events.ts';
import type { PaymentComponent, PaymentComponents, PaymentFact } from '../../domain/events.ts';
import { decimalToMinor, minorDecimals, share } from '../../domain/money.ts';
import { anything } from './read-body.ts';

/** A share of the price, from 0 to 1. Anything else is null: an estimate that cannot be read must not fail an event. */
export const shareOfPrice = anything.transform((value) =>
  typeof value === 'number' && value >= 0 && value <= 1 ? value : null,
);

/** A decimal amount, or null for anything else. */
export const decimalAmount = anything.transform((value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : null,
);

/** Returns a share of the price as an estimated component. Null if it is unknown. */
export function estimatedComponent(shareOfOne: number | null): PaymentComponent | null {
  return shareOfOne === null ? null : { ppm: Math.round(shareOfOne * PPM) };
}

/** Returns an amount in whole minor units as a stated component. Null if it is unknown. */
export function statedComponent(minor: number | null): PaymentComponent | null {
  return minor === null ? null : { minor };
}

/** Returns a decimal amount in whole minor units of a currency. Null if it is unknown or too large. */
export function toMinor(amount: number | null, currency: string): number | null {
  return amount === null ? null : decimalToMinor(amount, minorDecimals(currency));
}

/** Whether a component is a part of the payment: not negative, and not more than was paid. */
function fits(component: PaymentComponent, { amountMinor }: PaymentFact): boolean {
  return 'ppm' in component || (component.minor >= 0 && component.minor <= amountMinor);
}

/** Returns the payment with what its event states about tax and the store's fee. What is no part of the payment is left out. */
export function withComponents(
  payment: PaymentFact,
  { tax, storeFee }: { readonly tax: PaymentComponent | null; readonly storeFee: PaymentComponent | null },
): PaymentFact {
  const components: PaymentComponents = {
    ...(tax !== null && fits(tax, payment) ? { tax } : {}),
    ...(storeFee !== null && fits(storeFee, payment) ? { storeFee } : {}),
  };
  return Object.keys(components).length === 0 ? payment : { ...payment, components };
}

/**
 * Returns the part of `minor` that belongs to what was paid of a total, rounded once: of an invoice that is paid partly by credit,
 * the tax is paid by the credit, too. Null if one of them is unknown.
 */
export function paidShare(
  minor: number | null,
  { paid, total }: { readonly paid: number; readonly total: number | null },
): number | null {
  if (minor === null || total === null || total <= 0 || minor < 0) return null;
  return paid === total ? minor : share(minor, Math.min(paid, total), total);
}
