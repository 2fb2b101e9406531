import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CHECKSUMS, downloadProgram } from '../../temporal/local-server/download.ts';
import { findOnPath } from '../../temporal/local-server/program.ts';
import { cleanUp, temporaryFolder } from './helpers.ts';

let archive: Buffer;
let folder: string;
const server = createServer((request, response) => {
  if (request.url === '/program.tar.gz') response.writeHead(200).end(archive);
  else if (request.url === '/interrupted.tar.gz') {
    response.writeHead(200, { 'content-length': archive.length });
    response.write(archive.subarray(0, -1), () => response.destroy());
  } else response.writeHead(404).end();
});
const url = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;

beforeAll(async () => {
  folder = await temporaryFolder();
  await writeFile(join(folder, 'temporal'), '#!/bin/sh\necho program\n', { mode: 0o755 });
  await writeFile(join(folder, 'LICENSE'), 'text');
  execFileSync('tar', ['-czf', 'program.tar.gz', 'temporal', 'LICENSE'], { cwd: folder });
  archive = await readFile(join(folder, 'program.tar.gz'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(async () => {
  server.close();
  await cleanUp();
});

describe('the downloaded Temporal program', () => {
  // @promise temporal-checksum
  test('a download with the pinned SHA-256 is unpacked', async () => {
    const target = join(folder, 'good');
    const sha256 = createHash('sha256').update(archive).digest('hex');
    await downloadProgram({ url: url('/program.tar.gz'), sha256, target });
    expect(execFileSync(target, { encoding: 'utf8' })).toBe('program\n');
  });

  // @promise temporal-checksum
  test('a download with another SHA-256 is refused and leaves no program', async () => {
    const target = join(folder, 'forged');
    const sha256 = createHash('sha256').update('another').digest('hex');
    await expect(downloadProgram({ url: url('/program.tar.gz'), sha256, target })).rejects.toThrow(
      /SHA-256 [0-9a-f]{64} of the download is not the pinned one/,
    );
    await expect(stat(target)).rejects.toThrow('ENOENT');
    await expect(stat(`${target}.tar.gz`)).rejects.toThrow('ENOENT');
  });

  // @promise temporal-checksum
  test('an interrupted download is refused and leaves no program', async () => {
    const target = join(folder, 'interrupted');
    const sha256 = createHash('sha256').update(archive.subarray(0, -1)).digest('hex');
    await expect(downloadProgram({ url: url('/interrupted.tar.gz'), sha256, target })).rejects.toThrow();
    expect((await readdir(folder)).filter((name) => name.startsWith('interrupted'))).toEqual([]);
  });

  test('a missing download is named with its status', async () => {
    await expect(
      downloadProgram({ url: url('/missing'), sha256: '', target: join(folder, 'missing') }),
    ).rejects.toThrow('responded with 404');
  });

  test('the pinned version has a checksum for each platform', async () => {
    const version = /temporalio\/cli v(\S+)/.exec(
      await readFile(new URL('../../temporal/local-server/go.mod', import.meta.url), 'utf8'),
    )?.[1];
    expect(Object.keys(CHECKSUMS)).toEqual([version]);
    const platforms = Object.entries(CHECKSUMS[version ?? ''] ?? {});
    expect(platforms.map(([name]) => name).toSorted()).toEqual([
      'darwin-arm64',
      'darwin-x64',
      'linux-arm64',
      'linux-x64',
    ]);
    for (const [, sha256] of platforms) expect(sha256).toMatch(/^[0-9a-f]{64}$/);
  });
});

// @promise temporal-version
test.each([
  ['temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)', true],
  ['temporal version 1.5.9 (Server 1.29.2, UI 2.42.1)', true],
  ['temporal version 1.4.1 (Server 1.28.0, UI 2.39.0)', false],
  ['temporal version 1.6.0 (Server 1.30.0, UI 2.45.0)', false],
  ['temporal version 1.5.0 (Server 1.29.0, UI 2.42.1)', false],
  ['temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)', false],
  ['something else', false],
])('a program on PATH that says %j is used: %p', async (line, expected) => {
  const programs = join(await temporaryFolder(), 'bin');
  await mkdir(programs);
  await writeFile(join(programs, 'temporal'), `#!/bin/sh\necho '${line}'\n`);
  await chmod(join(programs, 'temporal'), 0o755);
  const found = await findOnPath('1.5.1', `${programs}:/usr/bin:/bin`);
  expect(found).toBe(expected ? join(programs, 'temporal') : undefined);
});
