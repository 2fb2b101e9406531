import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { MINIMUM_NODE, nodeVersionProblem, openFilesProblem } from '../../src/config/node-version.ts';
import { projectRoot } from '../../src/config/project-root.ts';

test('the oldest supported version of Node is the one of package.json', async () => {
  const { engines } = JSON.parse(await readFile(path.join(projectRoot, 'package.json'), 'utf8')) as {
    engines: { node: string };
  };
  expect(engines.node).toBe(`>=${MINIMUM_NODE}`);
});

test.each([
  ['18.20.8', false],
  ['20.19.9', false],
  ['20.20.0', true],
  ['22.0.0', true],
])('Node %s is supported: %s', (version, isSupported) => {
  expect(nodeVersionProblem(version) === null).toBe(isSupported);
});

test.each(['dist/src/main.js', 'dist/src/cli/main.js'])(
  '%s on an old version of Node prints one sentence and imports no package',
  async (entry) => {
    const old = 'Object.defineProperty(process.versions, "node", { value: "18.19.1" })';
    const args = ['--import', `data:text/javascript,${encodeURIComponent(old)}`, entry, '--help'];
    const result = await new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: projectRoot }, (error, stdout, stderr) =>
        resolve({ code: error?.code, stdout, stderr }),
      );
    });
    expect(result).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'Tributary requires Node 20.20.0 or newer, and this is Node 18.19.1: install a newer version from https://nodejs.org, then run the command again.\n',
    });
    const source = await readFile(
      path.join(projectRoot, entry.replace('dist/', '').replace('.js', '.ts')),
      'utf8',
    );
    expect([...source.matchAll(/^import .*$/gm)]).toHaveLength(1);
  },
);

test.each([
  ['Max open files            64                   64                   files     \n', '64'],
  ['Max open files            511                  4096                 files     \n', '511'],
  ['Max open files            512                  512                  files     \n', null],
  ['Max open files            unlimited            unlimited            files     \n', null],
  ['', null],
])('the limits %j are enough, or a sentence names the number of files', (limits, files) => {
  if (files === null) expect(openFilesProblem(limits)).toBeNull();
  else expect(openFilesProblem(limits)).toContain(`may open ${files} files`);
});

test.each(['dist/src/main.js', 'dist/src/cli/main.js'])(
  '%s with a limit of 64 files says so in one sentence',
  async (entry) => {
    if (process.platform !== 'linux') return;
    const result = await new Promise((resolve) => {
      execFile(
        'sh',
        ['-c', `ulimit -n 64; exec "${process.execPath}" ${entry} --help`],
        { cwd: projectRoot },
        (error, stdout, stderr) => resolve({ code: error?.code, stdout, stderr }),
      );
    });
    expect(result).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^This process may open 64 files, and Tributary needs at least 512, .*\n$/,
      ),
    });
  },
);
