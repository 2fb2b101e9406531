import type { Logger } from 'pino';
import type { PayoutRequestKeys } from '../src/domain/payout.ts';
import type { SecretBox } from '../src/config/secret-box.ts';
import { decideResends } from '../src/db/payout-resends.ts';
import { writeRunFiles } from '../src/db/payout-run-files.ts';
import { areAllSettled, endRun, isRunStopped, openRunRequests } from '../src/db/payout-run-requests.ts';
import { arePayoutsStopped } from '../src/db/payout-stops.ts';
import type { Sql } from '../src/db/sql.ts';
import { throwIfCancelled } from './cancellation.ts';
import { parseId } from './parse-id.ts';

export interface PayoutRunActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** Passes an open payout request to the affiliate's payout workflow and waits at most `waitMs`. Never throws. */
  readonly settlePayout: (request: PayoutRequestKeys, waitMs: number) => Promise<void>;
}

/** How far a payout run is. */
export interface PayoutRunProgress {
  /** Creators whose payouts are settled, of all. */
  readonly settled: number;
  readonly items: number;
  readonly done: boolean;
}

export interface PayoutRunActivities {
  settlePayoutRunPage(runId: string): Promise<PayoutRunProgress>;
}

/** Requests of a run that are open at a time, and that are settled side by side. */
const PAGE = 100;
const IN_FLIGHT = 8;
/** The longest wait for a settlement, and the time after which a page begins no further one, ms. */
const WAIT_MS = 20_000;
const PAGE_MS = 5_000;

/** Creates the activity of the payout run workflow. */
export function createPayoutRunActivities({
  sql,
  secretBox,
  logger,
  settlePayout,
}: PayoutRunActivityDeps): PayoutRunActivities {
  return {
    /**
     * Opens the next requests of a run and has the payout workflows of their creators settle them. The database holds the progress: a
     * repetition continues. A run that sends money again has none of them. After the last one, writes the files for the payment services and ends the run.
     */
    settlePayoutRunPage: async (id) => {
      const runId = parseId('payoutRun', id);
      if ((await arePayoutsStopped(sql)) && !(await isRunStopped(sql, runId))) {
        throw new Error(
          'payouts are stopped: the database was restored or copied, and an operator has to say that it knows all payouts',
        );
      }
      await decideResends(sql, runId);
      const requests = await openRunRequests(sql, runId, PAGE);
      if (requests === undefined) return { settled: 0, items: 0, done: true };
      const endsAt = performance.now() + PAGE_MS;
      const waiting = requests.open.values();
      const settleNext = async () => {
        for (const request of waiting) {
          throwIfCancelled();
          if (performance.now() > endsAt) return;
          await settlePayout(request, WAIT_MS);
        }
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, settleNext));
      const isSettled = requests.isLast && (await areAllSettled(sql, runId));
      if (isSettled) await writeRunFiles({ sql, secretBox }, runId);
      const done = isSettled && (await endRun(sql, runId));
      if (done) logger.info({ payoutRunId: runId, items: requests.items, msg: 'a payout run is settled' });
      return { settled: requests.begun, items: requests.items, done };
    },
  };
}
