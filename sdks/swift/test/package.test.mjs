// The package states the version of all SDKs, its Apple-only code compiles against stand-ins of Apple's frameworks, and so do
// the example and the snippets of the README.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startWireServer } from '../../conformance/wire-server.mjs';
import { withSwift } from './swift.mjs';

const PACKAGE = fileURLToPath(new URL('../', import.meta.url));
const FOLDER = '.build/stand-ins';
const run = promisify(execFile);
const read = (path) => readFile(new URL(path, import.meta.url), 'utf8');

async function swiftc(...options) {
  const strict = ['-swift-version', '6', '-warnings-as-errors', '-I', FOLDER];
  const { code, output } = await withSwift(['swiftc', ...strict, ...options]);
  assert.equal(code, 0, output);
}
const emit = (name, files) =>
  swiftc(
    '-emit-module',
    '-parse-as-library',
    '-module-name',
    name,
    '-o',
    `${FOLDER}/${name}.swiftmodule`,
    ...files,
  );

// A Mac has the frameworks themselves.
const onlyWithStandIns = { skip: process.platform === 'darwin' };

before(async () => {
  if (onlyWithStandIns.skip) return;
  await rm(PACKAGE + FOLDER, { recursive: true, force: true });
  await mkdir(PACKAGE + FOLDER, { recursive: true });
  for (const name of ['AppleTypes', 'SwiftUI', 'UIKit', 'Network', 'os'])
    await emit(name, [`test/stand-ins/${name}.swift`]);
  const sources = await readdir(`${PACKAGE}Sources/Tributary`);
  await emit(
    'Tributary',
    sources.filter((file) => file.endsWith('.swift')).map((file) => `Sources/Tributary/${file}`),
  );
});
after(() => rm(PACKAGE + FOLDER, { recursive: true, force: true }));

test(
  'the SwiftUI modifier, the log and the events of the network compile against stand-ins',
  onlyWithStandIns,
  async () => {
    await writeFile(
      `${PACKAGE}${FOLDER}/uses.swift`,
      'import SwiftUI\nimport Tributary\n@MainActor func use() { _ = Text("").tributary(apiKey: "k") }\n',
    );
    await swiftc('-typecheck', `${FOLDER}/uses.swift`);
  },
);

test('the snippets of the README compile in strict mode', onlyWithStandIns, async () => {
  const snippets = [...(await read('../README.md')).matchAll(/```swift\n([\s\S]*?)```/g)];
  assert.ok(snippets.length >= 3, `only ${snippets.length} snippets were found`);
  for (const [index, [, snippet]] of snippets.entries()) {
    await writeFile(`${PACKAGE}${FOLDER}/snippet-${index}.swift`, snippet);
    await swiftc('-typecheck', '-parse-as-library', `${FOLDER}/snippet-${index}.swift`);
  }
});

test('the consent recipe that the XCTests run is that of the README', async () => {
  const recipe = (await read('../Tests/TributaryTests/ConsentRecipe.swift')).split('word for word.\n')[1];
  assert.ok((await read('../README.md')).includes(`\`\`\`swift\n${recipe}\`\`\``));
});

test('with-swift.sh runs from the root of the repository by its relative path', async () => {
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  const { stdout } = await run('sdks/swift/with-swift.sh', ['swift', '--version'], { cwd: root });
  assert.match(stdout, /Swift version/);
});

test('the example compiles in strict mode', onlyWithStandIns, async () => {
  await swiftc('-typecheck', '-parse-as-library', '../examples/ios/ExampleApp.swift');
});

test('the release has the version and the host of all SDKs', async () => {
  const release = await read('../Sources/Tributary/Release.swift');
  const stated = (name) => release.match(new RegExp(`static let ${name} = "(.*)"`))[1];
  assert.equal(stated('version'), (await read('../../VERSION')).trim());
  assert.equal(stated('host'), (await read('../../HOST')).trim());
});

test('an empty package gets the release by a git URL and a version, builds and reports to its service', async () => {
  const service = await startWireServer();
  const folder = `${PACKAGE}.build/installed`;
  try {
    await rm(folder, { recursive: true, force: true });
    service.begin('pk_live_installed');
    const script = fileURLToPath(new URL('../../release.sh', import.meta.url));
    await run(script, [service.url, folder, 'swift']);
    const version = (await read('../../VERSION')).trim();
    const [dependency] = (await read('../README.md')).match(/\.package\(url: .*\)/);
    await mkdir(`${folder}/app/Sources/app`, { recursive: true });
    await writeFile(
      `${folder}/app/Package.swift`,
      `// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "app",
    platforms: [.iOS(.v15), .macOS(.v12)],
    dependencies: [${dependency.replace(/"https[^"]*"/, `"file://${folder}/tributary-swift"`)}],
    targets: [
        .executableTarget(name: "app", dependencies: [.product(name: "Tributary", package: "tributary-swift")])
    ]
)
`,
    );
    await writeFile(
      `${folder}/app/Sources/app/App.swift`,
      `import Tributary

@main
struct App {
    static func main() async {
        print("Start: \\(Tributary.start(apiKey: "pk_live_installed"))")
        print("Code: \\(await Tributary.applyCode("spring-video"))")
        print("Sign up: \\(await Tributary.identify(userId: "user-swift"))")
        print("Affiliate: \\(Tributary.attributedAffiliateId() ?? "none")")
    }
}
`,
    );
    const { code, output } = await withSwift(
      ['swift', 'run', '--package-path', `${folder}/app`, '--jobs', '2'],
      { XDG_DATA_HOME: `${folder}/data` },
    );
    assert.equal(code, 0, output);
    assert.ok(output.includes('Start: true\nCode: true\nSign up: true\nAffiliate: affiliate-1\n'), output);
    assert.deepEqual(
      service.requests().map(({ body }) => body.sdk),
      [`ios/${version}`, `ios/${version}`],
    );
    assert.deepEqual(service.problems(), []);
  } finally {
    await service.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('Swift reads the manifest of the iOS side of a Flutter release', async () => {
  const folder = `${PACKAGE}.build/flutter`;
  try {
    const script = fileURLToPath(new URL('../../release.sh', import.meta.url));
    await run(script, ['https://tributary.example.com', folder, 'flutter']);
    const { code, output } = await withSwift([
      ...['swift', 'package', '--package-path', `${folder}/tributary_flutter/ios/tributary_flutter`],
      'describe',
    ]);
    assert.equal(code, 0, output);
    assert.match(output, /Name: tributary-flutter\n/);
    assert.match(output, /Name: Tributary\n/);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('the package depends on nothing', async () => {
  const manifest = await read('../Package.swift');
  assert.doesNotMatch(manifest, /\.package\(/);
});
