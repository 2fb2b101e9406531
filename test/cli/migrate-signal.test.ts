import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { TEST_SECRETS_KEY } from '../support/service.ts';

// @promise bounded-migrations
test('SIGTERM ends a "tributary migrate" at once that waits for a database without answers', async () => {
  const silent = createServer((socket) => void socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const connected = once(silent, 'connection') as Promise<[Socket]>;
  const { port } = silent.address() as AddressInfo;
  const child = spawn(process.execPath, [path.join(projectRoot, 'dist/src/cli/main.js'), 'migrate'], {
    cwd: projectRoot,
    env: {
      PATH: process.env['PATH'] ?? '',
      DATABASE_URL: `postgres://user@127.0.0.1:${port}/silent`,
      SECRETS_KEY: TEST_SECRETS_KEY.toString('base64'),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const [socket] = await connected;
  const begin = performance.now();
  child.kill('SIGTERM');
  const [status, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect({ status, signal, stderr }).toEqual({
    status: 1,
    signal: null,
    stderr: expect.stringContaining('stopped'),
  });
  // Not after the 15 s for which it waits for an answer.
  expect(performance.now() - begin).toBeLessThan(10_000);
  expect(stderr).not.toMatch(/\n\s+at /);
  socket.destroy();
  silent.close();
});
