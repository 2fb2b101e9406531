import { tlsAdvice } from '../config/database-url.ts';
import { NoResponse } from './connection.ts';

/** Codes of sockets and of postgres.js for a server that does not respond. */
const UNREACHABLE = new Set([
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'ETIMEDOUT',
]);

/**
 * Returns why no connection to the database of `url` was made, or why it does not answer, with what to do, for the operator; null for other errors.
 * The text has no password.
 */
export function connectionProblem(url: string, error: unknown): string | null {
  const { host, pathname, username } = new URL(url);
  const name = decodeURIComponent(pathname.slice(1));
  const advice = tlsAdvice(url, error);
  if (advice !== null) return `The database ${name} at ${host} can't be used. ${advice}`;
  let isSilent = false;
  for (let cause = error; typeof cause === 'object' && cause !== null; cause = nextCause(cause)) {
    isSilent ||= cause instanceof NoResponse;
    const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
    if (UNREACHABLE.has(code)) {
      return `The database ${name} at ${host} cannot be reached (${code}). Check that Postgres is running and that DATABASE_URL is correct.`;
    }
    if (code === '3D000')
      return `There is no database ${name} at ${host}. Create it, or correct DATABASE_URL.`;
    if (code.startsWith('28')) {
      const reason = 'message' in cause ? String(cause.message) : code;
      return `The database ${name} at ${host} refuses the user ${decodeURIComponent(username)} (${reason}). Correct the user and the password in DATABASE_URL.`;
    }
  }
  return isSilent
    ? `The database ${name} at ${host} does not answer. Look whether Postgres is frozen, overloaded, or behind a firewall that drops packets, then run the command again.`
    : null;
}

const nextCause = (error: object): unknown => ('cause' in error ? error.cause : undefined);
