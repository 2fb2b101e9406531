import type { Command } from 'commander';
import { newId } from '../../db/new-id.ts';
import { cancelReprocessRun, requestReprocessing } from '../../db/reprocess.ts';
import { isId } from '../../domain/ids.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { CommandFailedError } from '../output.ts';
import { parseInstant } from '../parse-instant.ts';
import { reportReprocessRun } from '../reprocess-report.ts';

interface ReprocessOptions extends JsonOptions {
  readonly app: string;
  readonly delivery?: string;
  readonly from?: number;
  readonly to?: number;
  readonly dryRun?: boolean;
}

/** Ends the command with exit status 2 when the options do not choose deliveries. */
function checkSelection({ delivery, from, to }: ReprocessOptions, command: Command): void {
  const hasRange = from !== undefined || to !== undefined;
  if (delivery !== undefined && hasRange) {
    command.error('error: use either --delivery, or --from and --to, not both');
  }
  if (delivery === undefined && !hasRange) {
    command.error('error: choose the deliveries with --delivery <id>, or with --from, --to or both');
  }
  if (from !== undefined && to !== undefined && from >= to) {
    command.error('error: --from must be before --to');
  }
}

/** Adds `deliveries reprocess`, `deliveries reprocess-report` and `deliveries reprocess-cancel`. */
export function addDeliveriesCommand(program: Command, context: CommandContext): void {
  const { withDatabase, stdout, stderr } = context;
  const deliveries = program.command('deliveries').description('reprocess what billing providers sent');
  deliveries
    .command('reprocess')
    .description(
      'evaluate stored deliveries again with the current code; appends what is missing and edits nothing',
    )
    .requiredOption('--app <id>', 'app of the deliveries')
    .option('--delivery <id>', 'only this delivery')
    .option('--from <instant>', 'only deliveries received at this time or later', parseInstant)
    .option('--to <instant>', 'only deliveries received before this time', parseInstant)
    .option('--dry-run', 'show what would change, without changing it')
    .option(...JSON_OPTION)
    .action(async (options: ReprocessOptions, command: Command) => {
      checkSelection(options, command);
      const { app, delivery, from = null, to = null, dryRun = false } = options;
      if (!isId('app', app)) throw new CommandFailedError(`There is no app ${app}.`);
      if (delivery !== undefined && !isId('delivery', delivery)) {
        throw new CommandFailedError(`The app has no accepted delivery ${delivery}.`);
      }
      await withDatabase(async (sql) => {
        const request = {
          id: newId('reprocessRun'),
          appId: app,
          dryRun,
          deliveryId: delivery ?? null,
          from,
          to,
        };
        const id = await requestReprocessing(sql, request);
        if (id === undefined) {
          throw new CommandFailedError(
            delivery === undefined
              ? `There is no app ${app}.`
              : `The app ${app} has no accepted delivery ${delivery} with an outcome. GET /apps/${app}/diagnostics/webhooks lists its deliveries. A delivery that is still in progress needs no reprocessing.`,
          );
        }
        stderr(`Created reprocess run ${id}. A running service starts it within seconds.\n`);
        await reportReprocessRun(sql, id, { json: options.json === true }, context);
      });
    });
  deliveries
    .command('reprocess-report')
    .description('wait for the end of a reprocess run and show what it found and appended')
    .argument('<id>', 'id of the reprocess run')
    .option(...JSON_OPTION)
    .action(async (id: string, options: JsonOptions) => {
      if (!isId('reprocessRun', id)) throw new CommandFailedError(`There is no reprocess run ${id}.`);
      await withDatabase(
        async (sql) => await reportReprocessRun(sql, id, { json: options.json === true }, context),
      );
    });
  deliveries
    .command('reprocess-cancel')
    .description('stop a reprocess run after its current page; what it appended remains')
    .argument('<id>', 'id of the reprocess run')
    .action(async (id: string) => {
      await withDatabase(async (sql) => {
        const isCancelled = isId('reprocessRun', id) && (await cancelReprocessRun(sql, id));
        if (!isCancelled) throw new CommandFailedError(`There is no reprocess run ${id} in progress.`);
        stdout(
          `Reprocess run ${id} stops after its current page. What it appended remains. For its report: deliveries reprocess-report ${id}\n`,
        );
      });
    });
}
