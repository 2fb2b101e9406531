import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { listChain, provePayout } from '../../db/payout-proofs.ts';
import type { PayoutProof } from '../../db/payout-proofs.ts';
import { recordPayout } from '../../db/forgotten-payouts.ts';
import type { RecordedPayout } from '../../db/forgotten-payouts.ts';
import { arePayoutsStopped, resumePayouts, stopPayouts } from '../../db/payout-stops.ts';
import { errorCode } from '../../embedded/error-text.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { findApp } from '../find-app.ts';
import { inputPath } from '../input-path.ts';
import { CommandFailedError } from '../output.ts';

async function readCsv(name: string): Promise<Buffer> {
  const path = inputPath(name);
  try {
    return await readFile(path);
  } catch (error) {
    throw new CommandFailedError(
      `${path} can't be read (${errorCode(error)}). Check the name and the permissions.`,
    );
  }
}

/** Returns what the proof says to the operator. */
function sentencesOf(proof: PayoutProof, keptHash: string | undefined): string {
  switch (proof.kind) {
    case 'proved': {
      const against =
        keptHash === undefined ? 'Without --hash, only mistakes are excluded.' : 'The kept hash covers it.';
      return `This is the CSV that was paid as ${proof.link.payoutId}, and the chain of ${proof.payouts} payouts is intact. ${against}`;
    }
    case 'not_covered':
      return `The kept hash is not in the chain at place ${proof.position} or later, so it does not prove ${proof.payoutId}. Use a hash that was kept after this payout; if this one was, the chain was replaced.`;
    case 'unknown_payout':
      return 'The file names no payout of this service. Use a standard CSV, as the export or GET …/payouts/:payoutId/csv returned it. If the database was restored, it may have forgotten the payout: payouts record adds it.';
    case 'other_csv':
      return `This is not the CSV that was paid as ${proof.payoutId}: that one has the SHA-256 ${proof.paidSha256 ?? '(none yet)'}.`;
    case 'broken_chain':
      return `The chain of ${proof.appId} is broken at payout ${proof.position}: a row was changed, removed or inserted. Compare with a backup.`;
  }
}

/** Returns what the operator reads after `payouts record`. */
function outcomeOf(result: RecordedPayout): string {
  switch (result.kind) {
    case 'recorded':
      return result.isSameFile
        ? `${result.payoutId} is recorded: its commissions are paid, and the file is its CSV.`
        : `${result.payoutId} is recorded: its commissions are paid. ${result.replaced} of them have new ids, so its CSV differs from the file. Keep the file.`;
    case 'total_wanted':
      return `The file pays ${result.totalCents} cents of US dollars in ${result.lines} lines as ${result.payoutId}. If this is what was paid, run the command again with --total ${result.totalCents}; a file that pays less is cut off. Nothing was changed.`;
    case 'another_total':
      return `The file pays ${result.totalCents} cents of US dollars in ${result.lines} lines as ${result.payoutId}, and not what --total states. A file that pays less is cut off: look for the whole one. Nothing was changed.`;
    case 'known_otherwise':
      return `${result.payoutId} is known already, with a total of ${result.totalCents} cents, which is not that of the file. Compare the file with the CSV of the payout. Nothing was changed.`;
    case 'altered':
      return `The file states other events or times of ${result.payoutId} than the database: ${result.lines.join(', ')}. It was changed since it was exported: look for another copy. Nothing was changed.`;
    case 'known':
      return `${result.payoutId} is known already. Nothing was changed.`;
    case 'unreadable':
      return 'The file is not the whole standard CSV of one payout, as the export returned it, or its creator is not in this database. A file that a spreadsheet has changed, or that is cut off within a line, is not read. Nothing was changed.';
    case 'missing':
      return `The database lacks commissions of ${result.payoutId}: ${result.lines.join(', ')}. Have the providers send their events again (docs/backup.md), add lost bonuses and deductions again, then record the file again. Nothing was changed.`;
    case 'paid_otherwise':
      return `Other payouts have paid commissions of ${result.payoutId}: ${result.lines.join(', ')}. They were paid twice: agree with the creator. Nothing was changed.`;
  }
}

/** Adds `payouts verify`, `payouts chain`, `payouts record`, `payouts stop` and `payouts resume`. */
export function addPayoutsCommands(program: Command, context: CommandContext): void {
  const { withDatabase, print, stdout, stderr, markFailed } = context;
  const payouts = program.command('payouts').description('prove which CSV was paid');
  payouts
    .command('verify <file>')
    .description('check that a CSV is the one that was paid, and the chain of all payouts of its app')
    .option('--hash <hash>', 'a chainHash of this payout or a later one that was kept elsewhere')
    .option(...JSON_OPTION)
    .action(async (file: string, options: JsonOptions & { hash?: string }) => {
      const csv = await readCsv(file);
      const proof = await withDatabase(async (sql) => await provePayout(sql, csv, options.hash ?? null));
      const ok = proof.kind === 'proved';
      const row = ok
        ? {
            payoutId: proof.link.payoutId,
            appId: proof.appId,
            totalCents: proof.link.totalCents,
            sha256: proof.link.csvSha256,
            position: proof.link.position,
            payouts: proof.payouts,
            lastHash: proof.lastHash,
          }
        : null;
      print({ ok, result: proof.kind, ...row }, row === null ? [] : [row], options);
      stderr(`${sentencesOf(proof, options.hash)}\n`);
      if (!ok) markFailed();
    });
  payouts
    .command('record <file>')
    .description('record a payout that was paid and that the restored database has forgotten, from its CSV')
    .option(
      '--total <cents>',
      'what was paid, US cents; without it, the command only prints what the file pays',
    )
    .option(...JSON_OPTION)
    .action(async (file: string, options: JsonOptions & { total?: string }) => {
      const { total } = options;
      if (total !== undefined && !/^-?\d{1,15}$/.test(total))
        throw new CommandFailedError('--total is a whole number of US cents, such as 123456.');
      const csv = await readCsv(file);
      const paidCents = total === undefined ? null : Number(total);
      const result = await withDatabase(async (sql) => await recordPayout(sql, csv, paidCents));
      const ok = result.kind === 'recorded' || result.kind === 'known';
      const { kind, ...rest } = result;
      print(
        { ok, result: kind, ...rest },
        [{ result: kind, payoutId: 'payoutId' in rest ? rest.payoutId : null }],
        options,
      );
      stderr(`${outcomeOf(result)}\n`);
      if (!ok) markFailed();
    });
  payouts
    .command('stop')
    .description('stop all payouts until payouts resume, as after a copy of the database was put back')
    .action(async () => {
      await withDatabase(stopPayouts);
      stderr('Payouts are stopped. Exports get 503 until payouts resume.\n');
    });
  payouts
    .command('resume')
    .description('let the database pay again after it was restored, moved or copied')
    .option('--none-missing', 'states that every payout that was paid is in this database')
    .action(async (options: { noneMissing?: boolean }) => {
      await withDatabase(async (sql) => {
        if (!(await arePayoutsStopped(sql))) {
          stderr('Payouts are not stopped.\n');
          return;
        }
        if (options.noneMissing !== true) {
          throw new CommandFailedError(
            'A payout that was paid and is missing in this database would be paid again. Record each with payouts record, then run payouts resume --none-missing.',
          );
        }
        await resumePayouts(sql);
        stderr('Payouts go on.\n');
      });
    });
  payouts
    .command('chain')
    .description('print the payouts of an app with their hashes as JSON, for tools/verify-payout.mjs')
    .requiredOption('--app <id>', 'the app')
    .action(async (options: { app: string }) => {
      await withDatabase(async (sql) => {
        const appId = await findApp(sql, options.app);
        const links = [];
        for await (const { payoutId, position, previousHash, hash, ...sums } of listChain(sql, appId)) {
          links.push({
            id: payoutId,
            ...sums,
            chainPosition: position,
            chainPreviousHash: previousHash,
            chainHash: hash,
          });
        }
        stdout(`${JSON.stringify(links, null, 2)}\n`);
      });
    });
}
