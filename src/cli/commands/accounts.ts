import type { Command } from 'commander';
import { createAccount, listAccounts } from '../../db/accounts.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { parseName } from '../parse-name.ts';

/** Adds `accounts create` and `accounts list`. */
export function addAccountsCommand(
  program: Command,
  { withDatabase, withNewDatabase, print }: CommandContext,
): void {
  const accounts = program.command('accounts').description('manage accounts, which own apps');
  accounts
    .command('create')
    .description('create an account')
    .requiredOption('--name <name>', 'name of the company', parseName)
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions & { name: string }) => {
      const { id, name } = await withNewDatabase((sql) => createAccount(sql, options.name));
      print({ id, name }, [{ id, name }], options);
    });
  accounts
    .command('list')
    .description('list all accounts')
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions) => {
      const rows = (await withDatabase(listAccounts)).map(({ id, name, createdAt }) => ({
        id,
        name,
        createdAt,
      }));
      print(rows, rows, options);
    });
}
