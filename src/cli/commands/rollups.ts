import type { Command } from 'commander';
import { findRollupDifferences, repairRollups } from '../../db/rollups.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';

/** Adds `rollups check` and `rollups repair`. */
export function addRollupsCommand(program: Command, context: CommandContext): void {
  const { withDatabase, print, markFailed, stderr } = context;
  const rollups = program.command('rollups').description('check and repair the sums that dashboards show');
  rollups
    .command('check')
    .description('compare all sums with their source rows; the exit status is 1 if a sum differs')
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions) => {
      const differences = await withDatabase((sql) => findRollupDifferences(sql));
      const rows = differences.map(({ appId, scope, scopeId, span, bucketAt, differs }) => ({
        appId,
        scope,
        scopeId,
        span,
        bucketAt,
        differs,
      }));
      print({ equal: rows.length === 0, differences: rows }, rows, options);
      if (rows.length > 0) markFailed();
      stderr(
        rows.length === 0
          ? 'All sums match their source rows.\n'
          : `${rows.length} sums differ from their source rows. Run rollups repair to correct them.\n`,
      );
    });
  rollups
    .command('repair')
    .description('correct all sums from their source rows')
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions) => {
      const repaired = await withDatabase(repairRollups);
      print({ repaired }, [{ repaired }], options);
    });
}
