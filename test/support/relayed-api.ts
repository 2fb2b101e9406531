import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { createActivities } from '../../activities/index.ts';
import type { Activities } from '../../activities/index.ts';
import type { WorkflowStarter } from '../../src/commands/deps.ts';
import { WebhookCache } from '../../src/commands/webhook-cache.ts';
import { STATEMENT_TIMEOUT_MS } from '../../src/compose/database.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { withRollback } from '../../src/db/with-rollback.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import type { BindingId, DeliveryId } from '../../src/domain/ids.ts';
import type { PayoutRequestKeys } from '../../src/domain/payout.ts';
import type { PayoutRunKeys } from '../../src/domain/payout-run.ts';
import { startRelay } from '../../temporal/relay.ts';
import type { RelaySettings } from '../../temporal/relay.ts';
import { NO_CALLBACKS } from '../../tools/no-callbacks.ts';
import { startTestApi, TEST_KEY } from './api.ts';
import type { TestApi } from './api.ts';
import { IDLE_WORKFLOWS } from './idle-workflows.ts';

/** An API whose deliveries and background work run their activities in this process. */
export interface RelayedApi extends Omit<TestApi, 'clock' | 'healed'> {
  /** Waits until all work is done that was stored before the call, and what follows from it. Throws if some of it failed. */
  readonly settled: () => Promise<void>;
}

const SQL_OPTIONS = {
  max: 20,
  statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  patienceMs: STATEMENT_TIMEOUT_MS,
};
const RELAY_PAUSE_MS = 100;
/** How often an activity is tried, and the pause before the next attempt, ms. */
const ATTEMPTS = 5;
const RETRY_MS = 200;
/** The pause of work that has to wait, ms. */
const PAUSE_MS = 100;
/** How often `settled` looks for open work. Work that is open afterwards never ends. */
const MOST_ROUNDS = 20;

/**
 * Starts the API with the relay, in real time and without Temporal: deliveries, heals, conversions, reprocess runs, erasures,
 * exports and payout runs run their activities one after the other, as their workflows do. Nothing matures or sends messages, and a call
 * waits for its delivery or export however long it takes.
 */
export async function startRelayedApi(): Promise<RelayedApi> {
  const logger = pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' });
  /** Work by the id of its workflow. */
  const running = new Map<string, Promise<unknown>>();
  const failures: unknown[] = [];
  let isClosing = false;

  /** Runs work, unless that of this id runs. */
  const runOnce = async (id: string, work: () => Promise<unknown>): Promise<void> => {
    const run =
      running.get(id) ??
      work()
        .catch((error: unknown) => {
          logger.error({ err: error, id, msg: 'work failed' });
          failures.push(error);
        })
        .finally(() => running.delete(id));
    running.set(id, run);
    await run;
  };
  const inBackground = (id: string, work: () => Promise<unknown>): void => void runOnce(id, work);
  /** Runs an activity until it succeeds. */
  const retried = async <T>(activity: () => Promise<T>): Promise<T> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await activity();
      } catch (error) {
        if (attempt === ATTEMPTS || isClosing) throw error;
        await sleep(RETRY_MS);
      }
    }
  };
  /** Calls an activity for page after page until it says that it was the last one. */
  const untilDone = async (page: () => Promise<{ readonly done: boolean }>): Promise<void> => {
    for (;;) {
      const { done } = await retried(page);
      if (done || isClosing) return;
    }
  };

  const deliver = async (id: DeliveryId) => await retried(() => activities.processDelivery(id));
  const heal = async (id: BindingId) => {
    let after: string | null = null;
    const page = () => activities.healPage(id, after);
    do after = await retried(page);
    while (after !== null);
  };
  const convert = async () => {
    let next: string | null = null;
    const page = () => activities.convertPage(next);
    do ({ next } = await retried(page));
    while (next !== null);
  };
  const erase = (id: string) =>
    untilDone(async () => {
      const { done, waitMs } = await activities.erasePage(id);
      if (!done) await sleep(Math.max(waitMs, PAUSE_MS));
      return { done };
    });
  const payRun = async (id: string) => {
    let before = -1;
    await untilDone(async () => {
      const { settled, done } = await activities.settlePayoutRunPage(id);
      if (!done && settled === before) await sleep(PAUSE_MS);
      before = settled;
      return { done };
    });
  };
  /** Exports of a creator are settled one after the other. */
  const exportsOf = new Map<string, Promise<unknown>>();
  const settle = async ({ id, affiliateId }: PayoutRequestKeys) => {
    const before = exportsOf.get(affiliateId) ?? Promise.resolve();
    const own = before.then(() => retried(() => activities.settlePayoutRequest(id))).catch(() => null);
    exportsOf.set(affiliateId, own);
    await own;
  };
  // A heal that is asked for while one runs begins anew: what it would find may be behind the page of that one.
  let heals = 0;
  const healSoon = (id: BindingId) => {
    heals += 1;
    inBackground(`heal ${heals}`, () => heal(id));
  };
  const startPayoutRun = ({ runId }: PayoutRunKeys) => inBackground(runId, () => payRun(runId));

  const ofRequests: WorkflowStarter = {
    ...IDLE_WORKFLOWS,
    awaitDelivery: async ({ deliveryId }) => await deliver(deliveryId).catch(() => null),
    healBinding: healSoon,
    settlePayout: settle,
    startPayoutRun,
  };
  const ofRelay: RelaySettings['workflows'] = {
    isReachable: () => true,
    runDelivery: async ({ deliveryId }) => {
      await runOnce(deliveryId, () => deliver(deliveryId));
      return 'started';
    },
    runHeal: async (id) => {
      await runOnce(id, () => heal(id));
      return 'started';
    },
    runWebhook: async () => await Promise.resolve('started'),
    runEmail: async () => await Promise.resolve('started'),
    startInBackground: (name, input) => {
      if (name === 'convert') inBackground('convert', convert);
      if (name === 'erase' && input !== undefined && 'erasureId' in input)
        inBackground(input.erasureId, () => erase(input.erasureId));
    },
    startReprocess: ({ id }) => inBackground(id, () => untilDone(() => activities.reprocessPage(id))),
    startPayoutRun,
  };

  const webhookCache = new WebhookCache();
  const {
    clock: _clock,
    healed: _healed,
    ...api
  } = await startTestApi({ workflows: ofRequests, webhookCache, now: Date.now }, SQL_OPTIONS);
  const { sql } = api;
  const activities: Activities = createActivities({
    ...NO_CALLBACKS,
    sql,
    logger,
    secretBox: createSecretBox([TEST_KEY]),
    limits: { ...DEFAULT_LIMITS, keyGraceMs: 0 },
    settleMs: 0,
    settlePayout: settle,
    takeStored: (deliveryId) => webhookCache.take(deliveryId),
    onBindings: (ids) => ids.forEach(healSoon),
    ratesUrl: null,
    withRollback: (work) => withRollback(api.database.url, work),
  });
  const relay = startRelay({ sql, workflows: ofRelay, logger, pauseMs: RELAY_PAUSE_MS });
  /** Waits for the end of what runs. Throws what has failed. */
  const idle = async () => {
    while (running.size > 0) await Promise.all(running.values());
    if (failures.length > 0) throw new AggregateError(failures, 'background work failed');
  };
  return {
    ...api,
    settled: async () => {
      for (let round = 0; round < MOST_ROUNDS; round += 1) {
        await idle();
        await relay.hurry();
        if (running.size === 0) return;
      }
      throw new Error(`there is open work after ${MOST_ROUNDS} rounds: ${[...running.keys()].join(', ')}`);
    },
    close: async () => {
      isClosing = true;
      await relay.stop();
      try {
        await idle();
      } finally {
        await api.close();
      }
    },
  };
}
