import { setTimeout as sleep } from 'node:timers/promises';
import type postgres from 'postgres';
import type { Actor } from '../domain/audit.ts';
import { isAnswer, PoolClosed } from './connection.ts';
import type { Client, Share } from './connection.ts';
import { createDriver, INDEX_PLANS, PLANNERS_CHOICE, sendStatement } from './driver.ts';
import type { Send, SentStatement } from './driver.ts';
import { DatabaseUnavailable, faultOf, isEnvironmentFault, isLasting, isLockTimeout } from './errors.ts';
import { Pool, PoolOverloaded } from './pool.ts';
import type { PoolUsage } from './pool.ts';
import { IDLE_IN_TRANSACTION_MS, runTransaction } from './transaction.ts';

/** A result row with column names in camel case. */
export type Row = Record<string, unknown>;

/** A part of a statement, for use inside another template. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

/** Runs statements. Column names of results come in camel case; keys inside JSON values do not change. */
export interface Statements {
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
  fragment(strings: TemplateStringsArray, ...values: readonly unknown[]): Fragment;
  /** A JSON parameter. */
  json(value: unknown): postgres.Parameter;
  /** Who makes the changes, as JSON. Null if nobody was named. */
  readonly actor: string | null;
}

/**
 * Runs statements on a pool. Every call is a single statement that is safe to run twice: when a connection dies, the outcome
 * is unknown and the statement is sent again (docs/database.md states what was measured).
 */
export interface Sql extends Statements {
  /**
   * Runs `work` in one transaction (`read committed`) and returns what it returns. All of `work` runs again, on another
   * connection, if the connection fails or Postgres ends the transaction because of a concurrent one. So it must be safe to
   * run again, also after a commit whose answer was lost, and do nothing but run statements, one after the other. If it
   * throws, the transaction is rolled back. The time limit of `within` holds for each statement and for all together.
   */
  transaction<T>(work: (sql: Statements) => Promise<T>): Promise<T>;
  /** Whether all statements belong to one transaction already, as in a dry run: then `transaction` cannot be used. */
  readonly isTransaction: boolean;
  /**
   * Returns the same pool for statements that read or write many rows, or wait for those that do: with the planner's own choices
   * (`INDEX_PLANS`) and a longer time limit, by default half a minute, ms. A limit that is longer already stays.
   */
  forManyRows(statementTimeoutMs?: number): Sql;
  /**
   * Returns a part of the pool, or of the part that this is. Its statements have at most `connections` connections at one time, and wait
   * apart from all others.
   */
  share(connections: number): Sql;
  /**
   * Returns the same pool for a question whose answer is needed soon: it is sent before all statements that wait, and a database
   * that refuses it is asked again for `patienceMs` at most.
   */
  urgent(patienceMs: number): Sql;
  /** Returns the same pool for the changes that somebody makes: audit rows name `actor` (docs/audit.md). */
  actingAs(actor: Actor): Sql;
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
const LONG_STATEMENT_MS = 30_000;

const set = (settings: Readonly<Record<string, string | number>>, scope = 'session') =>
  Object.entries(settings)
    .map(([name, value]) => `set ${scope} ${name} = ${value}`)
    .join('; ');

const ATTEMPTS = 8;
/** A failover that has not ended by now takes longer than any caller waits. */
const RECONNECT_ATTEMPTS = 3;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 400;
/** How long the readiness shows a fault after the last statement that it has refused, ms. */
const PROBLEM_SHOWN_MS = 30_000;

export interface SqlOptions {
  readonly url: string;
  /** Maximum number of connections. */
  readonly max?: number;
  /**
   * Maximum number of statements that wait for a connection, of each share and of those without one. Beyond it `DatabaseUnavailable` is
   * thrown at once.
   */
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
  /** Whether `transaction` can be used. False if all statements belong to one transaction already. True by default. */
  readonly allowsTransactions?: boolean;
  /** Additional Postgres settings of every connection. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Called for every attempt that failed because of the connection. */
  readonly onRetry?: (error: unknown) => void;
  /** Called for every statement that is sent. Its parameters and types are complete once the server has responded. */
  readonly onStatement?: (statement: SentStatement) => void;
}

/** The limits of the statements of one `Sql`. Several of them use one pool. */
interface View {
  readonly statementTimeoutMs: number;
  /** Whether its statements read large parts of tables. */
  readonly isLarge: boolean;
  readonly share: Share | null;
  readonly actor: string | null;
  readonly patienceMs: number;
  /** Whether its statements are sent before all that wait. */
  readonly isUrgent: boolean;
}

/** How much later than the server's limit a connection without a response is discarded, ms. */
const RESPONSE_MARGIN_MS = 500;

/** Opens a pool. It connects when needed, so this call never fails; the first statement may. */
export function connect(options: SqlOptions): Sql {
  const {
    url,
    max = 16,
    maxWaiting = 500,
    patienceMs: defaultPatienceMs = 5_000,
    statementTimeoutMs: defaultTimeoutMs = LONG_STATEMENT_MS,
    applicationName = 'tributary',
    indexPlans = true,
    allowsTransactions = true,
    settings = {},
    onRetry,
    onStatement,
  } = options;
  const createClient = createDriver({
    url,
    onStatement,
    settings: {
      application_name: applicationName,
      statement_timeout: defaultTimeoutMs,
      ...(indexPlans ? INDEX_PLANS : {}),
      ...settings,
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

  /** Runs `work` on a connection, again on another one after a fault of the environment. */
  async function attempt<T>(
    work: (client: Client, hold: () => void) => Promise<T>,
    { statementTimeoutMs, share, patienceMs, isUrgent }: View,
  ): Promise<T> {
    const startedAt = performance.now();
    const respondWithinMs = statementTimeoutMs === 0 ? Infinity : statementTimeoutMs + RESPONSE_MARGIN_MS;
    const giveUpAt = startedAt + Math.max(patienceMs, respondWithinMs);
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await pool.run(work, { giveUpAt, respondWithinMs, share, isUrgent });
      } catch (error) {
        if (error instanceof PoolOverloaded || error instanceof PoolClosed) {
          throw new DatabaseUnavailable(error.message, { cause: error });
        }
        const fault = faultOf(error);
        if (fault === null) throw error;
        if (fault.remedy === 'reconnect') pool.renew();
        // A row that is locked says nothing about the others.
        if ((fault.remedy === 'wait' && !isLockTimeout(error)) || isLasting(error))
          lastFault = { at: performance.now(), problem: fault.problem };
        if (fault.remedy === 'wait') throw error;
        onRetry?.(error);
        const pause = Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), MAX_PAUSE_MS);
        const most = fault.remedy === 'reconnect' ? RECONNECT_ATTEMPTS : ATTEMPTS;
        if (attempts >= most || performance.now() + pause > startedAt + patienceMs) {
          const made = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
          throw new DatabaseUnavailable(`the database did not respond in ${made}`, {
            cause: error,
          });
        }
        await sleep(pause * (0.5 + Math.random()));
      }
    }
  }

  /** Returns the calls that send statements with `send`. */
  function statementsOf(send: Send, actor: string | null): Statements {
    const all = (strings: TemplateStringsArray, ...values: unknown[]) => send(strings, values, () => true);
    const statements = Object.assign(all, { actor }) as unknown as Statements;
    statements.maybe = async <T extends object>(
      strings: TemplateStringsArray,
      ...values: readonly unknown[]
    ) => (await send(strings, values, (count) => count <= 1))[0] as T | undefined;
    statements.one = async <T extends object>(strings: TemplateStringsArray, ...values: readonly unknown[]) =>
      (await send(strings, values, (count) => count === 1))[0] as T;
    statements.fragment = (strings, ...values) => parts(strings, ...(values as never[]));
    statements.json = (value) => parts.json(value as never);
    return statements;
  }

  function createView(view: View): Sql {
    const { statementTimeoutMs, isLarge } = view;
    const limits = {
      statement_timeout: statementTimeoutMs,
      ...(isLarge && indexPlans ? PLANNERS_CHOICE : {}),
    };
    /** Sends with the limits of the view, and then gives the connection those of the pool again. */
    const sendLarge = async (client: Client, ...statement: Parameters<Send>) => {
      await client.unsafe(set(limits));
      const reset = async () =>
        await client.unsafe(set({ statement_timeout: defaultTimeoutMs, ...(indexPlans ? INDEX_PLANS : {}) }));
      try {
        const rows = await sendStatement(client, ...statement);
        await reset();
        return rows;
      } catch (error) {
        // A connection that has failed gets no other statement.
        if (isAnswer(error)) await reset();
        throw error;
      }
    };
    const sendOne = isLarge ? sendLarge : sendStatement;
    const statements = statementsOf(
      (...statement) => attempt((client) => sendOne(client, ...statement), view),
      view.actor,
    );
    const sql = Object.assign(statements, { isTransaction: !allowsTransactions }) as Sql;
    const begin = `begin; ${set({ ...limits, idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS }, 'local')}`;
    sql.transaction = async (work) => {
      if (!allowsTransactions) throw new Error('these statements belong to a transaction already');
      const outcome = await attempt(async (client, hold) => {
        const ended = await runTransaction(client, { begin, hold }, (send) =>
          work(statementsOf(send, view.actor)),
        );
        // The transaction runs again after a fault of the environment, and fails with any other error.
        if ('error' in ended && isEnvironmentFault(ended.error)) throw ended.error;
        return ended;
      }, view);
      if ('error' in outcome) throw outcome.error;
      return outcome.result;
    };
    sql.forManyRows = (longerMs = LONG_STATEMENT_MS) => {
      const isLonger = statementTimeoutMs !== 0 && longerMs > statementTimeoutMs;
      if (!isLonger && (isLarge || !indexPlans)) return sql;
      return createView({
        ...view,
        statementTimeoutMs: isLonger ? longerMs : statementTimeoutMs,
        isLarge: true,
      });
    };
    sql.urgent = (patienceMs) => createView({ ...view, patienceMs, isUrgent: true });
    sql.actingAs = (actor) => createView({ ...view, actor: JSON.stringify(actor) });
    sql.share = (connections) =>
      createView({ ...view, share: { max: connections, of: view.share, inUse: 0 } });
    sql.usage = () => pool.usage;
    sql.renew = () => pool.renew();
    sql.recentProblem = () =>
      lastFault === null || performance.now() - lastFault.at > PROBLEM_SHOWN_MS ? null : lastFault.problem;
    sql.close = () => pool.close();
    return sql;
  }

  return createView({
    statementTimeoutMs: defaultTimeoutMs,
    isLarge: false,
    share: null,
    actor: null,
    patienceMs: defaultPatienceMs,
    isUrgent: false,
  });
}

/** Returns an instant (epoch ms) as a query parameter. */
export function instant(epochMs: number): Date {
  return new Date(epochMs);
}
