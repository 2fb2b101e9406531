import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import type { WorkflowHandle, WorkflowStartOptions } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { startLocalTemporal } from '../temporal/local-server/server.ts';
import { SEARCH_ATTRIBUTES } from '../temporal/search-attributes.ts';

// The branches that a healthy service does not take: fallbacks, several pages, and continue-as-new. Activities that play
// the failures produce them in seconds, on a server that suggests continue-as-new early.

type FakeActivities = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;

interface Branch {
  readonly name: string;
  readonly workflow: string;
  readonly args: readonly unknown[];
  readonly activities: () => FakeActivities;
  /** Requests that a payout is signalled. */
  readonly signals?: number;
  /** Whether it ends in a failure, which is what it records. */
  readonly isFailure?: boolean;
}

const SUGGESTED_AT = 12;
const DELIVERY = [{ deliveryId: 'del_recorded' }];
const HEAL = [{ bindingId: 'bnd_recorded' }];
const PAYOUT = [{ affiliateId: 'aff_recorded' }];
const PAYOUT_RUN = [{ runId: 'run_recorded' }];
const ERASE = [{ erasureId: 'ers_recorded' }];
const EMAIL = [{ emailId: 'eml_recorded' }];
const WEBHOOK = [{ messageId: 'msg_recorded' }];
const REPROCESS = [{ reprocessRunId: 'rpr_recorded' }];

const fails = async (): Promise<never> => await Promise.reject(new Error('broken for the recording'));
const nothing = async () => null;
const canMark = async () => true;

/** Fails `failures` times, then returns the results in turn, the last one again and again. */
function script(failures: number, ...results: readonly unknown[]) {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls <= failures) return await fails();
    return results[Math.min(calls - failures, results.length) - 1];
  };
}

const convertPage = (next: string | null) => ({ next, evaluated: 1, failed: 0 });
const alertPage = (next: string | null) => ({ opened: 1, closed: 0, next });
const calendarPage = (next: string | null) => ({ count: 1, next });
const erasePage = (waitMs: number) => ({ done: false, waitMs });
const runPage = (settled: number, done = false) => ({ settled, items: 3, done });
const progress = (state: string, waitMs = 0) => ({ state, attempts: 1, problem: null, waitMs });
const pages = <T>(count: number, more: T): T[] => Array.from({ length: count }, () => more);

/** A delivery whose fast path fails and whose step `last` ends it. */
function earlyEnd(last: string, outcome: unknown): () => FakeActivities {
  return () => ({
    canMark,
    processDelivery: fails,
    verify: nothing,
    storeRaw: nothing,
    normalize: nothing,
    dedupe: nothing,
    [last]: async () => outcome,
  });
}
const DONE = { status: 'done', eventId: 'evt_recorded', commissionId: null };

const BRANCHES: readonly Branch[] = [
  {
    name: 'delivery-ends-at-verify',
    workflow: 'delivery',
    args: DELIVERY,
    activities: earlyEnd('verify', DONE),
  },
  {
    name: 'delivery-ends-at-store-raw',
    workflow: 'delivery',
    args: DELIVERY,
    activities: earlyEnd('storeRaw', DONE),
  },
  {
    name: 'delivery-ends-at-normalize',
    workflow: 'delivery',
    args: DELIVERY,
    activities: earlyEnd('normalize', DONE),
  },
  {
    name: 'delivery-ends-at-dedupe',
    workflow: 'delivery',
    args: DELIVERY,
    activities: earlyEnd('dedupe', { status: 'duplicate' }),
  },
  {
    name: 'delivery-without-search-attribute',
    workflow: 'delivery',
    args: DELIVERY,
    activities: () => ({ ...earlyEnd('normalize', DONE)(), canMark: async () => false }),
  },
  {
    name: 'payout-fallback',
    workflow: 'payout',
    args: PAYOUT,
    signals: 1,
    activities: () => ({ canMark, settlePayoutRequest: script(2, 'paid') }),
  },
  {
    name: 'payout-continued',
    workflow: 'payout',
    args: PAYOUT,
    signals: 14,
    // The first request takes until the others are signalled.
    activities: () => ({ settlePayoutRequest: async () => await sleep(500).then(() => 'paid') }),
  },
  {
    name: 'heal-two-pages',
    workflow: 'heal',
    args: HEAL,
    activities: () => ({ healPage: script(0, 'pmt_1', null) }),
  },
  {
    name: 'heal-fallback',
    workflow: 'heal',
    args: HEAL,
    activities: () => ({ canMark, healPage: script(3, 'pmt_1', null) }),
  },
  {
    name: 'heal-continued',
    workflow: 'heal',
    args: HEAL,
    activities: () => ({ healPage: script(0, ...pages(3, 'pmt_1'), null) }),
  },
  {
    name: 'convert-two-pages',
    workflow: 'convert',
    args: [],
    activities: () => ({ convertPage: script(0, convertPage('pmt_1'), convertPage(null)) }),
  },
  {
    name: 'convert-fallback',
    workflow: 'convert',
    args: [],
    activities: () => ({ canMark, convertPage: script(3, convertPage(null)) }),
  },
  {
    name: 'convert-continued',
    workflow: 'convert',
    args: [],
    activities: () => ({ convertPage: script(0, ...pages(3, convertPage('pmt_1')), convertPage(null)) }),
  },
  {
    name: 'reprocess-fallback',
    workflow: 'reprocess',
    args: REPROCESS,
    activities: () => ({ canMark, reprocessPage: script(3, { done: true }) }),
  },
  {
    name: 'reprocess-continued',
    workflow: 'reprocess',
    args: REPROCESS,
    activities: () => ({ reprocessPage: script(0, ...pages(3, { done: false }), { done: true }) }),
  },
  {
    name: 'payout-run',
    workflow: 'payoutRun',
    args: PAYOUT_RUN,
    activities: () => ({ settlePayoutRunPage: script(0, runPage(2), runPage(2), runPage(3, true)) }),
  },
  {
    name: 'payout-run-fallback',
    workflow: 'payoutRun',
    args: PAYOUT_RUN,
    activities: () => ({ canMark, settlePayoutRunPage: script(3, runPage(3, true)) }),
  },
  {
    name: 'payout-run-continued',
    workflow: 'payoutRun',
    args: PAYOUT_RUN,
    activities: () => ({ settlePayoutRunPage: script(0, ...pages(3, runPage(1)), runPage(3, true)) }),
  },
  {
    name: 'erase',
    workflow: 'erase',
    args: ERASE,
    activities: () => ({ erasePage: script(0, erasePage(0), erasePage(50), { done: true, waitMs: 0 }) }),
  },
  {
    name: 'erase-fallback',
    workflow: 'erase',
    args: ERASE,
    activities: () => ({ canMark, erasePage: script(3, { done: true, waitMs: 0 }) }),
  },
  {
    name: 'erase-continued',
    workflow: 'erase',
    args: ERASE,
    activities: () => ({ erasePage: script(0, ...pages(3, erasePage(0)), { done: true, waitMs: 0 }) }),
  },
  {
    name: 'webhook-delivered',
    workflow: 'webhook',
    args: WEBHOOK,
    activities: () => ({ sendMessage: script(0, progress('delivered')) }),
  },
  {
    name: 'webhook-retried',
    workflow: 'webhook',
    args: WEBHOOK,
    activities: () => ({
      sendMessage: script(0, progress('later', 50), progress('retry', 50), progress('failed')),
    }),
  },
  {
    name: 'webhook-fallback',
    workflow: 'webhook',
    args: WEBHOOK,
    activities: () => ({ canMark, sendMessage: script(3, progress('delivered')) }),
  },
  {
    name: 'webhook-continued',
    workflow: 'webhook',
    args: WEBHOOK,
    activities: () => ({ sendMessage: script(0, ...pages(3, progress('retry', 50)), progress('delivered')) }),
  },
  {
    name: 'alerts',
    workflow: 'alerts',
    args: [],
    activities: () => ({ evaluateAlerts: script(0, alertPage('app_1'), alertPage(null)) }),
  },
  {
    name: 'alerts-continued',
    workflow: 'alerts',
    args: [],
    activities: () => ({ evaluateAlerts: script(0, ...pages(3, alertPage('app_1')), alertPage(null)) }),
  },
  {
    name: 'calendar',
    workflow: 'calendar',
    args: [],
    activities: () => ({
      draftScheduledRuns: script(0, calendarPage('app_1'), calendarPage(null)),
      writeWeeklyReports: script(0, calendarPage('app_1'), calendarPage(null)),
    }),
  },
  {
    name: 'calendar-step-fails',
    workflow: 'calendar',
    args: [],
    isFailure: true,
    activities: () => ({ draftScheduledRuns: fails, writeWeeklyReports: script(0, calendarPage(null)) }),
  },
  {
    name: 'calendar-continued',
    workflow: 'calendar',
    args: [],
    activities: () => ({
      draftScheduledRuns: script(0, ...pages(3, calendarPage('app_1')), calendarPage(null)),
      writeWeeklyReports: script(0, calendarPage('app_1'), calendarPage(null)),
    }),
  },
  {
    name: 'email-sent',
    workflow: 'email',
    args: EMAIL,
    activities: () => ({ sendEmail: script(0, progress('sent')) }),
  },
  {
    name: 'email-retried',
    workflow: 'email',
    args: EMAIL,
    activities: () => ({
      sendEmail: script(0, progress('later', 50), progress('retry', 50), progress('failed')),
    }),
  },
  {
    name: 'email-fallback',
    workflow: 'email',
    args: EMAIL,
    activities: () => ({ canMark, sendEmail: script(3, progress('sent')) }),
  },
  {
    name: 'email-continued',
    workflow: 'email',
    args: EMAIL,
    activities: () => ({ sendEmail: script(0, ...pages(3, progress('retry', 50)), progress('sent')) }),
  },
  {
    name: 'sweep-continued',
    workflow: 'sweep',
    args: [],
    activities: () => ({
      sweepPage: script(0, ...pages(3, { matured: 1, more: true }), { matured: 0, more: false }),
    }),
  },
];

/**
 * Runs each branch that is not recorded and passes its first run to `record`, by the name of the branch; of a continued one
 * also the last run.
 */
export async function runBranches(
  workflowBundle: WorkflowBundle,
  isRecorded: (name: string) => boolean,
  record: (name: string, handle: WorkflowHandle) => Promise<void>,
): Promise<void> {
  const server = await startLocalTemporal({
    searchAttributes: SEARCH_ATTRIBUTES,
    dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': SUGGESTED_AT },
    onProgress: () => {},
  });
  const connection = await NativeConnection.connect({ address: server.address });
  const client = new Client({ connection });
  try {
    for (const branch of BRANCHES) {
      if (!isRecorded(branch.name)) await runBranch(branch);
    }
  } finally {
    await connection.close();
    await server.stop();
  }

  async function runBranch({
    name,
    workflow,
    args,
    activities,
    signals = 0,
    isFailure = false,
  }: Branch): Promise<void> {
    const options: WorkflowStartOptions = {
      taskQueue: name,
      workflowId: `${workflow}:${name}`,
      args: [...args],
    };
    const worker = await Worker.create({
      connection,
      taskQueue: name,
      workflowBundle,
      activities: activities(),
    });
    await worker.runUntil(async () => {
      let firstRun: string | undefined;
      if (signals === 0) {
        firstRun = (await client.workflow.start(workflow, options)).firstExecutionRunId;
      }
      for (let request = 1; request <= signals; request += 1) {
        const signalArgs = [`req_${request}`];
        const started = await client.workflow.signalWithStart(workflow, {
          ...options,
          signal: 'payoutRequested',
          signalArgs,
        });
        firstRun ??= started.signaledRunId;
      }
      const last = client.workflow.getHandle(options.workflowId);
      const ended = last.result();
      await (isFailure ? ended.catch(() => {}) : ended);
      await record(name, client.workflow.getHandle(options.workflowId, firstRun));
      if (name.endsWith('-continued')) await record(`${name}-last-run`, last);
    });
  }
}
