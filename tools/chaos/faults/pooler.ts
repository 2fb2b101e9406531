import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { projectRoot } from '../../../src/config/project-root.ts';
import { endWithThisProcess, isListening, tryListen } from '../../../src/embedded/processes.ts';
import { eventually } from '../../../test/support/eventually.ts';
import type { PlannedFault } from '../plan.ts';
import { CannotBeTried } from './fault.ts';
import type { Fault, Surroundings } from './fault.ts';

const PROGRAMS = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'];
/** Debian's user of Postgres. PgBouncer refuses to run as root. */
const UNPRIVILEGED = 'nobody';

/** The settings of connections that the page lets PgBouncer drop. */
const IGNORED = /^ignore_startup_parameters = .+$/m;

/** Writes the configuration of docs/deploy.md. Returns the file. */
async function configure({ stack, folder }: Surroundings, port: number): Promise<string> {
  const url = new URL(stack.postgres.serviceUrl);
  const home = path.join(folder, 'pgbouncer');
  await mkdir(home, { recursive: true });
  await chmod(home, 0o755);
  const users = path.join(home, 'users.txt');
  await writeFile(users, `"${url.username}" "${decodeURIComponent(url.password)}"\n`, { mode: 0o644 });
  const file = path.join(home, 'pgbouncer.ini');
  const page = await readFile(path.join(projectRoot, 'docs/deploy.md'), 'utf8');
  await writeFile(
    file,
    `[databases]
${url.pathname.slice(1)} = host=127.0.0.1 port=${url.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = session
${IGNORED.exec(page)?.[0] ?? ''}
default_pool_size = 60
max_client_conn = 200
`,
    { mode: 0o644 },
  );
  return file;
}

/** Starts PgBouncer in front of Postgres. Returns how to kill it. */
async function startPgBouncer(around: Surroundings, port: number): Promise<() => Promise<void>> {
  const program = PROGRAMS.find((file) => existsSync(file));
  if (program === undefined) throw new CannotBeTried('pgbouncer is missing: apt-get install pgbouncer');
  const asUser = process.getuid?.() === 0 ? ['--user', UNPRIVILEGED] : [];
  const child = spawn(program, [...asUser, await configure(around, port)], { cwd: '/', stdio: 'ignore' });
  const stopWatching = endWithThisProcess(child.pid ?? 0, 'TERM');
  const ended = once(child, 'exit');
  await eventually('PgBouncer listens', async () => await isListening(port), 30_000);
  return async () => {
    child.kill('SIGKILL');
    await ended;
    stopWatching();
  };
}

/** A pooler is the path to the database for a while, and is killed in the middle and started again. */
const pgBouncerBetween: Fault = async (around: Surroundings, planned: PlannedFault) => {
  const { database } = around.stack.proxies;
  const port = await tryListen(0);
  let kill = await startPgBouncer(around, port);
  database.redirect(() => port);
  database.set({ kind: 'cut' });
  database.set({ kind: 'forward' });
  const restarted = (async () => {
    await sleep(planned.lastsMs / 2);
    await kill();
    kill = await startPgBouncer(around, port);
  })();
  return async () => {
    await restarted;
    database.redirect(null);
    await kill();
  };
};

export const POOLER_FAULTS = { 'PgBouncer between': pgBouncerBetween } as const;
