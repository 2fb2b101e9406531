import type { Logger } from 'pino';
import type { TemporalConnection } from '../temporal/connection.ts';
import { arePayoutsStopped } from './db/payout-stops.ts';
import { faultOf } from './db/errors.ts';
import type { Sql } from './db/sql.ts';
import type { ReadinessCheck } from './http/deps.ts';
import { secretsProblem } from './secrets-check.ts';

export interface ReadinessDeps {
  readonly sql: Sql;
  readonly connection: Pick<TemporalConnection, 'problem' | 'setUpProblem'>;
  /** Returns what SECRETS_KEY lacks, or null. Throws when the database has never said what is stored. */
  readonly checkSecrets: () => Promise<string | null>;
  /** Returns what is wrong with the clock, or null. Throws when the database is unavailable. */
  readonly checkClock: () => Promise<string | null>;
  readonly logger: Logger;
  /** Whether a process may become ready without a key that stored secrets need. */
  readonly acceptsLostKeys?: boolean | undefined;
}

const databaseCheck = (detail: string | null): ReadinessCheck => ({
  name: 'database',
  ok: detail === null,
  detail,
  optional: false,
});

/** Returns whether the database responds and accepts writes. */
async function checkDatabase(sql: Sql): Promise<ReadinessCheck> {
  try {
    const { inRecovery, readOnly } = await sql.one<{ inRecovery: boolean; readOnly: boolean }>`
      select pg_is_in_recovery() as in_recovery, current_setting('transaction_read_only')::boolean as read_only`;
    if (!readOnly && !inRecovery) return databaseCheck(null);
    // The name in DATABASE_URL may lead to another server by now.
    sql.renew();
    return databaseCheck(inRecovery ? IN_RECOVERY : READ_ONLY);
  } catch (error) {
    return databaseCheck(
      faultOf(error)?.problem ?? 'Postgres refuses the question whether it accepts writes',
    );
  }
}

const IN_RECOVERY =
  'Postgres is a standby, or was demoted to one: it accepts no writes. Promote it, or let DATABASE_URL lead to the primary.';
const READ_ONLY =
  'Postgres accepts no writes: default_transaction_read_only is on, for the server, the database or the role.';

/** Returns the check of what Postgres has refused lately, although it responds: a full disk, a missing permission. */
function checkStatements(sql: Sql): ReadinessCheck {
  const detail = sql.recentProblem();
  return { name: 'database_statements', ok: detail === null, detail, optional: true };
}

const PAYOUTS_STOPPED =
  'Payouts are stopped: the database was restored, promoted, upgraded or copied, or the operator stopped them. Record payouts that it has forgotten (docs/backup.md), then run payouts resume --none-missing.';

/** Returns whether payouts can be made; nothing when the database does not say. */
async function checkPayouts(sql: Sql): Promise<ReadinessCheck | null> {
  try {
    const ok = !(await arePayoutsStopped(sql));
    return { name: 'payouts', ok, detail: ok ? null : PAYOUTS_STOPPED, optional: true };
  } catch {
    return null;
  }
}

/**
 * Returns the check of the encryption keys, of which `problem` says what is missing. A process that has never had them all, or
 * never knew, is not ready, so that a rolling update with a wrong `SECRETS_KEY` stops at its first process.
 */
const secretsCheck = (problem: string | null, isOptional: boolean): ReadinessCheck => ({
  name: 'secrets',
  ok: problem === null,
  detail: problem,
  optional: isOptional,
});

/** Returns whether the clock agrees with that of the database; nothing when the database does not say. */
async function clockCheck(check: () => Promise<string | null>): Promise<ReadinessCheck[]> {
  try {
    const detail = await check();
    // Postgres's clock may be the wrong one. A check that is not optional would then take all processes out.
    return [{ name: 'clock', ok: detail === null, detail, optional: true }];
  } catch {
    return [];
  }
}

/** How long a result is used again, so that anybody may ask as often as they like. */
const REUSE_MS = 250;

/** Returns a function that runs `check` at most once per `REUSE_MS`. */
function reused<T>(check: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly result: Promise<T> } | undefined;
  return async () => {
    if (last === undefined || performance.now() - last.at >= REUSE_MS)
      last = { at: performance.now(), result: check() };
    return await last.result;
  };
}

/**
 * Returns the check of what a process needs to serve. What only the database can say is not listed while it is unavailable.
 */
export function createReadiness({
  sql,
  connection,
  checkSecrets,
  checkClock,
  logger,
  acceptsLostKeys = false,
}: ReadinessDeps): () => Promise<ReadinessCheck[]> {
  let couldPay = true;
  let couldRead = acceptsLostKeys;
  return reused(async () => {
    const { problem, setUpProblem } = connection;
    const database = await checkDatabase(sql);
    const lacking = database.ok ? await secretsProblem(checkSecrets) : null;
    if (database.ok && lacking === null) couldRead = true;
    const secrets = database.ok ? [secretsCheck(lacking, couldRead)] : [];
    const payouts = database.ok ? await checkPayouts(sql) : null;
    if (payouts !== null) {
      if (couldPay && !payouts.ok) logger.warn({ msg: PAYOUTS_STOPPED });
      couldPay = payouts.ok;
    }
    return [
      ...secrets,
      database,
      ...(database.ok ? [checkStatements(sql), ...(await clockCheck(checkClock))] : []),
      ...(payouts === null ? [] : [payouts]),
      // Without Temporal webhooks are stored and processed later. What its set-up lacks delays nothing.
      { name: 'temporal', ok: problem === null, detail: problem, optional: true },
      { name: 'temporal_set_up', ok: setUpProblem === null, detail: setUpProblem, optional: true },
    ];
  });
}
