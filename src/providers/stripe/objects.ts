import * as z from 'zod';
import * as read from '../shared/read-body.ts';

/** A reference to another object: its id, or the expanded object. */
export const ref = read.anything.transform((value) => {
  const target: unknown = typeof value === 'object' && value !== null && 'id' in value ? value.id : value;
  return read.optionalId.parse(target);
});

/** A Stripe list object. */
export function list<T>(item: z.ZodType<T>) {
  return read.part({ data: read.items(item) });
}

/** The fields that may hold a product's id: `pricing` since API version 2025-03-31, `price` and `plan` before. */
export const pricedShape = {
  pricing: read.part({ price_details: read.part({ price: ref, product: ref }) }),
  price: read.part({ id: read.optionalId, product: ref }),
  plan: read.part({ id: read.optionalId, product: ref }),
};
type Priced = z.infer<z.ZodObject<typeof pricedShape>>;

/** An amount in minor units: whole and never negative. */
export const amount = z.custom<number>(
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  'a whole amount of zero or more',
);

/** An optional amount in minor units. */
export const optionalAmount = read.anything.transform((value) => amount.safeParse(value).data ?? null);

const taxOfItem = read.part({ amount: optionalAmount });

/** The sum of a list of taxes. Zero for an empty list; null without a list, and if an amount is missing. */
export const sumOfTaxes = read.anything.transform((value) => {
  if (!Array.isArray(value)) return null;
  return value.reduce<number | null>((sum, item) => {
    const { amount: tax } = taxOfItem.parse(item);
    return sum === null || tax === null ? null : sum + tax;
  }, 0);
});

export function productOf(priced: readonly Priced[]): string | null {
  for (const { pricing, price, plan } of priced) {
    const product = pricing.price_details.product ?? price.product ?? plan.product;
    if (product !== null) return product;
  }
  return null;
}
