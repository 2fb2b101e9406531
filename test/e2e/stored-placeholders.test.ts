import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { bindTransfers } from '../../src/db/transfers.ts';
import type { AppId, BindingId, EventId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import type { Activities } from '../../activities/index.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import { bodyOf, PROOFS, revenuecatEvent, revenuecatTransfer } from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';

// Earlier versions took placeholders such as `guest` for users: they stored them with payments, keys and transfers, and bound them.

let api: TestApi;
let activities: Activities;
let app: TestApp;
let secret: string;
/** The creator of the guest. */
let first: string;
/** The creator of the code SPRING20. */
let second: string;

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi());
});
beforeEach(async () => {
  api.clock.now = Date.now();
  app = await newApp(api, undefined, { commissionRateBps: 2000, purchaseCodes: 'when_unattributed' });
  const put = await call<{ secret: string }>('PUT', 'webhooks/revenuecat/secret', {
    environment: 'production',
  });
  secret = put.secret;
  [first, second] = [await newAffiliate(api, app), await newAffiliate(api, app)];
  const { id } = await call<{ id: string }>('POST', `affiliates/${second}/codes`, {
    namespace: 'app_store',
    value: 'SPRING20',
  });
  await api.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update codes set created_at = created_at - interval '1 day' where id = ${id}`;
  });
});
afterAll(async () => {
  await expectConsistentLedger(api.sql);
  await api.close();
});

async function call<T>(method: string, path: string, body: object): Promise<T> {
  const answer = await api.call<T>(method, `/apps/${app.appId}/${path}`, { key: app.key, body });
  if (answer.status > 299) throw new Error(JSON.stringify(answer.body));
  return answer.body;
}

/** Has a creator bring a user through a device. Returns the attribution. */
async function bring(customerUserId: string, affiliateCode: string): Promise<string> {
  const [deviceId, at] = [customerUserId, Date.now() - 2 * DAY_MS];
  const install = { deviceId, affiliateCode, firstOpenAt: at, codeEnteredAt: at };
  await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install });
  const identify = { deviceId, customerUserId, identifiedAt: at };
  expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify })).status).toBe(200);
  const { id } = await api.sql.one<{ id: string }>`
    select id from attributions where app_id = ${app.appId} and device_id = ${deviceId}`;
  return id;
}

/** Binds the guest to the first creator. */
async function bindGuest(): Promise<void> {
  const attributionId = await bring(`known-${randomUUID()}`, first);
  await api.sql`
    insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
    values (${newId('binding')}, ${app.appId}, 'guest', ${attributionId}, now())`;
  // The deliveries are received later.
  api.clock.now = Date.now() + 1;
}

async function deliver(payload: Payload): Promise<EventId> {
  const body = bodyOf(payload);
  const { status, body: answer } = await api.call<{ eventId: EventId }>(
    'POST',
    `/webhooks/revenuecat/${app.appId}`,
    { body: body.toString(), headers: PROOFS.revenuecat(body, secret) },
  );
  expect(status).toBe(200);
  return answer.eventId;
}

const anonymous = () => `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;

/** Delivers a renewal of 10.00 USD in the App Store. Null: it names nobody. */
async function renew(
  key: string,
  userId: string | null,
  { code, at = Date.now() - MINUTE_MS }: { readonly code?: string; readonly at?: number } = {},
): Promise<EventId> {
  return await deliver(
    revenuecatEvent({
      type: 'RENEWAL',
      usd: 10,
      userId: userId ?? anonymous(),
      originalTransactionId: key,
      occurredAt: at,
      extra: code === undefined ? {} : { offer_code: code },
    }),
  );
}

/** Stores that an event of a payment named the guest. */
async function nameGuest(eventId: EventId): Promise<void> {
  await api.sql`
    insert into payment_users (app_id, customer_user_id, payment_id, environment, position)
    select app_id, 'guest', id, environment, 0 from payments where event_id = ${eventId}`;
}

const creators = async () =>
  (
    await api.sql<{ affiliateId: string }>`
      select affiliate_id from commissions where app_id = ${app.appId} order by id`
  ).map(({ affiliateId }) => affiliateId);

describe('a placeholder that an earlier version has stored and bound is nobody', () => {
  // @promise placeholders-are-anonymous
  test('for a code, where it ties the subscription to the placeholder', async () => {
    await bindGuest();
    const key = randomUUID();
    await api.sql`
      insert into user_links (app_id, environment, source, user_key, customer_user_id)
      values (${app.appId}, 'production', 'revenuecat', ${`app_store:${key}`}, 'guest')`;
    await renew(key, null, { code: 'SPRING20' });
    await renew(key, null);
    expect(await creators()).toEqual([second, second]);
  });

  // @promise placeholders-are-anonymous
  test('for a code, where an earlier payment of the subscription names the placeholder', async () => {
    await bindGuest();
    const key = randomUUID();
    await nameGuest(await renew(key, null, { at: Date.now() - 2 * MINUTE_MS }));
    await renew(key, null, { code: 'SPRING20' });
    await renew(key, null);
    expect(await creators()).toEqual([second, second]);
  });

  // @promise placeholders-are-anonymous
  test('where a customer whom a code brought gets a subscription of which a payment names it', async () => {
    await bindGuest();
    const [key, user] = [randomUUID(), randomUUID()];
    await nameGuest(await renew(key, null, { at: Date.now() - 2 * MINUTE_MS }));
    await renew(randomUUID(), user, { code: 'SPRING20' });
    await renew(key, user);
    await renew(key, null);
    expect(await creators()).toEqual([second, second, second]);
  });

  // @promise placeholders-are-anonymous
  test('beside the owner of a subscription, who keeps it from a customer whom a code brought', async () => {
    await bindGuest();
    const [key, owner, user] = [randomUUID(), `owner-${randomUUID()}`, randomUUID()];
    await bring(owner, first);
    api.clock.now = Date.now() + 1;
    await nameGuest(await renew(key, owner, { at: Date.now() - 2 * MINUTE_MS }));
    await renew(randomUUID(), user, { code: 'SPRING20' });
    await renew(key, user);
    await renew(key, null);
    expect(await creators()).toEqual([first, second, second]);
  });

  // @promise placeholders-are-anonymous
  test('when the key of a subscription is bound: it gets no creator, and the user stays the only one', async () => {
    const [key, user] = [randomUUID(), randomUUID()];
    await nameGuest(await renew(key, null, { at: Date.now() - 2 * MINUTE_MS }));
    await api.sql`
      insert into user_links (app_id, environment, source, user_key, customer_user_id)
      values (${app.appId}, 'production', 'stripe', ${`app_store:${key}`}, 'guest')`;
    await renew(key, null, { code: 'SPRING20' });
    await renew(key, user);
    const keys = await api.sql<{ id: BindingId }>`
      select id from bindings where app_id = ${app.appId} and key_source is not null`;
    for (const { id } of keys) await activities.healPage(id, null);
    expect(
      await api.sql`select from bindings where app_id = ${app.appId} and customer_user_id = 'guest'`,
    ).toEqual([]);
    await call('POST', 'manual-attributions', {
      customerUserId: user,
      affiliateId: first,
      reason: 'A test',
    });
    await renew(key, null, { at: Date.now() + 2_000 });
    expect(await creators()).toEqual([second, second, first]);
  });

  // @promise placeholders-are-anonymous
  test('beside the only user of a subscription, also where it was bound with the key: what a founder says of the user holds for the key', async () => {
    const [key, user] = [randomUUID(), randomUUID()];
    await renew(key, null, { code: 'SPRING20' });
    await api.sql`
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, counts_with)
      select ${newId('binding')}, app_id, 'guest', attribution_id, now(), coalesce(counts_with, id::text)
        from bindings where app_id = ${app.appId} and customer_user_id = ${`app_store:${key}`}`;
    await renew(key, user);
    await call('POST', 'manual-attributions', {
      customerUserId: user,
      affiliateId: first,
      reason: 'A test',
    });
    await renew(key, null, { at: Date.now() + 2_000 });
    expect(await creators()).toEqual([second, second, first]);
  });

  // @promise placeholders-are-anonymous
  test('for the number of payments: the receiver of a transfer goes on with that of the real giver', async () => {
    const [receiver, giver] = [randomUUID(), randomUUID()];
    const attributionId = await bring(giver, first);
    await api.sql`
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
      values ('bnd_00000000000000000000000000', ${app.appId}, 'guest', ${attributionId}, now())`;
    api.clock.now = Date.now() + 1;
    const eventId = await deliver(revenuecatTransfer({ from: [], to: [receiver] }));
    await api.sql`
      insert into user_transfers (app_id, event_id, role, customer_user_id)
      select ${app.appId}::text, ${eventId}::text, 'giver', g from unnest(${['guest', giver]}::text[]) g`;
    await bindTransfers(api.sql, app.appId as AppId, { eventId });
    const bindings = await api.sql<{ countsWith: string | null; giver: string }>`
      select r.counts_with, g.id as giver from bindings r, bindings g
       where r.app_id = ${app.appId} and r.customer_user_id = ${receiver}
         and g.app_id = ${app.appId} and g.customer_user_id = ${giver}`;
    expect(bindings).toEqual([{ countsWith: bindings[0]?.giver, giver: expect.any(String) }]);
  });

  // @promise placeholders-are-anonymous
  test.each([
    ['gives nothing', [], []],
    ['does not stand beside a real giver', ['giver'], ['receiver']],
  ] as const)(
    'in a transfer: as the giver it %s, as the receiver it gets nothing',
    async (_, from, bound) => {
      await bindGuest();
      const of = new Map(['giver', 'receiver'].map((name) => [name, `${name}-${randomUUID()}`]));
      const ids = (names: readonly string[]) => names.map((name) => of.get(name) ?? '');
      for (const giver of ids(from)) await bring(giver, second);
      const eventId = await deliver(revenuecatTransfer({ from: [], to: ids(['receiver']) }));
      await api.sql`
      insert into user_transfers (app_id, event_id, role, customer_user_id)
      select ${app.appId}::text, ${eventId}::text, 'giver', g from unnest(${['guest', ...ids(from)]}::text[]) g
      union all select ${app.appId}::text, ${eventId}::text, 'receiver', 'null'`;
      const found = await bindTransfers(api.sql, app.appId as AppId, { eventId });
      const bindings = await api.sql<{ id: BindingId; customerUserId: string; affiliateId: string }>`
      select b.id, b.customer_user_id, t.affiliate_id
        from bindings b join attributions t on t.id = b.attribution_id
       where b.app_id = ${app.appId} and b.customer_user_id in (${of.get('receiver') ?? ''}, 'null')`;
      expect(bindings).toMatchObject(
        ids(bound).map((customerUserId) => ({ customerUserId, affiliateId: second })),
      );
      expect(found).toEqual(bindings.map(({ id }) => id));
    },
  );
});
