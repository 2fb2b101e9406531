import type { Sql } from './sql.ts';

/** Renews the statistics of tables that have more than doubled since the last time. Returns the names of the tables. */
export async function analyzeGrownTables(sql: Sql): Promise<string[]> {
  const row = await sql.forManyRows().one<{ names: string[] }>`
    select to_jsonb(analyze_grown_tables()) as names`;
  return row.names;
}
