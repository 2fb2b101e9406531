import type { Command } from 'commander';
import { migrate } from '../../db/migrate.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';

/** Adds `migrate`. */
export function addMigrateCommand(
  program: Command,
  { openDatabase, asOwner, print, stderr }: CommandContext,
): void {
  program
    .command('migrate')
    .description('apply the missing migrations to the database')
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions) => {
      const database = await openDatabase({ mayCreate: true });
      try {
        const migrations = await asOwner(database, async (ownerUrl) => await migrate(ownerUrl));
        const rows = migrations.map((name) => ({ migration: name }));
        print({ migrations }, rows, options);
        stderr('The database schema is up to date.\n');
      } finally {
        await database.close();
      }
    });
}
