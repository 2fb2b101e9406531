import { connect } from './sql.ts';
import type { Sql } from './sql.ts';

/** A dry run waits no longer for a row that live work holds; whoever asked for it tries again. */
const LOCK_TIMEOUT_MS = 1_000;
/** A process that hangs in the middle of a dry run holds its locks no longer. */
const IDLE_TIMEOUT_MS = 5_000;

/** What `work` may do within a dry run. */
export interface DryRun {
  readonly sql: Sql;
  /** Does a part and takes it back when it fails; the rest of the dry run goes on. */
  readonly part: <T>(work: () => Promise<T>) => Promise<T>;
}

/**
 * Runs `work` for real and takes everything back: the one transaction block of this service, on a connection of its own
 * that ends with it. Nothing that it writes can stay, also when the connection dies in between and the driver opens a
 * new one: every connection of a dry run is read-only by default, and only its own transaction may write. That it was
 * one and the same transaction to the end is asked of Postgres; otherwise this throws and answers nothing.
 *
 * The sums of dashboards stay out of it: their rows would be locked for the whole app.
 */
export async function withRollback<T>(url: string, work: (dryRun: DryRun) => Promise<T>): Promise<T> {
  const sql = connect({
    url,
    max: 1,
    applicationName: 'tributary-dry-run',
    settings: {
      default_transaction_read_only: 'on',
      'tributary.dry_run': 'on',
      lock_timeout: LOCK_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_TIMEOUT_MS,
    },
  });
  const transactionId = async () =>
    (await sql.one<{ id: string }>`select pg_current_xact_id()::text as id`).id;
  const part: DryRun['part'] = async (partOfWork) => {
    await sql`savepoint part`;
    try {
      const result = await partOfWork();
      // Postgres keeps an account of each savepoint that is open, and gets slow with many.
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
    const result = await work({ sql, part });
    if ((await transactionId()) !== id) {
      throw new Error('the connection of a dry run was lost: its result is worth nothing');
    }
    return result;
  } finally {
    await sql`rollback`.catch(() => {});
    await sql.close();
  }
}
