import type { Command } from 'commander';
import { createSecretBox } from '../../config/secret-box.ts';
import { sendRequest } from '../../self-test/send-request.ts';
import { runSelfTest } from '../../self-test/run-self-test.ts';
import type { SelfTestReport } from '../../self-test/run-self-test.ts';
import type { Step } from '../../self-test/steps.ts';
import { JSON_OPTION } from '../command-context.ts';
import type { CommandContext, JsonOptions } from '../command-context.ts';
import { findApp } from '../find-app.ts';
import { CommandFailedError, formatTable } from '../output.ts';
import type { TableRow } from '../output.ts';

/** How long to wait for `/healthz` of a running service, ms. */
const HEALTH_TIMEOUT_MS = 3_000;
const START_SERVICE = 'Start it with npm start, then run the self-test again.';
const COLUMN_WIDTHS = [12, 21, 8, 76];

async function isHealthy(url: string): Promise<boolean> {
  const result = await sendRequest(`${url}/healthz`, {}, HEALTH_TIMEOUT_MS);
  return result.kind === 'response' && result.status === 200;
}

function stepRow(subject: string, { step, level, ok, detail, fix }: Step): TableRow {
  const result = ok ? 'ok' : level === 'error' ? 'FIX' : 'advice';
  return { subject, step, result, detail: fix === null ? detail : `${detail}\n→ ${fix}` };
}

/** Returns one row per step. The row of a failed step contains its fix. */
function reportRows({ providers, app }: SelfTestReport): TableRow[] {
  return [
    ...providers.flatMap(({ provider, steps }) => steps.map((step) => stepRow(provider, step))),
    ...app.map((step) => stepRow('app', step)),
  ];
}

/** Adds `self-test`. */
export function addSelfTestCommand(program: Command, context: CommandContext): void {
  const { withDatabase, findService, stdout, stderr, markFailed } = context;
  program
    .command('self-test')
    .description(
      "test an app's setup with a test purchase of each provider; the exit status is 1 if a step fails",
    )
    .requiredOption('--app <id>', 'app to test')
    .option(...JSON_OPTION)
    .action(async (options: JsonOptions & { app: string }) => {
      const service = await findService();
      if (service === null) throw new CommandFailedError(`The service is not running. ${START_SERVICE}`);
      const { publicUrl, secretsKeys } = service;
      const ownUrl = (await isHealthy(service.ownUrl)) ? service.ownUrl : null;
      if (ownUrl === null && !(await isHealthy(publicUrl))) {
        const urls = [...new Set([service.ownUrl, publicUrl])].join(' or ');
        throw new CommandFailedError(`The service does not respond at ${urls}. ${START_SERVICE}`);
      }
      const report = await withDatabase(async (sql) => {
        const appId = await findApp(sql, options.app);
        return await runSelfTest(
          {
            sql,
            secretBox: createSecretBox(secretsKeys),
            now: Date.now,
            publicUrl,
            ownUrl,
            onProgress: (line) => stderr(`${line}\n`),
          },
          appId,
        );
      });
      const table = () => formatTable(reportRows(report), COLUMN_WIDTHS);
      stdout(`${options.json === true ? JSON.stringify(report) : table()}\n`);
      if (!report.ok) markFailed();
      stderr(
        report.ok ? 'The setup works.\n' : 'The setup has problems. Apply the fixes from top to bottom.\n',
      );
    });
}
