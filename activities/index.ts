import { createDeliveryActivities } from './delivery.ts';
import type { DeliveryActivities, DeliveryActivityDeps } from './delivery.ts';
import { withSafeFailures } from './failures.ts';
import { createHealingActivities } from './healing.ts';
import type { HealingActivities, HealingActivityDeps } from './healing.ts';
import { createLedgerActivities } from './ledger.ts';
import type { LedgerActivities, LedgerActivityDeps } from './ledger.ts';
import { createRatesActivities } from './rates.ts';
import type { RatesActivities, RatesActivityDeps } from './rates.ts';
import { createReplayActivities } from './replays.ts';
import type { ReplayActivities, ReplayActivityDeps } from './replays.ts';

export type ActivityDeps = DeliveryActivityDeps &
  LedgerActivityDeps &
  HealingActivityDeps &
  RatesActivityDeps &
  ReplayActivityDeps;
export type Activities = DeliveryActivities &
  LedgerActivities &
  HealingActivities &
  RatesActivities &
  ReplayActivities;

/** Every side effect of durable work, with its dependencies handed in. */
export function createActivities(deps: ActivityDeps): Activities {
  return withSafeFailures({
    ...createDeliveryActivities(deps),
    ...createLedgerActivities(deps),
    ...createHealingActivities(deps),
    ...createRatesActivities(deps),
    ...createReplayActivities(deps),
  });
}
