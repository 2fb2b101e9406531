import type { Logger } from 'pino';
import { FOLD_LIMIT, foldRollups } from './db/rollups.ts';
import type { Sql } from './db/sql.ts';
import { startBackgroundLoop } from './lib/background-loop.ts';
import type { BackgroundLoop } from './lib/background-loop.ts';

const PAUSE_MS = 1_000;

/**
 * Folds the deltas of facts into the stored sums every second, in every process; a lock in the database gives one of them
 * the turn. It does not use Temporal: a second is too often for a workflow, and sums must not depend on it. While it fails,
 * sums stay right and reads get slower with the tail, which two metrics show.
 */
export function startRollupFoldLoop(sql: Sql, logger: Logger): BackgroundLoop {
  let isFailing = false;
  return startBackgroundLoop(
    async () => {
      const folded = await foldRollups(sql);
      isFailing = false;
      return folded;
    },
    {
      pauseMs: PAUSE_MS,
      hasMore: (folded) => folded === FOLD_LIMIT,
      onError: (error) => {
        // Once, not every second.
        if (!isFailing)
          logger.warn({ err: error, msg: 'folding roll-ups failed; it is retried every second' });
        isFailing = true;
      },
    },
  );
}
