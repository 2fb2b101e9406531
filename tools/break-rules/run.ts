import { spawn } from 'node:child_process';
import { cp, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { THEMES } from '../../test/support/money-sales.ts';
import type { Theme } from '../../test/support/money-sales.ts';
import { runTool, say } from '../run-tool.ts';
import { BROKEN_RULES } from './rules.ts';
import type { BrokenRule } from './rules.ts';

/**
 * `npm run break-rules`: breaks one rule of the money after the other in a copy of the code, and plays random worlds until the service
 * and the model of its money differ. Fails if the model does not notice one. `-- --only=<text>` breaks the rules that have a text.
 * `BREAK_RULES_MINUTES` is how long it looks for a difference, four minutes by default.
 */
const MINUTES = Number(process.env['BREAK_RULES_MINUTES'] ?? 4);
const PAYMENTS: Theme = 'payments, aliases, refunds and disputes';
/** What the test of the model prints when service and model differ. */
const DIFFERENCE = 'The service and the model differ';
const only = process.argv.find((one) => one.startsWith('--only='))?.slice('--only='.length) ?? '';

const folder = await mkdtemp(path.join(tmpdir(), 'tributary-rules-'));
let running: (() => Promise<unknown>) | undefined;

await runTool(
  async () => {
    await copyCode();
    const unnoticed: string[] = [];
    for (const broken of BROKEN_RULES.filter(({ rule }) => rule.includes(only))) {
      const startedAt = performance.now();
      const { isNoticed, worlds } = await breakRule(broken);
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
      say(`${isNoticed ? 'noticed' : `NOT NOTICED (${worlds} worlds)`} in ${seconds} s: ${broken.rule}`);
      if (!isNoticed) unnoticed.push(broken.rule);
    }
    if (unnoticed.length > 0) throw new Error(`The model did not notice: ${unnoticed.join('; ')}`);
  },
  { stops: [async () => await running?.()], folder },
);

async function copyCode(): Promise<void> {
  for (const name of ['src', 'activities', 'workflows', 'temporal', 'test', 'tools', 'package.json']) {
    await cp(path.join(projectRoot, name), path.join(folder, name), { recursive: true });
  }
  for (const name of ['node_modules', 'dist']) {
    await symlink(path.join(projectRoot, name), path.join(folder, name));
  }
}

interface Played {
  readonly isNoticed: boolean;
  /** How many worlds were played without a difference. Not counted if there is one. */
  readonly worlds: number;
}

/** Returns whether the model and the service differ once the rule is broken. */
async function breakRule({ rule, theme = PAYMENTS, file, code, broken }: BrokenRule): Promise<Played> {
  const place = path.join(folder, file);
  const text = await readFile(place, 'utf8');
  if (text.split(code).length !== 2) throw new Error(`${file} does not have the code of “${rule}” once`);
  await writeFile(
    place,
    text.replace(code, () => broken),
  );
  try {
    return await playUntilDifference(theme);
  } finally {
    await writeFile(place, text);
  }
}

async function playUntilDifference(theme: Theme): Promise<Played> {
  const jest = path.join(folder, 'node_modules/jest/bin/jest.js');
  const args = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', jest];
  const child = spawn(
    process.execPath,
    [...args, '--config', 'test/jest.config.js', '--forceExit', 'test/e2e/money-model.test.ts', '-t', theme],
    {
      cwd: folder,
      env: { ...process.env, MONEY_MODEL_MINUTES: String(MINUTES * THEMES.length), MONEY_MODEL_BROKEN: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', resolve);
  });
  running = async () => {
    child.kill();
    await ended;
  };
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    if (text.includes(DIFFERENCE)) child.kill();
  });
  const status = await ended;
  running = undefined;
  if (text.includes(DIFFERENCE)) return { isNoticed: true, worlds: 0 };
  if (status !== 0) throw new Error(text.slice(-2_000));
  return { isNoticed: false, worlds: Number(/(\d+) sequences had/.exec(text)?.[1] ?? 0) };
}
