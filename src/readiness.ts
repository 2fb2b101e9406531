import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { TemporalConnection } from '../temporal/connection.ts';
import { arePayoutsStopped } from './db/payout-stops.ts';
import { faultOf } from './db/errors.ts';
import type { Sql } from './db/sql.ts';
import type { ReadinessCheck } from './http/deps.ts';
import { neverChecked, secretsProblem } from './secrets-check.ts';

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

/** How long a database that refuses connections is asked again, ms. A restart that takes less goes unnoticed. */
const PATIENCE_MS = 2_000;

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

/** Returns whether payouts can be made; null when the database does not say. */
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

/** Returns whether the clock agrees with that of the database; null when the database does not say. */
async function compareClocks(check: () => Promise<string | null>): Promise<ReadinessCheck | null> {
  try {
    const detail = await check();
    // Postgres's clock may be the wrong one. A check that is not optional would then take all processes out.
    return { name: 'clock', ok: detail === null, detail, optional: true };
  } catch {
    return null;
  }
}

/** How long all questions to the database take at most, ms. The shortest limit of those who ask is 5 s. */
const CHECK_MS = 4_750;
/** How long a result is used again after its end, ms, so that anybody may ask as often as they like. */
const REUSE_MS = 250;

/** Returns a function that runs `check` once for all who ask meanwhile or within `REUSE_MS` after its end. */
function shared<T>(check: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let endedAt = Infinity;
  return async () => {
    if (running === undefined || performance.now() - endedAt >= REUSE_MS) {
      endedAt = Infinity;
      running = check().finally(() => {
        endedAt = performance.now();
      });
    }
    return await running;
  };
}

/** What a question to the database has as its result. */
interface Answer<T> {
  /** The last answer. Undefined before the first. */
  readonly value: T | undefined;
  /** Whether it is the answer to a question before, because this one was not answered in time. */
  readonly isOld: boolean;
}

/**
 * Returns a function that asks and waits until `endsAt` (`performance.now()`, ms). A question that is not answered by then goes on: its
 * answer is for the next call, which does not ask again beside it.
 */
function askedInTime<T>(ask: () => Promise<T>): (endsAt: number) => Promise<Answer<T>> {
  let value: T | undefined;
  let asking: Promise<void> | undefined;
  const remember = async () => {
    value = await ask();
  };
  return async (endsAt) => {
    asking ??= remember().finally(() => {
      asking = undefined;
    });
    const answered = new AbortController();
    const leftMs = Math.max(0, endsAt - performance.now());
    const late = sleep(leftMs, true, { signal: answered.signal, ref: false }).catch(() => false);
    const isOld = await Promise.race([asking.then(() => false), late]);
    answered.abort();
    return { value, isOld };
  };
}

/**
 * Returns the check of what a process needs to serve. What only the database can say is not listed while it is unavailable. The
 * database is asked one question first, and then all others at once: what it does not answer within `CHECK_MS` has its last result.
 */
export function createReadiness({
  sql,
  connection,
  checkSecrets,
  checkClock,
  logger,
  acceptsLostKeys = false,
}: ReadinessDeps): () => Promise<ReadinessCheck[]> {
  const asking = sql.urgent(PATIENCE_MS);
  let couldPay = true;
  let couldRead = acceptsLostKeys;
  const askSecrets = askedInTime(async () => await secretsProblem(checkSecrets));
  const askClock = askedInTime(async () => await compareClocks(checkClock));
  const askPayouts = askedInTime(async () => await checkPayouts(sql));

  /** Returns `database`, which accepts writes, and what it says besides. */
  async function checkMore(database: ReadinessCheck, endsAt: number): Promise<ReadinessCheck[]> {
    const [secrets, clock, payouts] = await Promise.all([
      askSecrets(endsAt),
      askClock(endsAt),
      askPayouts(endsAt),
    ]);
    const lacking =
      secrets.value === undefined ? neverChecked('Postgres responds too slowly') : secrets.value;
    if (lacking === null) couldRead = true;
    if (payouts.value != null) {
      if (couldPay && !payouts.value.ok) logger.warn({ msg: PAYOUTS_STOPPED });
      couldPay = payouts.value.ok;
    }
    // A time in the future is refused permanently: only by a clock that was compared just now.
    const comparison = clock.isOld && clock.value?.ok === true ? null : clock.value;
    return [
      secretsCheck(lacking, couldRead),
      database,
      checkStatements(sql),
      comparison,
      payouts.value,
    ].filter((check) => check != null);
  }

  return shared(async () => {
    const { problem, setUpProblem } = connection;
    const endsAt = performance.now() + CHECK_MS;
    const database = await checkDatabase(asking);
    return [
      ...(database.ok ? await checkMore(database, endsAt) : [database]),
      // Without Temporal webhooks are stored and processed later. What its set-up lacks delays nothing.
      { name: 'temporal', ok: problem === null, detail: problem, optional: true },
      { name: 'temporal_set_up', ok: setUpProblem === null, detail: setUpProblem, optional: true },
    ];
  });
}
