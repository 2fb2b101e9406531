import { isDeepStrictEqual } from 'node:util';
import { ScheduleAlreadyRunning, ScheduleNotFoundError, ScheduleOverlapPolicy } from '@temporalio/client';
import type { Client, ScheduleDescription, ScheduleOptions } from '@temporalio/client';
import { decodeScheduleSpec, encodeScheduleSpec } from '@temporalio/client/lib/schedule-helpers.js';
import { workflowIdOf } from '../src/domain/workflow-id.ts';
import { backgroundQueue } from './names.ts';
import type { Workflows } from './start.ts';

interface ScheduleDefinition {
  readonly spec: ScheduleOptions['spec'];
  readonly policies: { readonly overlap: ScheduleOverlapPolicy; readonly catchupWindow: number };
  /** Limits a run with its retries, ms. While a run is running the next ones are skipped: one that never ends would stop all. */
  readonly executionTimeout: number;
  /** Whether a new Schedule also runs at once. */
  readonly runsAtOnce: boolean;
  /** The setting without which an installation has no such Schedule. */
  readonly needs?: 'ratesUrl';
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The Schedules of an installation by their workflows. The id of each is that of its workflow, with the task queue as its key. */
export const SCHEDULES = {
  /** Installations that share a server do not all begin at once. */
  alerts: {
    spec: { intervals: [{ every: 5 * MINUTE_MS }], jitter: MINUTE_MS },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 5 * MINUTE_MS },
    executionTimeout: 15 * MINUTE_MS,
    runsAtOnce: false,
  },
  /** A run that is missed is made up by the next one: what is due stands in the database. */
  calendar: {
    spec: { intervals: [{ every: 5 * MINUTE_MS }], jitter: MINUTE_MS },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 5 * MINUTE_MS },
    executionTimeout: 15 * MINUTE_MS,
    runsAtOnce: false,
  },
  sweep: {
    spec: { intervals: [{ every: MINUTE_MS }] },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: MINUTE_MS },
    executionTimeout: 15 * MINUTE_MS,
    runsAtOnce: false,
  },
  /**
   * The European Central Bank publishes at about 16:00 local time, which is 14:00 or 15:00 UTC. The jitter spreads the
   * requests of many installations.
   */
  rates: {
    spec: { calendars: [{ hour: 16, minute: 5 }], timezone: 'UTC', jitter: 30 * MINUTE_MS },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: 24 * HOUR_MS },
    executionTimeout: HOUR_MS,
    runsAtOnce: true,
    needs: 'ratesUrl',
  },
  /** Installations that share a server do not all begin at once. */
  retention: {
    spec: { intervals: [{ every: HOUR_MS }], jitter: 10 * MINUTE_MS },
    policies: { overlap: ScheduleOverlapPolicy.SKIP, catchupWindow: HOUR_MS },
    executionTimeout: HOUR_MS,
    runsAtOnce: false,
  },
} as const satisfies { readonly [Name in keyof Workflows]?: ScheduleDefinition };

/** The workflows that Schedules start. */
export type ScheduledWorkflow = keyof typeof SCHEDULES;

/** Returns the workflows whose Schedules an installation with these settings has. */
export function schedulesFor(settings: { readonly ratesUrl: string | null }): readonly ScheduledWorkflow[] {
  return (Object.entries(SCHEDULES) as [ScheduledWorkflow, ScheduleDefinition][])
    .filter(([, { needs }]) => needs === undefined || settings[needs] !== null)
    .map(([workflow]) => workflow);
}

type Schedule = Pick<ScheduleDefinition, 'spec' | 'policies'> & {
  readonly action: Extract<ScheduleOptions['action'], { type: 'startWorkflow' }>;
};

function scheduleOf(workflow: ScheduledWorkflow, taskQueue: string): Schedule {
  const { spec, policies, executionTimeout }: ScheduleDefinition = SCHEDULES[workflow];
  return {
    spec,
    policies,
    action: {
      type: 'startWorkflow',
      workflowType: workflow,
      taskQueue: backgroundQueue(taskQueue),
      args: [],
      workflowExecutionTimeout: executionTimeout,
    },
  };
}

/** The server adds empty texts to what a client sends. */
const withoutEmptyTexts = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, part: unknown) => (part === '' ? undefined : part)));

/** Whether a Schedule on the server is the one of its definition. */
function isAsDefined({ spec, policies, action }: ScheduleDescription, wanted: Schedule): boolean {
  const pairs: readonly (readonly [unknown, unknown])[] = [
    [spec, decodeScheduleSpec(encodeScheduleSpec(wanted.spec))],
    [policies.overlap, wanted.policies.overlap],
    [policies.catchupWindow, wanted.policies.catchupWindow],
    [action.workflowType, wanted.action.workflowType],
    [action.taskQueue, wanted.action.taskQueue],
    [action.workflowExecutionTimeout, wanted.action.workflowExecutionTimeout],
  ];
  return pairs.every(([found, expected]) =>
    isDeepStrictEqual(withoutEmptyTexts([found]), withoutEmptyTexts([expected])),
  );
}

/**
 * Creates the Schedules that are missing, and makes existing ones follow their definition, also after a change by hand. A
 * paused one stays paused. Returns one sentence that names the paused ones; null when none is.
 */
export async function ensureSchedules(
  client: Client,
  taskQueue: string,
  workflows: readonly ScheduledWorkflow[],
): Promise<string | null> {
  const problems: string[] = [];
  for (const workflow of workflows) {
    const scheduleId = workflowIdOf(workflow, taskQueue);
    const wanted = scheduleOf(workflow, taskQueue);
    const found = await describe(client, scheduleId);
    if (found === null) {
      const { runsAtOnce } = SCHEDULES[workflow];
      await create(client, { scheduleId, ...wanted, state: { triggerImmediately: runsAtOnce } });
      continue;
    }
    if (!isAsDefined(found, wanted)) {
      await client.schedule.getHandle(scheduleId).update(({ state: { paused, note } }) => ({
        ...wanted,
        state: { paused, ...(note ? { note } : {}) },
      }));
    }
    const { paused, note } = found.state;
    if (paused) {
      const reason = note ? ` (${note})` : '';
      problems.push(`The Schedule ${scheduleId} is paused${reason}: unpause it in the Temporal UI.`);
    }
  }
  return problems.length === 0 ? null : problems.join(' ');
}

async function describe(client: Client, scheduleId: string): Promise<ScheduleDescription | null> {
  try {
    return await client.schedule.getHandle(scheduleId).describe();
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return null;
    throw error;
  }
}

/** Creates a Schedule, unless another process has just done it. */
async function create(client: Client, options: ScheduleOptions): Promise<void> {
  try {
    await client.schedule.create(options);
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}
