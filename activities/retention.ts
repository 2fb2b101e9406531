import type { Logger } from 'pino';
import { finishRetention, removeExpired } from '../src/db/retention.ts';
import { databaseClock } from '../src/db/clock.ts';
import type { Sql } from '../src/db/sql.ts';
import { DEFAULT_RETENTION } from '../src/domain/retention.ts';
import type { RetentionKind, RetentionSettings } from '../src/domain/retention.ts';
import { throwIfCancelled } from './cancellation.ts';

export interface RetentionActivityDeps {
  readonly sql: Sql;
  readonly logger: Logger;
  /** After how many days data is removed; the defaults of the domain if absent. */
  readonly retention?: RetentionSettings | undefined;
}

/** What one page of the removal of expired data removed, in rows. */
export interface RetentionPage {
  readonly removed: number;
  /** Where the next page begins. Null when nothing is left. */
  readonly next: string | null;
}

export interface RetentionActivities {
  removeExpired(kind: RetentionKind, after: string): Promise<RetentionPage>;
}

/** Rows of one statement. It locks them only for itself. */
const BATCH = 500;
/** Statements of one activity. */
const BATCHES = 40;

/** The activity of the retention workflow. */
export function createRetentionActivities({
  sql,
  logger,
  retention = DEFAULT_RETENTION,
}: RetentionActivityDeps): RetentionActivities {
  return {
    /** Removes up to 20,000 expired rows of a kind. Returns where the next page begins, or null at the end. */
    removeExpired: async (kind, after) => {
      let removed = 0;
      let next: string | null = after;
      for (let batch = 0; batch < BATCHES && next !== null; batch += 1) {
        throwIfCancelled();
        const done = await removeExpired(sql, kind, retention, {
          now: await databaseClock(sql),
          limit: BATCH,
          after: next,
        });
        removed += done.removed;
        next = done.next;
      }
      if (next === null) await finishRetention(sql, kind);
      if (removed > 0) logger.info({ kind, removed, msg: 'expired data was removed' });
      return { removed, next };
    },
  };
}
