import { execFile } from 'node:child_process';
import { appendFile, mkdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';

const run = promisify(execFile);

/** Writes a file that the user of the cluster can read. */
async function writeOwned(cluster: string, name: string, text: string): Promise<void> {
  const file = path.join(cluster, name);
  await writeFile(file, text, { mode: 0o600 });
  const { uid, gid } = await stat(cluster);
  await run('chown', [`${uid}:${gid}`, file]);
}

/** Makes a stopped cluster follow another server when it is started. */
export async function follow(dataDir: string, primaryUrl: string): Promise<void> {
  const cluster = path.join(dataDir, 'postgres');
  const { hostname, port, username, password } = new URL(primaryUrl);
  const target = `host=${hostname} port=${port} user=${username} password=${decodeURIComponent(password)}`;
  await appendFile(path.join(cluster, 'postgresql.auto.conf'), `\nprimary_conninfo = '${target}'\n`);
  await writeOwned(cluster, 'standby.signal', '');
}

/** Copies the data of a running server, so that a server on the copy follows it. */
export async function copyForStandby(dataDir: string, ownerUrl: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true, mode: 0o711 });
  const client = new pg.Client(ownerUrl);
  await client.connect();
  try {
    await client.query("select pg_backup_start('standby', true)");
    // Files that Postgres removes meanwhile are not missed: the log has their end.
    await run(
      'cp',
      ['--archive', ...['postgres', 'postgres.json'].map((name) => path.join(dataDir, name)), to],
      {
        maxBuffer: 16 * 1024 * 1024,
      },
    ).catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== 1) throw error;
    });
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop()');
    const cluster = path.join(to, 'postgres');
    await writeOwned(cluster, 'backup_label', rows[0]?.labelfile ?? '');
    for (const name of ['postmaster.pid', 'postmaster.opts'])
      await rm(path.join(cluster, name), { force: true });
  } finally {
    await client.end();
  }
  await follow(to, ownerUrl);
}
