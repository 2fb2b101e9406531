import type { Command } from 'commander';
import { listAppIds } from '../../db/apps.ts';
import { checkAndRecordLedger } from '../../db/ledger-checks/index.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { CommandFailedError } from '../output.ts';

/** Adds `ledger check`. */
export function addLedgerCommand(program: Command, context: CommandContext): void {
  const { withDatabase, print, markFailed, stderr } = context;
  const ledger = program.command('ledger').description('check commissions, revenue and payouts');
  ledger
    .command('check')
    .description('check every rule of the ledger; the exit status is 1 if a rule is violated')
    .option('--app <id>', 'check one app only')
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions & { app?: string }) => {
      const checkedAt = Date.now();
      const checks = await withDatabase(async (sql) => {
        const apps = await listAppIds(sql);
        const chosen = options.app === undefined ? apps : apps.filter((id) => id === options.app);
        if (options.app !== undefined && chosen.length === 0) {
          throw new CommandFailedError(`There is no app ${options.app}.`);
        }
        return await checkAndRecordLedger(sql, chosen);
      });
      const violated = checks.filter((check) => !check.ok).length;
      const rows = checks.map(({ name, ok, violations, examples }) => ({
        name,
        ok: ok ? 'yes' : 'no',
        violations,
        examples: examples.join('\n'),
      }));
      print({ ok: violated === 0, checkedAt, checks }, rows, options);
      if (violated > 0) markFailed();
      stderr(
        violated === 0
          ? 'The ledger is consistent.\n'
          : `The ledger violates ${violated} of its rules. The column "examples" names rows to look at.\n`,
      );
    });
}
