import type { Command } from 'commander';
import { readCellMap } from '../../db/cell-map.ts';
import type { Sql } from '../../db/sql.ts';
import type { CommandContext } from '../command-context.ts';
import { cannotUse, isFileError } from '../file-error.ts';
import { inputPath } from '../input-path.ts';
import { CommandFailedError } from '../output.ts';
import { replaceFile } from '../write-file.ts';

/** A name of a cell, which is that of a backend of HAProxy. */
const CELL = /^[\w.-]{1,64}$/;

/** Yields the lines of the map, a page at a time. */
async function* mapLines(sql: Sql, cell: string): AsyncGenerator<string> {
  for await (const keys of readCellMap(sql)) yield keys.map((key) => `${key} ${cell}\n`).join('');
}

/** Adds `cells map`. */
export function addCellsCommand(program: Command, { withDatabase, stdout }: CommandContext): void {
  const cells = program.command('cells').description('route requests to one of several installations');
  cells
    .command('map')
    .description('print the lines of this installation for the map of the balancer in front of all cells')
    .requiredOption('--cell <name>', 'the backend of this installation, such as cell-1')
    .option('--out <file>', 'write the lines to this file, which is replaced only when all are read')
    .action(async ({ cell, out }: { readonly cell: string; readonly out?: string }) => {
      if (!CELL.test(cell))
        throw new CommandFailedError(
          `"${cell}" is no name of a cell: use letters, digits, "_", "." and "-".`,
        );
      await withDatabase(async (sql) => {
        const lines = mapLines(sql, cell);
        if (out === undefined) {
          for await (const text of lines) stdout(text);
          return;
        }
        const path = inputPath(out);
        await replaceFile(path, lines).catch((error: unknown) => {
          throw isFileError(error) ? cannotUse(path, 'written', error) : error;
        });
      });
    });
}
