import type { TemporalConnection } from '../temporal/connection.ts';
import type { Sql } from './db/sql.ts';
import type { ReadinessCheck } from './http/deps.ts';

export interface ReadinessDeps {
  readonly sql: Sql;
  readonly connection: Pick<TemporalConnection, 'problem' | 'setUpProblem'>;
  readonly checkSecrets: () => Promise<string | null>;
}

async function checkDatabase(sql: Sql): Promise<ReadinessCheck> {
  try {
    await sql`select 1 as ok`;
    return { name: 'database', ok: true, detail: null, optional: false };
  } catch {
    return { name: 'database', ok: false, detail: 'Postgres does not respond', optional: false };
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

/** Returns the check of what a process needs to serve. The check of the secrets is listed only when it fails. */
export function createReadiness({
  sql,
  connection,
  checkSecrets,
}: ReadinessDeps): () => Promise<ReadinessCheck[]> {
  return reused(async () => {
    const { problem, setUpProblem } = connection;
    const database = await checkDatabase(sql);
    const missingKeys = database.ok ? await checkSecrets() : null;
    return [
      ...(missingKeys === null ? [] : [{ name: 'secrets', ok: false, detail: missingKeys, optional: true }]),
      database,
      // Without Temporal webhooks are stored and processed later. What its set-up lacks delays nothing.
      { name: 'temporal', ok: problem === null, detail: problem, optional: true },
      { name: 'temporal_set_up', ok: setUpProblem === null, detail: setUpProblem, optional: true },
    ];
  });
}
