import { pino } from 'pino';
import { createDeliveryActivities } from '../../activities/delivery.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import { createHealActivities } from '../../activities/heal.ts';
import { createMatureActivities } from '../../activities/mature.ts';
import type { MatureActivities } from '../../activities/mature.ts';
import { createPayoutActivities } from '../../activities/payout.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import type { BindingId } from '../../src/domain/ids.ts';
import { NO_CALLBACKS } from '../../tools/no-callbacks.ts';
import { startTestApi, TEST_KEY } from './api.ts';
import type { TestApi } from './api.ts';
import type { TestDatabase } from './database.ts';
import { runOn } from './postgres-admin.ts';
import { IDLE_WORKFLOWS } from './idle-workflows.ts';

/** The API with the activities that follow from a request, on one clock that the test sets, in Postgres, too. */
export interface ClockedApi extends TestApi {
  readonly maturing: MatureActivities;
  /** Sets the clock of the process and of the database. It stands still until the next call. */
  readonly setClock: (at: number) => Promise<void>;
  /** Waits until the payments of all new bindings are re-evaluated. */
  readonly settled: () => Promise<void>;
}

/**
 * Replaces `now()` in statements, triggers and defaults of a database. Must be called before the first connection.
 * Postgres finds its own functions last when the search path names `pg_catalog` last.
 */
async function replaceClock({ url }: TestDatabase): Promise<void> {
  await runOn(
    url,
    `create schema test_clock;
     create table test_clock.reading (at timestamptz not null);
     insert into test_clock.reading values (pg_catalog.now());
     create function test_clock.now() returns timestamptz language sql stable as 'select at from test_clock.reading';
     do $$ declare c record; begin
       for c in select table_name, column_name from information_schema.columns
                 where table_schema = 'public' and column_default = 'now()' loop
         execute format('alter table public.%I alter column %I set default test_clock.now()', c.table_name, c.column_name);
       end loop;
       execute format('alter database %I set search_path = test_clock, public, pg_catalog', current_database());
     end $$;`,
  );
}

/** Starts the API. Webhooks, heals and exports run their activities at once, without Temporal. */
export async function startClockedApi(): Promise<ClockedApi> {
  const logger = pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' });
  const running = new Set<Promise<void>>();

  const heal = (bindingId: BindingId): void => {
    const run = (async () => {
      let after: string | null = null;
      do after = await healing.healPage(bindingId, after);
      while (after !== null);
    })().finally(() => running.delete(run));
    running.add(run);
  };
  const api = await startTestApi({
    workflows: {
      ...IDLE_WORKFLOWS,
      awaitDelivery: ({ deliveryId }) => delivery.processDelivery(deliveryId),
      healBinding: heal,
      settlePayout: async ({ id }) => void (await payouts.settlePayoutRequest(id)),
    },
  });
  await replaceClock(api.database);
  const { sql } = api;
  const onBindings = (bindings: readonly BindingId[]) => bindings.forEach(heal);
  const deps = { ...NO_CALLBACKS, sql, logger, onBindings, limits: { ...DEFAULT_LIMITS, keyGraceMs: 0 } };
  const delivery = createDeliveryActivities({ ...deps, secretBox: createSecretBox([TEST_KEY]) });
  const healing = createHealActivities(deps);
  const maturing = createMatureActivities(deps);
  const payouts = createPayoutActivities(deps);

  const setClock = async (at: number) => {
    api.clock.now = at;
    await sql`update test_clock.reading set at = ${new Date(at)}`;
  };
  await setClock(api.clock.now);
  return {
    ...api,
    maturing,
    setClock,
    settled: async () => {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
