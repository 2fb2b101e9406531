import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { endWithThisProcess } from '../../src/embedded/processes.ts';

/** Starts processes that only use processor time. Returns how to end them. */
export function startBusyProcesses(count: number): () => Promise<void> {
  const ends = Array.from({ length: count }, () => {
    const child = spawn('/bin/sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' });
    const stopWatching = endWithThisProcess(child.pid ?? 0, 'TERM');
    return async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      stopWatching();
    };
  });
  return async () => void (await Promise.all(ends.map(async (end) => await end())));
}
