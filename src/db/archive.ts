import pg from 'pg';
import { z } from 'zod';
import { readLines } from './read-lines.ts';
import { WatchedSession } from './watched-session.ts';
import type { SessionLimits } from './watched-session.ts';

/**
 * Copies a whole database through an archive: lines of JSON, the first of which is the header. Both directions run in one
 * transaction of `pg`, which neither hangs nor loses a row when its connection dies or falls silent (docs/database.md).
 */

/** What an archive states before its rows. */
const headerShape = z.object({
  format: z.literal('tributary-archive-1'),
  exportedAt: z.int(),
  /** The names of the migrations that made the schema. */
  migrations: z.array(z.string()),
  /** The keys of the secret box in base64, the encrypting one first. */
  secretsKeys: z.array(z.string()),
  /** In an order in which every foreign key finds its row. */
  tables: z.array(z.object({ name: z.string(), rows: z.int(), checksum: z.string() })),
});
export type ArchiveHeader = z.infer<typeof headerShape>;

/** The file is no archive, is incomplete, or does not fit the database. The message is for the operator. */
export class ArchiveError extends Error {
  override readonly name = 'ArchiveError';
}

/** The characters of a batch of rows, and its number of rows. They bound the memory that a copy needs. */
const BATCH_CHARACTERS = 4_000_000;
const BATCH_ROWS = 5_000;

/** Independent of the settings of the server: `t::text` must be the same on both sides. */
const SETTINGS =
  "set timezone = 'UTC'; set datestyle = 'ISO'; set intervalstyle = 'postgres'; set bytea_output = 'hex'; set extra_float_digits = 1; set statement_timeout = 0";

interface Table {
  readonly name: string;
  /** The columns with which a row refers to another row of its table; empty in most tables. */
  readonly selfReferences: readonly string[];
}

export interface ArchiveOptions extends SessionLimits {
  /** Receives a line every `progressMs` while other sessions hold locks that the archive waits for. */
  readonly onWait?: ((line: string) => void) | undefined;
}

export interface ImportOptions extends ArchiveOptions {
  /** Runs before the first row is written, once the database is known to have none and the schema of the archive. */
  readonly onEmpty?: () => Promise<void>;
}

async function openSession(
  url: string,
  direction: 'export' | 'import',
  { onWait = () => {}, ...limits }: ArchiveOptions,
): Promise<WatchedSession> {
  const session = new WatchedSession(url, {
    name: 'tributary-archive',
    task: `the ${direction}`,
    ...limits,
  });
  try {
    await session.open();
    session.watch(({ seconds, blockers }) => {
      if (blockers !== null) onWait(`The ${direction} has run for ${seconds} s and waits for ${blockers}.`);
    });
    await session.query(SETTINGS);
    return session;
  } catch (error) {
    await session.close();
    throw error;
  }
}

async function readMigrations(session: WatchedSession): Promise<string[]> {
  const { rows } = await session.query<{ name: string }>('select name from migrations order by id');
  return rows.map((row) => row.name);
}

/** Lists the tables of the service, referenced ones first. */
async function listTables(session: WatchedSession): Promise<Table[]> {
  const tables = await session.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = current_schema() and tablename <> 'migrations' order by 1",
  );
  const keys = await session.query<{ from: string; to: string; columns: string | null }>(`
    select f.relname as from, t.relname as to,
           (select string_agg(quote_ident(a.attname), ',') from pg_attribute a
             where a.attrelid = c.conrelid and a.attnum = any(c.conkey) and not a.attnotnull) as columns
      from pg_constraint c join pg_class f on f.oid = c.conrelid join pg_class t on t.oid = c.confrelid
     where c.contype = 'f' and c.connamespace = current_schema()::regnamespace`);
  const ordered: Table[] = [];
  const waiting = new Set(tables.rows.map((row) => row.name));
  while (waiting.size > 0) {
    const ready = [...waiting].filter((name) =>
      keys.rows.every((key) => key.from !== name || key.to === name || !waiting.has(key.to)),
    );
    if (ready.length === 0) throw new Error('the foreign keys of the schema form a circle');
    for (const name of ready) {
      waiting.delete(name);
      const own = keys.rows.filter((key) => key.from === name && key.to === name);
      ordered.push({ name, selfReferences: own.flatMap((key) => key.columns ?? []) });
    }
  }
  return ordered;
}

interface Measure {
  readonly rows: number;
  /** A sum of hashes, so it is independent of the order of the rows. */
  readonly checksum: string;
  readonly longestRow: number;
}

async function measure(session: WatchedSession, table: string): Promise<Measure> {
  const { rows } = await session.query<{ rows: string; checksum: string; longest: number }>(`
    select count(*) as rows, coalesce(max(length(t::text)), 0) as longest,
           coalesce(sum(('x' || left(encode(sha256(convert_to(t::text, 'UTF8')), 'hex'), 15))::bit(60)::bigint), 0)::text
             as checksum
      from ${pg.escapeIdentifier(table)} t`);
  const [found] = rows;
  if (found === undefined) throw new Error('an aggregate returns a row');
  return { rows: Number(found.rows), checksum: found.checksum, longestRow: found.longest };
}

/**
 * Yields the lines of an archive of one moment of the database: the header, the rows table by table, and an end line.
 * Calls `onHeader` first. Holds one batch of rows in memory. Throws `DatabaseSilent` when Postgres does not answer any more.
 */
export async function* exportArchive(
  url: string,
  secretsKeys: readonly Buffer[],
  onHeader: (header: ArchiveHeader) => void,
  options: ArchiveOptions = {},
): AsyncGenerator<string> {
  const session = await openSession(url, 'export', options);
  try {
    await session.query('begin transaction isolation level repeatable read read only');
    const tables = [];
    for (const table of await listTables(session)) {
      tables.push({ ...table, ...(await measure(session, table.name)) });
    }
    const header: ArchiveHeader = {
      format: 'tributary-archive-1',
      exportedAt: Date.now(),
      migrations: await readMigrations(session),
      secretsKeys: secretsKeys.map((key) => key.toString('base64')),
      tables: tables.map(({ name, rows, checksum }) => ({ name, rows, checksum })),
    };
    onHeader(header);
    yield `${JSON.stringify(header)}\n`;
    for (const { name, selfReferences, longestRow } of tables) {
      const batch = Math.max(1, Math.min(BATCH_ROWS, Math.floor(BATCH_CHARACTERS / Math.max(1, longestRow))));
      // A row that is referred to comes before the rows that refer to it.
      const order = selfReferences.length === 0 ? '' : `order by num_nonnulls(${selfReferences.join(',')})`;
      await session.query(
        `declare archived no scroll cursor for select t::text as line from ${pg.escapeIdentifier(name)} t ${order}`,
      );
      for (;;) {
        const { rows } = await session.query<{ line: string }>(`fetch ${batch} from archived`);
        if (rows.length === 0) break;
        yield rows.map(({ line }) => `${JSON.stringify(line)}\n`).join('');
      }
      await session.query('close archived');
    }
    yield `${JSON.stringify({ end: true })}\n`;
  } finally {
    await session.close();
  }
}

/** An archive that is being read: its header, then its rows as the texts of Postgres. */
export interface OpenArchive {
  readonly header: ArchiveHeader;
  readonly lines: AsyncGenerator<string>;
}

/** Reads the header of an archive. Throws `ArchiveError` when the text is no archive. */
export async function openArchive(chunks: AsyncIterable<Buffer>): Promise<OpenArchive> {
  const lines = readLines(chunks, () => new ArchiveError('The archive is incomplete. Export it again.'));
  const { value } = await lines.next();
  const header = headerShape.safeParse(parseLine(typeof value === 'string' ? value : ''));
  if (!header.success) {
    throw new ArchiveError(
      'The file is not an archive of Tributary. Use a file that `tributary export` wrote.',
    );
  }
  return { header: header.data, lines };
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    return undefined;
  }
}

async function insertRows(
  session: WatchedSession,
  { name, rows }: ArchiveHeader['tables'][number],
  lines: AsyncGenerator<string>,
): Promise<void> {
  const table = pg.escapeIdentifier(name);
  // A generated column takes no value.
  const { rows: columns } = await session.query<{ name: string }>(
    `select attname as name from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  );
  const given = columns.map((column) => pg.escapeIdentifier(column.name));
  let batch: string[] = [];
  let characters = 0;
  const flush = async (): Promise<void> => {
    if (batch.length > 0) {
      await session.query(
        `insert into ${table} (${given.join(', ')})
         select ${given.map((column) => `r.${column}`).join(', ')} from unnest($1::text[]) l (line) cross join lateral (select (l.line::${table}).*) r`,
        [batch],
      );
    }
    batch = [];
    characters = 0;
  };
  for (let read = 0; read < rows; read += 1) {
    const { value } = await lines.next();
    const row = typeof value === 'string' ? parseLine(value) : undefined;
    if (typeof row !== 'string') throw new ArchiveError('The archive is damaged. Export it again.');
    batch.push(row);
    characters += row.length;
    if (batch.length === BATCH_ROWS || characters >= BATCH_CHARACTERS) await flush();
  }
  await flush();
}

/**
 * Writes the rows of an archive to a migrated database without rows, all or none. The triggers of the schema are off
 * meanwhile, because sums and guards belong to new rows; foreign keys and checks hold. At the end the count and the
 * checksum of every table must be those of the archive. Throws `ArchiveError`, and `DatabaseSilent` when Postgres does not answer any more.
 */
export async function importArchive(
  url: string,
  { header, lines }: OpenArchive,
  { onEmpty, ...options }: ImportOptions = {},
): Promise<void> {
  const session = await openSession(url, 'import', options);
  try {
    await session.query('begin');
    const migrations = await readMigrations(session);
    if (migrations.join() !== header.migrations.join()) {
      throw new ArchiveError(
        'The archive and the database have different schemas. Export and import with the same version of Tributary.',
      );
    }
    const known = (await listTables(session)).map((table) => table.name);
    if (
      known.toSorted().join() !==
      header.tables
        .map((table) => table.name)
        .toSorted()
        .join()
    ) {
      throw new ArchiveError('The archive does not have the tables of its schema. Export it again.');
    }
    const filled = [];
    for (const { name } of header.tables) {
      // Also keeps a running service from writing until the end.
      await session.query(`alter table ${pg.escapeIdentifier(name)} disable trigger user`);
      const { rowCount } = await session.query(`select from ${pg.escapeIdentifier(name)} limit 1`);
      if (rowCount !== 0) filled.push(name);
    }
    if (filled.length > 0) {
      throw new ArchiveError(
        `The database already has rows in ${filled.join(', ')}. Import the archive into an empty database, before a service uses it.`,
      );
    }
    await onEmpty?.();
    for (const table of header.tables) await insertRows(session, table, lines);
    const { value } = await lines.next();
    if (value !== JSON.stringify({ end: true })) {
      throw new ArchiveError('The archive is incomplete. Export it again.');
    }
    // Checks the deferred foreign keys now: a table with pending checks can't be altered.
    await session.query('set constraints all immediate');
    for (const { name, rows, checksum } of header.tables) {
      const found = await measure(session, name);
      if (found.rows !== rows || found.checksum !== checksum) {
        throw new ArchiveError(`The rows of ${name} differ from the archive. Export it again.`);
      }
      await session.query(`alter table ${pg.escapeIdentifier(name)} enable trigger user`);
    }
    await session.query('commit');
    await session.query('analyze');
  } finally {
    await session.close();
  }
}
