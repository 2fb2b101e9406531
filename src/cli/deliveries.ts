import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { newId } from '../db/new-id.ts';
import { findReplay, listReplayChanges, orderReplay } from '../db/replays.ts';
import type { Replay } from '../db/replays.ts';
import type { Sql } from '../db/sql.ts';
import { isId } from '../domain/ids.ts';
import type { ReplayId } from '../domain/ids.ts';
import type { ReplayChange } from '../domain/replay.ts';
import { Refused, tableOf } from './answer.ts';

export interface DeliveriesCommandDeps {
  readonly onDatabase: <T>(work: (sql: Sql) => Promise<T>) => Promise<T>;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** How long to wait for a service to take a replay up, ms. It does so within seconds. */
  readonly patienceMs: number;
}

interface ReplayOptions {
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

/** The end of the year 9999, epoch ms. */
const LAST_INSTANT = 253_402_300_799_999;

/** An instant on the command line: epoch ms, or ISO 8601 with its zone; a date alone is midnight in UTC. */
function parseInstant(text: string): number {
  const at = /^\d{1,15}$/.test(text) ? Number(text) : isoInstant(text);
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
function isAppended(replay: Replay, change: ReplayChange, appliedAt: number | null): string {
  if (change.action === 'keep') return 'no, stays as it is';
  if (replay.dryRun) return 'would be';
  return appliedAt === null ? 'not yet' : 'yes';
}

/** What a replay found, page by page. */
async function* changesOf(sql: Sql, id: ReplayId) {
  let after: Awaited<ReturnType<typeof listReplayChanges>>[number] | undefined;
  do {
    const page = await listReplayChanges(sql, id, after ?? null, PAGE);
    yield* page;
    after = page.length === PAGE ? page.at(-1) : undefined;
  } while (after !== undefined);
}

/** Adds `deliveries replay` and `deliveries replay-report` to the command line. */
export function addDeliveriesCommand(program: Command, deps: DeliveriesCommandDeps): void {
  const { onDatabase, stdout, stderr, patienceMs } = deps;

  /** Waits until the service has finished a replay, and says how far it is. */
  async function finished(sql: Sql, id: ReplayId): Promise<Replay> {
    const giveUpAt = Date.now() + patienceMs;
    let told = '';
    for (;;) {
      const replay = await findReplay(sql, id);
      if (replay === undefined) throw new Refused(`There is no replay ${id}.`);
      const { seen, deliveries, changed, applied } = replay;
      const line = `${seen} of ${deliveries} deliveries looked at, ${changed} differ, ${applied} applied.\n`;
      if (replay.isTakenUp && line !== told) stderr(line);
      told = line;
      if (replay.isFinished) return replay;
      if (!replay.isTakenUp && Date.now() > giveUpAt) {
        throw new Refused(
          `No service on this database has taken the replay up. It begins when one runs; then see what it did with: deliveries replay-report ${id}`,
        );
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** All of it, row by row: a replay may have found more than fits into memory. */
  async function printJson(sql: Sql, replay: Replay): Promise<void> {
    const { id, appId, dryRun, seen, changed, applied } = replay;
    const head = JSON.stringify({ replayId: id, appId, dryRun, seen, changed, applied });
    stdout(`${head.slice(0, -1)},"deliveries":[`);
    let separator = '';
    for await (const { deliveryId, eventId, provider, receivedAt, appliedAt, changes } of changesOf(
      sql,
      id,
    )) {
      stdout(
        `${separator}\n${JSON.stringify({ deliveryId, eventId, source: provider, receivedAt, appliedAt, changes })}`,
      );
      separator = ',';
    }
    stdout('\n]}\n');
  }

  async function printTable(sql: Sql, replay: Replay): Promise<void> {
    const rows = [];
    let more = 0;
    const cents = { commission: 0, revenue: 0 };
    for await (const { deliveryId, eventId, changes, appliedAt } of changesOf(sql, replay.id)) {
      for (const change of changes) {
        const { what, stored, today, amountCents } = change;
        if (what === 'commission' || what === 'revenue') cents[what] += amountCents ?? 0;
        if (rows.length === TABLE_ROWS) more += 1;
        else {
          const usd = amountCents === undefined ? '' : (amountCents / 100).toFixed(2);
          rows.push({
            deliveryId,
            eventId,
            what,
            stored,
            today,
            usd,
            appended: isAppended(replay, change, appliedAt),
          });
        }
      }
    }
    stdout(`${tableOf(rows)}\n`);
    if (more > 0) stderr(`${more} more lines are not shown here; --json shows all.\n`);
    const verb = replay.dryRun ? 'would be appended' : 'appended';
    stderr(
      `${(cents.commission / 100).toFixed(2)} USD of commissions and ${(cents.revenue / 100).toFixed(2)} USD of revenue ${verb}.\n`,
    );
  }

  async function report(sql: Sql, id: ReplayId, json: boolean): Promise<void> {
    const replay = await finished(sql, id);
    await (json ? printJson : printTable)(sql, replay);
    if (replay.dryRun && replay.changed > 0) {
      stderr('Nothing was changed. The same command without --dry-run appends what is missing.\n');
    }
  }

  const deliveries = program.command('deliveries').description('what billing providers sent');
  deliveries
    .command('replay')
    .description(
      "run stored deliveries again through today's reading and attribution; appends what is missing, edits nothing",
    )
    .requiredOption('--app <id>', 'whose deliveries')
    .option('--delivery <id>', 'this one only')
    .option('--from <instant>', 'received at this time or later', parseInstant)
    .option('--to <instant>', 'received before this time', parseInstant)
    .option('--dry-run', 'only show what would change')
    .option('--json', 'answer in JSON')
    .action(async (options: ReplayOptions, command: Command) => {
      const { app, delivery, from = null, to = null, dryRun = false } = options;
      if (delivery !== undefined && (from !== null || to !== null)) {
        command.error('error: name one delivery with --delivery, or a time with --from and --to, not both');
      }
      if (delivery === undefined && from === null && to === null) {
        command.error('error: say what to replay: --delivery <id>, or --from and --to (one of them will do)');
      }
      if (!isId('app', app)) throw new Refused(`There is no app ${app}.`);
      if (delivery !== undefined && !isId('delivery', delivery)) {
        throw new Refused(`The app has no accepted delivery ${delivery}.`);
      }
      await onDatabase(async (sql) => {
        const order = { id: newId('replay'), appId: app, dryRun, deliveryId: delivery ?? null, from, to };
        const id = await orderReplay(sql, order);
        if (id === undefined) {
          throw new Refused(
            delivery === undefined
              ? `There is no app ${app}.`
              : `There is no app ${app} with an accepted delivery ${delivery}.`,
          );
        }
        stderr(`Replay ${id} is written down; the service begins it within seconds.\n`);
        await report(sql, id, options.json === true);
      });
    });
  deliveries
    .command('replay-report')
    .description('what a replay found and appended; waits for its end')
    .argument('<id>', "the replay's id")
    .option('--json', 'answer in JSON')
    .action(async (id: string, options: { json?: boolean }) => {
      if (!isId('replay', id)) throw new Refused(`There is no replay ${id}.`);
      await onDatabase(async (sql) => await report(sql, id, options.json === true));
    });
}
