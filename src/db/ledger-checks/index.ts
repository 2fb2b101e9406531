import type { AppId } from '../../domain/ids.ts';
import { isStatementTooLarge } from '../errors.ts';
import type { Sql } from '../sql.ts';
import { recordLedgerFindings } from '../ledger-findings.ts';
import type { LedgerFinding } from '../ledger-findings.ts';
import { LedgerCheckTooLong, merge } from './check.ts';
import type { LedgerCheck, LedgerCheckResult, Violations } from './check.ts';
import { EARNING_CHECKS } from './earnings.ts';
import { ENTRY_CHECKS } from './entries.ts';
import { POLICY_CHECKS } from './policies.ts';
import { PAYOUT_CHECKS } from './payouts.ts';
import { REFERENCE_CHECKS } from './references.ts';
import { REVERSAL_CHECKS } from './reversals.ts';

export { LedgerCheckTooLong, MOST_EXAMPLES } from './check.ts';
export type { LedgerCheck, LedgerCheckResult } from './check.ts';

/**
 * The rules of the ledger. Most are constraints too (docs/money.md). A check that finds something means that rows were
 * changed without the service, that a backup was restored partially, or that the service has a bug.
 */
export const LEDGER_CHECKS: readonly LedgerCheck[] = [
  ...EARNING_CHECKS,
  ...REVERSAL_CHECKS,
  ...ENTRY_CHECKS,
  ...POLICY_CHECKS,
  ...PAYOUT_CHECKS,
  ...REFERENCE_CHECKS,
];

/**
 * Runs one check over the rows of an app. Throws `LedgerCheckTooLong` if `isOver` returns true before a statement, or if a
 * statement is too large.
 */
export async function runLedgerCheck(
  sql: Sql,
  { name, find }: LedgerCheck,
  appId: AppId,
  isOver: () => boolean,
): Promise<Violations> {
  if (isOver()) throw new LedgerCheckTooLong(`there was no time left for ${name}`);
  try {
    return await find(sql, appId, isOver);
  } catch (error) {
    throw isStatementTooLarge(error)
      ? new LedgerCheckTooLong(`${name} needs too much time, memory or disk`, { cause: error })
      : error;
  }
}

/**
 * Runs all checks over the rows of these apps, one statement after the other. Each statement reads one snapshot, so the
 * checks can run while the service works. They read all money of an app: `isOver` is called before each statement. If
 * it returns true, or if a statement is too large, this throws `LedgerCheckTooLong`. `onFound` hears of each app and rule.
 */
export async function checkLedger(
  sql: Sql,
  appIds: readonly AppId[],
  isOver: () => boolean = () => false,
  onFound: (finding: LedgerFinding) => void = () => {},
): Promise<LedgerCheckResult[]> {
  const results: LedgerCheckResult[] = [];
  for (const check of LEDGER_CHECKS) {
    const { name, description } = check;
    let found: Violations = { violations: 0, examples: [] };
    for (const appId of appIds) {
      const ofApp = await runLedgerCheck(sql, check, appId, isOver);
      onFound({ appId, name, violations: ofApp.violations });
      found = merge(found, ofApp);
    }
    results.push({ name, ok: found.violations === 0, description, ...found });
  }
  return results;
}

/** Does the same as `checkLedger`, and stores what was found, for alerts. */
export async function checkAndRecordLedger(
  sql: Sql,
  appIds: readonly AppId[],
  isOver?: () => boolean,
): Promise<LedgerCheckResult[]> {
  const findings: LedgerFinding[] = [];
  const results = await checkLedger(sql, appIds, isOver, (finding) => findings.push(finding));
  await recordLedgerFindings(sql, findings);
  return results;
}
