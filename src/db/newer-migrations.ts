import { readdirSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../config/project-root.ts';
import type { Sql } from './sql.ts';

/** The migrations that this process knows. Read once: an update may replace the files under a running process. */
const KNOWN = readdirSync(path.join(projectRoot, 'src/db/migrations')).map((name) => path.parse(name).name);

/** Returns the migrations of the database that this process does not know, in their order: a newer version has run them. */
export async function findNewerMigrations(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }>`
    select name from migrations where name <> all(${KNOWN}::text[]) order by id`;
  return rows.map(({ name }) => name);
}
