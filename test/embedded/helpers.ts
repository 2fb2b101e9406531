import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import postgres from 'postgres';

/** Creates an empty folder; `cleanUp` removes it at the end of the test file. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tributary-test-')));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];

export async function cleanUp(): Promise<void> {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
}

/** Starts a process that holds the data folder and, for `postgres`, runs its Postgres. Resolves once it does. */
export async function startChild(
  dataDir: string,
  what: 'nothing' | 'postgres',
): Promise<{ child: ChildProcess; started: string; kill(): Promise<void> }> {
  const script = new URL('child.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, ['--import', 'tsx', script, dataDir, what], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const { started } = JSON.parse(String(line));
  const kill = async (): Promise<void> => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  return { child, started: String(started), kill };
}

/** Runs one statement on a new connection. */
export async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return [...(await sql.unsafe(statement))];
  } finally {
    await sql.end();
  }
}

/** Returns the pid of a process that has just ended. */
export function deadPid(): number {
  return Number(execFileSync('/bin/sh', ['-c', 'echo $$'], { encoding: 'utf8' }));
}
