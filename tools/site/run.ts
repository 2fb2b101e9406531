import { spawn, spawnSync } from 'node:child_process';
import { existsSync, statSync, watch } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { say } from '../run-tool.ts';
import { SITE_PAGES, writePages } from './write-pages.ts';

/*
 * `npm run site`: builds the documentation site into site/dist, which any static file server can serve, without a network.
 * `npm run site -- --dev` serves it instead, and shows changes of `docs` at once.
 */

const site = path.join(projectRoot, 'site');

function run(command: string, args: readonly string[]): void {
  const { status } = spawnSync(command, args, { cwd: site, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

/** Returns whether the installed packages are those of the lock file. */
function isInstalled(): boolean {
  const installed = path.join(site, 'node_modules/.package-lock.json');
  return (
    existsSync(installed) &&
    statSync(installed).mtimeMs >= statSync(path.join(site, 'package-lock.json')).mtimeMs
  );
}

if (!isInstalled()) run('npm', ['ci', '--ignore-scripts']);
await writePages();
const vitepress = path.join(site, 'node_modules/.bin/vitepress');
if (process.argv.includes('--dev')) {
  const docs = path.join(projectRoot, 'docs');
  watch(docs, { recursive: true }, (_event, name) => {
    if (name === null || !existsSync(path.join(docs, name))) return;
    copyFile(path.join(docs, name), path.join(SITE_PAGES, name)).catch((error: unknown) =>
      say(`${name}: ${String(error)}`),
    );
  });
  // The watcher needs the event loop, so the server is a process beside it.
  spawn(vitepress, ['dev', '--host', '127.0.0.1'], { cwd: site, stdio: 'inherit' }).on('exit', (code) =>
    process.exit(code ?? 0),
  );
} else {
  run(vitepress, ['build']);
  say('site/dist has the site.');
}
