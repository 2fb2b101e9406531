// release.sh builds the package with the host of its owner.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SDKS = fileURLToPath(new URL('../../../', import.meta.url));
const HOST = 'https://tributary.example.com';
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'tributary-react-native-'));
after(() => rm(folder, { recursive: true, force: true }));

test('a release is a package with its code, its types and the host', async () => {
  await run(join(SDKS, 'release.sh'), [HOST, folder, 'react-native']);
  const version = (await readFile(join(SDKS, 'VERSION'), 'utf8')).trim();
  assert.deepEqual(await readdir(folder), [`tributary-react-native-${version}.tgz`]);
  await run('tar', ['-xzf', `tributary-react-native-${version}.tgz`], { cwd: folder });
  const files = await readdir(join(folder, 'package'), { recursive: true });
  for (const file of ['README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts'])
    assert.ok(files.includes(file), files.join('\n'));
  assert.ok((await readFile(join(folder, 'package/dist/index.js'), 'utf8')).includes(HOST));
});
