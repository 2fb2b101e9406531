import type { Logger } from 'pino';
import { startBackgroundLoop } from './lib/background-loop.ts';
import type { BackgroundLoop } from './lib/background-loop.ts';
import { destroyExpiredAddressKeys } from './db/address-keys.ts';
import type { Sql } from './db/sql.ts';

const PAUSE_MS = 60_000;

/**
 * Destroys expired address keys and hashes every minute, in every process. It does not use Temporal, because they must be
 * destroyed on time also while Temporal is away. The workflow `retention` removes all other expired data.
 */
export function startHousekeeping(sql: Sql, logger: Logger): BackgroundLoop {
  return startBackgroundLoop(
    async () => {
      await destroyExpiredAddressKeys(sql, Date.now());
    },
    {
      pauseMs: PAUSE_MS,
      onError: (error) =>
        logger.warn({ err: error, msg: 'housekeeping failed; the next round does its work' }),
    },
  );
}
