import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  listUnattributedEvents,
  listWebhookDeliveries,
  summarizeDeliveries,
  summarizeUnattributed,
} from '../../src/db/diagnostics.ts';
import type { UnattributedFilter } from '../../src/db/diagnostics.ts';
import { newId } from '../../src/db/new-id.ts';
import type { Page as DbPage, Position } from '../../src/db/page.ts';
import { instant } from '../../src/db/sql.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { LIKELY_CAUSES } from '../../src/domain/likely-causes.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import { newAffiliate, newApp, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import type { ApiResponse } from '../support/http-client.ts';
import { insertEarning } from '../support/ledger.ts';

let api: TestApi;
let app: TestApp;

beforeAll(async () => {
  api = await startTestApi({
    temporalUi: { url: 'https://temporal.example.com/ui', namespace: 'of/us' },
  });
  app = await newApp(api);
});
afterAll(async () => {
  await api.close();
});

interface Page {
  readonly items: readonly Record<string, unknown>[];
  readonly nextCursor: string | null;
}
interface Identity {
  readonly verdict: string;
  readonly overlapCount: number;
  readonly billingOnlySamples: readonly string[];
  readonly attributionOnlySamples: readonly string[];
  readonly truncated: boolean;
}

const get = <T = Page>(path: string, owner: TestApp): Promise<ApiResponse<T>> =>
  api.call<T>('GET', `/apps/${owner.appId}/diagnostics/${path}`, { key: owner.key });
const identityOf = async (owner: TestApp, query = '') =>
  (await get<Identity>(`identity${query}`, owner)).body;

interface EventRow {
  readonly userId?: string | null;
  readonly environment?: 'production' | 'sandbox';
  readonly kind?: string;
  /** Defaults to 999. */
  readonly amountCents?: number | null;
  readonly likelyCause?: string | null;
  readonly occurredAt?: number;
}

/** Writes events and their deliveries directly to the database. Returns the event ids. */
async function insertEvents(owner: TestApp, rows: readonly EventRow[]): Promise<string[]> {
  const secretId = newId('secret');
  await api.sql`
    insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, expires_at)
    values (${secretId}, ${owner.appId}, 'stripe', 'production', ''::bytea, 'none', now())`;
  const created = rows.map((row) => ({
    userId: 'user',
    environment: 'production',
    kind: 'purchase',
    likelyCause: null,
    occurredAt: Date.UTC(2026, 0, 1),
    amountCents: 999,
    ...row,
    eventId: newId('event'),
    deliveryId: newId('delivery'),
  }));
  await api.sql`
    with rows as (
      select * from jsonb_to_recordset(${api.sql.json(created)})
        r ("userId" text, environment text, kind text, "likelyCause" text, "occurredAt" bigint, "amountCents" bigint, "eventId" text,
           "deliveryId" text)
    ), added as (
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256,
                              event_id, completed_at)
      select "deliveryId", ${owner.appId}, 'stripe', now(), true, 'processed', ${secretId},
             ${createHash('sha256').update('x').digest()}::bytea, "eventId", now() from rows
    )
    insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at,
                        customer_user_id, amount_cents, likely_cause)
    select "eventId", ${owner.appId}, "deliveryId", 'stripe', 'of-' || "eventId", kind, environment,
           to_timestamp("occurredAt" / 1000.0), to_timestamp("occurredAt" / 1000.0 + 1), "userId", "amountCents", "likelyCause"
      from rows`;
  return created.map(({ eventId }) => eventId);
}

async function identify(owner: TestApp, customerUserId: string): Promise<void> {
  const response = await api.call('POST', '/sdk/identify', {
    key: owner.sdkKey,
    body: { deviceId: randomUUID(), customerUserId, identifiedAt: api.clock.now },
  });
  // Without an install there is no attribution, but the pair is stored.
  expect(response.status).toBe(404);
}

describe('GET diagnostics/identity', () => {
  // @promise get-identity-diagnostic, identity-no-data
  test('the verdict is no_data while either side has no user id', async () => {
    const nothing = {
      verdict: 'no_data',
      overlapCount: 0,
      billingOnlySamples: [],
      attributionOnlySamples: [],
      truncated: false,
    };
    const own = await newApp(api);
    expect(await identityOf(own)).toEqual(nothing);
    await insertEvents(own, [{ userId: null }, { userId: 'made-up', kind: 'test' }]);
    expect(await identityOf(own)).toEqual(nothing);
    await identify(own, 'u-1');
    expect(await identityOf(own)).toEqual({ ...nothing, attributionOnlySamples: ['u-1'] });

    const other = await newApp(api);
    await insertEvents(other, [{ userId: 'b-1' }]);
    expect(await identityOf(other)).toEqual({ ...nothing, billingOnlySamples: ['b-1'] });
  });

  // @promise sdk-version
  test('the SDK versions of attributed installs are listed with their number, the latest first', async () => {
    const own = await newApp(api);
    const affiliateCode = await newAffiliate(api, own);
    for (const sdk of ['web/0.1.0', undefined, 'node/0.1.0', 'web/0.1.0']) {
      const body = { deviceId: randomUUID(), affiliateCode, firstOpenAt: api.clock.now, sdk };
      expect((await api.call('POST', '/sdk/install', { key: own.sdkKey, body })).status).toBe(200);
    }
    expect(await identityOf(own)).toMatchObject({
      sdks: [
        { sdk: 'web/0.1.0', installs: 2, lastAt: expect.any(Number) },
        { sdk: 'node/0.1.0', installs: 1, lastAt: expect.any(Number) },
      ],
    });
  });

  // @promise get-identity-diagnostic, identity-diagnostic
  test('the verdict is no_overlap with the latest ids of both sides, and ok after one match, also in the sandbox', async () => {
    const own = await newApp(api);
    await insertEvents(own, [{ userId: 'b-1' }, { userId: 'b-2' }, { userId: 'b-1' }]);
    await identify(own, 'u-1');
    await identify(own, 'u-2');
    expect(await identityOf(own)).toEqual({
      verdict: 'no_overlap',
      overlapCount: 0,
      billingOnlySamples: ['b-1', 'b-2'],
      attributionOnlySamples: ['u-2', 'u-1'],
      truncated: false,
    });
    await insertEvents(own, [{ userId: 'u-1', environment: 'sandbox' }]);
    expect(await identityOf(own)).toEqual({
      verdict: 'ok',
      overlapCount: 1,
      billingOnlySamples: ['b-1', 'b-2'],
      attributionOnlySamples: ['u-2'],
      truncated: false,
    });
    expect(await identityOf(await newApp(api))).toMatchObject({ verdict: 'no_data' });
  });

  // @promise identity-diagnostic, identity-samples
  test('the response has at most twenty ids per side, fewer on request, and states whether there are more', async () => {
    const own = await newApp(api);
    await insertEvents(
      own,
      Array.from({ length: 21 }, (_, index) => ({ userId: `b-${index}` })),
    );
    for (let index = 0; index < 3; index += 1) await identify(own, `u-${index}`);
    const samples = async (query: string) => {
      const body = await identityOf(own, query);
      return [body.billingOnlySamples.length, body.attributionOnlySamples.length, body.truncated];
    };
    expect(await samples('')).toEqual([20, 3, true]);
    expect(await samples('?limit=100')).toEqual([20, 3, true]);
    expect(await samples('?limit=2')).toEqual([2, 2, true]);
    expect((await identityOf(own)).billingOnlySamples[0]).toBe('b-20');
  });

  test('a match is found beyond the latest user ids, from either side', async () => {
    const own = await newApp(api);
    const many = (prefix: string) =>
      Array.from({ length: 1_001 }, (_, index) => ({ userId: `${prefix}-${index}` }));
    await insertEvents(own, [{ userId: 'old' }, ...many('b')]);
    await identify(own, 'old');
    // The billing event is older than the latest ones, but its user was reported lately.
    await api.sql`
      insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, occurred_at, only_anonymous_user)
      select ${newId('payment')}, app_id, 'sandbox', 'stripe', 'p', id, 'USD', 1, now(), false
        from events where app_id = ${own.appId} and customer_user_id = 'old'`;
    await api.sql`
      insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
      select app_id, 'old', id, environment, 0 from payments where app_id = ${own.appId}`;
    expect(await identityOf(own)).toMatchObject({ verdict: 'ok', overlapCount: 1, truncated: true });

    // The other way round: reported long ago, billed lately.
    const other = await newApp(api);
    await api.sql`
      insert into identities (app_id, device_id, customer_user_id, position, identified_at, created_at)
      select ${other.appId}, 'device-' || n, case n when 0 then 'old' else 'u-' || n end, 1, now(), now() + n * interval '1 second'
        from generate_series(0, 1001) n`;
    await insertEvents(other, [{ userId: 'old' }]);
    expect(await identityOf(other)).toMatchObject({ verdict: 'ok', overlapCount: 1, truncated: true });
  });

  test('an attributed user who paid counts as a match, however old the payment', async () => {
    const own = await newApp(api);
    const at = Date.UTC(2026, 0, 1);
    await insertEarning(api, own, {
      affiliateId: await newAffiliate(api, own),
      amountCents: 100,
      occurredAt: at,
      dueAt: at,
    });
    await api.sql`update bindings set first_paid_at = ${instant(at)} where app_id = ${own.appId}`;
    await insertEvents(
      own,
      Array.from({ length: 1_001 }, (_, index) => ({ userId: `b-${index}` })),
    );
    await identify(own, 'u-1');
    expect(await identityOf(own)).toMatchObject({ verdict: 'ok', overlapCount: 1, truncated: true });
  });

  test.each([['?limit=0'], ['?limit=x'], ['?limit=101']])(
    'an identity diagnostic with %s is a 400',
    async (query) => {
      expect((await get(`identity${query}`, app)).status).toBe(400);
    },
  );
});

describe('GET diagnostics/unattributed', () => {
  // @promise get-unattributed, unattributed-row, unattributed-without-sandbox
  test('the list has paid events without a commission, latest first, each with its cause and what to change', async () => {
    const own = await newApp(api);
    const at = Date.UTC(2026, 0, 1);
    const ids = await insertEvents(own, [
      { userId: null, likelyCause: 'missing_user_id', occurredAt: at },
      { userId: 'u', likelyCause: 'user_never_identified', occurredAt: at + 2, kind: 'renewal' },
      { userId: 'paid', likelyCause: null, occurredAt: at + 3 },
      { userId: 'sand', environment: 'sandbox', likelyCause: null, occurredAt: at + 4 },
    ]);
    const { status, body } = await get('unattributed', own);
    expect(status).toBe(200);
    expect(body).toEqual({
      items: [
        {
          eventId: ids[1],
          source: 'stripe',
          sourceEventId: `of-${ids[1]}`,
          kind: 'renewal',
          customerUserId: 'u',
          amountCents: 999,
          occurredAt: at + 2,
          receivedAt: at + 1_002,
          likelyCause: 'user_never_identified',
          explanation: expect.stringMatching(/identify\(userId\)/),
        },
        expect.objectContaining({ eventId: ids[0], customerUserId: null, likelyCause: 'missing_user_id' }),
      ],
      nextCursor: null,
    });
  });

  // @promise cause-sentence
  test('every cause has its own explanation', async () => {
    const own = await newApp(api);
    await insertEvents(
      own,
      LIKELY_CAUSES.map((likelyCause) => ({ likelyCause })),
    );
    const { body } = await get('unattributed?limit=100', own);
    expect(new Set(body.items.map((row) => row['likelyCause']))).toEqual(new Set(LIKELY_CAUSES));
    const sentences = new Set(body.items.map((row) => String(row['explanation'])));
    // The explanations of a paused and a removed affiliate differ in one word.
    expect(sentences.size).toBe(LIKELY_CAUSES.length);
    for (const sentence of sentences) expect(sentence).toMatch(/^[A-Z].*\.$/);
  });

  // @promise diagnostics-paged
  // @promise unattributed-by-user
  test('`customerUserId` selects the unattributed events of exactly this user, page by page', async () => {
    const own = await newApp(api);
    const cause = { likelyCause: 'user_not_attributed' };
    const ids = await insertEvents(own, [
      { ...cause, userId: 'user 1', occurredAt: 1 },
      { ...cause, userId: 'user 2', occurredAt: 2 },
      { ...cause, userId: 'user 1', occurredAt: 3 },
      { userId: 'user 1', occurredAt: 4 },
      { ...cause, userId: 'User 1', occurredAt: 5 },
      { ...cause, userId: null, occurredAt: 6 },
    ]);
    const path = 'unattributed?customerUserId=user+1&limit=1';
    const first = (await get(path, own)).body;
    const second = (await get(`${path}&cursor=${first.nextCursor}`, own)).body;
    expect([...first.items, ...second.items].map(({ eventId }) => eventId)).toEqual([ids[2], ids[0]]);
    expect(second.nextCursor).toBeNull();
    expect((await get('unattributed?customerUserId=nobody', own)).body.items).toEqual([]);
    const other = `unattributed?customerUserId=user+2&cursor=${first.nextCursor}`;
    expect(await get(other, own)).toMatchObject({ status: 400, body: { code: 'invalid_cursor' } });
    expect((await get('unattributed?customerUserId=', own)).status).toBe(400);
  });

  test('a cursor of the first release, which had fewer filters, is still that of its list', async () => {
    const own = await newApp(api);
    const cause = { likelyCause: 'user_not_attributed' };
    const ids = await insertEvents(own, [
      { ...cause, occurredAt: 1 },
      { ...cause, occurredAt: 2 },
    ]);
    const position = [2, ids[1]];
    const sum = createHash('sha256')
      .update(JSON.stringify(['unattributed', own.appId, [['customerUserId', null]], position]))
      .digest('base64url')
      .slice(0, 16);
    const cursor = Buffer.from(JSON.stringify([...position, sum])).toString('base64url');
    const { body } = await get(`unattributed?cursor=${cursor}`, own);
    expect(body.items.map(({ eventId }) => eventId)).toEqual([ids[0]]);
  });

  // @promise unattributed-filter
  test('cause, provider, user and range filter unattributed events, also when a page examines few rows', async () => {
    const own = await newApp(api);
    const at = Date.UTC(2026, 0, 1);
    const rows = Array.from({ length: 12 }, (_, n) => ({
      likelyCause: n % 3 === 0 ? 'rate_zero' : 'user_never_identified',
      userId: n % 2 === 0 ? 'even' : 'odd',
      occurredAt: at + 1_000 * (n + 1),
    }));
    const ids = await insertEvents(own, rows);
    await api.sql`
      update events set source = 'paddle'
       where app_id = ${own.appId} and occurred_at > ${instant(at + 6_000)}`;
    const filters = [
      { likelyCause: 'rate_zero' },
      { likelyCause: 'rate_zero', from: at + 4_000, to: at + 10_000 },
      { likelyCause: 'rate_zero', customerUserId: 'even' },
      { source: 'stripe' },
      { source: 'paddle', likelyCause: 'user_never_identified' },
      { customerUserId: 'odd', to: at + 6_000 },
      { from: at + 12_000 },
      { likelyCause: 'processing' },
    ] as const;
    for (const filter of filters) {
      const { likelyCause, customerUserId, source, from, to } = filter as UnattributedFilter;
      const expected = rows
        .map((row, n) => ({ ...row, id: ids[n], source: n < 6 ? 'stripe' : 'paddle' }))
        .filter((row) => (likelyCause ?? row.likelyCause) === row.likelyCause)
        .filter((row) => (customerUserId ?? row.userId) === row.userId)
        .filter((row) => (source ?? row.source) === row.source)
        .filter((row) => row.occurredAt >= (from ?? 0) && row.occurredAt < (to ?? Infinity))
        .toReversed()
        .map(({ id }) => id);
      const query = new URLSearchParams(
        Object.entries(filter).map(([name, value]): [string, string] => [name, String(value)]),
      ).toString();
      const { body } = await get(`unattributed?${query}`, own);
      expect([filter, body.items.map((row) => row['eventId'])]).toEqual([filter, expected]);
      const walked: string[] = [];
      let after: Position<number> | null = null;
      do {
        const page: DbPage<{ eventId: string }, number> = await listUnattributedEvents(
          api.sql,
          own.appId as AppId,
          { likelyCause: null, source: null, customerUserId: null, from: null, to: null, ...filter },
          after,
          1,
          2,
        );
        walked.push(...page.rows.map(({ eventId }) => eventId));
        after = page.next;
      } while (after !== null);
      expect([filter, walked]).toEqual([filter, expected]);
    }
  });

  test('pages have each unattributed event exactly once while new events arrive', async () => {
    const own = await newApp(api);
    const at = Date.UTC(2026, 0, 1);
    const times = [0, 1, 1, 1, 2, 3, 3];
    const before = await insertEvents(
      own,
      times.map((offset) => ({ likelyCause: 'rate_zero', occurredAt: at + offset })),
    );
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const { body }: ApiResponse<Page> = await get(
        `unattributed?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`,
        own,
      );
      seen.push(...body.items.map((row) => String(row['eventId'])));
      cursor = body.nextCursor;
      await insertEvents(own, [{ likelyCause: 'rate_zero', occurredAt: at + 9 }]);
    } while (cursor !== null);
    expect(seen.toSorted()).toEqual(before.toSorted());
  });
});

describe('GET diagnostics/unattributed/summary', () => {
  // @promise unattributed-summary
  test('payments are counted by cause in the range, the most money first, with what heals them', async () => {
    const own = await newApp(api);
    const at = api.clock.now;
    await insertEvents(own, [
      { likelyCause: 'rate_zero', occurredAt: at - 3 * DAY_MS },
      { likelyCause: 'user_never_identified', occurredAt: at - 2 * DAY_MS },
      { likelyCause: 'user_never_identified', occurredAt: at - DAY_MS },
      { likelyCause: 'user_never_identified', occurredAt: at - 31 * DAY_MS },
      { occurredAt: at - DAY_MS },
    ]);
    const summary = async (query = '') =>
      (await get<{ from: number; to: number; causes: object[] }>(`unattributed/summary${query}`, own)).body;
    expect(await summary()).toEqual({
      from: at - 30 * DAY_MS,
      to: at,
      causes: [
        {
          likelyCause: 'user_never_identified',
          count: 2,
          amountCents: 1_998,
          unknownCount: 0,
          settledCount: 0,
          truncated: false,
          latestAt: at - DAY_MS,
          explanation: expect.stringMatching(/identify\(userId\)/),
          heals: 'when_fixed',
        },
        expect.objectContaining({ likelyCause: 'rate_zero', count: 1, amountCents: 999, heals: 'never' }),
      ],
    });
    expect((await summary(`?from=${at - 40 * DAY_MS}&to=${at - 30 * DAY_MS}`)).causes).toMatchObject([
      { likelyCause: 'user_never_identified', count: 1 },
    ]);
    const range = { from: 0, to: null };
    expect(await summarizeUnattributed(api.sql, own.appId as AppId, range, 2)).toMatchObject([
      { likelyCause: 'user_never_identified', count: 2, truncated: true },
      { likelyCause: 'rate_zero', count: 1, truncated: false },
    ]);
  });

  // @promise unattributed-unknown
  test('a payment without a known amount is counted apart, so that its cause does not look like one of no money', async () => {
    const own = await newApp(api);
    const occurredAt = api.clock.now - DAY_MS;
    await insertEvents(own, [
      { likelyCause: 'price_unknown', occurredAt, amountCents: null },
      { likelyCause: 'price_unknown', occurredAt, amountCents: null },
      { likelyCause: 'user_never_identified', occurredAt },
      { likelyCause: 'user_never_identified', occurredAt, amountCents: null },
    ]);
    expect((await get<{ causes: object[] }>('unattributed/summary', own)).body.causes).toMatchObject([
      { likelyCause: 'user_never_identified', count: 2, amountCents: 999, unknownCount: 1 },
      { likelyCause: 'price_unknown', count: 2, amountCents: 0, unknownCount: 2 },
    ]);
  });
});

describe('GET diagnostics/webhooks/summary', () => {
  // @promise deliveries-summary
  test('each provider has its last webhook, and the numbers of the last 24 hours', async () => {
    const own = await newApp(api);
    const at = api.clock.now;
    const ids = await insertEvents(own, [{}, {}, {}, {}, {}]);
    const states = [
      ['processed', 1],
      ['failed', 2],
      ['failed', 25],
      ['processing', 30],
      ['received', 3],
    ] as const;
    for (const [n, [status, hours]] of states.entries()) {
      await api.sql`
        update deliveries set received_at = ${instant(at - hours * 3_600_000)}, processing_status = ${status},
                              completed_at = ${['processing', 'received'].includes(status) ? null : instant(at)}::timestamptz
         where event_id = ${ids[n] ?? ''}`;
    }
    // A row of an export that was fed back is no webhook.
    const [fedBack = ''] = await insertEvents(own, [{}]);
    await api.sql`update deliveries set proof = '{"kind":"reconciliation"}' where event_id = ${fedBack}`;
    for (const provider of ['stripe', 'stripe', 'paddle'])
      await api.call('POST', `/webhooks/${provider}/${own.appId}`, { body: {} });
    const { status, body } = await get<{ since: number; providers: object[] }>('webhooks/summary', own);
    expect([status, body.since]).toEqual([200, at - DAY_MS]);
    const nothing = {
      configured: false,
      lastAcceptedAt: null,
      lastRefusedAt: null,
      accepted: 0,
      failed: 0,
      refused: 0,
      unfinished: 0,
      oldestUnfinishedAt: null,
      lowerBounds: [],
    };
    const expected: Record<string, object> = {
      stripe: {
        ...nothing,
        lastAcceptedAt: at - 3_600_000,
        lastRefusedAt: at,
        accepted: 3,
        failed: 1,
        refused: 2,
        unfinished: 2,
        oldestUnfinishedAt: at - 30 * 3_600_000,
      },
      paddle: { ...nothing, lastRefusedAt: at, refused: 1 },
    };
    expect(body.providers).toEqual(
      PROVIDER_NAMES.map((provider) => ({
        provider,
        title: expect.any(String),
        ...(expected[provider] ?? nothing),
      })),
    );
    const few = await summarizeDeliveries(api.sql, own.appId as AppId, ['stripe'], at - DAY_MS, 2);
    // The limit is 2 here: three were accepted, one failed, and two have no outcome.
    expect(few).toMatchObject([{ accepted: 2, failed: 1, lowerBounds: ['accepted', 'unfinished'] }]);
    // The one that failed is of Stripe, and all that are counted: those of another provider may be missing.
    const [other] = await summarizeDeliveries(api.sql, own.appId as AppId, ['paddle'], at - DAY_MS, 1);
    expect(other).toMatchObject({ failed: 0, lowerBounds: ['failed', 'unfinished'] });
  });
});

describe('GET diagnostics/webhooks', () => {
  // @promise delivery-row, no-undocumented-field, get-deliveries, delivery-diagnostic
  // @promise delivery-fields
  test('the list has deliveries, latest first, with their outcome and without their body', async () => {
    const own = await newApp(api);
    const [eventId = ''] = await insertEvents(own, [{}]);
    const { id } = await api.sql.one<{ id: string }>`
      update deliveries set received_at = ${instant(5_000)}, event_count = 1, source_event_id = 'in_1' where event_id = ${eventId}
      returning id`;
    await api.call('POST', `/webhooks/revenuecat/${own.appId}`, { body: { secret: 'of the sender' } });
    const { status, body, text } = await get('webhooks', own);
    expect(status).toBe(200);
    expect(body).toEqual({
      items: [
        {
          id: expect.stringMatching(/^del_/),
          source: 'revenuecat',
          sourceEventId: null,
          receivedAt: api.clock.now,
          signatureValid: false,
          processingStatus: 'rejected',
          lastError: 'no webhook secret is set for this provider',
          eventCount: 0,
          selfTest: false,
          eventId: null,
          workflowId: null,
          workflowUrl: null,
        },
        {
          id,
          source: 'stripe',
          sourceEventId: 'in_1',
          receivedAt: 5_000,
          signatureValid: true,
          processingStatus: 'processed',
          lastError: null,
          eventCount: 1,
          selfTest: false,
          eventId: expect.stringMatching(/^evt_/),
          workflowId: `delivery:${id}`,
          workflowUrl: `https://temporal.example.com/ui/namespaces/of%2Fus/workflows/delivery%3A${id}`,
        },
      ],
      nextCursor: null,
    });
    expect(text).not.toContain('of the sender');
  });

  // @promise deliveries-filter
  test('status and provider filter deliveries, page by page, also when a page examines few rows', async () => {
    const own = await newApp(api);
    await insertEvents(
      own,
      Array.from({ length: 9 }, () => ({})),
    );
    // The status of one in three is `ignored`, and one in two is of Paddle.
    await api.sql`
      update deliveries d set processing_status = case when n % 3 = 0 then 'ignored' else 'processed' end,
                              provider = case when n % 2 = 0 then 'paddle' else 'stripe' end,
                              received_at = '2026-01-01'
        from (select id, row_number() over (order by id) as n from deliveries where app_id = ${own.appId}) o
       where o.id = d.id`;
    await api.call('POST', `/webhooks/revenuecat/${own.appId}`, { body: {} });
    const all = (await get('webhooks?limit=100', own)).body.items;
    const matching = (filter: object) =>
      all
        .filter((row) => Object.entries(filter).every(([name, value]) => row[name] === value))
        .map((row) => row['id']);
    for (const filter of [
      { processingStatus: 'ignored' },
      { processingStatus: 'processed' },
      { processingStatus: 'rejected' },
      { source: 'paddle' },
      { source: 'stripe', processingStatus: 'processed' },
      { source: 'stripe', processingStatus: 'ignored' },
      { source: 'adapty' },
    ] as const) {
      const { status, body } = await get(`webhooks?${new URLSearchParams(filter).toString()}`, own);
      expect([status, filter, body.items.map((row) => row['id'])]).toEqual([200, filter, matching(filter)]);
      const walked: string[] = [];
      let after: Position<number> | null = null;
      do {
        const page: DbPage<{ id: string }, number> = await listWebhookDeliveries(
          api.sql,
          own.appId as AppId,
          { processingStatus: null, source: null, from: null, to: null, ...filter },
          after,
          1,
          2,
        );
        walked.push(...page.rows.map(({ id }) => id));
        after = page.next;
      } while (after !== null);
      expect([filter, walked]).toEqual([filter, matching(filter)]);
    }
    expect((await get('webhooks?processingStatus=lost', own)).status).toBe(400);
  });

  // @promise deliveries-range
  test('`from` and `to` select the deliveries that were received in the range, with and without a status', async () => {
    const own = await newApp(api);
    const ids = await insertEvents(own, [{}, {}, {}, {}]);
    const at = Date.UTC(2026, 0, 1);
    for (const [n, eventId] of ids.entries()) {
      await api.sql`
        update deliveries set received_at = ${instant(at + 1_000 * (n + 1))},
                              processing_status = ${n % 2 === 0 ? 'ignored' : 'processed'}
         where event_id = ${eventId}`;
    }
    const found = async (query: string) =>
      (await get(`webhooks?${query}`, own)).body.items.map((row) => ids.indexOf(String(row['eventId'])));
    expect(await found(`from=${at + 2_000}&to=${at + 4_000}`)).toEqual([2, 1]);
    expect(await found(`from=${at + 1_001}&processingStatus=ignored`)).toEqual([2]);
    expect(await found(`to=${at + 2_000}&source=stripe`)).toEqual([0]);
    expect((await get('webhooks?from=yesterday', own)).status).toBe(400);
  });

  // @promise diagnostics-paged
  test('pages have each delivery exactly once', async () => {
    const own = await newApp(api);
    const before = await insertEvents(
      own,
      Array.from({ length: 5 }, () => ({})),
    );
    await api.sql`update deliveries set received_at = '2026-01-01' where app_id = ${own.appId}`;
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const { body }: ApiResponse<Page> = await get(
        `webhooks?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`,
        own,
      );
      seen.push(...body.items.map((row) => String(row['id'])));
      cursor = body.nextCursor;
    } while (cursor !== null);
    expect(seen).toHaveLength(before.length);
    expect(new Set(seen).size).toBe(before.length);
  });

  // @promise diagnostics-paged
  test('a cursor of one diagnostic is a 400 for the other', async () => {
    const own = await newApp(api);
    await insertEvents(own, [{ likelyCause: 'rate_zero' }, { likelyCause: 'rate_zero' }]);
    const { nextCursor } = (await get('webhooks?limit=1', own)).body;
    expect(nextCursor).not.toBeNull();
    expect((await get(`webhooks?limit=5&cursor=${nextCursor}`, own)).status).toBe(200);
    expect((await get(`unattributed?cursor=${nextCursor}`, own)).status).toBe(400);
    expect((await get(`webhooks?cursor=${nextCursor}`, app)).status).toBe(400);
  });

  test.each([
    ['webhooks?limit=0'],
    ['webhooks?cursor=x'],
    ['unattributed?limit=101'],
    ['unattributed?cursor='],
  ])('GET diagnostics/%s is a 400', async (path) => {
    expect((await get(path, app)).status).toBe(400);
  });
});
