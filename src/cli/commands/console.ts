import { Option } from 'commander';
import type { Command } from 'commander';
import { createAccount, listAccounts } from '../../db/accounts.ts';
import { createOperatorLink, endOperatorSessions } from '../../db/operator-sessions.ts';
import { createSignInLink } from '../../db/sessions.ts';
import type { Sql } from '../../db/sql.ts';
import type { AccountId } from '../../domain/ids.ts';
import { operatorSignInUrl, SIGN_IN_LINK_MS, signInUrl } from '../../domain/sessions.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { CommandFailedError } from '../output.ts';
import { parseName } from '../parse-name.ts';

/** Returns the account that the operator means, or null for a link that creates the first one. */
async function chooseAccount(sql: Sql, { account, name }: ConsoleOptions): Promise<AccountId | null> {
  const accounts = await listAccounts(sql);
  const list = accounts.map((one) => `  ${one.id}  ${one.name}`).join('\n');
  if (account !== undefined) {
    const found = accounts.find(({ id }) => id === account);
    if (found === undefined) throw new CommandFailedError(`There is no account ${account}.`);
    return found.id;
  }
  const chosen = name === undefined ? accounts : accounts.filter((one) => one.name === name);
  const [first, second] = chosen;
  if (second !== undefined)
    throw new CommandFailedError(`There are several accounts. Name one with --account ID:\n${list}`);
  if (first !== undefined) return first.id;
  return name === undefined ? null : (await createAccount(sql, name)).id;
}

type ConsoleOptions = JsonOptions & {
  readonly account?: string;
  readonly name?: string;
  readonly operator?: boolean;
  readonly endSessions?: boolean;
};

/** Adds `console`. */
export function addConsoleCommand(
  program: Command,
  { withDatabase, findService, print, stdout }: CommandContext,
): void {
  program
    .command('console')
    .description('print a link that signs a browser in to the console, once and within 15 minutes')
    .option('--account <id>', 'account to sign in to; not needed if there is only one')
    .addOption(
      new Option('--name <name>', 'account to sign in to, by its name; created if there is none')
        .argParser(parseName)
        .conflicts('account'),
    )
    .addOption(
      new Option(
        '--operator',
        "sign in to the operator's page instead, which shows the installation and no data of customers",
      ).conflicts(['account', 'name']),
    )
    .option(
      '--end-sessions',
      'with --operator: print no link, and end all sessions of the operator and those that links of the operator began',
    )
    .option(...JSON_OPTION)
    .action(async (options: ConsoleOptions) => {
      if (options.endSessions === true) {
        if (options.operator !== true)
          throw new CommandFailedError('--end-sessions ends sessions of the operator: add --operator.');
        const ended = await withDatabase(async (sql) => await endOperatorSessions(sql, Date.now()));
        if (options.json === true) print({ ended }, [], options);
        else
          stdout(
            `Ended ${ended.operator} sessions of the operator, and ${ended.accounts} of accounts that began with a link of the operator.\n`,
          );
        return;
      }
      const service = await findService();
      if (service === null)
        throw new CommandFailedError(
          'No service serves the console here. Start it with npm start, then run this command again, with the same DATA_DIR if the service has one.',
        );
      const link = await withDatabase(async (sql) => {
        const now = Date.now();
        const expiresAt = now + SIGN_IN_LINK_MS;
        if (options.operator === true) {
          const token = await createOperatorLink(sql, now);
          return { url: operatorSignInUrl(service.publicUrl, token), expiresAt };
        }
        const accountId = await chooseAccount(sql, options);
        const token = await createSignInLink(sql, accountId, { now, validMs: SIGN_IN_LINK_MS });
        return {
          url: signInUrl(service.publicUrl, token, { isNew: accountId === null }),
          accountId,
          expiresAt,
        };
      });
      if (options.json === true) print(link, [], options);
      else stdout(`${link.url}\n`);
    });
}
