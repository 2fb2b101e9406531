import type { Command } from 'commander';
import { readCellMap } from '../../db/cell-map.ts';
import type { CommandContext } from '../command-context.ts';
import { CommandFailedError } from '../output.ts';

/** A name of a cell, which is that of a backend of HAProxy. */
const CELL = /^[\w.-]{1,64}$/;

/** Adds `cells map`. */
export function addCellsCommand(program: Command, { withDatabase, stdout }: CommandContext): void {
  const cells = program.command('cells').description('route requests to one of several installations');
  cells
    .command('map')
    .description('print the lines of this installation for the map of the balancer in front of all cells')
    .requiredOption('--cell <name>', 'the backend of this installation, such as cell-1')
    .action(async ({ cell }: { readonly cell: string }) => {
      if (!CELL.test(cell))
        throw new CommandFailedError(
          `"${cell}" is no name of a cell: use letters, digits, "_", "." and "-".`,
        );
      await withDatabase(async (sql) => {
        for await (const keys of readCellMap(sql)) stdout(keys.map((key) => `${key} ${cell}\n`).join(''));
      });
    });
}
