import { INDEX_PLANS } from './driver.ts';
import type { Sql } from './sql.ts';

/**
 * Returns which settings of a connection are not in force, for the operator; null if all are. A pooler may drop the parameters with
 * which a connection starts: statements then have no time limit, and plans of the request path may read whole tables.
 */
export async function settingsProblem(sql: Sql, statementTimeoutMs: number): Promise<string | null> {
  const wanted: Readonly<Record<string, string>> = {
    statement_timeout: String(statementTimeoutMs),
    ...INDEX_PLANS,
  };
  const rows = await sql<{ name: string; setting: string }>`
    select name, setting from pg_settings where name = any(${Object.keys(wanted)}::text[])`;
  const wrong = rows.filter(({ name, setting }) => wanted[name] !== setting);
  if (wrong.length === 0) return null;
  const found = wrong.map(({ name, setting }) => `${name} is ${setting} instead of ${wanted[name]}`);
  return `settings of the database connections are not in force (${found.toSorted().join(', ')}): a pooler drops them. Set them on the role of DATABASE_URL (docs/deploy.md, "Poolers")`;
}
