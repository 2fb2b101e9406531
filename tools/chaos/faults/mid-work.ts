import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { between } from './fault.ts';
import type { Fault } from './fault.ts';

/** Starts the workflow of a Schedule now, instead of at its next time. */
export async function triggerSchedule(address: string, name: string): Promise<void> {
  const connection = await Connection.connect({ address });
  try {
    const { schedule } = new Client({ connection });
    for await (const { scheduleId } of schedule.list())
      if (scheduleId.includes(name)) await schedule.getHandle(scheduleId).trigger();
  } finally {
    await connection.close();
  }
}

/** Postgres is killed at the moment at which the most money moves: every creator is paid, and a sweep runs. */
const killWhilePaying: Fault = async ({ stack: { postgres, temporal }, load }, planned) => {
  await triggerSchedule(`127.0.0.1:${temporal.port}`, 'sweep');
  load.payAll(`kill-${Date.now()}`);
  await sleep(between(0, 600, planned));
  await postgres.stop('crash');
  return async () => {
    await postgres.startAgain();
    await temporal.revive();
  };
};

export const MID_WORK_FAULTS = { 'Postgres killed while paying': killWhilePaying } as const;
