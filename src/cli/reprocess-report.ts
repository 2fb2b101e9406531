import { setTimeout as sleep } from 'node:timers/promises';
import { findReprocessRun, listReprocessedCommissions, sumReprocessed } from '../db/reprocess.ts';
import { listReprocessChanges } from '../db/reprocess-changes.ts';
import type { ReprocessRun, ReprocessedCommission } from '../db/reprocess.ts';
import type { ReprocessFinding } from '../db/reprocess-changes.ts';
import type { Sql } from '../db/sql.ts';
import type { ReprocessRunId } from '../domain/ids.ts';
import type { ReprocessChange } from '../domain/reprocess.ts';
import type { CommandContext } from './command-context.ts';
import { CommandFailedError, formatTable } from './output.ts';

type Output = Pick<CommandContext, 'stdout' | 'stderr'>;

const POLL_INTERVAL_MS = 300;
const PAGE_SIZE = 100;
/** A longer table is cut off; JSON has all rows. */
const MAX_TABLE_ROWS = 200;

/** Waits until the service has finished a reprocess run, prints its progress, then prints its report. */
export async function reportReprocessRun(
  sql: Sql,
  id: ReprocessRunId,
  options: { readonly json: boolean },
  context: Output & Pick<CommandContext, 'serviceTimeoutMs'>,
): Promise<void> {
  const { stderr } = context;
  const run = await waitUntilFinished(sql, id, context);
  await (options.json ? printJson : printTable)(sql, run, context);
  if (run.isCancelled) {
    stderr('The reprocess run was cancelled before its end. What it appended remains.\n');
  } else if (run.dryRun && run.changed > 0) {
    stderr('Nothing was changed. Run the same command without --dry-run to append what is missing.\n');
  }
}

async function waitUntilFinished(
  sql: Sql,
  id: ReprocessRunId,
  { stderr, serviceTimeoutMs }: Pick<CommandContext, 'stderr' | 'serviceTimeoutMs'>,
): Promise<ReprocessRun> {
  const deadline = performance.now() + serviceTimeoutMs;
  let printed = '';
  let printedError: string | null = null;
  for (;;) {
    const run = await findReprocessRun(sql, id);
    if (run === undefined) throw new CommandFailedError(`There is no reprocess run ${id}.`);
    const { seen, deliveries, changed, applied, lastError } = run;
    const progress = `${seen} of ${deliveries} deliveries evaluated, ${changed} differ, ${applied} applied.\n`;
    if (run.isStarted && progress !== printed) stderr(progress);
    printed = progress;
    if (lastError !== null && lastError !== printedError) {
      stderr(
        `A page failed and will be retried: ${lastError}. To stop the run: deliveries reprocess-cancel ${id}\n`,
      );
    }
    printedError = lastError;
    if (run.isFinished) return run;
    if (!run.isStarted && performance.now() > deadline) {
      throw new CommandFailedError(
        `No service on this database has started the reprocess run. Start a service and check that its /readyz returns ok, then run: deliveries reprocess-report ${id}`,
      );
    }
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Reads all rows of a list, page by page. */
async function* readPages<T>(list: (after: T | null) => Promise<T[]>): AsyncGenerator<T> {
  let after: T | null = null;
  do {
    const page: T[] = await list(after);
    yield* page;
    after = page.length === PAGE_SIZE ? (page.at(-1) ?? null) : null;
  } while (after !== null);
}

const readChanges = (sql: Sql, id: ReprocessRunId) =>
  readPages<ReprocessFinding>(async (after) => await listReprocessChanges(sql, id, after, PAGE_SIZE));

const readCommissions = (sql: Sql, id: ReprocessRunId) =>
  readPages<ReprocessedCommission>(
    async (after) => await listReprocessedCommissions(sql, id, after?.commissionId ?? null, PAGE_SIZE),
  );

/** Prints the rows while it reads them, because they may not fit into memory. */
async function printJsonList(name: string, rows: AsyncIterable<object>, { stdout }: Output): Promise<void> {
  stdout(`,"${name}":[`);
  let separator = '';
  for await (const row of rows) {
    stdout(`${separator}\n${JSON.stringify(row)}`);
    separator = ',';
  }
  stdout('\n]');
}

async function printJson(sql: Sql, run: ReprocessRun, output: Output): Promise<void> {
  const { id, appId, dryRun, isCancelled, seen, changed, applied } = run;
  const sums = dryRun ? {} : await sumReprocessed(sql, id);
  const head = { reprocessRunId: id, appId, dryRun, isCancelled, seen, changed, applied, ...sums };
  output.stdout(JSON.stringify(head).slice(0, -1));
  if (!dryRun) await printJsonList('commissions', readCommissions(sql, id), output);
  await printJsonList('deliveries', readChanges(sql, id), output);
  output.stdout('}\n');
}

const formatUsd = (cents: number) => (cents / 100).toFixed(2);

/** Returns the cell that states whether a change was appended. */
function appendedText(run: ReprocessRun, change: ReprocessChange, found: ReprocessFinding): string {
  if (change.action === 'keep') return 'no, remains as it is';
  if (run.dryRun) return 'would be';
  if (found.refusal !== null) return `refused: ${found.refusal}`;
  return found.appliedAt === null ? 'not yet' : 'yes';
}

async function printTable(sql: Sql, run: ReprocessRun, { stdout, stderr }: Output): Promise<void> {
  const rows = [];
  let omitted = 0;
  const planned = { commissionCents: 0, revenueCents: 0 };
  for await (const found of readChanges(sql, run.id)) {
    const { deliveryId, eventId, changes } = found;
    for (const change of changes) {
      const { what, stored, today, amountCents } = change;
      if (what === 'commission') planned.commissionCents += amountCents ?? 0;
      if (what === 'revenue') planned.revenueCents += amountCents ?? 0;
      if (rows.length === MAX_TABLE_ROWS) omitted += 1;
      else {
        const usd = amountCents === undefined ? '' : formatUsd(amountCents);
        rows.push({
          deliveryId,
          eventId,
          what,
          stored,
          today,
          usd,
          appended: appendedText(run, change, found),
        });
      }
    }
  }
  stdout(`${formatTable(rows)}\n`);
  if (omitted > 0) stderr(`${omitted} more rows are not shown. Use --json to print all rows.\n`);
  // The ledger has the sums of a real run: deliveries may have arrived between its plan and its execution.
  const { commissionCents, revenueCents } = run.dryRun ? planned : await sumReprocessed(sql, run.id);
  const verb = run.dryRun ? 'would be appended' : 'appended';
  stderr(
    `${formatUsd(commissionCents)} USD of commissions and ${formatUsd(revenueCents)} USD of revenue ${verb}.\n`,
  );
}
