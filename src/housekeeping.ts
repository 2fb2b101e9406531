import type { Logger } from 'pino';
import type { SecretBox } from './config/secret-box.ts';
import { startBackgroundLoop } from './lib/background-loop.ts';
import type { BackgroundLoop } from './lib/background-loop.ts';
import { destroyExpiredAddressKeys } from './db/address-keys.ts';
import { deleteExpiredCreatorSessions } from './db/creator-sessions.ts';
import { deleteExpiredOperatorSessions } from './db/operator-sessions.ts';
import { deleteExpiredChallenges } from './db/passkeys.ts';
import { deleteExpiredFormerAddresses, deleteExpiredPayeeChanges } from './db/payee-changes.ts';
import { reencryptPayees } from './db/payees.ts';
import { reencryptPayoutFiles } from './db/payout-run-files.ts';
import { deleteExpiredSessions } from './db/sessions.ts';
import { databaseClock } from './db/clock.ts';
import type { Sql } from './db/sql.ts';
import { analyzeGrownTables } from './db/statistics.ts';

const PAUSE_MS = 60_000;
/** How many rows a table can gain before this passes limits what a plan that was made for a small table costs. */
const STATISTICS_PAUSE_MS = 5_000;

/**
 * Destroys expired address keys and hashes every minute, in every process, deletes expired sessions, and encrypts payees with the first
 * key of SECRETS_KEY. It does not use
 * Temporal, because they must be destroyed on time also while Temporal is unavailable. The workflow `retention` removes all other expired data.
 */
export function startHousekeeping(sql: Sql, secretBox: SecretBox, logger: Logger): BackgroundLoop {
  return startBackgroundLoop(
    async (signal) => {
      const now = await databaseClock(sql);
      await destroyExpiredAddressKeys(sql, now);
      await deleteExpiredSessions(sql, now);
      await deleteExpiredChallenges(sql, now);
      await deleteExpiredCreatorSessions(sql, now);
      await deleteExpiredOperatorSessions(sql, now);
      await deleteExpiredPayeeChanges(sql, now);
      await deleteExpiredFormerAddresses(sql, now);
      await reencryptPayees({ sql, secretBox }, { signal });
      await reencryptPayoutFiles({ sql, secretBox }, { signal });
    },
    {
      pauseMs: PAUSE_MS,
      onError: (error) =>
        logger.warn({ err: error, msg: 'housekeeping failed; the next round does its work' }),
    },
  );
}

/**
 * Renews the statistics of growing tables every 5 s. Autovacuum does it too, but once a minute at the earliest, and in a
 * minute a new installation may have grown from nothing to thousands of rows.
 */
export function startStatistics(sql: Sql, logger: Logger): BackgroundLoop {
  return startBackgroundLoop(async () => await analyzeGrownTables(sql), {
    pauseMs: STATISTICS_PAUSE_MS,
    onError: (error) =>
      logger.warn({ err: error, msg: 'statistics of tables were not renewed; the next round does it' }),
  });
}
