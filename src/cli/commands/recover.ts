import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { closeAbandonedRequests } from '../../db/payout-requests.ts';
import { matureOverdue } from '../../db/maturing.ts';
import { askToRecover, countOpenWork, makeOverdue, readWaiting, RELAYED } from '../../db/recovery.ts';
import type { OpenWork } from '../../db/recovery.ts';
import type { Sql } from '../../db/sql.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';

/** Work that the relay claimed within this time may have been lost with its workflow, ms. It claims older work by itself. */
const CLAIM_MS = 60_000;
/** Rows that one statement changes. */
const PAGE = 1_000;
const POLL_MS = 250;

/** Runs a statement that changes a page of rows until none is left. Returns how many rows it changed. */
async function untilNone(changePage: (limit: number) => Promise<number>): Promise<number> {
  let total = 0;
  for (;;) {
    const changed = await changePage(PAGE);
    total += changed;
    if (changed < PAGE) return total;
  }
}

const KINDS = Object.keys(RELAYED) as (keyof typeof RELAYED)[];

const isStarted = (work: OpenWork): boolean => KINDS.every((kind) => work[kind] === 0) && work.payments === 0;

/** Waits until the running service has claimed all open work, or claims nothing more for `patienceMs`. Returns the rest. */
async function waitUntilClaimed(sql: Sql, since: number, patienceMs: number): Promise<OpenWork> {
  let left = await countOpenWork(sql, since);
  let giveUpAt = performance.now() + patienceMs;
  while (!isStarted(left) && performance.now() < giveUpAt) {
    await sleep(POLL_MS);
    const next = await countOpenWork(sql, since);
    if (JSON.stringify(next) !== JSON.stringify(left)) giveUpAt = performance.now() + patienceMs;
    left = next;
  }
  return left;
}

/** Adds `recover`. */
export function addRecoverCommand(program: Command, context: CommandContext): void {
  const { withDatabase, print, stderr, markFailed, serviceTimeoutMs } = context;
  program
    .command('recover')
    .description(
      'start all open work from the database now, after the Temporal server lost its data or the database was restored; safe at any time',
    )
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions) => {
      await withDatabase(async (sql) => {
        const found = await countOpenWork(sql);
        const { now } = await readWaiting(sql);
        await makeOverdue(sql, CLAIM_MS);
        await askToRecover(sql);
        const matured = await untilNone(async (limit) => await matureOverdue(sql, limit));
        const closed = await untilNone(async (limit) => await closeAbandonedRequests(sql, limit));
        const left = await waitUntilClaimed(sql, now, serviceTimeoutMs);
        const { pending, nextDueAt, openPayoutRequests } = await readWaiting(sql);
        const ok = isStarted(left);
        const row = (work: string, kind: keyof OpenWork) => ({
          work,
          open: found[kind],
          started: Math.max(0, found[kind] - left[kind]),
        });
        print(
          { ok, open: found, left, matured, closed, pending, nextDueAt, openPayoutRequests },
          [
            ...KINDS.map((kind) => row(RELAYED[kind], kind)),
            row('payments to evaluate again', 'payments'),
            { work: 'overdue commissions', open: matured, started: matured },
            { work: 'abandoned exports, closed without a payout', open: closed, started: closed },
          ],
          options,
        );
        stderr(
          `Pending commissions: ${pending}; the service matures each within a minute of its due date, with or without its hold timer. Exports that wait for their payout: ${openPayoutRequests}.\n`,
        );
        if (ok) return;
        stderr(
          'A part was not started: no running service has claimed it. Start the service; it does the rest.\n',
        );
        markFailed();
      });
    });
}
