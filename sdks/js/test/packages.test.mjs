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
    for (const [, snippet] of text.matchAll(/```ts\n([\s\S]*?)```/g)) {
      count += 1;
      await writeFile(join(folder, `${name}-${count}.ts`), snippet);
    }
  }
  assert.ok(count >= 7, `only ${count} snippets were found`);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: 'es2022',
    module: 'nodenext',
    types: ['node'],
    lib: ['es2022', 'dom', 'dom.iterable'],
  };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await run(join(JS, 'node_modules/.bin/tsc'), ['-p', folder]).catch(({ stdout }) => assert.fail(stdout));
});

for (const [name, files] of [
  ['web', ['dist/index.js', 'dist/tributary.js']],
  ['node', ['dist/index.js']],
]) {
  test(`the package ${name} contains its code, its types, its README and nothing else`, async () => {
    const { stdout } = await run('npm', ['pack', '--dry-run', '--json'], { cwd: join(JS, name) });
    const packed = JSON.parse(stdout)[0].files.map(({ path }) => path);
    const code = packed.filter((path) => !path.startsWith('dist/types/'));
    assert.deepEqual(code.toSorted(), ['README.md', ...files, 'package.json'].toSorted());
    assert.ok(packed.includes(`dist/types/${name}/src/index.d.ts`));
    const { dependencies } = JSON.parse(await readFile(join(JS, name, 'package.json'), 'utf8'));
    assert.equal(dependencies, undefined);
  });
}
