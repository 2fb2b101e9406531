import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { startTestApi } from '../support/api.ts';
import type { TestApi } from '../support/api.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { runAdminIn } from '../support/run-admin.ts';

let api: TestApi;
let founders: readonly Founder[];

beforeAll(async () => {
  api = await startTestApi();
  founders = [await setUpFounder(api), await setUpFounder(api, { linkSubdomain: 'lantern' })];
});
afterAll(async () => {
  await api.close();
});

const map = async (cell: string, ...options: string[]) =>
  await runAdminIn({ DATABASE_URL: api.database.url }, 'cells', 'map', '--cell', cell, ...options);
const sha256 = (key: string) => createHash('sha256').update(key).digest('hex');

test('the map has every app, account, key and link subdomain, and no key itself', async () => {
  const { status, out } = await map('cell-1');
  expect(status).toBe(0);
  const lines = out.trimEnd().split('\n');
  for (const { app, accountId, key } of founders) {
    for (const name of [app.id, accountId, sha256(key), sha256(app.sdkKey)])
      expect(lines).toContain(`${name} cell-1`);
    expect(out).not.toContain(key);
    expect(out).not.toContain(app.sdkKey);
  }
  expect(lines).toContain('link/lantern cell-1');
  // A line for each: two apps with a key for tests beside the other one, two accounts with a key, two subdomains.
  expect(new Set(lines).size).toBe(lines.length);
});

test('keys that were revoked or have expired lead to their cell still, which answers them with 401', async () => {
  const [founder] = founders;
  const { id, key } = await createAccountKey(api.sql, founder!.accountId as AccountId, ['read']);
  await runAdminIn({ DATABASE_URL: api.database.url }, 'keys', 'revoke', id);
  const sdkKey = founder!.app.sdkKey;
  await api.sql`
    update sdk_keys set expires_at = now() - interval '1 day' where key_sha256 = decode(${sha256(sdkKey)}, 'hex')`;
  const { out } = await map('cell-1');
  for (const ended of [key, sdkKey]) expect(out).toContain(`${sha256(ended)} cell-1`);
  expect((await api.call('GET', '/apps', { key })).status).toBe(401);
});

test.each(['', 'cell 1', 'cell\n1', 'x'.repeat(65)])(
  '"%s" is refused as the name of a cell',
  async (cell) => {
    const { status, out, err } = await map(cell);
    expect({ status, out }).toEqual({ status: 1, out: '' });
    expect(err).toContain('is no name of a cell');
  },
);

describe('with --out', () => {
  let folder: string;
  let file: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'tributary-cells-'));
    file = path.join(folder, 'cell-1.map');
  });
  afterEach(async () => {
    await rm(folder, { recursive: true });
  });

  test('the map replaces a file, and nothing is printed or left beside it', async () => {
    const { out } = await map('cell-1');
    await writeFile(file, 'app_former cell-1\n');
    expect(await map('cell-1', '--out', file)).toEqual({ status: 0, out: '', err: '' });
    expect(await readFile(file, 'utf8')).toBe(out);
    expect(await readdir(folder)).toEqual(['cell-1.map']);
  });

  test('a map that the database ends half-way leaves the former file as it was', async () => {
    await writeFile(file, 'app_former cell-1\n');
    // The last of the tables that the map reads: the lines of all others were read before.
    await runOn(api.database.url, 'alter table link_subdomains rename to lost');
    try {
      const printed = await map('cell-1');
      expect(printed.status).toBe(1);
      expect(printed.out).not.toBe('');
      expect(await map('cell-1', '--out', file)).toMatchObject({ status: 1, out: '' });
    } finally {
      await runOn(api.database.url, 'alter table lost rename to link_subdomains');
    }
    expect(await readFile(file, 'utf8')).toBe('app_former cell-1\n');
    expect(await readdir(folder)).toEqual(['cell-1.map']);
  });

  test('a file that cannot be written is named, with status 1', async () => {
    const missing = path.join(folder, 'missing', 'cell-1.map');
    expect(await map('cell-1', '--out', missing)).toEqual({
      status: 1,
      out: '',
      err: `${missing} can't be written (ENOENT). Check the name and the permissions.\n`,
    });
  });
});

test('the map is read in pages, in which no row is left out or repeated', async () => {
  const before = (await map('c')).out.trimEnd().split('\n').length;
  await api.sql`
    insert into accounts (id, name) select 'acct_01h455vb4pex5vsk' || lpad(n::text, 10, '0'), 'Example' from generate_series(1, 10001) n`;
  const lines = (await map('c')).out.trimEnd().split('\n');
  expect(lines).toHaveLength(before + 10_001);
  expect(new Set(lines).size).toBe(lines.length);
});
