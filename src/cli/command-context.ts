import { connectionProblem } from '../db/connection-problem.ts';
import { migrate } from '../db/migrate.ts';
import { connect } from '../db/sql.ts';
import type { Sql } from '../db/sql.ts';
import type { SessionLimits } from '../db/watched-session.ts';
import type { OpenDatabaseOptions, OpenedDatabase } from '../embedded/database.ts';
import type { FoundService } from '../embedded/find-service.ts';
import type { SecretsKeyStore } from '../embedded/secrets-keys.ts';
import { CommandFailedError, EXIT, formatTable } from './output.ts';
import type { TableRow } from './output.ts';

/** What the command line requires of its environment. */
export interface AdminDeps {
  /**
   * Finds the database, or starts the built-in one until `close` is called. Called only after the arguments are checked.
   * Creates a missing one only with `mayCreate`.
   */
  readonly openDatabase: (options: OpenDatabaseOptions) => Promise<OpenedDatabase>;
  /** Finds the running service, by its data folder or else by the environment. Null when none can be running. */
  readonly findService: () => Promise<FoundService | null>;
  /** The keys of the service's secret box. */
  readonly secretsKeys: SecretsKeyStore;
  /** Receives the result of a command and nothing else. */
  readonly stdout: (text: string) => void;
  /** Receives progress, warnings and errors. */
  readonly stderr: (text: string) => void;
  /** How long a command waits until a running service starts its request, ms. */
  readonly serviceTimeoutMs?: number;
  /** Time limits of the connection of an export or import. */
  readonly archiveLimits?: SessionLimits;
}

/** A running service starts a request within seconds. */
const SERVICE_TIMEOUT_MS = 30_000;

/** What each command receives. */
export interface CommandContext extends Required<AdminDeps> {
  /** Runs `work` on the database of a service, with the role of the service. Refuses a database that has no schema. */
  readonly withDatabase: <T>(work: (sql: Sql, database: OpenedDatabase) => Promise<T>) => Promise<T>;
  /** Runs `work` on a database. Creates a missing one, and the schema of an empty one. */
  readonly withNewDatabase: <T>(work: (sql: Sql, database: OpenedDatabase) => Promise<T>) => Promise<T>;
  /** Runs `work` with the address of the role that owns the schema, which errors of connections then name. */
  readonly asOwner: <T>(database: OpenedDatabase, work: (ownerUrl: string) => Promise<T>) => Promise<T>;
  /** Prints a result as JSON with `--json`, otherwise as a table. */
  readonly print: (json: unknown, rows: readonly TableRow[], options: JsonOptions) => void;
  /** Makes the exit status 1 although the command prints a result: a check found a problem. */
  readonly markFailed: () => void;
  /** Makes the exit status of the command this one, although it prints a result. */
  readonly exitWith: (status: number) => void;
  /** Returns the text of an error for the operator. Names the database when no connection to it was made. */
  readonly describeError: (error: unknown) => string;
  /** Returns the exit status of the command that ran. */
  readonly exitStatus: () => number;
}

export interface JsonOptions {
  readonly json?: boolean;
}

/** The flag that every command with a result has. */
export const JSON_OPTION = ['--json', 'print JSON instead of a table'] as const;

/** Builds the context of one run of the command line. */
export function createCommandContext(deps: AdminDeps): CommandContext {
  let status: number = EXIT.ok;
  let openedUrl: string | undefined;
  const openDatabase: AdminDeps['openDatabase'] = async (options) => {
    const opened = await deps.openDatabase(options);
    openedUrl = opened.url;
    return opened;
  };
  const asOwner: CommandContext['asOwner'] = async ({ url, ownerUrl }, work) => {
    openedUrl = ownerUrl;
    const result = await work(ownerUrl);
    openedUrl = url;
    return result;
  };
  async function withDatabase<T>(
    work: (sql: Sql, database: OpenedDatabase) => Promise<T>,
    { mayCreate }: OpenDatabaseOptions,
  ): Promise<T> {
    const database = await openDatabase({ mayCreate });
    const { url, close } = database;
    const sql = connect({
      url,
      max: 2,
      statementTimeoutMs: 0,
      indexPlans: false,
      // Compiling a statement costs more than it saves where the same one runs for each batch.
      settings: { jit: 'off' },
      applicationName: 'tributary-admin',
    }).actingAs({ kind: 'command_line' });
    try {
      const { isEmpty } = await sql.one<{
        isEmpty: boolean;
      }>`select to_regclass('migrations') is null as is_empty`;
      if (isEmpty) {
        if (!mayCreate) throw noSchema(url);
        deps.stderr('Creating the schema in the empty database.\n');
        await asOwner(
          database,
          async (ownerUrl) => await migrate(ownerUrl, (line) => deps.stderr(`${line}\n`)),
        );
      }
      return await work(sql, database);
    } finally {
      await sql.close();
      await close();
    }
  }
  return {
    serviceTimeoutMs: SERVICE_TIMEOUT_MS,
    archiveLimits: {},
    ...deps,
    openDatabase,
    asOwner,
    withDatabase: async (work) => await withDatabase(work, { mayCreate: false }),
    withNewDatabase: async (work) => await withDatabase(work, { mayCreate: true }),
    print: (json, rows, options) =>
      deps.stdout(`${options.json === true ? JSON.stringify(json) : formatTable(rows)}\n`),
    markFailed: () => {
      status = EXIT.failed;
    },
    exitWith: (other) => {
      status = other;
    },
    describeError: (error) => {
      const problem = openedUrl === undefined ? null : connectionProblem(openedUrl, error);
      return problem ?? (error instanceof Error && error.message !== '' ? error.message : String(error));
    },
    exitStatus: () => status,
  };
}

function noSchema(databaseUrl: string): CommandFailedError {
  const { host, pathname } = new URL(databaseUrl);
  return new CommandFailedError(
    `The database ${decodeURIComponent(pathname.slice(1))} at ${host} has no Tributary schema. Set DATABASE_URL to the database of the service. To create a new installation in this database, run npm start, migrate or accounts create.`,
  );
}
