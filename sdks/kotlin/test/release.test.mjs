// release.sh builds a Maven repository with the host of its owner.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const HOST = 'https://tributary.example.com';
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'tributary-kotlin-'));
after(() => rm(folder, { recursive: true, force: true }));

test('a release is a Maven repository with the library, its core and the host', async () => {
  await run(join(SDKS, 'release.sh'), [HOST, folder, 'kotlin']);
  const version = (await readFile(join(SDKS, 'VERSION'), 'utf8')).trim();
  const repository = join(folder, 'maven/dev/tributary');
  const files = await readdir(repository, { recursive: true });
  const expected = ['kotlin.pom', 'core.pom', 'core.jar', 'android.pom', 'android.aar'].map((name) => {
    const [module, type] = name.split('.');
    return `tributary-${module}/${version}/tributary-${module}-${version}.${type}`;
  });
  assert.deepEqual(files.filter((file) => /\.(pom|jar|aar)$/.test(file)).toSorted(), expected.toSorted());

  const pom = await readFile(join(repository, expected[3]), 'utf8');
  assert.match(pom, /<packaging>aar<\/packaging>/);
  assert.match(pom, new RegExp(`<artifactId>tributary-core</artifactId>\\s*<version>${version}</version>`));

  await run('jar', ['--extract', '--file', join(repository, expected[2])], { cwd: folder });
  const classes = (await readdir(join(folder, 'dev'), { recursive: true })).filter((file) =>
    file.endsWith('.class'),
  );
  const texts = await Promise.all(classes.map((file) => readFile(join(folder, 'dev', file), 'latin1')));
  assert.ok(
    texts.some((text) => text.includes(HOST)),
    'no class has the host',
  );
});
