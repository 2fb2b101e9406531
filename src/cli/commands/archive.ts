import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { Command } from 'commander';
import { listAppIds } from '../../db/apps.ts';
import { ArchiveError, exportArchive, importArchive, openArchive } from '../../db/archive.ts';
import type { ArchiveHeader, OpenArchive } from '../../db/archive.ts';
import { checkLedger } from '../../db/ledger-checks/index.ts';
import { arePayoutsStopped } from '../../db/payout-stops.ts';
import { findRollupDifferences } from '../../db/rollups.ts';
import type { Sql } from '../../db/sql.ts';
import { DatabaseSilent } from '../../db/watched-session.ts';
import { errorCode } from '../../embedded/error-text.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { cannotUse, isFileError } from '../file-error.ts';
import { inputPath } from '../input-path.ts';
import { CommandFailedError } from '../output.ts';
import { writeNewFile } from '../write-file.ts';

/** Opens an archive, runs `work`, and closes the file. Every error of the file names it. */
async function withArchive<T>(name: string, work: (archive: OpenArchive) => Promise<T>): Promise<T> {
  const path = inputPath(name);
  const file = createReadStream(path);
  const text = createGunzip();
  // The error of a failed read reaches the reader of `text`.
  const reading = pipeline(file, text).catch((error: unknown) => text.destroy(error as Error));
  try {
    return await work(await openArchive(text));
  } catch (error) {
    if (error instanceof ArchiveError) throw new CommandFailedError(`${path}: ${error.message}`);
    const code = errorCode(error);
    if (code?.startsWith('Z_') === true) {
      const what =
        code === 'Z_BUF_ERROR' ? 'is incomplete. Export it again' : 'is not an archive of Tributary';
      throw new CommandFailedError(`${path} ${what}.`);
    }
    if (isFileError(error)) throw cannotUse(path, 'read', error);
    throw error;
  } finally {
    file.destroy();
    text.destroy();
    await reading;
  }
}

/** Returns whether the ledger keeps its rules and the sums match their source rows. */
async function isConsistent(sql: Sql): Promise<boolean> {
  const checks = await checkLedger(sql, await listAppIds(sql));
  return checks.every((check) => check.ok) && (await findRollupDifferences(sql)).length === 0;
}

/** Imports an archive. Says what to do when Postgres falls silent: even the answer to the commit may be what is missing. */
async function importOnce(...[url, archive, options]: Parameters<typeof importArchive>): Promise<void> {
  await importArchive(url, archive, options).catch((error: unknown) => {
    if (!(error instanceof DatabaseSilent)) throw error;
    throw new CommandFailedError(
      `${error.message}. Then import again: nothing or everything was written, and an import into a database with rows is refused.`,
    );
  });
}

function summary({ exportedAt, tables }: ArchiveHeader, ok: boolean) {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  return { exportedAt, tables: tables.length, rows, ok };
}

/** Adds `export` and `import`. */
export function addArchiveCommands(program: Command, context: CommandContext): void {
  const { withDatabase, withNewDatabase, asOwner, secretsKeys, print, stdout, stderr, markFailed } = context;
  const limits = { ...context.archiveLimits, onWait: (line: string) => stderr(`${line}\n`) };
  const report = (header: ArchiveHeader, ok: boolean, options: JsonOptions) => {
    const result = summary(header, ok);
    print(result, [{ ...result, ok: ok ? 'yes' : 'no' }], options);
    if (!ok) markFailed();
    stderr(
      ok
        ? 'The ledger and all sums are consistent.\n'
        : 'The ledger or a sum is not consistent. Run ledger check and rollups check for the rows.\n',
    );
  };
  program
    .command('export')
    .description('write the whole database and the secrets key to one new file; checks the ledger')
    .argument('<file>', 'the archive to write; keep it as secret as SECRETS_KEY')
    .option(...JSON_OPTION)
    .action(async (name: string, options: JsonOptions) => {
      const path = inputPath(name);
      await withDatabase(async (sql, { url }) => {
        const ok = await isConsistent(sql);
        const keys = await secretsKeys.read();
        let header: ArchiveHeader | undefined;
        const onHeader = (created: ArchiveHeader) => {
          header = created;
        };
        const lines = exportArchive(url, keys, onHeader, limits);
        await writeNewFile(path, lines, createGzip()).catch((error: unknown) => {
          if (error instanceof DatabaseSilent)
            throw new CommandFailedError(`${error.message}. Then export again: ${path} was not written.`);
          throw isFileError(error) ? cannotUse(path, 'written', error) : error;
        });
        if (header === undefined) throw new Error('an archive has a header');
        report(header, ok, options);
      });
      stderr(
        'The archive has what was stored at its start. To move the service, stop it before the export.\n',
      );
    });
  program
    .command('import')
    .description('fill an empty database from an archive; checks the ledger')
    .argument('<file>', 'an archive that export wrote')
    .option('--show-secrets-key', 'only print the secrets key of the archive')
    .option(...JSON_OPTION)
    .action(async (name: string, options: JsonOptions & { showSecretsKey?: boolean }) => {
      await withArchive(name, async (archive) => {
        if (options.showSecretsKey === true) {
          stdout(`${archive.header.secretsKeys.join(',')}\n`);
          return;
        }
        await withNewDatabase(async (sql, database) => {
          const keys = archive.header.secretsKeys.map((key) => Buffer.from(key, 'base64'));
          // A database that is refused keeps its keys: the first one encrypts.
          const onEmpty = async () => await secretsKeys.require(keys);
          await asOwner(
            database,
            async (ownerUrl) => await importOnce(ownerUrl, archive, { ...limits, onEmpty }),
          );
          report(archive.header, await isConsistent(sql), options);
          if (await arePayoutsStopped(sql)) {
            stderr(
              `Payouts are stopped: one that was made after ${new Date(archive.header.exportedAt).toISOString()} is missing here and would be paid again. Record each with payouts record, then run payouts resume --none-missing.\n`,
            );
          }
        });
      });
    });
}
