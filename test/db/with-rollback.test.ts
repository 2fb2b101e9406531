import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { withRollback } from '../../src/db/with-rollback.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.sql`create table things (id int primary key)`;
});
beforeEach(async () => {
  await database.sql`truncate things`;
});
afterAll(async () => {
  await database.drop();
});

const things = () => database.sql<{ id: number }>`select id from things order by id`;

async function killDryRuns(): Promise<void> {
  const killed = await database.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'tributary-dry-run' and datname = current_database()`;
  expect(killed).toHaveLength(1);
}

describe('a dry run', () => {
  test('a dry run sees what it writes and leaves nothing', async () => {
    const seen = await withRollback(database.url, async ({ sql }) => {
      await sql`insert into things values (1), (2)`;
      return await sql`select id from things`;
    });
    expect(seen).toHaveLength(2);
    expect(await things()).toEqual([]);
  });

  test('a dry run continues after a failed savepoint, without its changes', async () => {
    const seen = await withRollback(database.url, async ({ sql, savepoint }) => {
      await savepoint(() => sql`insert into things values (1)`);
      const refused = savepoint(async () => {
        await sql`insert into things values (2)`;
        await sql`insert into things values (1)`;
      });
      await expect(refused).rejects.toThrow('duplicate key');
      await savepoint(() => sql`insert into things values (3)`);
      return await sql<{ id: number }>`select id from things order by id`;
    });
    expect(seen.map(({ id }) => id)).toEqual([1, 3]);
  });

  test('a dry run writes nothing when its connection dies and the driver opens another', async () => {
    const lost = withRollback(database.url, async ({ sql }) => {
      await sql`insert into things values (1)`;
      await killDryRuns();
      await sql`insert into things values (2)`;
    });
    await expect(lost).rejects.toMatchObject({ name: 'DatabaseUnavailable', cause: { code: '25006' } });
    expect(await things()).toEqual([]);
  });

  test('a dry run has no result when its connection died before its last reads', async () => {
    const lost = withRollback(database.url, async ({ sql }) => {
      await sql`insert into things values (1)`;
      await killDryRuns();
      return await sql`select id from things`;
    });
    await expect(lost).rejects.toThrow('the connection of a dry run was lost');
  });

  test('a dry run waits only briefly for a row that live processing has locked', async () => {
    await database.sql`insert into things values (1)`;
    await withRollback(database.url, async ({ sql: holder }) => {
      await holder`update things set id = 1`;
      const waiting = withRollback(database.url, async ({ sql }) => await sql`update things set id = 1`);
      await expect(waiting).rejects.toThrow('lock timeout');
    });
  });
});
