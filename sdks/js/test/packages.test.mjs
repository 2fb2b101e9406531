// The READMEs' snippets compile against the built packages, and the packages contain what they should.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const JS = fileURLToPath(new URL('../', import.meta.url));
const run = promisify(execFile);

test('the snippets of the READMEs compile in strict mode', async () => {
  const folder = join(JS, 'dist/snippets');
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  let count = 0;
  for (const name of ['web', 'node']) {
    const text = await readFile(join(JS, name, 'README.md'), 'utf8');
    for (const [, type, snippet] of text.matchAll(/```(tsx?)\n([\s\S]*?)```/g)) {
      count += 1;
      await writeFile(join(folder, `${name}-${count}.${type}`), snippet);
    }
  }
  assert.ok(count >= 7, `only ${count} snippets were found`);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: 'es2022',
    module: 'nodenext',
    jsx: 'react-jsx',
    types: ['node'],
    lib: ['es2022', 'dom', 'dom.iterable'],
  };
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['*.ts', '*.tsx'] }),
  );
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await run(join(JS, 'node_modules/.bin/tsc'), ['-p', folder]).catch(({ stdout }) => assert.fail(stdout));
});

/** The files of an ES module that can also be required. */
const filesOf = (name) => ['cjs', 'd.cts', 'd.ts', 'js'].map((type) => `dist/${name}.${type}`);

for (const [name, files] of [
  [
    'web',
    [
      ...filesOf('index'),
      ...filesOf('billing'),
      ...filesOf('react'),
      'dist/tributary-debug.js',
      'dist/tributary.d.ts',
      'dist/tributary.js',
      ...['consent-mode', 'custom-html', 'identify', 'script-tag', 'shopify', 'tcf'].map(
        (name) => `snippets/${name}.html`,
      ),
      'snippets/README.md',
      'snippets/google-tag-manager.tpl',
    ],
  ],
  ['node', filesOf('index')],
]) {
  test(`the package ${name} contains its code, its types, its documents and nothing else`, async () => {
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json'], { cwd: join(JS, name) });
    const packed = JSON.parse(stdout)[0].files.map(({ path }) => path);
    assert.deepEqual(
      packed.toSorted(),
      ['CHANGELOG.md', 'LICENSE', 'README.md', ...files, 'package.json'].toSorted(),
    );
    const { dependencies } = JSON.parse(await readFile(join(JS, name, 'package.json'), 'utf8'));
    assert.equal(dependencies, undefined);
  });
}
