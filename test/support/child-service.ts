import { spawn } from 'node:child_process';
import type { ChildProcess, ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { TEST_SECRETS_KEY, temporalAddress } from './service.ts';

export interface ChildService {
  readonly url: string;
  readonly process: ChildProcess;
  /** Returns everything that the process has written to standard error. */
  readonly stderr: () => string;
  /** Sends SIGKILL and waits until the process has ended. */
  readonly kill: () => Promise<void>;
  /** Sends SIGTERM and returns the exit status. */
  readonly stop: () => Promise<number | null>;
}

const START_TIMEOUT_MS = 60_000;

/** Spawns the built service without waiting until it is up. */
export function spawnService(
  databaseUrl: string,
  env: Record<string, string> = {},
  root = projectRoot,
): ChildProcessByStdio<null, null, Readable> {
  return spawn(process.execPath, ['--enable-source-maps', path.join(root, 'dist/src/main.js')], {
    cwd: root,
    env: {
      PATH: process.env['PATH'] ?? '',
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: temporalAddress(),
      SECRETS_KEY: TEST_SECRETS_KEY.toString('base64'),
      PORT: '0',
      LOG_LEVEL: 'error',
      RATES_URL: 'off',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
}

/**
 * Starts the built service as a child process, on that database and the test run's Temporal server. `root` is the folder of
 * another version.
 */
export async function startChildService(
  databaseUrl: string,
  env: Record<string, string> = {},
  root = projectRoot,
): Promise<ChildService> {
  const child = spawnService(databaseUrl, env, root);
  let stderr = '';
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', resolve);
  });
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`not up in time: ${stderr}`));
    }, START_TIMEOUT_MS);
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
      const [, found] = /is up at (\S+)/.exec(stderr) ?? [];
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(found);
    });
    child.once('exit', (status) => {
      clearTimeout(timer);
      reject(new Error(`ended with ${status}: ${stderr}`));
    });
  });
  return {
    url,
    process: child,
    stderr: () => stderr,
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
    stop: async () => {
      child.kill('SIGTERM');
      return await ended;
    },
  };
}
