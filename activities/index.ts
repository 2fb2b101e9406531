import type { Sql } from '../src/db/sql.ts';
import { createDeliveryActivities } from './delivery.ts';
import type { DeliveryActivities, DeliveryActivityDeps } from './delivery.ts';
import { createErasureActivities } from './erasure.ts';
import type { ErasureActivities, ErasureActivityDeps } from './erasure.ts';
import { withSafeFailures } from './failures.ts';
import { createHealingActivities } from './healing.ts';
import type { HealingActivities, HealingActivityDeps } from './healing.ts';
import { createLedgerActivities } from './ledger.ts';
import type { LedgerActivities, LedgerActivityDeps } from './ledger.ts';
import { createMarkingActivities } from './marking.ts';
import type { MarkingActivities, MarkingActivityDeps } from './marking.ts';
import { createRatesActivities } from './rates.ts';
import type { RatesActivities, RatesActivityDeps } from './rates.ts';
import { createReprocessActivities } from './reprocess.ts';
import type { ReprocessActivities, ReprocessActivityDeps } from './reprocess.ts';

import { createRetentionActivities } from './retention.ts';
import type { RetentionActivities, RetentionActivityDeps } from './retention.ts';
import { createWebhookActivities } from './webhooks.ts';
import type { WebhookActivities, WebhookActivityDeps } from './webhooks.ts';

export type ActivityDeps = DeliveryActivityDeps &
  LedgerActivityDeps &
  HealingActivityDeps &
  MarkingActivityDeps &
  RatesActivityDeps &
  ErasureActivityDeps &
  ReprocessActivityDeps &
  RetentionActivityDeps &
  WebhookActivityDeps;
export type Activities = DeliveryActivities &
  LedgerActivities &
  HealingActivities &
  MarkingActivities &
  RatesActivities &
  ErasureActivities &
  ReprocessActivities &
  RetentionActivities &
  WebhookActivities;

/**
 * Creates the activities: all side effects of workflows. Deliveries use `intakeSql`, the same part of the pool as the
 * requests that bring them.
 */
export function createActivities(deps: ActivityDeps & { readonly intakeSql?: Sql }): Activities {
  const { sql, intakeSql = sql } = deps;
  return withSafeFailures({
    ...createDeliveryActivities({ ...deps, sql: intakeSql }),
    ...createLedgerActivities(deps),
    ...createHealingActivities(deps),
    ...createMarkingActivities(deps),
    ...createRatesActivities(deps),
    ...createErasureActivities(deps),
    ...createReprocessActivities(deps),
    ...createRetentionActivities(deps),
    ...createWebhookActivities(deps),
  });
}
