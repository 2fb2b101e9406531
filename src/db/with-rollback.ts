import { connect } from './sql.ts';
import type { Sql } from './sql.ts';

/** How long a dry run waits for a row that live processing has locked, ms. The caller then retries. */
const LOCK_TIMEOUT_MS = 1_000;
/** How long a process that hangs within a dry run can hold its locks, ms. */
const IDLE_TIMEOUT_MS = 5_000;

/** What `work` can do within a dry run. */
export interface DryRun {
  readonly sql: Sql;
  /** Runs a part in a savepoint and rolls it back when it fails. The dry run continues. */
  readonly savepoint: <T>(work: () => Promise<T>) => Promise<T>;
}

/**
 * Runs `work` in a transaction, rolls it back, and returns the result. It has its own
 * connection. Nothing that it writes can remain, even if the connection dies and the driver
 * opens a new one: every connection of a dry run is read-only by default, and only its transaction may write. At the
 * end Postgres is asked whether it was the same transaction throughout. If not, this throws.
 *
 * Rows of dashboard sums are not locked: what the facts of a dry run append to them is rolled back too.
 */
export async function withRollback<T>(url: string, work: (dryRun: DryRun) => Promise<T>): Promise<T> {
  const sql = connect({
    url,
    max: 1,
    allowsTransactions: false,
    applicationName: 'tributary-dry-run',
    settings: {
      default_transaction_read_only: 'on',
      lock_timeout: LOCK_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
    },
  });
  const transactionId = async () =>
    (await sql.one<{ id: string }>`select pg_current_xact_id()::text as id`).id;
  const savepoint: DryRun['savepoint'] = async (part) => {
    await sql`savepoint part`;
    try {
      const result = await part();
      // Postgres becomes slow with many open savepoints.
      await sql`release savepoint part`;
      return result;
    } catch (error) {
      await sql`rollback to savepoint part`;
      throw error;
    }
  };
  try {
    await sql`begin read write`;
    const id = await transactionId();
    const result = await work({ sql, savepoint });
    if ((await transactionId()) !== id) {
      throw new Error('the connection of a dry run was lost: its result is not usable');
    }
    return result;
  } finally {
    await sql`rollback`.catch(() => {});
    await sql.close();
  }
}
