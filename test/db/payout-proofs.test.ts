import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { runAdmin } from '../../src/cli/admin.ts';
import { projectRoot } from '../../src/config/project-root.ts';
import { readPayoutCsv } from '../../src/db/payout-csv.ts';
import { chainHashOf, continuesChain, listChain, provePayout } from '../../src/db/payout-proofs.ts';
import type { ChainLink } from '../../src/db/payout-proofs.ts';
import type { AppId, PayoutId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { insertEarning, payOut } from '../support/ledger.ts';
import { noSecretsKeys } from '../support/no-secrets-keys.ts';

let api: TestApi;
let app: TestApp;
let appId: AppId;
let folder: string;

beforeAll(async () => {
  api = await startTestApi({}, { max: 10 });
  folder = await mkdtemp(path.join(tmpdir(), 'tributary-proofs-'));
});
beforeEach(async () => {
  app = await newApp(api);
  appId = app.appId as AppId;
});
afterAll(async () => {
  await api.close();
  await rm(folder, { recursive: true });
});

/** Pays a new creator. The CSV is not stored yet. */
async function pay(amountCents = 500): Promise<PayoutId> {
  const affiliateId = await newAffiliate(api, app);
  const occurredAt = Date.now() - 40 * DAY_MS;
  await insertEarning(api, app, { affiliateId, amountCents, occurredAt, dueAt: occurredAt + DAY_MS });
  return (await payOut(api, app, affiliateId)) as PayoutId;
}

/** Pays a new creator and stores the CSV. */
async function payWithCsv(): Promise<Buffer> {
  return (await readPayoutCsv(api.sql, appId, await pay()))?.bytes ?? Buffer.alloc(0);
}

async function chain(of = appId): Promise<ChainLink[]> {
  const links: ChainLink[] = [];
  for await (const link of listChain(api.sql, of)) links.push(link);
  return links;
}

// @promise payout-chain
test('payouts whose CSVs are stored at the same time follow one another in the chain of their app', async () => {
  const other = await newApp(api);
  const payouts = await Promise.all(Array.from({ length: 20 }, () => pay()));
  await Promise.all(
    payouts.flatMap((id) => [readPayoutCsv(api.sql, appId, id), readPayoutCsv(api.sql, appId, id)]),
  );
  const links = await chain();
  expect(links.map(({ position }) => position)).toEqual(payouts.map((_, index) => index + 1));
  expect(links.map(({ payoutId }) => payoutId).toSorted()).toEqual(payouts.toSorted());
  for (const [index, link] of links.entries())
    expect(continuesChain(appId, links[index - 1] ?? null, link)).toBe(true);
  expect(await chain(other.appId as AppId)).toEqual([]);
});

test('the list of payouts has the chain', async () => {
  await payWithCsv();
  await payWithCsv();
  const { body } = await api.call<{ items: { chainHash: string; chainPreviousHash: string | null }[] }>(
    'GET',
    `/apps/${appId}/payouts`,
    { key: app.key },
  );
  const [first, second] = await chain();
  expect(body.items).toMatchObject([
    { chainPosition: 2, chainPreviousHash: first?.hash, chainHash: second?.hash },
    { chainPosition: 1, chainPreviousHash: null, chainHash: first?.hash },
  ]);
});

// @promise payout-chain
test('the database refuses to change, remove or forge a payout in the chain', async () => {
  await payWithCsv();
  const [first] = await chain();
  if (first === undefined) throw new Error('the payout is in the chain');
  await expect(api.sql`update payout_chain set total_cents = 1 where app_id = ${appId}`).rejects.toThrow();
  await expect(api.sql`delete from payout_chain where app_id = ${appId}`).rejects.toThrow();
  const payoutId = await pay();
  const forged = {
    position: 2,
    payoutId,
    totalCents: 500,
    csvSha256: '0'.repeat(64),
    previousHash: first.hash,
  };
  const insert = async ({ position, previousHash, csvSha256 }: typeof forged, hash: string) =>
    await api.sql`
      insert into payout_chain (app_id, position, payout_id, total_cents, csv_sha256, previous_position, previous_hash, hash)
      values (${appId}, ${position}, ${payoutId}, 500, decode(${csvSha256}, 'hex'), ${position - 1},
              decode(${previousHash}, 'hex'), decode(${hash}, 'hex'))`;
  await expect(insert(forged, 'f'.repeat(64))).rejects.toThrow('chain_hash_is_right');
  for (const wrong of [
    { ...forged, previousHash: '1'.repeat(64) },
    { ...forged, position: 3 },
  ]) {
    await expect(insert(wrong, chainHashOf(appId, wrong))).rejects.toThrow('foreign key');
  }
});

test('a CSV is proved to be the one that was paid, and not after one changed byte', async () => {
  const csv = await payWithCsv();
  await payWithCsv();
  const [own, last] = await chain();
  expect(await provePayout(api.sql, csv)).toEqual({
    kind: 'proved',
    appId,
    link: own,
    payouts: 2,
    lastHash: last?.hash,
  });
  const changed = Buffer.from(csv.toString().replace(',500,5.00,', ',600,6.00,'));
  for (const keptHash of [own?.hash ?? '', last?.hash ?? '']) {
    expect(await provePayout(api.sql, csv, keptHash)).toMatchObject({ kind: 'proved', link: own });
  }
  expect(await provePayout(api.sql, changed)).toEqual({
    kind: 'other_csv',
    payoutId: own?.payoutId,
    paidSha256: own?.csvSha256,
  });
  expect(await provePayout(api.sql, Buffer.from('payout_id\r\npay_1\r\n'))).toEqual({
    kind: 'unknown_payout',
  });
});

test('a kept hash does not prove a payout after it', async () => {
  await payWithCsv();
  const later = await payWithCsv();
  const [first, second] = await chain();
  for (const keptHash of [first?.hash ?? '', 'a'.repeat(64)]) {
    expect(await provePayout(api.sql, later, keptHash)).toEqual({
      kind: 'not_covered',
      payoutId: second?.payoutId,
      position: 2,
    });
  }
});

async function fileOf(name: string, text: string | Buffer): Promise<string> {
  const file = path.join(folder, name);
  await writeFile(file, text);
  return file;
}

/** Returns what the verifier without the service prints. */
async function offline(...args: string[]): Promise<string> {
  return await promisify(execFile)(process.execPath, [
    path.join(projectRoot, 'tools/verify-payout.mjs'),
    appId,
    ...args,
  ]).then(
    ({ stdout }) => stdout,
    ({ stderr }: { stderr: string }) => stderr,
  );
}

test('the verifier without the service proves a payout with a bonus and a deduction, whose rows have no event', async () => {
  const affiliateId = await newAffiliate(api, app);
  for (const amountCents of [700, -50]) {
    const body = { amountCents, category: 'other', reason: 'A test', externalId: `entry-${amountCents}` };
    const route = `/apps/${appId}/affiliates/${affiliateId}/entries`;
    expect((await api.call('POST', route, { key: app.key, body })).status).toBe(201);
  }
  const payoutId = (await payOut(api, app, affiliateId)) as PayoutId;
  const csv = (await readPayoutCsv(api.sql, appId, payoutId))?.bytes ?? '';
  const payouts = (await chain()).map(({ payoutId: id, position, previousHash, hash, ...link }) => ({
    ...link,
    id,
    chainPosition: position,
    chainPreviousHash: previousHash,
    chainHash: hash,
  }));
  const [bonus, list] = [await fileOf('bonus.csv', csv), await fileOf('bonus.json', JSON.stringify(payouts))];
  expect(await offline(bonus, list)).toContain(`PROVED: ${bonus} was paid as ${payoutId}, 650 cents`);
});

test('the command line and the verifier without the service agree about a CSV, a changed one and a changed chain', async () => {
  const csv = await payWithCsv();
  const laterCsv = await payWithCsv();
  const admin = async (...args: string[]) => {
    let [out, err] = ['', ''];
    const status = await runAdmin(args, {
      openDatabase: async () => ({
        url: api.database.url,
        ownerUrl: api.database.url,
        close: async () => {},
      }),
      secretsKeys: noSecretsKeys,
      findService: async () => null,
      stdout: (text) => void (out += text),
      stderr: (text) => void (err += text),
    });
    return { status, out, err };
  };
  const paid = await fileOf('paid.csv', csv);
  const changed = await fileOf('changed.csv', csv.toString().replace(',500,5.00,', ',600,6.00,'));
  const list = (await admin('payouts', 'chain', '--app', appId)).out;
  const payouts = await fileOf('payouts.json', list);
  const [first, second] = await chain();

  expect(await admin('payouts', 'verify', paid, '--json')).toMatchObject({
    status: 0,
    err: expect.stringContaining('the chain of 2 payouts is intact'),
  });
  const proved = `PROVED: ${paid} was paid as ${first?.payoutId}`;
  for (const kept of [first?.hash ?? '', second?.hash ?? '']) {
    expect(await offline(paid, '--hash', kept, payouts)).toMatch(
      new RegExp(`^${proved}.*The kept hash covers it`, 's'),
    );
    expect(await admin('payouts', 'verify', paid, '--hash', kept)).toMatchObject({
      status: 0,
      err: expect.stringContaining('The kept hash covers it'),
    });
  }
  expect(await offline(paid, payouts)).toMatch(new RegExp(`^${proved}.*only mistakes are excluded`, 's'));
  expect(await admin('payouts', 'verify', paid)).toMatchObject({
    status: 0,
    err: expect.stringContaining('only mistakes are excluded'),
  });

  // The owner of the schema can append a payout after the kept hash.
  const later = await fileOf('later.csv', laterCsv);
  expect(await offline(later, '--hash', first?.hash ?? '', payouts)).toContain(
    'NOT PROVED: the kept hash is not in the chain at place 2 or later',
  );
  expect(await admin('payouts', 'verify', later, '--hash', first?.hash ?? '')).toMatchObject({
    status: 1,
    err: expect.stringContaining('The kept hash is not in the chain at place 2 or later'),
  });

  const pages = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const { body }: { body: { nextCursor: string | null } } = await api.call(
      'GET',
      `/apps/${appId}/payouts?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`,
      { key: app.key },
    );
    pages.push(await fileOf(`page-${pages.length}.json`, JSON.stringify(body)));
    cursor = body.nextCursor;
  }
  expect(pages).toHaveLength(2);
  expect(await offline(paid, ...pages)).toContain(proved);
  expect(await offline(paid, pages[0] ?? '')).toContain('the list lacks the payout at place 1');

  expect(await admin('payouts', 'verify', changed)).toMatchObject({
    status: 1,
    err: expect.stringContaining(`This is not the CSV that was paid as ${first?.payoutId}`),
  });
  expect(await offline(changed, payouts)).toContain('NOT PROVED: no payout has a CSV');

  expect(await offline(paid, payouts, '--hash', 'a'.repeat(64))).toContain(
    'the kept hash is not in the chain',
  );
  const removed = await fileOf('removed.json', JSON.stringify(JSON.parse(list).slice(1)));
  expect(await offline(paid, removed)).toContain('the list lacks the payout at place 1');
  const higher = await fileOf('higher.json', list.replace('"totalCents": 500', '"totalCents": 600'));
  expect(await offline(paid, higher)).toContain(`payout ${first?.payoutId} at place 1 was changed`);

  // The owner of the schema can take its guards away, but not compute the hashes that were kept elsewhere.
  await api.sql`alter table payout_chain disable trigger user`;
  await api.sql`alter table payout_chain drop constraint chain_hash_is_right`;
  await api.sql`update payout_chain set total_cents = 600 where payout_id = ${second?.payoutId ?? ''}`;
  expect(await admin('payouts', 'verify', paid)).toMatchObject({
    status: 1,
    err: expect.stringContaining('is broken at payout 2'),
  });
});
