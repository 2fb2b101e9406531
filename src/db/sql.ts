import postgres from 'postgres';
import { driverAddress } from '../config/database-url.ts';
import type { Actor } from '../domain/audit.ts';
import { setTimeout as sleep } from 'node:timers/promises';
import { environmentFault } from './environment-faults.ts';
import type { EnvironmentFault } from './environment-faults.ts';
import { NoResponse, Pool, PoolClosed, PoolOverloaded } from './pool.ts';
import type { Client, CreateClient, PoolUsage, Share } from './pool.ts';

/** A result row with column names in camel case. */
export type Row = Record<string, unknown>;

/**
 * Runs statements. Every call is a single statement that is safe to run twice: when a connection dies, the outcome is
 * unknown and the statement is sent again (docs/database.md states what was measured, and why there are no transaction
 * blocks). Column names of results come in camel case; keys inside JSON values do not change.
 */
export interface Sql {
  /** Returns all rows. */
  <T extends object = Row>(strings: TemplateStringsArray, ...values: readonly unknown[]): Promise<T[]>;
  /** Returns the row, or undefined without one. More than one row is an error. */
  maybe<T extends object = Row>(
    strings: TemplateStringsArray,
    ...values: readonly unknown[]
  ): Promise<T | undefined>;
  /**
   * Returns exactly one row. For any other number the statement is sent again, and finally `DatabaseUnavailable` is
   * thrown.
   */
  one<T extends object = Row>(strings: TemplateStringsArray, ...values: readonly unknown[]): Promise<T>;
  /** A part of a statement, for use inside another template. */
  fragment(
    strings: TemplateStringsArray,
    ...values: readonly unknown[]
  ): postgres.PendingQuery<postgres.Row[]>;
  /** A JSON parameter. */
  json(value: unknown): postgres.Parameter;
  /**
   * Returns the same pool for statements that read large parts of tables: with the planner's own choices (`INDEX_PLANS`)
   * and a longer time limit, ms. A limit that is longer already stays.
   */
  within(statementTimeoutMs: number): Sql;
  /** Returns a part of the pool. Its statements have at most `connections` connections at one time. */
  share(connections: number): Sql;
  /** Returns the same pool for the changes that somebody makes: audit rows name `actor` (docs/audit.md). */
  actingAs(actor: Actor): Sql;
  /** Who makes the changes, as JSON. Null if nobody was named. */
  readonly actor: string | null;
  /** Returns what the pool does right now. */
  usage(): PoolUsage;
  /**
   * Closes the connections, those with a statement after it: new ones follow the name of the host to the server that it means
   * now. Does nothing within two seconds after the last time.
   */
  renew(): void;
  /** Returns why Postgres has refused statements within the last half minute, for the operator. Null without such a fault. */
  recentProblem(): string | null;
  /** Closes all connections after their statements complete. */
  close(): Promise<void>;
}

/** Time limit of a statement whose work grows with the data: a payout, a check of a whole ledger, a page of a sweep. */
export const LONG_STATEMENT_MS = 30_000;

/**
 * Settings of the planner for statements that read few rows: always by an index, and with one plan for all values. A plan
 * that was made while a table was empty would read the whole table, and a connection keeps it while the table grows; a plan
 * for each set of values costs more than most statements (docs/database.md, "Plans"). A table without a suitable index is
 * still read completely.
 */
export const INDEX_PLANS = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
} as const;

const set = (settings: Readonly<Record<string, string | number>>) =>
  Object.entries(settings)
    .map(([name, value]) => `set ${name} = ${value}`)
    .join('; ');

/** The same settings as Postgres has them by default. */
const PLANNERS_CHOICE = {
  enable_seqscan: 'on',
  enable_hashjoin: 'on',
  enable_mergejoin: 'on',
  plan_cache_mode: 'auto',
} as const satisfies Partial<Record<keyof typeof INDEX_PLANS, string>>;

/** The database was unreachable in all attempts. The API responds with 503; workflows retry. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable';
}

/** A result that cannot be correct: postgres.js may return `null` rows when a connection dies. */
class InvalidResult extends Error {
  override readonly name = 'InvalidResult';
}

const ATTEMPTS = 8;
/** A failover that has not ended by now takes longer than any caller waits. */
const RECONNECT_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 400;
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

/** How long the readiness shows a fault after the last statement that it has refused, ms. */
const PROBLEM_SHOWN_MS = 30_000;

/** Whether a fault lasts until somebody helps, although statements are sent again meanwhile. */
const isLasting = (error: unknown): boolean =>
  codeOf(error) === '57014' || ['53', '58', 'XX'].includes(codeOf(error).slice(0, 2));

/** Time limit (`statementTimeoutMs`), full disk, out of memory, limit of temporary files (`temp_file_limit`). */
const TOO_LARGE_CODES = ['57014', '53100', '53200', '53400'];

/** Whether a statement failed because it needs more time, memory or disk than it may use. */
export function isStatementTooLarge(error: unknown): boolean {
  return TOO_LARGE_CODES.includes(codeOf(error instanceof DatabaseUnavailable ? error.cause : error));
}

/** Returns the name of the constraint that refused a row. Undefined for other errors. */
export function violatedConstraint(error: unknown): string | undefined {
  if (!(error instanceof postgres.PostgresError)) return undefined;
  return error.code.startsWith('23') ? (error.constraint_name ?? '') : undefined;
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

function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError('a bigint from the database exceeds 2^53');
  return value;
}

/** Formats a `text[]`, the only array type in use. So the driver need not query array types on every new connection. */
function arrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/[\\"]/g, '\\$&')}"`).join(',')}}`;
}

/** Parses a one-dimensional `text[]` without nulls. */
function parseArrayLiteral(text: string): string[] {
  return [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)].map(
    ([, quoted, plain]) => plain ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1'),
  );
}

export interface SqlOptions {
  readonly url: string;
  /** Maximum number of connections. */
  readonly max?: number;
  /** Maximum number of statements that wait for a connection. Beyond it `DatabaseUnavailable` is thrown at once. */
  readonly maxWaiting?: number;
  /**
   * Total time that a caller waits for the database before `DatabaseUnavailable`, ms. A statement in flight is waited for
   * until its time limit.
   */
  readonly patienceMs?: number;
  /**
   * Time limit of one statement, ms; 0 for none. The server cancels it. If the server is silent, the connection is
   * discarded half a second later.
   */
  readonly statementTimeoutMs?: number;
  readonly applicationName?: string;
  /** Whether statements are planned for few rows (`INDEX_PLANS`). True by default. */
  readonly indexPlans?: boolean;
  /** Additional Postgres settings of every connection. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Called for every attempt that failed because of the connection. */
  readonly onRetry?: (error: unknown) => void;
  /** Called for every statement that is sent. Its parameters and types are complete once the server has responded. */
  readonly onStatement?: (statement: SentStatement) => void;
}

/** A statement as it is sent to Postgres. */
export interface SentStatement {
  readonly text: string;
  readonly parameters: readonly (string | null)[];
  /** The object id of each parameter's type. 0 if Postgres infers it. */
  readonly types: readonly number[];
}

/** The limits of the statements of one `Sql`. Several of them use one pool. */
interface View {
  readonly statementTimeoutMs: number;
  /** Whether its statements read large parts of tables. */
  readonly isLarge: boolean;
  readonly share: Share | null;
  readonly actor: string | null;
}

/** How much later than the server's limit a connection without a response is discarded, ms. */
const RESPONSE_MARGIN_MS = 500;

/** Opens the sockets of a client, so that the pool can destroy them. Not in the driver's types. */
function socketOption(socket: Parameters<CreateClient>[0]): object {
  return { socket };
}

function debugOption(onStatement: SqlOptions['onStatement']): object {
  if (onStatement === undefined) return {};
  const debug = (_: number, text: string, parameters: (string | null)[], types: number[]) =>
    onStatement({ text, parameters, types });
  return { debug };
}

/** Opens a pool. It connects when needed, so this call never fails; the first statement may. */
export function connect(options: SqlOptions): Sql {
  const {
    url,
    max = 16,
    maxWaiting = 500,
    patienceMs = 5_000,
    statementTimeoutMs: defaultTimeoutMs = LONG_STATEMENT_MS,
    applicationName = 'tributary',
    indexPlans = true,
    settings = {},
    onRetry,
    onStatement,
  } = options;
  const { url: address, ssl } = driverAddress(url);
  const createClient: CreateClient = (openSocket, onOpen) =>
    postgres(address, {
      ssl,
      max: 1,
      ...socketOption(openSocket),
      // The pool has a deadline for each statement, and a probe may need longer.
      connect_timeout: 30,
      idle_timeout: 60,
      max_lifetime: 60 * 30,
      fetch_types: false,
      backoff: (attempt: number) => Math.min(0.01 * 2 ** attempt, 0.25),
      onnotice: () => {},
      onparameter: onOpen,
      ...debugOption(onStatement),
      connection: {
        application_name: applicationName,
        statement_timeout: defaultTimeoutMs,
        ...(indexPlans ? INDEX_PLANS : {}),
        ...settings,
      },
      // Column names only: keys inside JSON values do not change.
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
  const pool = new Pool({ max, maxWaiting, createClient });
  // It never connects: it makes the parts of statements.
  const parts = createClient(
    () => {
      throw new PoolClosed('this client has no connection');
    },
    () => {},
  );

  let lastFault: { readonly at: number; readonly problem: string } | null = null;

  async function run<T extends object>(
    send: (client: Client) => PromiseLike<unknown>,
    check: (rows: readonly T[]) => boolean,
    { statementTimeoutMs, share }: View,
  ): Promise<T[]> {
    const startedAt = performance.now();
    const respondWithinMs = statementTimeoutMs === 0 ? Infinity : statementTimeoutMs + RESPONSE_MARGIN_MS;
    const giveUpAt = startedAt + Math.max(patienceMs, respondWithinMs);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await pool.run(
          async (client) => {
            const rows = (await send(client)) as T[];
            if (rows.some((row) => row === null || row === undefined) || !check(rows)) {
              throw new InvalidResult(`statement returned ${rows.length} rows`);
            }
            return [...rows];
          },
          { giveUpAt, respondWithinMs, share },
        );
      } catch (error) {
        if (error instanceof PoolOverloaded || error instanceof PoolClosed) {
          throw new DatabaseUnavailable(error.message, { cause: error });
        }
        const fault = faultOf(error);
        if (fault === null) throw error;
        if (fault.remedy === 'reconnect') pool.renew();
        if (fault.remedy === 'wait' || isLasting(error))
          lastFault = { at: performance.now(), problem: fault.problem };
        if (fault.remedy === 'wait') throw error;
        onRetry?.(error);
        const pause = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), MAX_PAUSE_MS);
        const most = fault.remedy === 'reconnect' ? RECONNECT_ATTEMPTS : ATTEMPTS;
        if (attempt >= most || performance.now() + pause > startedAt + patienceMs) {
          const attempts = attempt === 1 ? '1 attempt' : `${attempt} attempts`;
          throw new DatabaseUnavailable(`the database did not respond in ${attempts}`, {
            cause: error,
          });
        }
        await sleep(pause * (0.5 + Math.random()));
      }
    }
  }

  function createView(view: View): Sql {
    const { statementTimeoutMs, isLarge } = view;
    const send = (strings: TemplateStringsArray, values: readonly unknown[]) =>
      isLarge
        ? async (client: Client) => {
            await client.unsafe(
              set({ statement_timeout: statementTimeoutMs, ...(indexPlans ? PLANNERS_CHOICE : {}) }),
            );
            try {
              return await client(strings, ...(values as never[]));
            } finally {
              // A connection that has failed begins with the defaults again.
              await client
                .unsafe(set({ statement_timeout: defaultTimeoutMs, ...(indexPlans ? INDEX_PLANS : {}) }))
                .catch(() => {});
            }
          }
        : async (client: Client) => await client(strings, ...(values as never[]));
    const query = async <T extends object>(
      strings: TemplateStringsArray,
      values: readonly unknown[],
      check: (rows: readonly T[]) => boolean,
    ) => await run<T>(send(strings, values), check, view);

    const all = async (strings: TemplateStringsArray, ...values: unknown[]) =>
      await query(strings, values, () => true);
    const sql = Object.assign(all, { actor: view.actor }) as unknown as Sql;
    sql.maybe = async <T extends object>(strings: TemplateStringsArray, ...values: readonly unknown[]) =>
      (await query<T>(strings, values, (rows) => rows.length <= 1))[0];
    sql.one = async <T extends object>(strings: TemplateStringsArray, ...values: readonly unknown[]) => {
      const [row] = await query<T>(strings, values, (rows) => rows.length === 1);
      return row as T;
    };
    sql.fragment = (strings, ...values) => parts(strings, ...(values as never[]));
    sql.json = (value) => parts.json(value as never);
    sql.within = (longerMs) => {
      const isLonger = statementTimeoutMs !== 0 && longerMs > statementTimeoutMs;
      if (!isLonger && (isLarge || !indexPlans)) return sql;
      return createView({
        ...view,
        statementTimeoutMs: isLonger ? longerMs : statementTimeoutMs,
        isLarge: true,
      });
    };
    sql.actingAs = (actor) => createView({ ...view, actor: JSON.stringify(actor) });
    sql.share = (connections) => createView({ ...view, share: { max: connections, inUse: 0 } });
    sql.usage = () => pool.usage;
    sql.renew = () => pool.renew();
    sql.recentProblem = () =>
      lastFault === null || performance.now() - lastFault.at > PROBLEM_SHOWN_MS ? null : lastFault.problem;
    sql.close = () => pool.close();
    return sql;
  }

  return createView({ statementTimeoutMs: defaultTimeoutMs, isLarge: false, share: null, actor: null });
}

/** Returns an instant (epoch ms) as a query parameter. */
export function instant(epochMs: number): Date {
  return new Date(epochMs);
}
