import { expect } from '@jest/globals';
import { listAppIds } from '../../src/db/apps.ts';
import { checkLedger } from '../../src/db/ledger-checks.ts';
import type { Sql } from '../../src/db/sql.ts';

/** Expects that no ledger check finds anything in any app. */
export async function expectConsistentLedger(sql: Sql): Promise<void> {
  const checks = await checkLedger(sql, await listAppIds(sql));
  expect(checks.filter((check) => !check.ok)).toEqual([]);
}
