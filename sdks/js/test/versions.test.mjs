// Every file that states the version of the SDKs states that of sdks/VERSION.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const GENERATED = new Set(['node_modules', 'dist', 'target', '.build', '.next', 'packages']);
const read = (path) => readFile(join(SDKS, path), 'utf8');
const version = (await read('VERSION')).trim();

/** Returns the paths of the files below a folder, without what is built or installed. */
async function filesOf(folder = '') {
  const entries = await readdir(join(SDKS, folder), { withFileTypes: true });
  const kept = entries.filter(({ name }) => !GENERATED.has(name));
  const lists = kept.map((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesOf(path) : [path];
  });
  return (await Promise.all(lists)).flat();
}

test('the examples, the READMEs and the Flutter plugin name the packages of this version', async () => {
  const stating = [];
  for (const path of await filesOf()) {
    if (!/\.(kts|gradle|md|yaml|swift|json)$/.test(path) || path.endsWith('package-lock.json')) continue;
    const names = [...(await read(path)).matchAll(/tributary-[a-z-]+[:-](\d+\.\d+\.\d+)/g)];
    for (const [text, stated] of names) assert.equal(stated, version, `${path} says ${text}`);
    if (names.length > 0) stating.push(path);
  }
  for (const path of [
    'flutter/android/build.gradle.kts',
    'examples/android/app/build.gradle.kts',
    'kotlin/README.md',
  ])
    assert.ok(stating.includes(path), `${path} names no version`);
});

for (const [path, pattern] of [
  ['flutter/pubspec.yaml', /^version: (.*)$/m],
  ['CHANGELOG.md', /^## (\S+)/m],
  ['js/core/package.json', /"version": "(.*)"/],
  ['js/node/package.json', /"version": "(.*)"/],
  ['js/web/package.json', /"version": "(.*)"/],
  ['js/react-native/package.json', /"version": "(.*)"/],
  ['swift/Sources/Tributary/Release.swift', /static let version = "(.*)"/],
  ['kotlin/pom.xml', /<version>(.*)<\/version>/],
])
  test(`${path} states this version`, async () => {
    assert.equal((await read(path)).match(pattern)[1], version);
  });
