import { createHash } from 'node:crypto';
import { readdirSync, renameSync, readFileSync, writeFileSync, existsSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { say } from '../run-tool.ts';
import { withRelease } from './changelog.ts';

/*
 * `npm run release:prepare -- VERSION`: makes this checkout the version VERSION, to be looked at and committed: its number in every file that has
 * it, the date in CHANGELOG.md, the migrations and the histories of workflows that never change from now on.
 */

const [version = ''] = process.argv.slice(2);
if (!/^\d+\.\d+\.\d+$/.test(version)) {
  say('usage: npm run release:prepare -- MAJOR.MINOR.PATCH');
  process.exit(2);
}

const at = (name: string) => path.join(projectRoot, name);

/** Changes a file. Throws if the change does nothing. */
function edit(name: string, change: (text: string) => string): void {
  const text = readFileSync(at(name), 'utf8');
  const changed = change(text);
  if (changed === text) throw new Error(`${name} has nothing to change`);
  writeFileSync(at(name), changed);
  say(`changed ${name}`);
}

/** Returns the entries of a table of hashes in a test, with those that it lacks. */
function withHashes(text: string, hashes: readonly (readonly [string, string])[]): string {
  const missing = hashes.filter(([name]) => !text.includes(`'${name}':`));
  const lines = missing.map(([name, hash]) => `  '${name}': '${hash}',\n`);
  return text.replace(/^const FROZEN[^]*?^\};/m, (table) => table.replace(/\};$/, `${lines.join('')}};`));
}

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex');

edit('CHANGELOG.md', (text) => withRelease(text, version, new Date().toISOString().slice(0, 10)));
const setVersion = (text: string) => text.replace(/("version": ")[^"]+/, `$1${version}`);
edit('package.json', setVersion);
edit('package-lock.json', (text) =>
  setVersion(text).replace(/("": \{\s+"name": "tributary",\s+"version": ")[^"]+/, `$1${version}`),
);
edit('deploy/kubernetes/kustomization.yaml', (text) => text.replace(/newTag: \S+/, `newTag: ${version}`));
edit('docs/deploy.md', (text) => text.replaceAll(/(example\.com\/tributary:)\d+\.\d+\.\d+/g, `$1${version}`));

const migrations = readdirSync(at('src/db/migrations')).toSorted();
edit('test/db/frozen-migrations.test.ts', (text) =>
  withHashes(
    text,
    migrations.map((name) => [name, sha256(readFileSync(at(`src/db/migrations/${name}`)))] as const),
  ),
);

const next = at('test/fixtures/histories/next');
if (existsSync(next)) {
  const histories = at(`test/fixtures/histories/${version}`);
  renameSync(next, histories);
  say(`test/fixtures/histories/next is test/fixtures/histories/${version}`);
  const hash = createHash('sha256');
  for (const name of readdirSync(histories).toSorted())
    hash.update(`${name}\n`).update(readFileSync(path.join(histories, name)));
  edit('test/workflows-replay.test.ts', (text) => withHashes(text, [[version, hash.digest('hex')]]));
}
say(
  `Look at the difference, run the tests, commit it as "Release ${version}", then run "npm run release -- --tag".`,
);
