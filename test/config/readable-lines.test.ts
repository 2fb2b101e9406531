import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';

const run = promisify(execFile);

const PROGRAM = `
  import { createLogger } from './src/config/logger.ts';
  import { readableLines } from './src/config/readable-lines.ts';
  const logger = createLogger('info', await readableLines());
  logger.info({ deliveryId: 'del_1', email: 'ann@example.com', msg: 'a delivery was processed' });
  logger.warn({ err: new Error('the server is away'), msg: 'a start failed' });`;

test('the log of a terminal is lines that a person reads, with times, levels and errors, and without private fields', async () => {
  const { stdout } = await run(
    process.execPath,
    ['--import', 'tsx', '--input-type', 'module', '--eval', PROGRAM],
    { cwd: projectRoot, env: { ...process.env, NO_COLOR: '1' } },
  );
  expect(stdout).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: a delivery was processed \{.*"deliveryId":"del_1".*\}$/m);
  expect(stdout).toMatch(/^\[\d\d:\d\d:\d\d\] WARN: a start failed.*the server is away/ms);
  expect(stdout).not.toContain('ann@example.com');
});
