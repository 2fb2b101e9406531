// release.sh builds the folder that pub would publish. Flutter's tools are not needed.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const HOST = 'https://tributary.example.com';
const folder = await mkdtemp(join(tmpdir(), 'tributary-flutter-'));
const released = join(folder, 'tributary_flutter');
const read = (path) => readFile(join(released, path), 'utf8');
before(() => promisify(execFile)(join(SDKS, 'release.sh'), [HOST, folder, 'flutter']));
after(() => rm(folder, { recursive: true, force: true }));

test('a release is the package of pub with its licence, its changelog and the version of all SDKs', async () => {
  const version = (await readFile(join(SDKS, 'VERSION'), 'utf8')).trim();
  assert.match(await read('pubspec.yaml'), new RegExp(`^version: ${version.replaceAll('.', '\\.')}$`, 'm'));
  assert.match(await read('LICENSE'), /Apache License/);
  assert.ok((await read('CHANGELOG.md')).includes(`## ${version}\n`));
  assert.doesNotMatch(await read('README.md'), /\]\(\.\.\//);
  for (const file of ['lib/tributary_flutter.dart', 'example/lib/main.dart', 'android/build.gradle.kts'])
    assert.equal(await read(file), await readFile(join(SDKS, 'flutter', file), 'utf8'));
});

test('a release of the plugin asks for the Android SDK of the same release', async () => {
  const version = (await readFile(join(SDKS, 'VERSION'), 'utf8')).trim();
  assert.ok(
    (await read('android/build.gradle.kts')).includes(`"dev.tributary:tributary-android:${version}"`),
  );
});

test('the iOS side of a release contains the Swift SDK with the host, and depends on nothing outside', async () => {
  const sources = 'ios/tributary_flutter/Sources';
  const files = (name) => readdir(name, { recursive: true });
  assert.deepEqual(
    (await files(join(released, sources, 'Tributary'))).toSorted(),
    (await files(join(SDKS, 'swift/Sources/Tributary'))).toSorted(),
  );
  assert.ok((await read(`${sources}/Tributary/Release.swift`)).includes(`static let host = "${HOST}"`));
  const manifest = await read('ios/tributary_flutter/Package.swift');
  assert.doesNotMatch(manifest, /\.package\(/);
  assert.match(
    await read(`${sources}/tributary_flutter/TributaryFlutterPlugin.swift`),
    /^import Tributary$/m,
  );
});

test('a release has the files of the plugin and no others', async () => {
  const files = await readdir(released, { recursive: true, withFileTypes: true });
  const kotlin = 'android/src/main/kotlin/dev/tributary/flutter/TributaryFlutterPlugin.kt';
  const swift = 'ios/tributary_flutter/Sources';
  const own = files
    .filter((file) => file.isFile())
    .map((file) => relative(released, join(file.parentPath ?? file.path, file.name)))
    .filter((file) => !file.startsWith(`${swift}/Tributary/`));
  assert.deepEqual(
    own.toSorted(),
    [
      ...['pubspec.yaml', 'README.md', 'LICENSE', 'CHANGELOG.md', 'lib/tributary_flutter.dart'],
      ...[
        'example/lib/main.dart',
        'example/pubspec.yaml',
        'android/build.gradle.kts',
        'android/settings.gradle.kts',
      ],
      ...['android/src/main/AndroidManifest.xml', kotlin, 'ios/tributary_flutter/Package.swift'],
      `${swift}/tributary_flutter/TributaryFlutterPlugin.swift`,
    ].toSorted(),
  );
});

// Flutter's tools find the native sides by these names, and say at the build of an app that a side is missing.
test('the native sides of a release are where its pubspec.yaml says', async () => {
  const pubspec = await read('pubspec.yaml');
  const [, name] = /^name: (\w+)$/m.exec(pubspec);
  const [, android, androidClass] = /android:\n +package: (\S+)\n +pluginClass: (\w+)/.exec(pubspec);
  const [, iosClass] = /ios:\n +pluginClass: (\w+)/.exec(pubspec);
  const kotlin = await read(`android/src/main/kotlin/${android.replaceAll('.', '/')}/${androidClass}.kt`);
  assert.match(kotlin, new RegExp(`^package ${android}$[\\s\\S]*class ${androidClass} : FlutterPlugin`, 'm'));
  assert.ok((await read('android/build.gradle.kts')).includes(`namespace = "${android}"`));
  const manifest = await read(`ios/${name}/Package.swift`);
  assert.ok(manifest.includes(`name: "${name}"`));
  assert.ok(manifest.includes(`.library(name: "${name.replaceAll('_', '-')}"`));
  const swift = await read(`ios/${name}/Sources/${name}/${iosClass}.swift`);
  assert.match(swift, new RegExp(`public final class ${iosClass}: NSObject, FlutterPlugin`));
  assert.match(await read(`lib/${name}.dart`), /^library;$/m);
});
