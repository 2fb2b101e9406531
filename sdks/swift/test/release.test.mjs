// release.sh builds the git repository that SwiftPM fetches. Swift is not needed.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const SDKS = fileURLToPath(new URL('../../', import.meta.url));
const HOST = 'https://tributary.example.com';
const run = promisify(execFile);
const folder = await mkdtemp(join(tmpdir(), 'tributary-swift-'));
const version = (await readFile(join(SDKS, 'VERSION'), 'utf8')).trim();
after(() => rm(folder, { recursive: true, force: true }));

/** Releases the package with this host. Returns its folder. */
async function release(host, name) {
  const packages = join(folder, name);
  await run(join(SDKS, 'release.sh'), [host, packages, 'swift']);
  return join(packages, 'tributary-swift');
}

test('a release that was pushed has its manifest at the root of the tag, with the host, the licence and the changelog', async () => {
  const repository = await release(HOST, 'pushed');
  const remote = `file://${join(folder, 'remote.git')}`;
  await run('git', ['init', '--quiet', '--bare', remote.slice('file://'.length)]);
  await run('git', ['push', '--quiet', remote, 'main', version], { cwd: repository });
  const clone = join(folder, 'clone');
  await run('git', ['clone', '--quiet', '--branch', version, remote, clone]);
  assert.deepEqual((await readdir(clone)).toSorted(), [
    ...['.git', '.gitignore', 'CHANGELOG.md', 'LICENSE', 'Package.swift', 'README.md', 'Sources'],
  ]);
  assert.doesNotMatch(await readFile(join(clone, 'Package.swift'), 'utf8'), /testTarget/);
  assert.doesNotMatch(await readFile(join(clone, 'README.md'), 'utf8'), /\]\(\.\.\//);
  const stated = await readFile(join(clone, 'Sources/Tributary/Release.swift'), 'utf8');
  assert.ok(
    stated.includes(`static let host = "${HOST}"`) && stated.includes(`static let version = "${version}"`),
  );
});

test('a release adds its version to the earlier ones, and never changes one', async () => {
  const repository = await release(HOST, 'again');
  const git = async (...given) => (await run('git', given, { cwd: repository })).stdout.trim();
  const first = await git('rev-parse', version);
  await release(HOST, 'again');
  assert.equal(await git('rev-parse', 'main'), first);
  await assert.rejects(release('https://other.example.com', 'again'), /Raise sdks\/VERSION/);
  assert.equal(await git('rev-parse', version), first);
  assert.equal(await git('status', '--short'), '');

  await git('tag', '--delete', version);
  await git('tag', '0.0.9', first);
  await release('https://other.example.com', 'again');
  assert.equal(await git('rev-parse', `${version}^`), first);
  assert.equal(await git('tag'), `0.0.9\n${version}`);
});
