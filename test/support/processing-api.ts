import { pino } from 'pino';
import { createActivities } from '../../activities/index.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import type { Activities } from '../../activities/index.ts';
import type { WorkflowStarter } from '../../src/commands/deps.ts';
import { WebhookCache } from '../../src/commands/webhook-cache.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import type { Sql, SqlOptions } from '../../src/db/sql.ts';
import { withRollback } from '../../src/db/with-rollback.ts';
import type { BindingId } from '../../src/domain/ids.ts';
import { NO_CALLBACKS } from '../../tools/no-callbacks.ts';
import { startTestApi, TEST_KEY } from './api.ts';
import type { TestApi } from './api.ts';
import { IDLE_WORKFLOWS } from './idle-workflows.ts';

export interface ProcessingApi {
  readonly api: TestApi;
  readonly activities: Activities;
}

/**
 * Starts an API that processes each delivery at once with the real activities, without Temporal. Nothing heals a binding:
 * `onBinding` receives each that has something to heal. `awaitDelivery` replaces the processing of a delivery; it may
 * return the result of the one that it is given. `activitySql` opens the pool of the activities, which is that of the API otherwise.
 */
export async function startProcessingApi({
  onBinding = () => {},
  awaitDelivery = async (_, run) => await run(),
  sqlOptions,
  activitySql,
}: {
  readonly sqlOptions?: Partial<SqlOptions>;
  readonly activitySql?: (databaseUrl: string) => Promise<Sql>;
  readonly onBinding?: (bindingId: BindingId) => void;
  readonly awaitDelivery?: (
    delivery: Parameters<WorkflowStarter['awaitDelivery']>[0],
    run: () => ReturnType<WorkflowStarter['awaitDelivery']>,
  ) => ReturnType<WorkflowStarter['awaitDelivery']>;
} = {}): Promise<ProcessingApi> {
  const workflows: WorkflowStarter = {
    ...IDLE_WORKFLOWS,
    awaitDelivery: async (delivery) =>
      await awaitDelivery(delivery, async () => await activities.processDelivery(delivery.deliveryId)),
    healBinding: onBinding,
  };
  const webhookCache = new WebhookCache();
  const api = await startTestApi({ workflows, webhookCache }, sqlOptions);
  const activities = createActivities({
    sql: (await activitySql?.(api.database.url)) ?? api.sql,
    secretBox: createSecretBox([TEST_KEY]),
    logger: pino({ level: 'silent' }),
    ...NO_CALLBACKS,
    limits: { ...DEFAULT_LIMITS, keyGraceMs: 0 },
    takeStored: (deliveryId) => webhookCache.take(deliveryId),
    onBindings: (ids) => ids.forEach(onBinding),
    ratesUrl: null,
    withRollback: (work) => withRollback(api.database.url, work),
  });
  return { api, activities };
}
