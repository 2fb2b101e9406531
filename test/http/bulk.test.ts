import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { newId } from '../../src/db/new-id.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { countWaiting } from '../support/waiting.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi();
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

interface Bulk {
  readonly created: { id: string; slug: string; name: string }[];
  readonly existing: { index: number; id: string }[];
  readonly failed: { index: number; code: string; message: string }[];
  readonly code?: string;
  readonly errors?: { path: string }[];
}

const bulk = (what: 'affiliates' | 'links', rows: unknown, owner = app) =>
  api.call<Bulk>('POST', `/apps/${owner.appId}/${what}/bulk`, { key: owner.key, body: { rows } });

const link = (affiliateId: string, slug?: string) => ({
  affiliateId,
  destinationUrl: 'https://example.com/get',
  ...(slug === undefined ? {} : { slug }),
});

describe('POST affiliates/bulk', () => {
  // @promise post-affiliates-bulk
  test('a hundred affiliates are created in the given order, also in the list', async () => {
    const own = await newApp(api);
    const names = Array.from({ length: 100 }, (_, index) => `Creator ${index}`);
    const { status, body } = await bulk(
      'affiliates',
      names.map((name) => ({ name })),
      own,
    );
    expect(status).toBe(200);
    expect(body.created.map(({ name }) => name)).toEqual(names);
    expect(body.failed).toEqual([]);
    const list = await api.call<{ items: { name: string }[] }>(
      'GET',
      `/apps/${own.appId}/affiliates?limit=100`,
      {
        key: own.key,
      },
    );
    expect(list.body.items.map(({ name }) => name)).toEqual(names);
  });

  // @promise bulk-schema-rejects-batch, error-400-bulk-row, bulk-names-row
  test('one invalid affiliate rejects the whole call, is named in the error, and no affiliate is created', async () => {
    const own = await newApp(api);
    const { status, body } = await bulk('affiliates', [{ name: 'Ann' }, { name: '', email: 'no' }], own);
    expect(status).toBe(400);
    expect(body.errors?.map(({ path }) => path)).toEqual(['rows.1.name', 'rows.1.email']);
    const list = await api.call<{ items: unknown[] }>('GET', `/apps/${own.appId}/affiliates`, {
      key: own.key,
    });
    expect(list.body.items).toEqual([]);
  });

  // @promise bulk-at-most-100, bulk-limit, bulk-rows
  test.each([
    ['an empty `rows`', []],
    ['a call with 101 rows', Array.from({ length: 101 }, () => ({ name: 'Ann' }))],
    ['`rows` that is not an array', { name: 'Ann' }],
    ['a missing `rows`', undefined],
  ])('%s is a 400', async (_name, rows) => {
    expect((await bulk('affiliates', rows)).status).toBe(400);
  });
});

describe('external ids', () => {
  const single = (what: 'affiliates' | 'links', body: object, owner: TestApp) =>
    api.call<{ id: string }>('POST', `/apps/${owner.appId}/${what}`, { key: owner.key, body });

  // @promise external-id-once
  test('a second import of the same affiliates creates none, and reports each with its id', async () => {
    const own = await newApp(api);
    const rows = [{ name: 'Ann', externalId: 'a' }, { name: 'Bob' }, { name: 'Cid', externalId: 'c' }];
    const first = await bulk('affiliates', rows, own);
    expect(first.body.existing).toEqual([]);
    const [ann, , cid] = first.body.created.map(({ id }) => id);
    const again = [
      { name: 'Ann again', externalId: 'a' },
      { name: 'New', externalId: 'n' },
      ...rows.slice(2),
    ];
    const second = await bulk('affiliates', [...again, { name: 'New twice', externalId: 'n' }], own);
    const [created] = second.body.created;
    expect(second.body).toMatchObject({
      created: [{ name: 'New', externalId: 'n' }],
      existing: [
        { index: 0, id: ann },
        { index: 2, id: cid },
        { index: 3, id: created?.id },
      ],
      failed: [],
    });
    // Another app has its own ids.
    const ofOther = await single('affiliates', rows[0] ?? {}, app);
    expect(ofOther.status).toBe(201);
    const repeated = await bulk('affiliates', rows.slice(0, 1), app);
    expect(repeated.body.existing).toEqual([{ index: 0, id: ofOther.body.id }]);
  });

  // @promise external-id-once
  test('a second import of the same links creates none, and reports each with its id', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const rows = [
      { ...link(affiliateId, 'one'), externalId: 'a' },
      { ...link(affiliateId), externalId: 'b' },
    ];
    const first = await bulk('links', rows, own);
    const ids = first.body.created.map(({ id }) => id);
    expect(ids).toHaveLength(2);
    const second = await bulk(
      'links',
      [
        ...rows,
        { ...link('aff_nobody'), externalId: 'a' },
        { ...link(affiliateId, 'one'), externalId: 'c' },
        { ...link(affiliateId, 'two'), externalId: 'c' },
        { ...link(affiliateId, 'two'), externalId: 'd' },
        { ...link(affiliateId, 'three'), externalId: 'd' },
      ],
      own,
    );
    expect(second.body).toMatchObject({
      created: [{ slug: 'two', externalId: 'd' }],
      existing: [
        { index: 0, id: ids[0] },
        { index: 1, id: ids[1] },
        { index: 6, id: second.body.created[0]?.id },
      ],
    });
    expect(second.body.failed.map(({ index, code }) => [index, code])).toEqual([
      [2, 'unknown_affiliate'],
      [3, 'slug_taken'],
      [4, 'duplicate_external_id'],
    ]);
    // Another app has its own ids.
    const ofOther = [{ ...link(await newAffiliate(api, app)), externalId: 'a' }];
    const created = await bulk('links', ofOther, app);
    expect(created.body.created).toHaveLength(1);
    const repeated = await bulk('links', ofOther, app);
    expect(repeated.body.existing).toEqual([{ index: 0, id: created.body.created[0]?.id }]);
  });

  // @promise external-id-conflict
  test('a repeated external id of one affiliate or link is a 409 with the id that has it', async () => {
    const own = await newApp(api);
    const affiliate = await single('affiliates', { name: 'Ann', externalId: 'x' }, own);
    const repeated = await single('affiliates', { name: 'Bea', externalId: 'x' }, own);
    expect(repeated).toMatchObject({
      status: 409,
      body: { code: 'external_id_taken', existingId: affiliate.body.id },
    });
    const one = await single('links', { ...link(affiliate.body.id), externalId: 'x' }, own);
    const other = await single('links', { ...link(affiliate.body.id), externalId: 'x' }, own);
    expect(other).toMatchObject({
      status: 409,
      body: { code: 'external_id_taken', existingId: one.body.id },
    });
  });

  // @promise external-id-once
  test('simultaneous imports of the same rows create each row once', async () => {
    const own = await newApp(api);
    const rows = Array.from({ length: 20 }, (_, index) => ({ name: 'Ann', externalId: `id-${index}` }));
    const answers = await Promise.all([1, 2, 3, 4].map(() => bulk('affiliates', rows, own)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers.reduce((sum, { body }) => sum + body.created.length, 0)).toBe(20);
    expect(answers.every(({ body }) => body.created.length + body.existing.length === 20)).toBe(true);
    const affiliateId = await newAffiliate(api, own);
    const links = rows.map(({ externalId }) => ({ ...link(affiliateId), externalId }));
    const linked = await Promise.all([1, 2, 3, 4].map(() => bulk('links', links, own)));
    expect(linked.reduce((sum, { body }) => sum + body.created.length, 0)).toBe(20);
    expect(linked.every(({ body }) => body.created.length + body.existing.length === 20)).toBe(true);
  });

  // @promise external-id-once
  test.each(['affiliates', 'links'] as const)(
    'an import waits for a concurrent one of the same external id, and reports its %s as existing',
    async (what) => {
      const own = await newApp(api);
      const affiliateId = await newAffiliate(api, own);
      const other = new pg.Client(api.database.url);
      await other.connect();
      try {
        const id = newId(what === 'links' ? 'link' : 'affiliate');
        await other.query('begin');
        await (what === 'links'
          ? other.query(
              `insert into links (id, app_id, affiliate_id, slug, destination_url, external_id)
               values ($1, $2, $3, 'other', 'https://example.com', 'x')`,
              [id, own.appId, affiliateId],
            )
          : other.query(
              "insert into affiliates (id, app_id, name, external_id) values ($1, $2, 'Ann', 'x')",
              [id, own.appId],
            ));
        const row = what === 'links' ? link(affiliateId) : { name: 'Ann' };
        let isAnswered = false;
        const importing = bulk(what, [{ ...row, externalId: 'x' }], own).finally(() => (isAnswered = true));
        await eventually(
          'the import waits or is answered',
          async () => isAnswered || (await countWaiting(api.sql)) > 0,
        );
        await other.query('commit');
        expect((await importing).body).toMatchObject({
          created: [],
          existing: [{ index: 0, id }],
          failed: [],
        });
      } finally {
        await other.end();
      }
    },
  );

  // @promise repeated-email-warning
  test('a repeated e-mail address creates the affiliate, with a warning', async () => {
    const own = await newApp(api);
    // An affiliate of another app with the same address is no repetition.
    for (const email of ['ann@example.com', 'c@example.com']) await newAffiliate(api, app, { email });
    const first = await single('affiliates', { name: 'Ann', email: 'ann@example.com' }, own);
    expect(first.body).not.toHaveProperty('warnings');
    const second = await single('affiliates', { name: 'Ann', email: 'Ann@Example.com' }, own);
    expect(second).toMatchObject({ status: 201, body: { warnings: [{ code: 'repeated_email' }] } });
    const emails = ['b@example.com', 'c@example.com', 'B@example.com', 'ANN@example.com'];
    const rows = [...emails.map((email) => ({ name: 'Bea', email })), { name: 'Bea' }];
    const { body } = await bulk('affiliates', rows, own);
    expect(body.created.map((row) => 'warnings' in row)).toEqual([true, false, true, true, false]);
  });
});

describe('POST links/bulk', () => {
  // @promise post-links-bulk, bulk-response, bulk-row-fails-alone, bulk-state-rejects-one
  test('a link that the state of the app does not allow fails alone, with its index and reason', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const foreign = await newAffiliate(api, app);
    await newLink(api, own, affiliateId, { slug: 'Taken' });
    const { status, body } = await bulk(
      'links',
      [
        link(affiliateId, 'first'),
        link(affiliateId, 'taken'),
        link('aff_nobody', 'second'),
        link(affiliateId, 'FIRST'),
        link(foreign, 'third'),
        link(affiliateId),
        link(foreign, 'fourth'),
        link(affiliateId, 'fourth'),
      ],
      own,
    );
    expect(status).toBe(200);
    expect(body.failed.map(({ index, code }) => [index, code])).toEqual([
      [1, 'slug_taken'],
      [2, 'unknown_affiliate'],
      [3, 'duplicate_slug'],
      [4, 'unknown_affiliate'],
      [6, 'unknown_affiliate'],
    ]);
    expect(body.created.map(({ slug }) => slug)).toEqual([
      'first',
      expect.stringMatching(/^[a-z0-9]{8}$/),
      'fourth',
    ]);
    const list = await api.call<{ items: unknown[] }>('GET', `/apps/${own.appId}/links`, { key: own.key });
    expect(list.body.items).toHaveLength(4);
  });

  // @promise bulk-schema-rejects-batch
  test('one invalid link rejects the whole call', async () => {
    const affiliateId = await newAffiliate(api, app);
    const { status, body } = await bulk('links', [
      link(affiliateId, 'fine'),
      { ...link(affiliateId, 'x'), destinationUrl: 'javascript:alert(1)' },
    ]);
    expect(status).toBe(400);
    expect(body.errors?.map(({ path }) => path)).toEqual(['rows.1.destinationUrl', 'rows.1.slug']);
    expect((await bulk('links', [link(affiliateId, 'fine')])).body.created).toHaveLength(1);
  });

  test('two simultaneous calls with the same slugs create each slug once', async () => {
    const own = await newApp(api);
    const affiliateId = await newAffiliate(api, own);
    const slugs = Array.from({ length: 40 }, (_, index) => `slug-${index}`);
    const rows = slugs.map((slug) => link(affiliateId, slug));
    const responses = await Promise.all([bulk('links', rows, own), bulk('links', rows.toReversed(), own)]);
    const created = responses.flatMap(({ body }) => body.created.map(({ slug }) => slug));
    expect(created.toSorted()).toEqual(slugs.toSorted());
    expect(responses.flatMap(({ body }) => body.failed.map(({ code }) => code))).toEqual(
      slugs.map(() => 'slug_taken'),
    );
  });
});
