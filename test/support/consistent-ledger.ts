import { expect } from '@jest/globals';
import { listAppIds } from '../../src/db/apps.ts';
import { checkLedger } from '../../src/db/ledger-checks/index.ts';
import type { Sql } from '../../src/db/sql.ts';

/** Expects that no check of the ledger, or none of those named, finds anything in any app. */
export async function expectConsistentLedger(sql: Sql, names?: readonly string[]): Promise<void> {
  const checks = await checkLedger(sql, await listAppIds(sql));
  expect(checks.filter(({ name, ok }) => !ok && (names?.includes(name) ?? true))).toEqual([]);
}
