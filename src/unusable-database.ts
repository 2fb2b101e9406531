import { tlsAdvice } from './config/database-url.ts';
import { StartupError } from './config/startup-error.ts';
import { MigrationBlocked, MigrationStopped } from './db/migrate.ts';
import { NoResponse } from './db/connection.ts';
import { DatabaseUnavailable, faultOf } from './db/errors.ts';
import { DatabaseSilent } from './db/watched-session.ts';

const CHECK_URL = 'check DATABASE_URL, or unset it to use the built-in Postgres';
const TOO_SLOW =
  'it responds too slowly for the service. Look at its load, its disks and the oldest sessions of pg_stat_activity, then start again';
/** What a Postgres reports of which the address is right. It may still name another database, or another user. */
const CANCELLED = '57014';
const OF_ANOTHER_URL = /^(?:28|3D000)/;

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';

/** Returns what to do about an error of a start. */
function adviceFor(cause: unknown): string {
  const code = codeOf(cause);
  if (cause instanceof NoResponse || code === CANCELLED) return TOO_SLOW;
  const isFromServer = cause instanceof Error && 'severity' in cause;
  if (!isFromServer || OF_ANOTHER_URL.test(code)) return CHECK_URL;
  return faultOf(cause)?.problem ?? CHECK_URL;
}

/** Returns the error of a database with which the service can't start: what is wrong and what to do, without the password. */
export function unusableDatabase(databaseUrl: string, error: unknown): StartupError {
  const { host, pathname } = new URL(databaseUrl);
  const cause = error instanceof DatabaseUnavailable ? (error.cause ?? error) : error;
  const problem = cause instanceof Error ? cause.message || codeOf(cause) : String(cause);
  const advice = tlsAdvice(databaseUrl, error);
  if (advice !== null)
    return new StartupError(`Postgres at ${host}${pathname} can't be used (${problem}). ${advice}`);
  if (
    error instanceof MigrationBlocked ||
    error instanceof MigrationStopped ||
    error instanceof DatabaseSilent
  )
    return new StartupError(`Postgres at ${host}${pathname}: ${problem}.`);
  return new StartupError(`Postgres at ${host}${pathname} can't be used (${problem}): ${adviceFor(cause)}.`);
}
