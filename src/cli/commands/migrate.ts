import type { Command } from 'commander';
import { migrate } from '../../db/migrate.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';

/** End the migrations in order: the statement in flight is cancelled. */
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

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
      const stopping = new AbortController();
      const stop = () => stopping.abort();
      for (const signal of SIGNALS) process.once(signal, stop);
      try {
        const log = (line: string) => stderr(`${line}\n`);
        const migrations = await asOwner(
          database,
          async (ownerUrl) => await migrate(ownerUrl, log, { signal: stopping.signal }),
        );
        const rows = migrations.map((name) => ({ migration: name }));
        print({ migrations }, rows, options);
        stderr('The database schema is up to date.\n');
      } finally {
        for (const signal of SIGNALS) process.off(signal, stop);
        await database.close();
      }
    });
}
