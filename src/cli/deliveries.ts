import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { newId } from '../db/new-id.ts';
import {
  cancelReprocessRun,
  findReprocessRun,
  listReplayChanges,
  listReprocessedCommissions,
  requestReprocessing,
  sumReprocessed,
} from '../db/reprocess.ts';
import type { ReprocessRun, ReprocessedCommission, ReprocessFinding } from '../db/reprocess.ts';
import type { Sql } from '../db/sql.ts';
import { isId } from '../domain/ids.ts';
import type { ReprocessRunId } from '../domain/ids.ts';
import type { ReprocessChange } from '../domain/reprocess.ts';
import { LAST_INSTANT } from '../domain/time.ts';
import { Refused, tableOf } from './answer.ts';

export interface DeliveriesCommandDeps {
  readonly onDatabase: <T>(work: (sql: Sql) => Promise<T>) => Promise<T>;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** How long to wait for a service to take a reprocess up, ms. It does so within seconds. */
  readonly patienceMs: number;
}

interface ReprocessOptions {
  readonly app: string;
  readonly delivery?: string;
  readonly from?: number;
  readonly to?: number;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

const LOOK_EVERY_MS = 300;
const PAGE = 100;
/** More lines than this are no table that a person reads. */
const TABLE_ROWS = 200;

/** Epoch milliseconds before 1973 are epoch seconds that somebody typed; after the year 9999 there is no instant. */
const FIRST_EPOCH_MS = 100_000_000_000;

/** An instant on the command line: epoch ms, or ISO 8601 with its zone; a date alone is midnight in UTC. */
function parseInstant(text: string): number {
  const isEpochMs = /^\d{1,15}$/.test(text);
  const at = isEpochMs ? Number(text) : isoInstant(text);
  if (isEpochMs && at < FIRST_EPOCH_MS) {
    throw new InvalidArgumentError('Must be epoch milliseconds; this looks like seconds.');
  }
  if (!(at <= LAST_INSTANT)) {
    throw new InvalidArgumentError('Must be epoch milliseconds, 2026-01-31, or 2026-01-31T12:00:00Z.');
  }
  return at;
}

function isoInstant(text: string): number {
  const [, day] = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/.exec(text) ?? [];
  if (day === undefined) return Number.NaN;
  // The 31st of a shorter month would read as a day of the next one.
  const midnight = new Date(day);
  const isDay = !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day);
  return isDay ? Date.parse(text) : Number.NaN;
}

/** Whether a change was made, in the words of the table. */
function isAppended(reprocess: ReprocessRun, change: ReprocessChange, found: ReprocessFinding): string {
  if (change.action === 'keep') return 'no, stays as it is';
  if (reprocess.dryRun) return 'would be';
  if (found.refusal !== null) return `stopped: ${found.refusal}`;
  return found.appliedAt === null ? 'not yet' : 'yes';
}

/** All rows of a list that is read page by page. */
async function* rowsOf<T>(list: (after: T | null) => Promise<T[]>): AsyncGenerator<T> {
  let after: T | null = null;
  do {
    const page: T[] = await list(after);
    yield* page;
    after = page.length === PAGE ? (page.at(-1) ?? null) : null;
  } while (after !== null);
}

const changesOf = (sql: Sql, id: ReprocessRunId) =>
  rowsOf<ReprocessFinding>(async (after) => await listReplayChanges(sql, id, after, PAGE));

const commissionsOf = (sql: Sql, id: ReprocessRunId) =>
  rowsOf<ReprocessedCommission>(
    async (after) => await listReprocessedCommissions(sql, id, after?.commissionId ?? null, PAGE),
  );

const usd = (cents: number) => (cents / 100).toFixed(2);

/** Adds `deliveries reprocess` and `deliveries reprocess-report` to the command line. */
export function addDeliveriesCommand(program: Command, deps: DeliveriesCommandDeps): void {
  const { onDatabase, stdout, stderr, patienceMs } = deps;

  /** Waits until the service has finished a reprocess, and says how far it is. */
  async function finished(sql: Sql, id: ReprocessRunId): Promise<ReprocessRun> {
    const giveUpAt = Date.now() + patienceMs;
    let told = '';
    let toldError: string | null = null;
    for (;;) {
      const reprocess = await findReprocessRun(sql, id);
      if (reprocess === undefined) throw new Refused(`There is no reprocess ${id}.`);
      const { seen, deliveries, changed, applied, lastError } = reprocess;
      const line = `${seen} of ${deliveries} deliveries looked at, ${changed} differ, ${applied} applied.\n`;
      if (reprocess.isTakenUp && line !== told) stderr(line);
      told = line;
      if (lastError !== null && lastError !== toldError) {
        stderr(
          `A page failed and is tried again: ${lastError}. If it stays so: deliveries reprocess-cancel ${id}\n`,
        );
      }
      toldError = lastError;
      if (reprocess.isFinished) return reprocess;
      if (!reprocess.isTakenUp && Date.now() > giveUpAt) {
        throw new Refused(
          `No service on this database has taken the reprocess up. It begins when one runs whose /readyz is ok; then see what it did with: deliveries reprocess-report ${id}`,
        );
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** Prints the rows of a list as they are read, for they may be more than fit into memory. */
  async function printJsonList(name: string, rows: AsyncIterable<object>): Promise<void> {
    stdout(`,"${name}":[`);
    let separator = '';
    for await (const row of rows) {
      stdout(`${separator}\n${JSON.stringify(row)}`);
      separator = ',';
    }
    stdout('\n]');
  }

  async function printJson(sql: Sql, reprocess: ReprocessRun): Promise<void> {
    const { id, appId, dryRun, isCancelled, seen, changed, applied } = reprocess;
    const sums = dryRun ? {} : await sumReprocessed(sql, id);
    const head = { reprocessRunId: id, appId, dryRun, isCancelled, seen, changed, applied, ...sums };
    stdout(JSON.stringify(head).slice(0, -1));
    if (!dryRun) await printJsonList('commissions', commissionsOf(sql, id));
    await printJsonList('deliveries', changesOf(sql, id));
    stdout('}\n');
  }

  async function printTable(sql: Sql, reprocess: ReprocessRun): Promise<void> {
    const rows = [];
    let more = 0;
    const planned = { commissionCents: 0, revenueCents: 0 };
    for await (const found of changesOf(sql, reprocess.id)) {
      const { deliveryId, eventId, changes } = found;
      for (const change of changes) {
        const { what, stored, today, amountCents } = change;
        if (what === 'commission') planned.commissionCents += amountCents ?? 0;
        if (what === 'revenue') planned.revenueCents += amountCents ?? 0;
        if (rows.length === TABLE_ROWS) more += 1;
        else {
          const shown = { usd: amountCents === undefined ? '' : usd(amountCents) };
          const appended = isAppended(reprocess, change, found);
          rows.push({ deliveryId, eventId, what, stored, today, ...shown, appended });
        }
      }
    }
    stdout(`${tableOf(rows)}\n`);
    if (more > 0) stderr(`${more} more lines are not shown here; --json shows all.\n`);
    // What a real reprocess appended is asked of the ledger: live work may have come between its plan and its doing.
    const { commissionCents, revenueCents } = reprocess.dryRun
      ? planned
      : await sumReprocessed(sql, reprocess.id);
    const verb = reprocess.dryRun ? 'would be appended' : 'appended';
    stderr(`${usd(commissionCents)} USD of commissions and ${usd(revenueCents)} USD of revenue ${verb}.\n`);
  }

  async function report(sql: Sql, id: ReprocessRunId, json: boolean): Promise<void> {
    const reprocess = await finished(sql, id);
    await (json ? printJson : printTable)(sql, reprocess);
    if (reprocess.isCancelled) {
      stderr('It was cancelled before its end. What it had appended stays.\n');
    } else if (reprocess.dryRun && reprocess.changed > 0) {
      stderr('Nothing was changed. The same command without --dry-run appends what is missing.\n');
    }
  }

  const deliveries = program.command('deliveries').description('what billing providers sent');
  deliveries
    .command('reprocess')
    .description(
      "run stored deliveries again through today's reading and attribution; appends what is missing, edits nothing",
    )
    .requiredOption('--app <id>', 'whose deliveries')
    .option('--delivery <id>', 'this one only')
    .option('--from <instant>', 'received at this time or later', parseInstant)
    .option('--to <instant>', 'received before this time', parseInstant)
    .option('--dry-run', 'only show what would change')
    .option('--json', 'answer in JSON')
    .action(async (options: ReprocessOptions, command: Command) => {
      const { app, delivery, from = null, to = null, dryRun = false } = options;
      if (delivery !== undefined && (from !== null || to !== null)) {
        command.error('error: name one delivery with --delivery, or a time with --from and --to, not both');
      }
      if (from !== null && to !== null && from >= to) {
        command.error('error: --from has to be before --to');
      }
      if (delivery === undefined && from === null && to === null) {
        command.error(
          'error: say what to reprocess: --delivery <id>, or --from and --to (one of them will do)',
        );
      }
      if (!isId('app', app)) throw new Refused(`There is no app ${app}.`);
      if (delivery !== undefined && !isId('delivery', delivery)) {
        throw new Refused(`The app has no accepted delivery ${delivery}.`);
      }
      await onDatabase(async (sql) => {
        const order = {
          id: newId('reprocessRun'),
          appId: app,
          dryRun,
          deliveryId: delivery ?? null,
          from,
          to,
        };
        const id = await requestReprocessing(sql, order);
        if (id === undefined) {
          throw new Refused(
            delivery === undefined
              ? `There is no app ${app}.`
              : `The app ${app} has no accepted delivery ${delivery} with an outcome. GET /apps/${app}/diagnostics/webhooks lists them; one that is still worked on needs no reprocess.`,
          );
        }
        stderr(`Reprocess ${id} is written down; a running service begins it within seconds.\n`);
        await report(sql, id, options.json === true);
      });
    });
  deliveries
    .command('reprocess-report')
    .description('what a reprocess found and appended; waits for its end')
    .argument('<id>', "the reprocess's id")
    .option('--json', 'answer in JSON')
    .action(async (id: string, options: { json?: boolean }) => {
      if (!isId('reprocessRun', id)) throw new Refused(`There is no reprocess ${id}.`);
      await onDatabase(async (sql) => await report(sql, id, options.json === true));
    });
  deliveries
    .command('reprocess-cancel')
    .description('ends a reprocess before its time, with its page; what it has appended stays')
    .argument('<id>', "the reprocess's id")
    .action(async (id: string) => {
      await onDatabase(async (sql) => {
        const isCancelled = isId('reprocessRun', id) && (await cancelReprocessRun(sql, id));
        if (!isCancelled) throw new Refused(`There is no reprocess ${id} under way.`);
        stdout(
          `Reprocess ${id} ends as soon as it has done what it has begun. What it has appended stays: deliveries reprocess-report ${id}\n`,
        );
      });
    });
}
