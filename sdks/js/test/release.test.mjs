// A release with a host of its own needs no base address, and leaves the checkout as it is.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startServer } from '../../conformance/server.mjs';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);
const release = (...given) => run(join(SDKS, 'release.sh'), given);
const folder = await mkdtemp(join(tmpdir(), 'tributary-release-'));
const server = await startServer();
after(async () => {
  server.close();
  await rm(folder, { recursive: true, force: true });
});

test('a release with a host sends to it without a base address', async () => {
  const before = await readFile(join(SDKS, 'HOST'), 'utf8');
  const packages = join(folder, 'packages');
  await release(`${server.url}/`, packages, 'node', 'web', 'swift');
  assert.equal(await readFile(join(SDKS, 'HOST'), 'utf8'), before);
  const files = await readdir(packages);
  const [archive] = files.filter((file) => /^tributary-node-.*\.tgz$/.test(file));
  assert.ok(
    files.some((file) => /^tributary-web-.*\.tgz$/.test(file)),
    files.join(),
  );
  assert.ok((await readFile(join(packages, 'tributary.js'), 'utf8')).includes(server.url));
  assert.ok(files.includes('tributary-debug.js'), files.join());
  const swift = join(packages, 'tributary-swift/Sources/Tributary/Release.swift');
  assert.match(await readFile(swift, 'utf8'), new RegExp(`static let host = "${server.url}"`));

  // A shop installs the package and passes nothing but its key.
  server.load([{ path: 'install', answer: 'won' }]);
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', join(packages, archive)], {
    cwd: folder,
  });
  await writeFile(
    join(folder, 'shop.js'),
    "import { createTributary } from '@tributary/node';\n" +
      "console.log(await createTributary({ apiKey: 'pk_live_test' }).device('d').applyCode('SPRING'));\n",
  );
  const { TRIBUTARY_API_BASE_URL: _, ...env } = process.env;
  const { stdout } = await run(process.execPath, ['shop.js'], { cwd: folder, env });
  assert.equal(stdout.trim(), 'true');
  assert.equal(server.state().requests[0].authorization, 'Bearer pk_live_test');
});

for (const [what, given, message] of [
  ['a path in the host', ['https://example.com/api', 'x'], /is no address of a service/],
  ['a host without a scheme', ['example.com', 'x'], /is no address of a service/],
  ['an unknown SDK', ['https://example.com', join(folder, 'x'), 'cobol'], /There is no SDK "cobol"/],
]) {
  test(`a release is refused with ${what}`, async () => {
    await assert.rejects(release(...given), ({ code, stderr }) => code === 2 && message.test(stderr));
  });
}
