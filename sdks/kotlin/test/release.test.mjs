// release.sh builds a Maven repository with the host of its owner.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const HOST = 'https://tributary.example.com';
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'tributary-kotlin-'));
const repository = join(folder, 'maven/dev/tributary');
const version = (await readFile(join(SDKS, 'VERSION'), 'utf8')).trim();
const path = (module, ending) => join(repository, module, version, `${module}-${version}${ending}`);
after(() => rm(folder, { recursive: true, force: true }));
before(() => run(join(SDKS, 'release.sh'), [HOST, folder, 'kotlin']));

test('a release is a Maven repository with the library, its core, their sources and their documentation', async () => {
  const files = await readdir(repository, { recursive: true });
  const expected = [
    path('tributary-kotlin', '.pom'),
    ...['.pom', '.jar', '-sources.jar', '-javadoc.jar'].map((ending) => path('tributary-core', ending)),
    ...['.pom', '.aar', '-sources.jar', '-javadoc.jar'].map((ending) => path('tributary-android', ending)),
  ];
  assert.deepEqual(
    files
      .filter((file) => /\.(pom|jar|aar)$/.test(file))
      .map((file) => join(repository, file))
      .toSorted(),
    expected.toSorted(),
  );
  for (const file of expected)
    for (const name of ['md5', 'sha1'])
      assert.equal(
        await readFile(`${file}.${name}`, 'utf8'),
        createHash(name)
          .update(await readFile(file))
          .digest('hex'),
      );

  const pom = await readFile(path('tributary-android', '.pom'), 'utf8');
  assert.match(pom, /<packaging>aar<\/packaging>/);
  assert.match(pom, new RegExp(`<artifactId>tributary-core</artifactId>\\s*<version>${version}</version>`));
});

test('the sources of a release are those of its classes, with the host', async () => {
  const list = async (file) => (await run('jar', ['--list', '--file', file])).stdout.split('\n');
  const sources = await list(path('tributary-core', '-sources.jar'));
  assert.ok(sources.includes('dev/tributary/TributarySdk.kt'), sources.join());
  assert.ok((await list(path('tributary-android', '-sources.jar'))).includes('dev/tributary/Tributary.kt'));
  await run('jar', ['--extract', '--file', path('tributary-core', '-sources.jar'), 'Release.kt'], {
    cwd: folder,
  });
  assert.ok((await readFile(join(folder, 'Release.kt'), 'utf8')).includes(`"${HOST}"`));
});

test('the documentation of a release has the page of the SDK, the licence and no link to another page', async () => {
  for (const [module, title] of [
    ['tributary-core', '# Tributary on the JVM'],
    ['tributary-android', '# Tributary for Android'],
  ]) {
    const pages = join(folder, module);
    await mkdir(pages);
    await run('jar', ['--extract', '--file', path(module, '-javadoc.jar')], { cwd: pages });
    const page = await readFile(join(pages, 'README.md'), 'utf8');
    assert.ok(page.startsWith(title));
    assert.doesNotMatch(page, /\]\(\.\.\//);
    assert.match(await readFile(join(pages, 'LICENSE'), 'utf8'), /Apache License/);
  }
});
