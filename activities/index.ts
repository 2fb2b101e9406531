import type { Sql } from '../src/db/sql.ts';
import { createAlertActivities } from './alerts.ts';
import { createCalendarActivities } from './calendar.ts';
import { createConvertActivities } from './convert.ts';
import { createDeliveryActivities } from './delivery.ts';
import type { DeliveryActivityDeps } from './delivery.ts';
import { createEmailActivities } from './email.ts';
import { createEraseActivities } from './erase.ts';
import { withSafeFailures } from './failures.ts';
import { createHealActivities } from './heal.ts';
import { createMarkingActivities } from './marking.ts';
import { createMatureActivities } from './mature.ts';
import { createPayoutActivities } from './payout.ts';
import { createPayoutRunActivities } from './payout-run.ts';
import { createRatesActivities } from './rates.ts';
import { createReprocessActivities } from './reprocess.ts';
import { createRetentionActivities } from './retention.ts';
import { createWebhookActivities } from './webhook.ts';

/** The factories of all activities, each in the file of its workflow; `mature.ts` is that of `hold` and `sweep`. */
const FACTORIES = [
  createAlertActivities,
  createCalendarActivities,
  createConvertActivities,
  createDeliveryActivities,
  createEmailActivities,
  createEraseActivities,
  createHealActivities,
  createMarkingActivities,
  createMatureActivities,
  createPayoutActivities,
  createPayoutRunActivities,
  createRatesActivities,
  createReprocessActivities,
  createRetentionActivities,
  createWebhookActivities,
] as const;

/** What has each member of a union of objects. */
type All<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer Whole) => void
  ? Whole
  : never;
type Factory = (typeof FACTORIES)[number];

export type ActivityDeps = All<Parameters<Factory>[0]>;
export type Activities = All<ReturnType<Factory>>;

/**
 * Creates the activities: all side effects of workflows. Deliveries use `intakeSql`, the same part of the pool as the
 * requests that bring them.
 */
export function createActivities({
  intakeSql,
  ...deps
}: ActivityDeps & { readonly intakeSql?: Sql }): Activities {
  const ofDeliveries: DeliveryActivityDeps = { ...deps, sql: intakeSql ?? deps.sql };
  const parts = FACTORIES.map((create) =>
    create === createDeliveryActivities ? create(ofDeliveries) : create(deps),
  );
  return withSafeFailures(Object.assign({}, ...parts) as Activities);
}
