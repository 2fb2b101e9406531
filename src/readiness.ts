import type { Logger } from 'pino';
import type { TemporalConnection } from '../temporal/connection.ts';
import { arePayoutsStopped } from './db/payout-stops.ts';
import type { Sql } from './db/sql.ts';
import type { ReadinessCheck } from './http/deps.ts';

export interface ReadinessDeps {
  readonly sql: Sql;
  readonly connection: Pick<TemporalConnection, 'problem' | 'setUpProblem'>;
  readonly checkSecrets: () => Promise<string | null>;
  readonly logger: Logger;
}

async function checkDatabase(sql: Sql): Promise<ReadinessCheck> {
  try {
    await sql`select 1 as ok`;
    return { name: 'database', ok: true, detail: null, optional: false };
  } catch {
    return { name: 'database', ok: false, detail: 'Postgres does not respond', optional: false };
  }
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

/** Returns the check of the encryption keys, of which `problem` says what is missing. */
const secretsCheck = (problem: string | null): ReadinessCheck => ({
  name: 'secrets',
  ok: problem === null,
  detail: problem,
  optional: true,
});

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
 * Returns the check of what a process needs to serve. What only the database can say is not listed while it is away.
 */
export function createReadiness({
  sql,
  connection,
  checkSecrets,
  logger,
}: ReadinessDeps): () => Promise<ReadinessCheck[]> {
  let couldPay = true;
  return reused(async () => {
    const { problem, setUpProblem } = connection;
    const database = await checkDatabase(sql);
    const secrets = database.ok ? [secretsCheck(await checkSecrets())] : [];
    const payouts = database.ok ? await checkPayouts(sql) : null;
    if (payouts !== null) {
      if (couldPay && !payouts.ok) logger.warn({ msg: PAYOUTS_STOPPED });
      couldPay = payouts.ok;
    }
    return [
      ...secrets,
      database,
      ...(payouts === null ? [] : [payouts]),
      // Without Temporal webhooks are stored and processed later. What its set-up lacks delays nothing.
      { name: 'temporal', ok: problem === null, detail: problem, optional: true },
      { name: 'temporal_set_up', ok: setUpProblem === null, detail: setUpProblem, optional: true },
    ];
  });
}
