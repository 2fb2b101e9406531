import postgres from 'postgres';
import { environmentFault } from './environment-faults.ts';
import type { EnvironmentFault } from './environment-faults.ts';
import { NoResponse, PoolClosed } from './connection.ts';
import { PoolOverloaded } from './pool.ts';

/** The database was unreachable in all attempts. The API responds with 503; workflows retry. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable';
}

/** A result that cannot be correct: postgres.js may return `null` rows when a connection dies. */
export class InvalidResult extends Error {
  override readonly name = 'InvalidResult';
}

/** How deep the error of a driver lies below the error that a caller gets. */
const MOST_CAUSES = 4;

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

const NO_RESPONSE: EnvironmentFault = { remedy: 'resend', problem: 'Postgres does not respond' };
const OVERLOADED: EnvironmentFault = {
  remedy: 'resend',
  problem: 'more statements wait for the database than it can finish in time',
};

/** Returns the fault of the environment behind an error or one of its causes. Null for an error that has another reason. */
export function faultOf(error: unknown): EnvironmentFault | null {
  let isUnavailable = false;
  let cause: unknown = error;
  for (let depth = 0; depth <= MOST_CAUSES && cause instanceof Error; depth += 1) {
    if (cause instanceof PoolOverloaded) return OVERLOADED;
    const found = environmentFault(cause);
    if (found !== null) return found;
    if (
      cause instanceof InvalidResult ||
      cause instanceof DatabaseUnavailable ||
      cause instanceof NoResponse ||
      cause instanceof PoolClosed
    )
      isUnavailable = true;
    cause = cause.cause;
  }
  return isUnavailable ? NO_RESPONSE : null;
}

/** Whether the database or the machine is the reason of an error, and not the statement or its values. */
export function isEnvironmentFault(error: unknown): boolean {
  return faultOf(error) !== null;
}

/** Whether a fault lasts until somebody helps, although statements are sent again meanwhile. */
export const isLasting = (error: unknown): boolean =>
  codeOf(error) === '57014' || ['53', '58', 'XX'].includes(codeOf(error).slice(0, 2));

/** Whether a statement did not get the lock of a row in the time that it was given. */
export const isLockTimeout = (error: unknown): boolean => codeOf(error) === '55P03';

/** Time limit (`statementTimeoutMs`), full disk, out of memory, limit of temporary files (`temp_file_limit`). */
const TOO_LARGE_CODES = ['57014', '53100', '53200', '53400'];

/** Whether a statement failed because it needs more time, memory or disk than it may use. */
export function isStatementTooLarge(error: unknown): boolean {
  return TOO_LARGE_CODES.includes(codeOf(error instanceof DatabaseUnavailable ? error.cause : error));
}

/** Whether Postgres cannot be used at present, so that other statements fail as well. One that needs too much fails alone. */
export const isDatabaseUnavailable = (error: unknown): boolean =>
  error instanceof DatabaseUnavailable && !isStatementTooLarge(error);

/** Returns the name of the constraint that refused a row. Undefined for other errors. */
export function violatedConstraint(error: unknown): string | undefined {
  if (!(error instanceof postgres.PostgresError)) return undefined;
  return error.code.startsWith('23') ? (error.constraint_name ?? '') : undefined;
}

/** Whether a trigger refused a change that breaks a rule of its table. */
export function isRefusedByTrigger(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '23000';
}

/** Data exceptions, such as a text that cannot be stored; limits, such as the size of a row of an index; a check of a column or row. */
const CONTENT_CODES = /^(22|54)|^(23502|23514)$/;

/** Whether Postgres refused what a statement wants to store. Sent again, it is refused again. */
export function isContentFault(error: unknown): boolean {
  return error instanceof postgres.PostgresError && CONTENT_CODES.test(error.code);
}

/** Whether Postgres refused the value of a parameter of the correct type, e.g. an unknown time zone. */
export function isRefusedValue(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '22023';
}
