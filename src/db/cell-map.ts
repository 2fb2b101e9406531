import type { Sql } from './sql.ts';

const PAGE = 5_000;

/** The keys of one page after a key, in their order. The first page is after the empty text. */
type ReadPage = (sql: Sql, after: string) => Promise<readonly { readonly key: string }[]>;

/** What a request can name an app or an account with, except for the session of a page, which belongs to a host. */
const SOURCES: readonly ReadPage[] = [
  async (sql, after) =>
    await sql<{ key: string }>`
    select id as key from apps where id > ${after} order by id limit ${PAGE}`,
  async (sql, after) =>
    await sql<{ key: string }>`
    select id as key from accounts where id > ${after} order by id limit ${PAGE}`,
  async (sql, after) =>
    await sql<{ key: string }>`
    select encode(key_sha256, 'hex') as key from account_keys
     where key_sha256 > decode(${after}, 'hex') order by key_sha256 limit ${PAGE}`,
  async (sql, after) =>
    await sql<{ key: string }>`
    select encode(key_sha256, 'hex') as key from sdk_keys
     where key_sha256 > decode(${after}, 'hex') order by key_sha256 limit ${PAGE}`,
  async (sql, after) =>
    await sql<{ key: string }>`
    select 'link/' || subdomain as key from link_subdomains
     where subdomain > ${after.replace('link/', '')} order by subdomain limit ${PAGE}`,
];

/**
 * Yields, in pages, what a router looks up to find the cell of a request: ids of apps and accounts, the SHA-256 (hex) of keys, and
 * `link/` with each link subdomain that an app has held. Keys that were revoked or have expired are among them: their
 * cell answers them with 401, so that an SDK stops.
 */
export async function* readCellMap(sql: Sql): AsyncGenerator<readonly string[]> {
  for (const readPage of SOURCES) {
    for (let after = ''; ;) {
      const keys = (await readPage(sql, after)).map(({ key }) => key);
      if (keys.length > 0) yield keys;
      if (keys.length < PAGE) break;
      after = keys.at(-1) ?? '';
    }
  }
}
