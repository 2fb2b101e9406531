import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { createAccount, listAccounts, setAppLimit } from '../../db/accounts.ts';
import { isId } from '../../domain/ids.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { parseName } from '../parse-name.ts';

function parseLimit(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100_000) {
    throw new InvalidArgumentError('The limit is a whole number from 1 to 100000.');
  }
  return limit;
}

/** Adds `accounts create`, `accounts list` and `accounts limit`. */
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
      const rows = (await withDatabase(listAccounts)).map(({ id, name, createdAt, appLimit }) => ({
        id,
        name,
        createdAt,
        appLimit,
      }));
      print(rows, rows, options);
    });
  accounts
    .command('limit')
    .description('change the number of apps that an account can have')
    .argument('<account>', 'id of the account')
    .requiredOption('--apps <count>', 'number of apps; those that exist stay', parseLimit)
    .option(...JSON_OPTION)
    .action(async (account: string, options: JsonOptions & { apps: number }) => {
      const changed = await withDatabase(async (sql) =>
        isId('account', account) ? await setAppLimit(sql, account, options.apps) : undefined,
      );
      if (changed === undefined) throw new Error(`There is no account ${account}.`);
      const { id, name, appLimit } = changed;
      print({ id, name, appLimit }, [{ id, name, appLimit }], options);
    });
}
