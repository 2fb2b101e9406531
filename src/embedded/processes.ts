import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Socket, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CHILD_ENVIRONMENT } from './child-environment.ts';
import { errorCode } from './error-text.ts';

/** How often a wait checks its condition. */
const POLL_MS = 20;

/** Returns what `ps` reports about one process, on systems without /proc; undefined when there is no such process. */
function ps(pid: number, columns: string): string | undefined {
  try {
    return execFileSync('ps', ['-o', columns, '-p', String(pid)], {
      encoding: 'utf8',
      stdio: 'pipe',
      env: CHILD_ENVIRONMENT,
    }).trim();
  } catch {
    return undefined;
  }
}

/**
 * Returns a text that distinguishes this process from all others with the same pid: its start time and the boot of the
 * machine. Undefined when no such process runs. A process that has ended and waits to be reaped does not run.
 */
export function processIdentity(pid: number): string | undefined {
  if (process.platform !== 'linux') {
    const [state, ...startedAt] = (ps(pid, 'stat=,lstart=') ?? '').split(/\s+/);
    return state === undefined || state === '' || state.startsWith('Z') ? undefined : startedAt.join(' ');
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the program's name in parentheses and may contain any character: count from the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : `${boot}/${fields[19]}`;
  } catch {
    return undefined;
  }
}

/** Returns the command line of a running process, its parts joined by spaces; empty when it cannot be read. */
export function commandLine(pid: number): string {
  if (process.platform !== 'linux') return ps(pid, 'command=') ?? '';
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

/** Sends a signal to a process. Does nothing when it has ended already. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}

/** Ends a process by `signal` and waits until it has ended; kills it after `graceMs`. */
export async function endProcess(pid: number, signal: NodeJS.Signals, graceMs: number): Promise<void> {
  const identity = processIdentity(pid);
  if (identity === undefined) return;
  const isRunning = (): boolean => processIdentity(pid) === identity;
  signalProcess(pid, signal);
  if (await waitUntil(() => !isRunning(), graceMs)) return;
  if (isRunning()) signalProcess(pid, 'SIGKILL');
  await waitUntil(() => !isRunning(), graceMs);
}

/** Waits until `condition` is true, at most `timeoutMs`. Returns whether it became true. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
): Promise<boolean> {
  const giveUpAt = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() >= giveUpAt) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/**
 * Ends a server when this process dies without ending it (SIGKILL, a crash). A small shell waits on a pipe whose other
 * end only this process holds; the kernel closes the pipe in every case. It works the same on Linux and macOS, and
 * unlike a shared process group it leaves Ctrl-C to this process. Call the returned function when the server has ended.
 */
export function endWithThisProcess(pid: number, signal: 'TERM' | 'INT'): () => void {
  const script = 'read -r _; kill -s "$1" "$2" && sleep 5 && kill -s KILL "$2"';
  const watchdog = spawn('/bin/sh', ['-c', script, 'tributary-watchdog', signal, String(pid)], {
    cwd: '/',
    env: CHILD_ENVIRONMENT,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchdog.on('error', () => undefined);
  watchdog.stdin.on('error', () => undefined);
  watchdog.unref();
  // The pipe is a socket at run time; its declared type is wider.
  if (watchdog.stdin instanceof Socket) watchdog.stdin.unref();
  return () => {
    watchdog.kill('SIGKILL');
  };
}

/** Returns a free TCP port on the loopback address: the preferred one when it is free, else any. */
export async function freePort(preferred?: number): Promise<number> {
  const port = await tryListen(preferred ?? 0).catch(() => undefined);
  return port ?? tryListen(0);
}

/** Opens a loopback port for a moment and returns it; rejects when it is in use. 0 stands for any free port. */
export function tryListen(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : port));
    });
  });
}

/** Returns whether a process accepts connections on a loopback port. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const finish = (listening: boolean) => () => {
      socket.destroy();
      resolve(listening);
    };
    socket.once('connect', finish(true));
    socket.once('error', finish(false));
  });
}
