import type { AccountId, AppId } from '../domain/ids.ts';
import { LEDGER_CHECKS, LedgerCheckTooLong, MOST_EXAMPLES, runLedgerCheck } from './ledger-checks/index.ts';
import type { LedgerCheck } from './ledger-checks/index.ts';
import { recordLedgerFindings } from './ledger-findings.ts';
import type { LedgerFinding } from './ledger-findings.ts';
import type { Position } from './page.ts';
import { DatabaseUnavailable } from './errors.ts';
import type { Sql } from './sql.ts';

/** A row that breaks a rule: its id and nothing of what it contains. */
export interface BrokenRow {
  readonly accountId: AccountId;
  readonly appId: AppId;
  readonly id: string;
}

/** What a check found in the apps of one part of a run. */
export interface CheckedRule {
  readonly name: string;
  readonly description: string;
  /** Number of apps of which all rows were examined. */
  readonly apps: number;
  /** Number of their rows that break the rule. */
  readonly violations: number;
  /** The first of them, at most twenty. */
  readonly rows: readonly BrokenRow[];
  /** Apps with more rows than the time of a check, or the memory or disk of the database, allows. */
  readonly unfinished: readonly AppId[];
}

/** A part of a run over all apps. */
export interface LedgerRunPart {
  readonly checks: readonly CheckedRule[];
  /** Number of pairs of a check and an app that are done, with those of the parts before. */
  readonly done: number;
  readonly total: number;
  /** Where the next part begins: the name of the last check and the last app. Null at the end. */
  readonly next: Position<string> | null;
}

/** How long a part works. */
interface PartLimits {
  /** Returns a time that only advances, ms. */
  readonly elapsed: () => number;
  /** After this time, ms, the part begins no further check. It always runs one. */
  readonly partMs: number;
  /** After this time, ms, a check of an app sends no further statement. */
  readonly checkMs: number;
}

interface Step {
  readonly check: LedgerCheck;
  readonly app: { readonly id: AppId; readonly accountId: AccountId };
}

const APPS_PAGE = 200;

/** Returns the pairs of a check and an app after a position, one check after the other. */
async function* stepsAfter(sql: Sql, after: Position<string> | null): AsyncGenerator<Step> {
  const first = after === null ? 0 : LEDGER_CHECKS.findIndex(({ name }) => name === after.sortKey);
  for (const check of LEDGER_CHECKS.slice(first)) {
    let last = check.name === after?.sortKey ? after.id : '';
    for (;;) {
      const apps = await sql<Step['app']>`
        select id, account_id from apps where id > ${last} order by id limit ${APPS_PAGE}`;
      for (const app of apps) yield { check, app };
      if (apps.length < APPS_PAGE) break;
      last = apps.at(-1)?.id ?? '';
    }
  }
}

/** Adds what a check found in one more app. An example begins with the id of its row, and only the id is kept. */
function addTo(
  rule: CheckedRule,
  { app }: Step,
  found: Awaited<ReturnType<typeof runLedgerCheck>>,
): CheckedRule {
  const ids = new Set(found.examples.map((example) => example.split(' ', 1)[0] ?? ''));
  const rows = [...ids].map((id) => ({ accountId: app.accountId, appId: app.id, id }));
  return {
    ...rule,
    apps: rule.apps + 1,
    violations: rule.violations + found.violations,
    rows: [...rule.rows, ...rows].slice(0, MOST_EXAMPLES),
  };
}

/** Returns an error that names the check and the app. It is of the same kind: the API answers 503 or 500. */
function failureOf({ check, app }: Step, cause: unknown): Error {
  const message = `the check ${check.name} of ${app.id} failed`;
  return cause instanceof DatabaseUnavailable
    ? new DatabaseUnavailable(message, { cause })
    : new Error(message, { cause });
}

/**
 * Runs the next checks of the ledger over all apps: one part of a run, which begins after a position, or at the first check
 * without one. Holds one page of apps and twenty rows of each check in memory. An app that is too large for
 * a check is named in `unfinished`, and the run goes on with the next one. Any other error names its check and app. What was found is stored.
 */
export async function runLedgerPart(
  sql: Sql,
  after: Position<string> | null,
  { elapsed, partMs, checkMs }: PartLimits,
): Promise<LedgerRunPart> {
  const endsAt = elapsed() + partMs;
  const rules: CheckedRule[] = [];
  const findings: LedgerFinding[] = [];
  let position = after;
  let isCut = false;
  for await (const step of stepsAfter(sql, after)) {
    if (rules.length > 0 && elapsed() > endsAt) {
      isCut = true;
      break;
    }
    const { name, description } = step.check;
    const known = rules.at(-1)?.name === name ? rules.pop() : undefined;
    const rule = known ?? { name, description, apps: 0, violations: 0, rows: [], unfinished: [] };
    const checkEndsAt = elapsed() + checkMs;
    try {
      const found = await runLedgerCheck(sql, step.check, step.app.id, () => elapsed() > checkEndsAt);
      rules.push(addTo(rule, step, found));
      findings.push({ appId: step.app.id, name, violations: found.violations });
    } catch (error) {
      if (!(error instanceof LedgerCheckTooLong)) throw failureOf(step, error);
      rules.push({ ...rule, unfinished: [...rule.unfinished, step.app.id] });
    }
    position = { sortKey: name, id: step.app.id };
  }
  await recordLedgerFindings(sql, findings);
  const next = isCut ? position : null;
  const { apps, upTo } = await sql.one<{ apps: number; upTo: number }>`
    select count(*) as apps, count(*) filter (where id <= ${next?.id ?? ''}) as up_to from apps`;
  const total = LEDGER_CHECKS.length * apps;
  const done =
    next === null ? total : LEDGER_CHECKS.findIndex(({ name }) => name === next.sortKey) * apps + upTo;
  return { checks: rules, done, total, next };
}
