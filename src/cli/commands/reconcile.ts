import { Option } from 'commander';
import type { Command } from 'commander';
import { createSecretBox } from '../../config/secret-box.ts';
import { findReconciliationSecret } from '../../db/reconciliation.ts';
import type { ReconciliationSecret } from '../../db/reconciliation.ts';
import type { Sql } from '../../db/sql.ts';
import { isDifference } from '../../domain/reconcile-findings.ts';
import type { AppId } from '../../domain/ids.ts';
import { compareExport } from '../../reconcile/compare-export.ts';
import type { ExportComparison } from '../../reconcile/comparison.ts';
import { ExportFileError } from '../../reconcile/export-file-error.ts';
import { feedBack } from '../../reconcile/feed-back.ts';
import type { FeedBackResult } from '../../reconcile/feed-back.ts';
import { PROVIDERS } from '../../reconcile/providers.ts';
import type { ReconciledProvider } from '../../reconcile/providers.ts';
import type { CommandContext } from '../command-context.ts';
import { findApp } from '../find-app.ts';
import { inputPath } from '../input-path.ts';
import { CommandFailedError, EXIT } from '../output.ts';
import { parseInstant } from '../parse-instant.ts';
import { REPORT_FORMATS, writeReport } from '../reconcile-report.ts';
import type { ReportFormat } from '../reconcile-report.ts';

interface ReconcileOptions {
  readonly app: string;
  readonly provider: ReconciledProvider;
  readonly format: ReportFormat;
  readonly from?: number;
  readonly to?: number;
  readonly oneWay?: boolean;
  readonly unattributed?: boolean;
  readonly feedBack?: boolean;
  readonly withoutMatch?: boolean;
}

/** Returns the secret for events of an export. Throws `CommandFailedError` where they must not be added. */
async function secretFor(
  sql: Sql,
  appId: AppId,
  { provider }: ReconcileOptions,
): Promise<ReconciliationSecret> {
  const { title, environmentFrom } = PROVIDERS[provider];
  const secret = await findReconciliationSecret(sql, appId, provider);
  if (secret === undefined) {
    throw new CommandFailedError(
      `Nothing was added: the app has no webhook secret of ${title}. Connect ${title} first, so that its later webhooks arrive.`,
    );
  }
  if (environmentFrom === 'secret' && secret.environment !== 'production') {
    throw new CommandFailedError(
      `Nothing was added: the app's webhook secret of ${title} is one for the sandbox. Set the secret of the live account.`,
    );
  }
  return secret;
}

/** Throws `CommandFailedError` where nothing can be added because no payment of a store is in the ledger. */
function refuseUnmatched(
  { withoutMatch }: ReconcileOptions,
  { matched, unmatchedStores }: ExportComparison,
): void {
  if (matched > 0 || unmatchedStores.length === 0 || withoutMatch === true) return;
  throw new CommandFailedError(
    'Nothing was added: no payment of this file is in the ledger, so it may be of another app or account, or of a test mode. If it is the right file, add --without-match.',
  );
}

/** Adds `reconcile`. */
export function addReconcileCommand(program: Command, context: CommandContext): void {
  const { withDatabase, stdout, stderr, secretsKeys, serviceTimeoutMs, exitWith } = context;
  const onProgress = (line: string): void => stderr(`${line}\n`);

  async function addMissing(
    sql: Sql,
    appId: AppId,
    options: ReconcileOptions,
    comparison: ExportComparison,
  ): Promise<FeedBackResult> {
    const secret = await secretFor(sql, appId, options);
    const secretBox = createSecretBox(await secretsKeys.read());
    const { provider } = options;
    return await feedBack(
      { sql, secretBox, appId, provider, secret, timeoutMs: serviceTimeoutMs, onProgress },
      bodiesOf(comparison),
    );
  }

  /** Reports what differs after feeding back. An event that was added may have failed, or change nothing, since a later state is stored. */
  function reportWhatIsLeft(
    { differences, feedable }: { readonly differences: number; readonly feedable: number },
    failures: readonly string[],
  ): void {
    if (differences === 0) return;
    const unchanged =
      failures.length > 0
        ? ` ${failures.length} of the added events could not be processed: ${[...new Set(failures)].join('; ')}.`
        : feedable > 0
          ? ` ${feedable} of the added events changed nothing, most likely because webhooks reported something later: compare the file again, and look at the explanation of their payments.`
          : '';
    stderr(`The file was compared again: ${differences} differences are left.${unchanged}\n`);
    exitWith(EXIT.different);
  }

  program
    .command('reconcile')
    .description(
      "compare a provider's own export with the ledger; the exit status is 3 if they differ (docs/reconcile.md)",
    )
    .argument('<file>', 'the export: CSV or JSON, also gzip')
    .requiredOption('--app <id>', 'app of the payments')
    .addOption(
      new Option('--provider <name>', 'billing provider of the export')
        .choices(Object.keys(PROVIDERS))
        .makeOptionMandatory(),
    )
    .option('--from <instant>', 'only payments and refunds at this time or later', parseInstant)
    .option('--to <instant>', 'only payments and refunds before this time', parseInstant)
    .option('--one-way', 'look only for what the ledger lacks, for example with an incremental export')
    .option('--unattributed', 'list each payment that earned nothing, with its cause')
    .addOption(
      new Option('--format <format>', 'format of the report').choices(REPORT_FORMATS).default('table'),
    )
    .option('--feed-back', 'add what the ledger lacks; without it nothing is changed')
    .option(
      '--without-match',
      'add events also of stores of which no payment of the file is in the ledger, or one with another id',
    )
    .action(async (file: string, options: ReconcileOptions, command: Command) => {
      const { from = null, to = null, provider } = options;
      if (from !== null && to !== null && from >= to) command.error('error: --from must be before --to');
      await withDatabase(async (sql) => {
        const appId = await findApp(sql, options.app);
        const compare = async () =>
          await compareExport(sql, {
            appId,
            provider,
            path: inputPath(file),
            from,
            to,
            isOneWay: options.oneWay === true,
            listsUnattributed: options.unattributed === true,
            isWithoutMatch: options.withoutMatch === true,
            onProgress,
          }).catch((error: unknown) => {
            throw error instanceof ExportFileError ? new CommandFailedError(error.message) : error;
          });
        const comparison = await compare();
        try {
          const { differences, feedable, events } = await countDifferences(comparison);
          if (options.feedBack === true && feedable === 0) refuseUnmatched(options, comparison);
          const fed =
            options.feedBack === true && feedable > 0
              ? await addMissing(sql, appId, options, comparison)
              : null;
          await writeReport(options.format, comparison, { differences, fed }, stdout);
          if (fed === null && differences > 0) exitWith(EXIT.different);
          if (fed === null && feedable > 0) {
            stderr(`Nothing was changed. --feed-back adds ${feedable} of the ${differences} differences.\n`);
          }
          if (fed !== null && fed.waiting === 0) {
            const left = await compare();
            try {
              reportWhatIsLeft(await countDifferences(left), fed.failures);
            } finally {
              await left.close();
            }
          }
          if (fed !== null && fed.waiting > 0) {
            exitWith(EXIT.different);
            const rest = events - fed.events;
            stderr(
              `No service on this database has processed ${fed.waiting} of the added events in time. They are stored: a running service processes them.${rest > 0 ? ` ${rest} other events were not added.` : ''} Check that its /readyz returns ok, then compare the file again.\n`,
            );
          }
        } finally {
          await comparison.close();
        }
      });
    });
}

async function countDifferences(
  comparison: ExportComparison,
): Promise<{ readonly differences: number; readonly feedable: number; readonly events: number }> {
  let [differences, feedable, events] = [0, 0, 0];
  for await (const finding of comparison.findings()) {
    if (isDifference(finding)) differences += 1;
    if (finding.bodies.length > 0) feedable += 1;
    events += finding.bodies.length;
  }
  return { differences, feedable, events };
}

async function* bodiesOf(comparison: ExportComparison) {
  for await (const { bodies } of comparison.findings()) yield* bodies;
}
