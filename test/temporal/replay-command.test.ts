import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { projectRoot } from '../../src/config/project-root.ts';
import { prepareDataDir, writeServiceFile } from '../../src/embedded/data-dir.ts';
import { findTemporalAddress } from '../../src/embedded/find-service.ts';
import { readHistory } from '../../temporal/replay.ts';
import { cleanUp, temporaryFolder } from '../embedded/helpers.ts';
import { temporalAddress } from '../support/service.ts';

afterAll(cleanUp);

const NO_SERVER = { dataDir: '/nonexistent/data', findTemporal: async () => undefined };

test('npm run replay prints one line for a history that replays, and nothing to standard error', async () => {
  const file = 'test/fixtures/histories/next/delivery-happy.json';
  const result = await new Promise((resolve) => {
    const args = ['--import', 'tsx', 'tools/replay.ts', file];
    const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };
    execFile(process.execPath, args, { cwd: projectRoot, env }, (error, stdout, stderr) =>
      resolve({ failed: error !== null, stdout, stderr }),
    );
  });
  expect(result).toEqual({
    failed: false,
    stdout: `${file} replays: the current code makes the same decisions.\n`,
    stderr: '',
  });
}, 120_000);

test('a replay of a missing file says that there is no such file', async () => {
  const folder = await temporaryFolder();
  await expect(readHistory('histories/gone.json', { folder, ...NO_SERVER })).rejects.toThrow(
    `There is no file ${folder}/histories/gone.json. Name a history file or a workflow id.`,
  );
});

test.each([
  ['JSON without events', '{"a":1}'],
  ['a text', 'hello'],
  ['null', 'null'],
])('a replay of a file with %s says that it is not a history', async (_, text) => {
  const folder = await temporaryFolder();
  await writeFile(path.join(folder, 'other.json'), text);
  await expect(readHistory('other.json', { folder, ...NO_SERVER })).rejects.toThrow(
    `${folder}/other.json is not a workflow history. Download the history of the workflow as JSON from the Temporal UI.`,
  );
});

test('a replay of a workflow id finds the server of the running service in the data folder', async () => {
  const folder = await temporaryFolder();
  const options = { folder, dataDir: folder, findTemporal: async () => await findTemporalAddress(folder) };
  await expect(readHistory('delivery:x', options)).rejects.toThrow(
    `No service is running on ${folder}, so there is no Temporal server to ask. Start the service, set DATA_DIR to its folder, or set TEMPORAL_ADDRESS.`,
  );

  const held = await prepareDataDir(folder);
  await writeServiceFile(folder, {
    pid: process.pid,
    apiUrl: 'http://127.0.0.1:1',
    databaseUrl: 'postgres://here/db',
    temporalAddress: temporalAddress(),
  });
  const connection = await Connection.connect({ address: temporalAddress() });
  const workflowId = `replayed-${randomUUID()}`;
  const handle = await new Client({ connection }).workflow.start('any', {
    workflowId,
    taskQueue: workflowId,
  });
  expect(await readHistory(workflowId, options)).toMatchObject({ events: expect.any(Array) });
  await handle.terminate();
  await connection.close();
  await expect(readHistory('delivery:x', options)).rejects.toThrow(
    `There is no workflow delivery:x in the namespace default at ${temporalAddress()}, and no file of that name.`,
  );
  await held.release();
});
