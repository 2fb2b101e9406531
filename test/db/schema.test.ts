import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { createTestDatabase } from '../support/database.ts';
import { describeSchema, SCHEMA_FILE } from '../support/describe-schema.ts';

test('src/db/schema.sql shows the migrated schema (update it with npm run schema:write)', async () => {
  const database = await createTestDatabase();
  try {
    expect(await readFile(path.join(projectRoot, SCHEMA_FILE), 'utf8')).toBe(
      await describeSchema(database.url),
    );
  } finally {
    await database.drop();
  }
});
