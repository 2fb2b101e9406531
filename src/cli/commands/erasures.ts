import type { Command } from 'commander';
import { createSecretBox } from '../../config/secret-box.ts';
import { hasErasureKey } from '../../db/erased-identifiers.ts';
import { eraseUser, findErasure } from '../../db/erasures.ts';
import type { Erasure } from '../../db/erasure-state.ts';
import { KEPT_BY_ERASURE } from '../../domain/erasure.ts';
import { isId } from '../../domain/ids.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { findApp } from '../find-app.ts';
import { CommandFailedError } from '../output.ts';

/** Adds `erase-user` and `erasure-report`. */
export function addErasureCommands(program: Command, context: CommandContext): void {
  const { withDatabase, secretsKeys, print, stderr } = context;
  const report = (
    { id, pseudonym, requestedAt, reopenedAt, finishedAt, counts, waiting }: Erasure,
    options: JsonOptions,
  ) => {
    const status = finishedAt === null ? 'in_progress' : 'complete';
    const erased = Object.entries(counts).filter(([, rows]) => rows > 0);
    print(
      {
        erasureId: id,
        status,
        pseudonym,
        requestedAt,
        reopenedAt,
        completedAt: finishedAt,
        erased: counts,
        waitingDeliveries: waiting.length,
        kept: KEPT_BY_ERASURE,
      },
      [
        { what: 'erasure', result: `${id}: ${status}` },
        { what: 'pseudonym', result: pseudonym },
        ...erased.map(([what, rows]) => ({ what, result: String(rows) })),
        ...KEPT_BY_ERASURE.map(({ what, why }) => ({ what: 'kept', result: `${what}. ${why}` })),
      ],
      options,
    );
    if (finishedAt === null) {
      stderr(
        `The rows are erased. A running service now searches the stored webhooks, for a minute at least. For the result: erasure-report ${id}\n`,
      );
    }
  };
  program
    .command('erase-user')
    .description('erase a user of an app; the money stays, under a pseudonym')
    .requiredOption('--app <id>', 'app of the user')
    .requiredOption('--user <id>', "the app's own id of the user")
    .option(...JSON_OPTION)
    .action(async ({ app, user, ...options }: JsonOptions & { app: string; user: string }) => {
      const secretBox = createSecretBox(await secretsKeys.read());
      await withDatabase(async (sql) => {
        const appId = await findApp(sql, app);
        if (user === '' || user.length > 512) {
          throw new CommandFailedError('A user id has 1 to 512 characters.');
        }
        if (!(await hasErasureKey(sql))) {
          throw new CommandFailedError(
            'No service of this version has started on this database: start it once, then erase the user.',
          );
        }
        report(await eraseUser({ sql, secretBox }, { appId, customerUserId: user, keyId: null }), options);
      });
    });
  program
    .command('erasure-report')
    .description('show what an erasure did, and whether it is complete')
    .argument('<id>', 'id of the erasure')
    .option(...JSON_OPTION)
    .action(async (id: string, options: JsonOptions) => {
      await withDatabase(async (sql) => {
        const erasure = isId('erasure', id) ? await findErasure(sql, id) : undefined;
        if (erasure === undefined) throw new CommandFailedError(`There is no erasure ${id}.`);
        report(erasure, options);
      });
    });
}
