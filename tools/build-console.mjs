// Builds the pages of the console into dist/console, unless they are newer than everything that they are made of.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const folder = path.join(root, 'console');
const changedAt = (file) => statSync(path.join(folder, file)).mtimeMs;
const sources = [
  'index.html',
  'creator.html',
  'operator.html',
  'outline.html',
  'package.json',
  'vite.config.ts',
];
for (const file of readdirSync(path.join(folder, 'src'), { recursive: true }))
  sources.push(path.join('src', file));
const built = path.join(root, 'dist/console/creator.html');
const isFresh = existsSync(built) && Math.max(...sources.map(changedAt)) < statSync(built).mtimeMs;

if (!isFresh) {
  let vite;
  try {
    vite = createRequire(path.join(folder, 'package.json')).resolve('vite/package.json');
  } catch {
    process.stderr.write('The console is left out, because its packages are missing: run npm ci.\n');
    process.exit(process.env.CI === undefined ? 0 : 1);
  }
  execFileSync(
    process.execPath,
    [path.join(path.dirname(vite), 'bin/vite.js'), 'build', '--logLevel', 'warn'],
    {
      cwd: folder,
      stdio: 'inherit',
    },
  );
}
