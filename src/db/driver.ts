import postgres from 'postgres';
import { driverAddress } from '../config/database-url.ts';
import type { Client, CreateClient } from './connection.ts';
import { InvalidResult } from './errors.ts';

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

/** The same settings as Postgres has them by default. */
export const PLANNERS_CHOICE = {
  enable_seqscan: 'on',
  enable_hashjoin: 'on',
  enable_mergejoin: 'on',
  plan_cache_mode: 'auto',
} as const satisfies Partial<Record<keyof typeof INDEX_PLANS, string>>;

/** A statement as it is sent to Postgres. */
export interface SentStatement {
  readonly text: string;
  readonly parameters: readonly (string | null)[];
  /** The object id of each parameter's type. 0 if Postgres infers it. */
  readonly types: readonly number[];
}

export interface DriverOptions {
  readonly url: string;
  /** What every connection begins with: Postgres settings, and `application_name`. */
  readonly settings: Readonly<Record<string, string | number>>;
  /** Called for every statement that is sent. Its parameters and types are complete once the server has responded. */
  readonly onStatement?: ((statement: SentStatement) => void) | undefined;
}

/** Returns what creates a client of the driver for one connection of the pool. */
export function createDriver({ url, settings, onStatement }: DriverOptions): CreateClient {
  const { url: address, ssl } = driverAddress(url);
  return (openSocket, onOpen): Client =>
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
      connection: settings,
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
}

/** Opens the sockets of a client, so that the pool can destroy them. Not in the driver's types. */
export function socketOption(socket: Parameters<CreateClient>[0]): object {
  return { socket };
}

function debugOption(onStatement: DriverOptions['onStatement']): object {
  if (onStatement === undefined) return {};
  const debug = (_: number, text: string, parameters: (string | null)[], types: number[]) =>
    onStatement({ text, parameters, types });
  return { debug };
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

/** Sends a statement and returns its rows. `isRight` says which numbers of rows can be correct. */
export type Send = (
  strings: TemplateStringsArray,
  values: readonly unknown[],
  isRight: (count: number) => boolean,
) => Promise<object[]>;

/** Sends a statement on a client. Throws `InvalidResult` for rows that can't be correct. */
export async function sendStatement(
  client: Client,
  ...[strings, values, isRight]: Parameters<Send>
): Promise<object[]> {
  const rows: readonly (object | null | undefined)[] = await client(strings, ...(values as never[]));
  if (rows.some((row) => row === null || row === undefined) || !isRight(rows.length)) {
    throw new InvalidResult(`statement returned ${rows.length} rows`);
  }
  return [...rows] as object[];
}
