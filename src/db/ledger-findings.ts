import type { AppId } from '../domain/ids.ts';
import type { Sql } from './sql.ts';

/** How many rows of an app break a rule of the ledger. */
export interface LedgerFinding {
  readonly appId: AppId;
  /** The name of the rule. */
  readonly name: string;
  readonly violations: number;
}

/** Stores what checks of the ledger found, instead of what they found before. A rule that no row breaks any more has no row. */
export async function recordLedgerFindings(sql: Sql, findings: readonly LedgerFinding[]): Promise<void> {
  if (findings.length === 0) return;
  await sql`
    with given as materialized (
      select * from jsonb_to_recordset(${sql.json(findings)}) x ("appId" text, name text, violations integer)
    ), gone as (
      delete from ledger_findings f using given g where g.violations = 0 and f.app_id = g."appId" and f.check_name = g.name
    )
    insert into ledger_findings as f (app_id, check_name, violations)
    select "appId", name, violations from given where violations > 0
    on conflict (app_id, check_name) do update set violations = excluded.violations, found_at = now()
      where f.violations <> excluded.violations`;
}
