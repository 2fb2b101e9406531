import { readFile } from 'node:fs/promises';
import type { RunnerOption } from 'node-pg-migrate';

/** How long a migration waits for a lock, ms. Statements of the running service wait behind it for that long at most. */
const LOCK_TIMEOUT_MS = 500;
/** The first line of a file with a statement that Postgres refuses in a transaction, such as a concurrent index. */
const WITHOUT_TRANSACTION = '-- without transaction';
/** A statement of such a file: up to a semicolon that ends a line, outside of a function's body. */
const STATEMENT = /(?:\$\$[\s\S]*?\$\$|(?!;$)[\s\S])+/gm;

/** How the runner reads a file: one transaction that waits only briefly for a lock, or statements outside of any. */
export const MIGRATION_FILES: NonNullable<RunnerOption['migrationLoaderStrategies']> = [
  {
    extensions: ['.sql'],
    loader: async (filePaths) =>
      await Promise.all(
        filePaths.map(async (filePath) => {
          const text = await readFile(filePath, 'utf8');
          const isOutside = text.startsWith(WITHOUT_TRANSACTION);
          return {
            id: filePath,
            filePaths: [filePath],
            actions: {
              up: (pgm) => {
                if (isOutside) pgm.noTransaction();
                // Nobody waits behind a statement outside of a transaction: it may wait for old transactions to end.
                else pgm.sql(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
                // Several statements sent as one would be a transaction.
                for (const statement of isOutside ? (text.match(STATEMENT) ?? []) : [text])
                  pgm.sql(statement);
              },
              down: false,
            },
          };
        }),
      ),
  },
];
