import postgres from 'postgres';
import { setTimeout as sleep } from 'node:timers/promises';

/** Values that a query may carry. Instants go in as epoch ms through `instant()`. */
export type Row = Record<string, unknown>;

/**
 * The one way to the database. Every call is a single statement that is safe to run twice: when a connection dies the
 * outcome is unknown, so the statement is sent again (docs/database.md says what was measured, and why there is no
 * transaction block here).
 */
export interface Sql {
  /** All rows. */
  <T extends object = Row>(strings: TemplateStringsArray, ...values: readonly unknown[]): Promise<T[]>;
  /** The row, or undefined when there is none; more than one is a fault. */
  maybe<T extends object = Row>(
    strings: TemplateStringsArray,
    ...values: readonly unknown[]
  ): Promise<T | undefined>;
  /** Exactly one row. None or several means that the connection lied or the query is wrong: it is sent again, then thrown. */
  one<T extends object = Row>(strings: TemplateStringsArray, ...values: readonly unknown[]): Promise<T>;
  /** A composable piece of a statement. Only ever used inside another template. */
  fragment(
    strings: TemplateStringsArray,
    ...values: readonly unknown[]
  ): postgres.PendingQuery<postgres.Row[]>;
  /** JSON parameter. */
  json(value: unknown): postgres.Parameter;
  /** Ends all connections once their statements are done. */
  close(): Promise<void>;
}

/** The database is out of reach, or stayed so for all attempts. A caller answers 503; a workflow tries again. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable';
}

/** A success whose rows can't be right (postgres.js gives `null` rows when a connection dies at the wrong moment). */
class ImpossibleResult extends Error {
  override readonly name = 'ImpossibleResult';
}

const ATTEMPTS = 8;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 400;

/**
 * Classes of Postgres states that say nothing about the statement itself: connection, serialisation and deadlock, out of
 * resources, operator intervention (shutdown, cancelled), system error.
 */
const RETRIABLE_CLASSES = ['08', '40', '53', '57', '58'];
const RETRIABLE_CODES = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'ETIMEDOUT',
  'ENOENT',
  'EAI_AGAIN',
]);

function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

/** Whether the statement may be sent again: nothing is known of its outcome, or it surely did nothing. */
export function isConnectionFailure(error: unknown): boolean {
  if (error instanceof ImpossibleResult || error instanceof DatabaseUnavailable) return true;
  const code = codeOf(error);
  return (
    RETRIABLE_CODES.has(code) || (/^[0-9A-Z]{5}$/.test(code) && RETRIABLE_CLASSES.includes(code.slice(0, 2)))
  );
}

/** Whether a statement was given up on because it reached the connection's time limit (`statementTimeoutMs`). */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof DatabaseUnavailable && codeOf(error.cause) === '57014';
}

/** The constraint that refused a row, or undefined when the error is another one. */
export function violatedConstraint(error: unknown): string | undefined {
  if (!(error instanceof postgres.PostgresError)) return undefined;
  return error.code.startsWith('23') ? (error.constraint_name ?? '') : undefined;
}

/** Whether Postgres refused the value of a parameter that is of the right type, e.g. a time zone that it does not know. */
export function isRefusedValue(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '22023';
}

function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('a bigint from the database is beyond 2^53');
  return value;
}

/** The driver would ask every new connection for its array types; `text[]` is the only one used here. */
function arrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/[\\"]/g, '\\$&')}"`).join(',')}}`;
}

/** Reads a one-dimensional `text[]` without nulls, the only arrays that are stored here. */
function parseArrayLiteral(text: string): string[] {
  return [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)].map(
    ([, quoted, plain]) => plain ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1'),
  );
}

export interface SqlOptions {
  readonly url: string;
  /** Open connections at most. */
  readonly max?: number;
  /** How long a caller waits for the database altogether before `DatabaseUnavailable`, ms. */
  readonly patienceMs?: number;
  /** Upper bound of one statement, ms; the server cancels it. */
  readonly statementTimeoutMs?: number;
  readonly applicationName?: string;
  /** Further settings of every connection, by their names in Postgres. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Told of every attempt that failed because of the connection. */
  readonly onRetry?: (error: unknown) => void;
  /** Told of every statement that goes out. Its parameters and their types are complete once it has been answered. */
  readonly onStatement?: (statement: SentStatement) => void;
}

/** A statement as Postgres gets it. */
export interface SentStatement {
  readonly text: string;
  readonly parameters: readonly (string | null)[];
  /** The object id of each parameter's type; 0 where Postgres infers it. */
  readonly types: readonly number[];
}

/** With pipelining, statements hang for ever when a connection dies (docs/database.md). Missing in the driver's types. */
const NO_PIPELINING: object = { max_pipeline: 1 };

function tellOf(onStatement: SqlOptions['onStatement']): object {
  if (onStatement === undefined) return {};
  const debug = (_: number, text: string, parameters: (string | null)[], types: number[]) =>
    onStatement({ text, parameters, types });
  return { debug };
}

/** Opens a pool. Connections are made when needed, so this never fails; the first statement may. */
export function connect(options: SqlOptions): Sql {
  const {
    url,
    max = 16,
    patienceMs = 5_000,
    statementTimeoutMs = 30_000,
    applicationName = 'tributary',
    settings = {},
    onRetry,
    onStatement,
  } = options;
  const pool = postgres(url, {
    max,
    ...NO_PIPELINING,
    connect_timeout: 5,
    idle_timeout: 60,
    max_lifetime: 60 * 30,
    fetch_types: false,
    backoff: (attempt: number) => Math.min(0.01 * 2 ** attempt, 0.25),
    onnotice: () => {},
    ...tellOf(onStatement),
    connection: { application_name: applicationName, statement_timeout: statementTimeoutMs, ...settings },
    // Column names only: keys inside JSON values stay as they were stored.
    transform: { column: { from: postgres.toCamel } },
    types: {
      bigint: { to: 20, from: [20], serialize: String, parse: safeInteger },
      timestamptz: {
        to: 1184,
        from: [1184],
        serialize: (value: unknown) => (value instanceof Date ? value.toISOString() : String(value)),
        parse: (text: string) => Date.parse(text),
      },
      textArray: { to: 1009, from: [1009], serialize: arrayLiteral, parse: parseArrayLiteral },
      date: { to: 1082, from: [1082], serialize: String, parse: (text: string) => text },
    },
  });

  async function run<T extends object>(
    strings: TemplateStringsArray,
    values: readonly unknown[],
    check: (rows: readonly T[]) => boolean,
  ): Promise<T[]> {
    const giveUpAt = Date.now() + patienceMs;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const rows = (await pool(strings, ...(values as never[]))) as unknown as T[];
        if (rows.some((row) => row === null || row === undefined) || !check(rows)) {
          throw new ImpossibleResult(`statement returned ${rows.length} rows`);
        }
        return [...rows];
      } catch (error) {
        if (!isConnectionFailure(error)) throw error;
        onRetry?.(error);
        const pause = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), MAX_PAUSE_MS);
        if (attempt >= ATTEMPTS || Date.now() + pause > giveUpAt) {
          throw new DatabaseUnavailable(`the database did not answer in ${attempt} attempts`, {
            cause: error,
          });
        }
        await sleep(pause * (0.5 + Math.random()));
      }
    }
  }

  const sql = ((strings: TemplateStringsArray, ...values: unknown[]) =>
    run(strings, values, () => true)) as unknown as Sql;
  sql.maybe = async <T extends object>(strings: TemplateStringsArray, ...values: readonly unknown[]) =>
    (await run<T>(strings, values, (rows) => rows.length <= 1))[0];
  sql.one = async <T extends object>(strings: TemplateStringsArray, ...values: readonly unknown[]) => {
    const [row] = await run<T>(strings, values, (rows) => rows.length === 1);
    return row as T;
  };
  sql.fragment = (strings, ...values) => pool(strings, ...(values as never[]));
  sql.json = (value) => pool.json(value as never);
  sql.close = () => pool.end({ timeout: 5 });
  return sql;
}

/** An instant as a query parameter. */
export function instant(epochMs: number): Date {
  return new Date(epochMs);
}
