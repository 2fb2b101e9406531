import { createDeliveryActivities, type DeliveryActivities, type DeliveryActivityDeps } from './delivery.ts';
import { withSafeFailures } from './failures.ts';
import { createHealingActivities, type HealingActivities, type HealingActivityDeps } from './healing.ts';
import { createLedgerActivities, type LedgerActivities, type LedgerActivityDeps } from './ledger.ts';

export type ActivityDeps = DeliveryActivityDeps & LedgerActivityDeps & HealingActivityDeps;
export type Activities = DeliveryActivities & LedgerActivities & HealingActivities;

/** Every side effect of durable work, with its dependencies handed in. */
export function createActivities(deps: ActivityDeps): Activities {
  return withSafeFailures({
    ...createDeliveryActivities(deps),
    ...createLedgerActivities(deps),
    ...createHealingActivities(deps),
  });
}
