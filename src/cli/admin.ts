import { Command, CommanderError } from 'commander';
import { addAccountsCommand } from './commands/accounts.ts';
import { addArchiveCommands } from './commands/archive.ts';
import { addCellsCommand } from './commands/cells.ts';
import { addConsoleCommand } from './commands/console.ts';
import { addDeliveriesCommand } from './commands/deliveries.ts';
import { addErasureCommands } from './commands/erasures.ts';
import { addKeysCommand } from './commands/keys.ts';
import { addLedgerCommand } from './commands/ledger.ts';
import { addPayoutsCommands } from './commands/payouts.ts';
import { addMigrateCommand } from './commands/migrate.ts';
import { addRatesCommand } from './commands/rates.ts';
import { addReconcileCommand } from './commands/reconcile.ts';
import { addRecoverCommand } from './commands/recover.ts';
import { addRollupsCommand } from './commands/rollups.ts';
import { addSelfTestCommand } from './commands/self-test.ts';
import { createCommandContext } from './command-context.ts';
import type { AdminDeps } from './command-context.ts';
import { EXIT } from './output.ts';

/** The command groups, in the order of `--help`. */
const COMMANDS = [
  addAccountsCommand,
  addKeysCommand,
  addConsoleCommand,
  addSelfTestCommand,
  addMigrateCommand,
  addRecoverCommand,
  addArchiveCommands,
  addDeliveriesCommand,
  addErasureCommands,
  addLedgerCommand,
  addPayoutsCommands,
  addRatesCommand,
  addReconcileCommand,
  addRollupsCommand,
  addCellsCommand,
];

/**
 * Runs the operator's command line. `args` is what follows the program's name. Returns the exit status: 0 for success,
 * 1 for a failure or a check that found a problem, 2 for wrong usage, 3 for a comparison that found a difference.
 */
export async function runAdmin(args: readonly string[], deps: AdminDeps): Promise<number> {
  const context = createCommandContext(deps);
  // Commands copy these settings when they are added, so the settings come first.
  const program = new Command('tributary')
    .description('Manages the accounts, keys and database of a Tributary service.')
    .configureOutput({ writeOut: deps.stdout, writeErr: deps.stderr })
    .exitOverride()
    .showHelpAfterError('(Use --help for usage.)');
  for (const addCommand of COMMANDS) addCommand(program, context);
  try {
    await program.parseAsync(args, { from: 'user' });
    return context.exitStatus();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    deps.stderr(`${context.describeError(error)}\n`);
    return EXIT.failed;
  }
}
