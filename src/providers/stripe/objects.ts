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

/** A line of an invoice. `parent` since API version 2025-03-31, `type` and the fields beside it before. */
export const invoiceLine = read.part({
  ...pricedShape,
  amount: read.anything.transform((value) => (Number.isSafeInteger(value) ? Number(value) : 0)),
  description: read.optionalText,
  metadata: read.userMetadata,
  subscription: ref,
  type: read.optionalText,
  proration: read.flag,
  parent: read.part({
    type: read.optionalText,
    subscription_item_details: read.part({ subscription: ref, proration: read.flag }),
  }),
});
type InvoiceLine = z.infer<typeof invoiceLine>;

/** Whether a line is of a period of a subscription: neither an item besides it nor the change of a period that was paid before. */
function isPeriod({ type, proration, parent }: InvoiceLine): boolean {
  const kind = parent.type ?? type;
  const isItem = kind === 'invoice_item_details' || kind === 'invoiceitem';
  return !isItem && !proration && !parent.subscription_item_details.proration;
}

/**
 * Returns the product of an invoice: that of its largest line of a period, else that of its largest line. Stripe lists items that
 * were waiting, such as a set-up fee, and prorations before the lines of the period.
 */
export function productOfInvoice(lines: readonly InvoiceLine[]): string | null {
  const withProduct = lines.filter((line) => productOf([line]) !== null);
  const ofPeriod = withProduct.filter(isPeriod);
  const largest = (ofPeriod.length > 0 ? ofPeriod : withProduct).toSorted((a, b) => b.amount - a.amount);
  return productOf(largest);
}

export function productOf(priced: readonly Priced[]): string | null {
  for (const { pricing, price, plan } of priced) {
    const product = pricing.price_details.product ?? price.product ?? plan.product;
    if (product !== null) return product;
  }
  return null;
}
