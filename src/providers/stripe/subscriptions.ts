import * as z from 'zod';
import type { EventKind } from '../../domain/events.ts';
import type { ParseResult } from '../provider.ts';
import { failed } from '../shared/normalized-event.ts';
import * as read from '../shared/read-body.ts';
import { done, ignored, readObject } from './envelope.ts';
import type { Details, Envelope } from './envelope.ts';
import { list, pricedShape, productOf, ref } from './objects.ts';

const itemsShape = { items: list(read.part({ ...pricedShape, quantity: read.anything })) };

const subscriptionSchema = z.object({
  ...itemsShape,
  id: read.id,
  status: read.optionalText,
  customer: ref,
  metadata: read.userMetadata,
  cancel_at: read.anything,
  cancel_at_period_end: read.flag,
});
type Subscription = z.infer<typeof subscriptionSchema>;

/**
 * Returns the prices and quantities of a subscription, for comparison; null where an item has no price id. Periods change
 * with every renewal and are left out.
 */
function composition(items: z.infer<typeof subscriptionSchema>['items']): string | null {
  const parts = items.data.map(({ price, plan, quantity }) =>
    JSON.stringify([price.id ?? plan.id, quantity]),
  );
  const known =
    items.data.length > 0 && items.data.every(({ price, plan }) => (price.id ?? plan.id) !== null);
  return known ? parts.toSorted().join() : null;
}

const previousSchema = read.part({
  ...itemsShape,
  cancel_at: read.anything,
  cancel_at_period_end: read.anything,
});

function subscriptionChange(envelope: Envelope, subscription: Subscription): EventKind | null {
  const previous = previousSchema.parse(envelope.data.previous_attributes);
  const endsWithPeriod = previous.cancel_at_period_end === false && subscription.cancel_at_period_end;
  const endsAt = previous.cancel_at === null && typeof subscription.cancel_at === 'number';
  if (endsWithPeriod || endsAt) return 'cancellation';
  const before = composition(previous.items);
  const after = composition(subscription.items);
  return before !== null && after !== null && before !== after ? 'product_change' : null;
}

export function readSubscription(envelope: Envelope): ParseResult {
  const subscription = readObject(envelope, subscriptionSchema);
  if (!subscription.ok) return failed(subscription.reason);
  const { id, customer, status, items, metadata: custom } = subscription.value;
  const userIds = read.distinct([custom.app_user_id]);
  const details: Details = {
    productId: productOf(items.data),
    userIds,
    userKeys: read.distinct([id, customer]),
    // The app may name the user only after the first invoice, whose copy of the metadata never changes.
    userLinks: userIds.map((customerUserId) => ({ key: id, customerUserId })),
  };
  if (envelope.type === 'customer.subscription.deleted') return done(envelope, 'cancellation', details);
  if (envelope.type === 'customer.subscription.created') {
    if (status === 'trialing') return done(envelope, 'trial_started', details);
    return ignored(
      envelope,
      'a new subscription without a trial is paid by its invoice, which is counted instead',
      details,
    );
  }
  const kind = subscriptionChange(envelope, subscription.value);
  if (kind === null)
    return ignored(envelope, 'the change of the subscription does not affect commissions', details);
  return done(envelope, kind, details);
}
