import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Buckets, Sorter, SpillFolder } from '../../src/reconcile/spill.ts';
import { deadPid } from '../embedded/helpers.ts';

let parent: string;

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'spill-test-'));
});
afterAll(async () => {
  await rm(parent, { recursive: true });
});

async function listOf<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const value of values) list.push(value);
  return list;
}

describe('temporary files', () => {
  test('values with every kind of line separator are read as they were written', async () => {
    const folder = await SpillFolder.create(parent);
    try {
      const values = ['\u2028', '\u2029', '\r', '\n', '\r\n', '\u0085', 'ü€'].map((end) => `a${end}b`);
      const buckets = new Buckets<string>(folder);
      for (const value of values) await buckets.append('key', value);
      expect(await listOf(buckets.read())).toEqual([values]);
      // A value is written as soon as there are more than memory should hold.
      const sorter = new Sorter<string>(folder, () => 0);
      for (let count = 0; count < 20_000; count += 1) await sorter.add('a\u2028b');
      expect(new Set(await listOf(sorter.read()))).toEqual(new Set(['a\u2028b']));
    } finally {
      await folder.remove();
    }
  });

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s removes the temporary files and ends the process',
    async (signal) => {
      const script = new URL('spill-child.ts', import.meta.url).pathname;
      const child = spawn(process.execPath, ['--import', 'tsx', script], {
        env: { ...process.env, TMPDIR: parent },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [output] = (await once(child.stdout, 'data')) as [Buffer];
      const path = output.toString().trim();
      expect(await readdir(path)).toHaveLength(1);
      const gone = once(child, 'exit');
      child.kill(signal);
      expect(await gone).toEqual([null, signal]);
      expect(existsSync(path)).toBe(false);
    },
  );

  test('a comparison removes the folders that dead processes of this machine left, and no others', async () => {
    const name = (host: string, pid: number) => `tributary-reconcile-${host}-${pid}-a1B2c3`;
    const stale = join(parent, name(hostname(), deadPid()));
    const own = join(parent, name(hostname(), process.pid));
    const others = [name(hostname(), process.ppid), name('other', deadPid()), 'tributary-test-abc'].map(
      (each) => join(parent, each),
    );
    for (const path of [stale, own, ...others]) await mkdir(path);
    const first = await SpillFolder.create(parent);
    const second = await SpillFolder.create(parent);
    expect([stale, own].filter((path) => existsSync(path))).toEqual([]);
    const kept = [...others, first.path, second.path];
    expect(kept.filter((path) => existsSync(path))).toEqual(kept);
    for (const folder of [first, second]) await folder.remove();
    expect([first, second].filter(({ path }) => existsSync(path))).toEqual([]);
    expect(process.listenerCount('SIGTERM')).toBe(0);
  });
});
