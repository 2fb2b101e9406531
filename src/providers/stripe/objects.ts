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
  period: read.part({ end: read.optionalEpochSeconds }),
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

/** Returns the lines whose period ends last: what was used is billed with the period after it. */
function ofLastPeriod(lines: readonly InvoiceLine[]): readonly InvoiceLine[] {
  const last = Math.max(...lines.map(({ period }) => period.end ?? 0));
  return lines.filter(({ period }) => (period.end ?? 0) === last);
}

/**
 * Returns the product of an invoice: the one with the largest amount in the lines of its last period, else in all lines. Stripe lists items
 * that were waiting, such as a set-up fee, and prorations before the lines of the period. A price with tiers has several lines.
 */
export function productOfInvoice(lines: readonly InvoiceLine[]): string | null {
  const ofPeriods = lines.filter((line) => isPeriod(line) && productIn(line) !== null);
  const amounts = new Map<string, number>();
  for (const line of ofPeriods.length > 0 ? ofLastPeriod(ofPeriods) : lines) {
    const product = productIn(line);
    if (product !== null) amounts.set(product, (amounts.get(product) ?? 0) + line.amount);
  }
  const [largest] = [...amounts].toSorted(([, a], [, b]) => b - a);
  return largest?.[0] ?? null;
}

/** Returns the product of an object with a price. */
function productIn({ pricing, price, plan }: Priced): string | null {
  return pricing.price_details.product ?? price.product ?? plan.product;
}

/** Returns the first product among objects with a price. */
export function productOf(priced: readonly Priced[]): string | null {
  return priced.map(productIn).find((product) => product !== null) ?? null;
}
