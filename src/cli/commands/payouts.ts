import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { listChain, provePayout } from '../../db/payout-proofs.ts';
import type { PayoutProof } from '../../db/payout-proofs.ts';
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
      return 'The file names no payout of this service. Use a standard CSV, as the export or GET …/payouts/:payoutId/csv returned it.';
    case 'other_csv':
      return `This is not the CSV that was paid as ${proof.payoutId}: that one has the SHA-256 ${proof.paidSha256 ?? '(none yet)'}.`;
    case 'broken_chain':
      return `The chain of ${proof.appId} is broken at payout ${proof.position}: a row was changed, removed or inserted. Compare with a backup.`;
  }
}

/** Adds `payouts verify` and `payouts chain`. */
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
