import type { Command } from 'commander';
import { createSecretBox } from '../config/secret-box.ts';
import { listAppIds } from '../db/apps.ts';
import type { Sql } from '../db/sql.ts';
import type { FoundService } from '../embedded/find-service.ts';
import { send } from '../self-test/post.ts';
import { runSelfTest } from '../self-test/run-self-test.ts';
import type { SelfTestReport } from '../self-test/run-self-test.ts';
import type { Step } from '../self-test/steps.ts';
import { Refused, tableOf } from './answer.ts';
import type { Answer } from './answer.ts';

export interface SelfTestCommandDeps {
  readonly onDatabase: <T>(work: (sql: Sql) => Promise<T>) => Promise<T>;
  readonly findService: () => Promise<FoundService | null>;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Makes the exit status that of a refusal. */
  readonly refuse: () => void;
}

/** How long a running service may take to say that it lives. */
const HEALTH_WITHIN_MS = 3_000;
const START_IT = 'start it with npm start, then run the self-test again.';
const COLUMN_WIDTHS = [12, 21, 8, 76];

async function livesAt(url: string): Promise<boolean> {
  const result = await send(`${url}/healthz`, {}, HEALTH_WITHIN_MS);
  return result.kind === 'answer' && result.status === 200;
}

function rowOf(of: string, { step, level, ok, detail, fix }: Step): Answer {
  const result = ok ? 'ok' : level === 'error' ? 'FIX' : 'advice';
  return { of, step, result, detail: fix === null ? detail : `${detail}\n→ ${fix}` };
}

/** One row per step; what needs a fix has it. */
function selfTestRows({ providers, app }: SelfTestReport): Answer[] {
  return [
    ...providers.flatMap(({ provider, steps }) => steps.map((step) => rowOf(provider, step))),
    ...app.map((step) => rowOf('app', step)),
  ];
}

/** Adds `self-test` to the command line. */
export function addSelfTestCommand(program: Command, deps: SelfTestCommandDeps): void {
  const { onDatabase, findService, stdout, stderr, refuse } = deps;
  program
    .command('self-test')
    .description(
      "play a purchase of each provider through an app's set-up; exit status 1 when anything is off",
    )
    .requiredOption('--app <id>', 'whose set-up')
    .option('--json', 'answer in JSON')
    .action(async (options: { app: string; json?: boolean }) => {
      const service = await findService();
      if (service === null) throw new Refused(`The service is not running: ${START_IT}`);
      const { publicUrl, secretsKeys } = service;
      const ownUrl = (await livesAt(service.ownUrl)) ? service.ownUrl : null;
      if (ownUrl === null && !(await livesAt(publicUrl))) {
        const places = [...new Set([service.ownUrl, publicUrl])].join(' or ');
        throw new Refused(`The service does not answer at ${places}: ${START_IT}`);
      }
      const report = await onDatabase(async (sql) => {
        const appId = (await listAppIds(sql)).find((id) => id === options.app);
        if (appId === undefined) throw new Refused(`There is no app ${options.app}.`);
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
      const table = () => tableOf(selfTestRows(report), COLUMN_WIDTHS);
      stdout(`${options.json === true ? JSON.stringify(report) : table()}\n`);
      if (!report.ok) refuse();
      stderr(
        report.ok ? 'The set-up works.\n' : 'Something has to be mended: see the fixes, top to bottom.\n',
      );
    });
}
