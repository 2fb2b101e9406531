import type { Sql } from '../../src/db/sql.ts';

/** Has codes count for payments of any time, as if the app had taken codes from its beginning. */
export async function takeCodesFromTheBeginning(sql: Sql, appId: string): Promise<void> {
  await sql`update apps set purchase_codes_from = null where id = ${appId}`;
}
