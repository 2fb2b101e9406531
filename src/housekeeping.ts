import type { Logger } from 'pino';
import { startBackgroundLoop } from './background-loop.ts';
import type { BackgroundLoop } from './background-loop.ts';
import { destroyExpiredAddressKeys } from './db/address-keys.ts';
import { deleteExpiredIdempotencyKeys } from './db/idempotency.ts';
import type { Sql } from './db/sql.ts';

const PAUSE_MS = 60_000;
/** Rows that one statement removes at most. */
const PAGE = 1_000;

/** Repeats a removal until it finds less than a page. */
async function removeAll(remove: (limit: number) => Promise<number>): Promise<void> {
  while ((await remove(PAGE)) === PAGE);
}

/**
 * Removes what is kept for a time only, every minute and in every process: it must go on time also while Temporal is
 * away, and two processes that do it at once take different rows.
 */
export function startHousekeeping(sql: Sql, logger: Logger): BackgroundLoop {
  return startBackgroundLoop(
    async () => {
      await removeAll((limit) => deleteExpiredIdempotencyKeys(sql, limit));
      await destroyExpiredAddressKeys(sql, Date.now());
    },
    {
      pauseMs: PAUSE_MS,
      onError: (error) =>
        logger.warn({ err: error, msg: 'housekeeping failed, the next round will do its work' }),
    },
  );
}
