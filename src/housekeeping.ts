import type { Logger } from 'pino';
import { startBackgroundLoop } from './lib/background-loop.ts';
import type { BackgroundLoop } from './lib/background-loop.ts';
import { destroyExpiredAddressKeys } from './db/address-keys.ts';
import { deleteExpiredIdempotencyKeys } from './db/idempotency.ts';
import type { Sql } from './db/sql.ts';

const PAUSE_MS = 60_000;
/** Maximum number of rows that one statement removes. */
const PAGE = 1_000;

/** Repeats a removal until it finds less than a page of rows, or the service stops. */
async function removeAll(remove: (limit: number) => Promise<number>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && (await remove(PAGE)) === PAGE);
}

/**
 * Removes expired rows every minute, in every process. It does not use Temporal, because rows must be removed on time
 * also while Temporal is away. Two processes that run it at once remove different rows.
 */
export function startHousekeeping(sql: Sql, logger: Logger): BackgroundLoop {
  return startBackgroundLoop(
    async (signal) => {
      await removeAll((limit) => deleteExpiredIdempotencyKeys(sql, limit), signal);
      await destroyExpiredAddressKeys(sql, Date.now());
    },
    {
      pauseMs: PAUSE_MS,
      onError: (error) =>
        logger.warn({ err: error, msg: 'housekeeping failed; the next round does its work' }),
    },
  );
}
