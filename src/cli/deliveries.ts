import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { newId } from '../db/new-id.ts';
import {
  cancelReplay,
  findReplay,
  listReplayChanges,
  listReplayedCommissions,
  orderReplay,
  sumReplayed,
} from '../db/replays.ts';
import type { Replay, ReplayedCommission, ReplayFinding } from '../db/replays.ts';
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

/** Epoch milliseconds before 1973 are epoch seconds that somebody typed; after the year 9999 there is no instant. */
const FIRST_EPOCH_MS = 100_000_000_000;
const LAST_INSTANT = 253_402_300_799_999;

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
function isAppended(replay: Replay, change: ReplayChange, found: ReplayFinding): string {
  if (change.action === 'keep') return 'no, stays as it is';
  if (replay.dryRun) return 'would be';
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

const changesOf = (sql: Sql, id: ReplayId) =>
  rowsOf<ReplayFinding>(async (after) => await listReplayChanges(sql, id, after, PAGE));

const commissionsOf = (sql: Sql, id: ReplayId) =>
  rowsOf<ReplayedCommission>(
    async (after) => await listReplayedCommissions(sql, id, after?.commissionId ?? null, PAGE),
  );

const usd = (cents: number) => (cents / 100).toFixed(2);

/** Adds `deliveries replay` and `deliveries replay-report` to the command line. */
export function addDeliveriesCommand(program: Command, deps: DeliveriesCommandDeps): void {
  const { onDatabase, stdout, stderr, patienceMs } = deps;

  /** Waits until the service has finished a replay, and says how far it is. */
  async function finished(sql: Sql, id: ReplayId): Promise<Replay> {
    const giveUpAt = Date.now() + patienceMs;
    let told = '';
    let toldError: string | null = null;
    for (;;) {
      const replay = await findReplay(sql, id);
      if (replay === undefined) throw new Refused(`There is no replay ${id}.`);
      const { seen, deliveries, changed, applied, lastError } = replay;
      const line = `${seen} of ${deliveries} deliveries looked at, ${changed} differ, ${applied} applied.\n`;
      if (replay.isTakenUp && line !== told) stderr(line);
      told = line;
      if (lastError !== null && lastError !== toldError) {
        stderr(
          `A page failed and is tried again: ${lastError}. If it stays so: deliveries replay-cancel ${id}\n`,
        );
      }
      toldError = lastError;
      if (replay.isFinished) return replay;
      if (!replay.isTakenUp && Date.now() > giveUpAt) {
        throw new Refused(
          `No service on this database has taken the replay up. It begins when one runs whose /readyz is ok; then see what it did with: deliveries replay-report ${id}`,
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

  async function printJson(sql: Sql, replay: Replay): Promise<void> {
    const { id, appId, dryRun, isCancelled, seen, changed, applied } = replay;
    const sums = dryRun ? {} : await sumReplayed(sql, id);
    const head = { replayId: id, appId, dryRun, isCancelled, seen, changed, applied, ...sums };
    stdout(JSON.stringify(head).slice(0, -1));
    if (!dryRun) await printJsonList('commissions', commissionsOf(sql, id));
    await printJsonList('deliveries', changesOf(sql, id));
    stdout('}\n');
  }

  async function printTable(sql: Sql, replay: Replay): Promise<void> {
    const rows = [];
    let more = 0;
    const planned = { commissionCents: 0, revenueCents: 0 };
    for await (const found of changesOf(sql, replay.id)) {
      const { deliveryId, eventId, changes } = found;
      for (const change of changes) {
        const { what, stored, today, amountCents } = change;
        if (what === 'commission') planned.commissionCents += amountCents ?? 0;
        if (what === 'revenue') planned.revenueCents += amountCents ?? 0;
        if (rows.length === TABLE_ROWS) more += 1;
        else {
          const shown = { usd: amountCents === undefined ? '' : usd(amountCents) };
          const appended = isAppended(replay, change, found);
          rows.push({ deliveryId, eventId, what, stored, today, ...shown, appended });
        }
      }
    }
    stdout(`${tableOf(rows)}\n`);
    if (more > 0) stderr(`${more} more lines are not shown here; --json shows all.\n`);
    // What a real replay appended is asked of the ledger: live work may have come between its plan and its doing.
    const { commissionCents, revenueCents } = replay.dryRun ? planned : await sumReplayed(sql, replay.id);
    const verb = replay.dryRun ? 'would be appended' : 'appended';
    stderr(`${usd(commissionCents)} USD of commissions and ${usd(revenueCents)} USD of revenue ${verb}.\n`);
  }

  async function report(sql: Sql, id: ReplayId, json: boolean): Promise<void> {
    const replay = await finished(sql, id);
    await (json ? printJson : printTable)(sql, replay);
    if (replay.isCancelled) {
      stderr('It was cancelled before its end. What it had appended stays.\n');
    } else if (replay.dryRun && replay.changed > 0) {
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
      if (from !== null && to !== null && from >= to) {
        command.error('error: --from has to be before --to');
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
              : `The app ${app} has no accepted delivery ${delivery} with an outcome. GET /apps/${app}/diagnostics/webhooks lists them; one that is still worked on needs no replay.`,
          );
        }
        stderr(`Replay ${id} is written down; a running service begins it within seconds.\n`);
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
  deliveries
    .command('replay-cancel')
    .description('ends a replay before its time, with its page; what it has appended stays')
    .argument('<id>', "the replay's id")
    .action(async (id: string) => {
      await onDatabase(async (sql) => {
        const isCancelled = isId('replay', id) && (await cancelReplay(sql, id));
        if (!isCancelled) throw new Refused(`There is no replay ${id} under way.`);
        stdout(
          `Replay ${id} ends as soon as it has done what it has begun. What it has appended stays: deliveries replay-report ${id}\n`,
        );
      });
    });
}
