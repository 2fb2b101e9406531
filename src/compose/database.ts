import { awaitedQueue } from '../../temporal/names.ts';
import { findInstallationId } from '../db/installation.ts';
import { migrate } from '../db/migrate.ts';
import { connect } from '../db/sql.ts';
import type { Sql } from '../db/sql.ts';
import { unusableDatabase } from '../unusable-database.ts';
import type { ServiceSettings } from './settings.ts';

/** Connections of a service without `poolSize`, as tests start it. `DATABASE_CONNECTIONS` has its default in src/config/config.ts. */
const POOL_SIZE = 20;
/** The part of the connections that webhooks, clicks, the SDK and the processing of deliveries get together. */
const INTAKE_SHARE = 0.7;
/** The part that calls with an account key or a session get together. What is left is for health checks and background work. */
const API_SHARE = 0.25;
/** The part of these that creators get, who are trusted least. */
const CREATORS_SHARE = 0.5;
/** The part of these for calls that may wait for half a minute: those of one account would hold all of them. */
const PATIENT_SHARE = 0.5;
/**
 * Time limit of a statement and of waiting for the database, ms. A provider gives up after 5 s, and a response that says
 * so is better than none. Statements whose work grows with the data have a longer limit (`Sql.within`).
 */
export const STATEMENT_TIMEOUT_MS = 4_000;

export interface Database {
  readonly sql: Sql;
  /** The part of the pool for calls without an account key, and for the deliveries that they bring. */
  readonly intakeSql: Sql;
  /** The part for calls with an account key or a session: however many of them wait for a slow statement, all others find a connection. */
  readonly apiSql: Sql;
  /** The part of `apiSql` for calls with a session of a creator. */
  readonly creatorSql: Sql;
  /** The part of `apiSql` for calls that may wait for a lock which another call or a payout holds, and for checks of ledgers. */
  readonly patientSql: Sql;
  /** The task queue of awaited work; its name has the installation's id. */
  readonly taskQueue: string;
}

/** Runs the migrations and opens the pool. Throws `StartupError` when the database can't be used. */
export async function openDatabase({
  databaseUrl,
  migrationsDatabaseUrl = databaseUrl,
  poolSize,
  logger,
  signal,
}: ServiceSettings): Promise<Database> {
  try {
    await migrate(migrationsDatabaseUrl, (line) => logger.info({ msg: `migrations: ${line}` }), { signal });
  } catch (error) {
    throw unusableDatabase(migrationsDatabaseUrl, error);
  }
  const max = poolSize ?? POOL_SIZE;
  const sql = connect({
    url: databaseUrl,
    max,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    patienceMs: STATEMENT_TIMEOUT_MS,
    onRetry: (error) =>
      logger.warn({ err: error, msg: 'a database connection failed; the statement is sent again' }),
  });
  const apiConnections = Math.max(2, Math.floor(max * API_SHARE));
  const apiSql = sql.share(apiConnections);
  return {
    sql,
    intakeSql: sql.share(Math.max(1, Math.floor(max * INTAKE_SHARE))),
    apiSql,
    creatorSql: apiSql.share(Math.floor(apiConnections * CREATORS_SHARE)),
    patientSql: apiSql.share(Math.floor(apiConnections * PATIENT_SHARE)),
    taskQueue: await findTaskQueue(sql, databaseUrl),
  };
}

/** Returns the task queue of this installation. Closes the pool and throws `StartupError` when the database fails. */
async function findTaskQueue(sql: Sql, databaseUrl: string): Promise<string> {
  try {
    return awaitedQueue(await findInstallationId(sql));
  } catch (error) {
    await sql.close();
    throw unusableDatabase(databaseUrl, error);
  }
}
