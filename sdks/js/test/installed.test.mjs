// What release.sh builds works where apps install it: in an empty project, with the module systems and tools of apps.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { rollup } from 'rollup';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const JS = join(SDKS, 'js');
/** The tools of apps, by `npm ci` in this folder. They have a lock file of their own, so that a release does not install them. */
const TOOLS = join(JS, 'test/tools');
const tools = createRequire(join(TOOLS, 'package.json'));
const NAMES = ['node', 'web'];

const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'tributary-installed-'));
const project = join(folder, 'project');
const tarballs = {};
after(() => rm(folder, { recursive: true, force: true }));

before(async () => {
  await Promise.all([
    run(join(SDKS, 'release.sh'), ['https://tributary.example.com', folder, ...NAMES]),
    mkdir(project),
  ]);
  for (const file of await readdir(folder)) {
    const [, name] = /^tributary-([a-z-]+)-[\d.]+\.tgz$/.exec(file) ?? [];
    if (name !== undefined) tarballs[name] = join(folder, file);
  }
  assert.deepEqual(Object.keys(tarballs).toSorted(), NAMES);
  await write('package.json', '{ "private": true }');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...Object.values(tarballs)], {
    cwd: project,
  });
});

/** Writes a file of the project. Returns its path. */
async function write(name, content) {
  const path = join(project, name);
  await writeFile(path, content);
  return path;
}

/** Runs Node in the project. Returns what it prints. */
const node = async (...given) => (await run(process.execPath, given, { cwd: project })).stdout.trim();

const USE = `
if (typeof web.cookieStorage !== 'function') throw new Error('no web');
if (web.attributedAffiliateId() !== null) throw new Error('attributed');
if (server.referralFrom('https://shop.example/?via=spring').code !== 'spring') throw new Error('no referral');
console.log(Object.keys(web).length, server.createTributary.name);
`;

test('an ES module imports the packages', async () => {
  await write(
    'app.mjs',
    `import * as web from '@tributary/web';\nimport * as server from '@tributary/node';\n${USE}`,
  );
  assert.equal(await node('app.mjs'), '10 createTributary');
});

test('a CommonJS module requires the packages, also with a Node that can require no ES module', async () => {
  await write(
    'app.cjs',
    `const web = require('@tributary/web');\nconst server = require('@tributary/node');\n${USE}`,
  );
  assert.equal(await node('--no-experimental-require-module', 'app.cjs'), '10 createTributary');
});

test('Jest with its default settings loads the packages', async () => {
  await write('jest.config.json', '{ "testMatch": ["**/*.spec.js"] }');
  await write(
    'app.spec.js',
    `const web = require('@tributary/web');
    const server = require('@tributary/node');
    test('loads', async () => {
      expect(await web.start('pk_test_1')).toBe(false);
      expect(server.referralFrom('https://shop.example/?via=spring')).toStrictEqual({ code: 'spring' });
    });`,
  );
  const { stderr } = await run(process.execPath, [tools.resolve('jest/bin/jest'), '--silent'], {
    cwd: project,
  });
  assert.match(stderr, /Tests: +1 passed/);
});

/** The wrong use shows that the types are found: an untyped module would accept it. */
const TYPED = `
import '@tributary/web/tributary.js';
import { cookieStorage, start } from '@tributary/web';
import type { StartOptions, SyncStorage, Tributary as WebTributary } from '@tributary/web';
import { linkPurchases } from '@tributary/web/billing';
import { createTributary, fileStorage } from '@tributary/node';
import type { Device, Storage } from '@tributary/node';

const cookies: SyncStorage = cookieStorage({ domain: 'shop.example' });
const options: StartOptions = { apiKey: 'pk_live_1', storage: cookies, onAttribution: (id) => id.trim() };
export const started: Promise<boolean> = start(options);
export const launch: WebTributary['start'] = start;
const storage: Storage = fileStorage('devices.json');
export const device: Device = createTributary({ storage }).device('visitor-1');
// @ts-expect-error -- A key is a text.
void start({ apiKey: 7 });
// @ts-expect-error -- A user id is a text.
void linkPurchases(7, {});
// @ts-expect-error -- A sign-up has a user.
void createTributary().trackSignup({});
`;

const LATEST = join(JS, 'node_modules/typescript');
for (const [version, folderOf, settings] of [
  ['4.9', 'typescript-4.9', { module: 'commonjs', moduleResolution: 'node' }],
  ['4.9', 'typescript-4.9', { module: 'node16', moduleResolution: 'node16' }],
  ['5.0', 'typescript-5.0', { module: 'esnext', moduleResolution: 'bundler' }],
  ['of this repository', undefined, { module: 'nodenext', moduleResolution: 'nodenext' }],
  ['of this repository', undefined, { module: 'esnext', moduleResolution: 'bundler' }],
]) {
  const { moduleResolution } = settings;
  test(`TypeScript ${version} finds the types with moduleResolution ${moduleResolution}`, async () => {
    // With these, one project has modules of both kinds.
    const extensions = /^node./.test(moduleResolution) ? ['mts', 'cts'] : ['ts'];
    const files = extensions.map((extension) => `typed.${extension}`);
    for (const file of files) await write(file, TYPED);
    const compilerOptions = {
      ...settings,
      ...{ strict: true, exactOptionalPropertyTypes: true, noEmit: true, skipLibCheck: false },
      ...{ target: 'es2020', lib: ['es2020', 'dom'], types: [] },
    };
    await write('tsconfig.json', JSON.stringify({ compilerOptions, files }));
    const root = folderOf === undefined ? LATEST : join(TOOLS, 'node_modules', folderOf);
    await node(join(root, 'bin/tsc')).catch(({ stdout }) => assert.fail(stdout));
  });
}

const bundlers = {
  esbuild: async (contents) => {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: project },
      ...{ bundle: true, format: 'esm', write: false, logLevel: 'silent' },
    });
    return outputFiles[0].text;
  },
  Rollup: async (contents) => {
    const { nodeResolve } = tools('@rollup/plugin-node-resolve');
    const bundle = await rollup({ input: await write('entry.mjs', contents), plugins: [nodeResolve()] });
    return (await bundle.generate({ format: 'es' })).output[0].code;
  },
};
for (const [name, bundle] of Object.entries(bundlers)) {
  test(`${name} keeps the script that is imported for what it does`, async () => {
    assert.match(await bundle("import '@tributary/web/tributary.js';"), /currentScript/);
  });

  test(`${name} leaves out what an app does not use of the Web package`, async () => {
    const code = await bundle("import { start } from '@tributary/web'; start('pk_live_1');");
    assert.match(code, /claim_token/);
    assert.doesNotMatch(code, /max-age/);
  });
}

test('Rollup makes a file of its own of the debug state', async () => {
  const { nodeResolve } = tools('@rollup/plugin-node-resolve');
  const input = await write('debugged.mjs', "import { debugState } from '@tributary/web'; debugState();");
  const { output } = await (await rollup({ input, plugins: [nodeResolve()] })).generate({ format: 'es' });
  assert.deepEqual(
    output.map(({ code }) => code.includes('ageSeconds')),
    [false, true],
  );
});

test('a bundle whose modules import and require the Web package has it once', async () => {
  const code = await bundlers.esbuild(
    "import { start } from '@tributary/web'; start('k'); require('@tributary/web').reset();",
  );
  assert.equal(code.split('sdk/').length, 2);
});

for (const name of NAMES) {
  test(`publint and Are the types wrong find nothing in the package ${name}`, async () => {
    const { publint } = await import(tools.resolve('publint'));
    const { messages } = await publint({
      pkgDir: join(project, 'node_modules/@tributary', name),
      ...{ pack: false, strict: true, level: 'warning' },
    });
    assert.deepEqual(messages, []);
    const { checkPackage, createPackageFromTarballData } = await import(
      tools.resolve('@arethetypeswrong/core')
    );
    const { problems } = await checkPackage(
      createPackageFromTarballData(new Uint8Array(await readFile(tarballs[name]))),
      // A script, which is imported for what it does: no module system matters to it.
      { excludeEntrypoints: ['./tributary.js'] },
    );
    assert.deepEqual(problems, []);
  });

  test(`the documents of the package ${name} link to nothing that is not in it`, async () => {
    const installed = join(project, 'node_modules/@tributary', name);
    const files = new Set(await readdir(installed, { recursive: true }));
    for (const document of ['README.md', 'CHANGELOG.md']) {
      const text = await readFile(join(installed, document), 'utf8');
      for (const [, target] of text.matchAll(/\]\(([^)#]+)[^)]*\)/g))
        if (!/^https?:/.test(target)) assert.ok(files.has(target), `${document} links to ${target}`);
    }
  });
}
