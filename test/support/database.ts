import { randomBytes } from 'node:crypto';
import { connect } from '../../src/db/sql.ts';
import type { Sql, SqlOptions } from '../../src/db/sql.ts';
import { createDatabase, inDatabase, runOn } from './postgres-admin.ts';

/** The migrated database of the test run, which every new one is a copy of. */
export const TEMPLATE = 'tributary_template';

export interface TestDatabase {
  readonly url: string;
  readonly sql: Sql;
  readonly drop: () => Promise<void>;
}

/** Creates a migrated database, cloned from the template of the test run. */
export async function createTestDatabase(options: Partial<SqlOptions> = {}): Promise<TestDatabase> {
  const server = process.env['TEST_POSTGRES_URL'];
  if (server === undefined) throw new Error('TEST_POSTGRES_URL is not set: run the tests with `npm test`');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await createDatabase(server, name, TEMPLATE);
  const url = inDatabase(server, name);
  const sql = connect({ max: 4, ...options, url });
  return {
    url,
    sql,
    drop: async () => {
      await sql.close();
      await runOn(server, `drop database "${name}" with (force)`);
    },
  };
}
