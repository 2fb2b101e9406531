// release.sh builds a Maven repository with the host of its owner, and what the pages say to do with it works in an empty project.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startWireServer } from '../../conformance/wire-server.mjs';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const KEY = 'pk_live_installed';
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'tributary-kotlin-'));
const repository = join(folder, 'maven/dev/tributary');
const version = (await readFile(join(SDKS, 'VERSION'), 'utf8')).trim();
const path = (module, ending) => join(repository, module, version, `${module}-${version}${ending}`);
const service = await startWireServer();
after(async () => {
  await service.close();
  await rm(folder, { recursive: true, force: true });
});
before(() => run(join(SDKS, 'release.sh'), [service.url, folder, 'kotlin']));

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
  assert.ok((await readFile(join(folder, 'Release.kt'), 'utf8')).includes(`"${service.url}"`));
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

/** The first code block of a page in this language. */
async function snippet(page, language) {
  const text = await readFile(join(SDKS, 'kotlin', page), 'utf8');
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(text)[1];
}

/** Makes an empty project with these files. */
async function makeProject(name, files) {
  const project = join(folder, name);
  for (const [file, content] of Object.entries(files)) {
    await mkdir(join(project, file, '..'), { recursive: true });
    await writeFile(join(project, file), content);
  }
  return project;
}

/** Runs Maven with the packages of this user's own repository but those of Tributary, which only the release has. */
async function maven(project, ...goals) {
  const [own, local] = [join(homedir(), '.m2/repository'), join(folder, 'local')];
  await mkdir(own, { recursive: true });
  await mkdir(local, { recursive: true });
  for (const group of await readdir(own))
    if (group !== 'dev') await symlink(join(own, group), join(local, group)).catch(() => {});
  const options = ['-B', '-q', `-Dmaven.repo.local=${local}`];
  await run('mvn', [...options, ...goals], { cwd: project }).catch(({ stdout }) => assert.fail(stdout));
}

test('the project of the JVM page is built by Maven from the release, and reports to the service of the release', async () => {
  const pom = await snippet('JVM.md', 'xml');
  const source = await snippet('JVM.md', 'java');
  const project = await makeProject('jvm', {
    'pom.xml': pom.replace('/path/to/packages/maven', join(folder, 'maven')),
    'src/main/java/Shop.java': source.replace('pk_live_…', KEY),
  });
  service.begin(KEY);
  await maven(project, 'compile', 'dependency:copy-dependencies');
  const { stdout } = await run('java', ['-cp', 'target/classes:target/dependency/*', 'Shop'], {
    cwd: project,
  });
  assert.equal(stdout, 'Start: true\nCode: true\nSign up: true\nAffiliate: affiliate-1\n');
  assert.deepEqual(
    service.requests().map(({ path, body }) => [path, body.sdk.split('/')[1]]),
    [
      ['/sdk/install', version],
      ['/sdk/identify', version],
    ],
  );
  assert.deepEqual(service.problems(), []);
});

test('an app gets the core by its dependency on the Android artifact, and compiles against both', async () => {
  const dependencies = `<dependencies>
    <dependency>
      <groupId>dev.tributary</groupId>
      <artifactId>tributary-android</artifactId>
      <version>${version}</version>
      <type>aar</type>
    </dependency>
    <dependency>
      <groupId>org.robolectric</groupId>
      <artifactId>android-all</artifactId>
      <version>5.0.2_r3-robolectric-r0</version>
      <scope>provided</scope>
    </dependency>
  </dependencies>`;
  const pom = await snippet('JVM.md', 'xml');
  const project = await makeProject('app', {
    'pom.xml': pom
      .replace('/path/to/packages/maven', join(folder, 'maven'))
      .replace(/<dependencies>[\s\S]*<\/dependencies>/, dependencies),
    'Billing.java': await snippet('README.md', 'java'),
  });
  await maven(project, 'dependency:copy-dependencies');
  const libraries = join(project, 'target/dependency');
  const names = (await readdir(libraries)).filter((name) => name.startsWith('tributary-'));
  assert.deepEqual(names.toSorted(), [`tributary-android-${version}.aar`, `tributary-core-${version}.jar`]);
  await run('jar', ['--extract', '--file', join(libraries, `tributary-android-${version}.aar`)], {
    cwd: project,
  });
  assert.deepEqual(
    (await readdir(project)).toSorted(),
    [
      'AndroidManifest.xml',
      'Billing.java',
      'R.txt',
      'classes.jar',
      'pom.xml',
      'proguard.txt',
      'target',
    ].toSorted(),
  );
  const options = ['--release', '8', '-Xlint:-options', '-cp', 'classes.jar:target/dependency/*'];
  await run('javac', [...options, 'Billing.java'], { cwd: project });
});
