import pg from 'pg';
import type { SentStatement } from '../../src/db/driver.ts';

/** Number of rows that a plan node may process: a fixed part, and a part for each row of the response. */
const ROWS = 4_000;
const ROWS_PER_RETURNED_ROW = 30;
/** Number of pages that an index lookup may read, and for each row that it finds. */
const PAGES_PER_LOOKUP = 12;
const PAGES_PER_ROW = 4;
const PAGES = 50;

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** The plans of statements that were explained already, while nothing else changes the rows. */
export type KnownPlans = Map<string, readonly PlanNode[]>;

/** Runs a statement with a custom and with a generic plan, and returns both plans. */
async function plansOf(client: pg.Client, statement: SentStatement): Promise<PlanNode[]> {
  const types = statement.types.map((oid) => (oid === 0 ? 'unknown' : oid));
  const { rows } = await client.query<{ name: string }>(
    `select coalesce(format_type(nullif(t, 'unknown')::oid, null), 'unknown') as name
       from unnest($1::text[]) with ordinality u (t, n) order by n`,
    [types.map(String)],
  );
  const declared = rows.length === 0 ? '' : `(${rows.map(({ name }) => name).join(', ')})`;
  const values = statement.parameters.map((value) => (value === null ? 'null' : client.escapeLiteral(value)));
  const given = values.length === 0 ? '' : `(${values.join(', ')})`;
  const plans: PlanNode[] = [];
  await client.query(`prepare captured ${declared} as ${statement.text}`);
  try {
    for (const mode of ['force_custom_plan', 'force_generic_plan']) {
      await client.query(`set plan_cache_mode = ${mode}`);
      const explained = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
        `explain (analyze, buffers, timing off, format json) execute captured ${given}`,
      );
      const plan = explained.rows[0]?.['QUERY PLAN'][0].Plan;
      if (plan !== undefined) plans.push(plan);
    }
  } finally {
    await client.query('deallocate captured');
  }
  return plans;
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

function nameOf(node: PlanNode): string {
  return [node['Node Type'], node['Relation Name'], node['Index Name']]
    .filter((part) => part !== undefined)
    .join(' ');
}

/** Returns the faults of one node, with the numbers. */
function faultsOf(node: PlanNode, largeTables: ReadonlySet<string>, rowsAllowed: number): string[] {
  const loops = node['Actual Loops'];
  const produced = node['Actual Rows'] * loops;
  const removed =
    loops *
    ((node['Rows Removed by Filter'] ?? 0) +
      (node['Rows Removed by Join Filter'] ?? 0) +
      (node['Rows Removed by Index Recheck'] ?? 0));
  const pages = node['Shared Hit Blocks'] + node['Shared Read Blocks'];
  const faults: string[] = [];
  if (loops === 0) return faults;
  if (node['Node Type'].includes('Seq Scan') && largeTables.has(node['Relation Name'] ?? '')) {
    faults.push('reads the whole table');
  }
  if (produced > rowsAllowed) faults.push(`produces ${Math.round(produced)} rows`);
  if (removed > rowsAllowed) faults.push(`removes ${Math.round(removed)} rows`);
  const isIndexScan = node['Index Name'] !== undefined && node.Plans === undefined;
  const pagesAllowed =
    PAGES + PAGES_PER_LOOKUP * loops + PAGES_PER_ROW * (produced + Math.min(removed, rowsAllowed));
  if (isIndexScan && pages > pagesAllowed)
    faults.push(`reads ${pages} pages for ${Math.round(produced)} rows`);
  return faults.map((fault) => `${nameOf(node)} ${fault}`);
}

/**
 * Returns the parts of a statement's plans whose cost grows with the tables: a large table that is read completely, a
 * node that produces or removes more rows than a response of `returned` rows can need, an index that is read page by
 * page. A statement with the same parameters is explained once for one `known`: every request looks up its key and its app.
 */
export async function findPlanFaults(
  client: pg.Client,
  statement: SentStatement,
  largeTables: readonly string[],
  returned: number,
  known: KnownPlans = new Map(),
): Promise<string[]> {
  const allowed = ROWS + ROWS_PER_RETURNED_ROW * returned;
  const name = JSON.stringify([statement.text, statement.parameters, statement.types]);
  const plans = known.get(name) ?? (await plansOf(client, statement));
  known.set(name, plans);
  const large = new Set(largeTables);
  return [...new Set(plans.flatMap(nodesOf).flatMap((node) => faultsOf(node, large, allowed)))];
}
