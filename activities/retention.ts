import type { Logger } from 'pino';
import { findRetentionStart, recordRetention, removeExpired } from '../src/db/retention.ts';
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
  /** Rows of a statement, and statements of a page. */
  readonly retentionPage?: { readonly rows: number; readonly batches: number };
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

/** Rows of one statement, which locks them only for itself, and statements of one activity. */
const PAGE = { rows: 500, batches: 40 };

/** The activity of the retention workflow. */
export function createRetentionActivities({
  sql,
  logger,
  retention = DEFAULT_RETENTION,
  retentionPage = PAGE,
}: RetentionActivityDeps): RetentionActivities {
  return {
    /**
     * Removes up to 20,000 expired rows of a kind. `after` is empty for the first page of a run. Returns where the next page begins, or null
     * at the end.
     */
    removeExpired: async (kind, after) => {
      let removed = 0;
      let next: string | null = after === '' ? await findRetentionStart(sql, kind) : after;
      for (let batch = 0; batch < retentionPage.batches && next !== null; batch += 1) {
        throwIfCancelled();
        const done = await removeExpired(sql, kind, retention, {
          now: await databaseClock(sql),
          limit: retentionPage.rows,
          after: next,
        });
        removed += done.removed;
        next = done.next;
      }
      await recordRetention(sql, kind, next);
      if (removed > 0) logger.info({ kind, removed, msg: 'expired data was removed' });
      return { removed, next };
    },
  };
}
