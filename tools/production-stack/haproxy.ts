import { execFile, spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { endWithThisProcess } from '../../src/embedded/processes.ts';
import { say } from '../run-tool.ts';

const run = promisify(execFile);

/** What to stop at the end, the last first. */
export type Stops = (() => Promise<void>)[];

/**
 * Checks a configuration and starts HAProxy with it and with further variables of the environment. Returns a function that has it read its files again:
 * a new worker does, and the former one finishes its requests.
 */
export async function startHaproxy(
  configuration: string,
  variables: Readonly<Record<string, string>>,
  logFile: string,
  stops: Stops,
): Promise<() => void> {
  const env = { ...variables, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` };
  await run('haproxy', ['-c', '-f', configuration], { env });
  const log = await open(logFile, 'w');
  const haproxy = spawn('haproxy', ['-W', '-db', '-f', configuration], {
    env,
    stdio: ['ignore', log.fd, log.fd],
  });
  const forget = endWithThisProcess(haproxy.pid ?? 0, 'TERM');
  stops.push(async () => {
    haproxy.kill('SIGTERM');
    forget();
    await log.close();
  });
  return () => void haproxy.kill('SIGUSR2');
}

/** Prints the end of each of these files of a folder that exists. */
export async function sayLogs(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const text = await readFile(path.join(folder, name), 'utf8').catch(() => '');
    say(`--- ${name} ---\n${text.slice(-3_000)}`);
  }
}
