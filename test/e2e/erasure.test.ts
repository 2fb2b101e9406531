import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { provePayout } from '../../src/db/payout-proofs.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  bodyOf,
  newProviderId,
  revenuecatEvent,
  stripeEvent,
  stripeInvoicePaid,
  stripeRefund,
  stripeSubscription,
  withFields,
} from '../support/provider-fixtures.ts';
import { findInHistories, findInTables } from '../support/search-everywhere.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService({
    settings: { erasureSettleMs: 100, relay: { overdueMs: 200, pauseMs: 200 } },
  });
  founder = await setUpFounder(service, { holdPeriodDays: 0 });
});
afterAll(async () => {
  await service?.close();
});

interface Erasure {
  readonly erasureId: string;
  readonly status: string;
  readonly pseudonym: string;
  readonly erased: Readonly<Record<string, number>>;
}

/** Returns what identifies a new person, and stores all of it. */
async function newPerson() {
  const person = {
    userId: `user-${randomUUID()}`,
    deviceId: `device-${randomUUID()}`,
    claimToken: randomUUID(),
    ipHash: `ip-${randomUUID()}`,
    userAgent: `Agent/${randomUUID()}`,
    email: `${randomUUID()}@example.com`,
    customerId: newProviderId('cus'),
    subscriptionId: newProviderId('sub'),
  };
  const at = Date.now() - 60 * DAY_MS;
  const { deviceId, claimToken, ipHash, userAgent, userId } = person;
  await founder.ok(
    'POST',
    '/clicks',
    { customerAppId: founder.app.id, slug: founder.slug, claimToken, ipHash, userAgent, clickedAt: at },
    null,
  );
  await founder.ok('POST', '/sdk/install', { deviceId, claimToken, firstOpenAt: at + 1 }, founder.app.sdkKey);
  await founder.identify(deviceId, userId);
  return person;
}

type Person = Awaited<ReturnType<typeof newPerson>>;

const store = ({ userId, email }: Person, usd: number, over: object = {}) =>
  bodyOf(
    revenuecatEvent({
      userId,
      usd,
      occurredAt: Date.now() - 40 * DAY_MS,
      extra: { subscriber_attributes: { $email: { updated_at_ms: 1, value: email } } },
      ...over,
    }),
  );

const invoice = ({ customerId, subscriptionId }: Person, over: object = {}) =>
  bodyOf(
    stripeInvoicePaid({
      userId: null,
      customerId,
      subscriptionId,
      occurredAt: Date.now() - 40 * DAY_MS,
      ...over,
    }),
  );

async function erase(userId: string): Promise<Erasure> {
  const path = `/apps/${founder.app.id}/users/${encodeURIComponent(userId)}`;
  return await founder.ok<Erasure>('DELETE', path);
}

async function complete({ erasureId }: Erasure): Promise<Erasure> {
  const path = `/apps/${founder.app.id}/erasures/${erasureId}`;
  let erasure = await founder.ok<Erasure>('GET', path);
  await eventually('the erasure is complete', async () => {
    erasure = await founder.ok<Erasure>('GET', path);
    return erasure.status === 'complete';
  });
  return erasure;
}

async function commissionsOf(userId: string) {
  return await service.sql<{ kind: string; amountCents: number; bodyStored: boolean }>`
    select c.kind, c.amount_cents, exists (select from delivery_bodies b where b.delivery_id = e.delivery_id) as body_stored
      from commissions c join events e on e.id = c.event_id
     where c.customer_user_id = ${userId} order by c.id`;
}

// @promise erased-everywhere, delete-user, get-erasure
test('after an erasure no row, body or history names the person, the books add up, and the payout is still proved', async () => {
  const person = await newPerson();
  const other = await founder.customer();
  await founder.purchase(other, 30);
  await founder.revenuecat(store(person, 10));
  await founder.stripe(
    bodyOf(
      stripeSubscription({
        userId: person.userId,
        subscriptionId: person.subscriptionId,
        customerId: person.customerId,
      }),
    ),
  );
  const invoiceId = newProviderId('in');
  const sold = await founder.stripe(invoice(person, { invoiceId }));
  expect(sold.body.commissionId).toMatch(/^com_/);
  await founder.stripe(
    bodyOf(
      stripeEvent('customer.updated', { id: person.customerId, object: 'customer', email: person.email }, {}),
    ),
  );
  const csv = Buffer.from((await founder.exportCsv()).text);
  const later = await founder.revenuecat(store(person, 20));
  expect(later.body.commissionId).toMatch(/^com_/);

  const texts = Object.values(person);
  expect((await findInTables(service.sql, texts)).length).toBeGreaterThan(10);
  const first = await erase(person.userId);
  const second = await erase(person.userId);
  expect(second.erasureId).toBe(first.erasureId);
  const erasure = await complete(first);
  expect(erasure.erased).toMatchObject({
    bindings: 1,
    commissions: 3,
    devices: 1,
    clicks: 1,
    identities: 1,
    bodies: 5,
  });
  expect(erasure.erased['histories']).toBeGreaterThan(0);

  expect(await findInTables(service.sql, texts)).toEqual([]);
  const queues = [service.taskQueue, backgroundQueue(service.taskQueue)];
  const { found, searched } = await findInHistories(service.temporal, queues, texts);
  expect(found).toEqual([]);
  expect(searched).toBeGreaterThan(0);
  await expectConsistentLedger(service.sql);
  expect(await findRollupDifferences(service.sql)).toEqual([]);
  expect(await provePayout(service.sql, csv)).toMatchObject({ kind: 'proved' });
  expect((await commissionsOf(other)).length).toBe(1);
  expect((await commissionsOf(erasure.pseudonym)).map(({ bodyStored }) => bodyStored)).toEqual([
    false,
    false,
    false,
  ]);
});

// @promise erased-later-facts
test('renewals and refunds of an erased person still move the money, under the pseudonym and without their bodies', async () => {
  const person = await newPerson();
  const transactionId = `tx-${randomUUID()}`;
  await founder.revenuecat(store(person, 10, { transactionId }));
  await founder.stripe(
    bodyOf(
      stripeSubscription({
        userId: person.userId,
        subscriptionId: person.subscriptionId,
        customerId: person.customerId,
      }),
    ),
  );
  const { pseudonym } = await complete(await erase(person.userId));
  const renewalId = newProviderId('in');
  const renewal = await founder.stripe(invoice(person, { invoiceId: renewalId, amount: 5000 }));
  expect(renewal.body.commissionId).toMatch(/^com_/);
  const named = await founder.revenuecat(store(person, 30, { type: 'RENEWAL' }));
  expect(named.body.commissionId).toMatch(/^com_/);
  const refund = await founder.refund(person.userId, 10, transactionId);
  expect(refund.body.commissionId).toMatch(/^com_/);
  expect(await commissionsOf(pseudonym)).toEqual([
    { kind: 'earning', amountCents: 200, bodyStored: false },
    { kind: 'earning', amountCents: 1000, bodyStored: false },
    { kind: 'earning', amountCents: 600, bodyStored: false },
    { kind: 'reversal', amountCents: -200, bodyStored: false },
  ]);
  // A refund that names only the payment is recognised by the payment's reference.
  await founder.stripe(bodyOf(stripeRefund({ amount: 5000, paymentIntentId: renewalId })));
  expect(await findInTables(service.sql, Object.values(person))).toEqual([]);
  await expectConsistentLedger(service.sql);
  expect(await findRollupDifferences(service.sql)).toEqual([]);
});

test('the erasure of a pseudonym is that of its person, whose later purchases go on to earn', async () => {
  const person = await newPerson();
  await founder.revenuecat(store(person, 10));
  const { erasureId, pseudonym } = await complete(await erase(person.userId));
  expect(await erase(pseudonym)).toMatchObject({ erasureId, pseudonym, status: 'complete' });
  const renewal = await founder.revenuecat(store(person, 30, { type: 'RENEWAL' }));
  expect(renewal.body.commissionId).toMatch(/^com_/);
  expect(await commissionsOf(pseudonym)).toMatchObject([{ amountCents: 200 }, { amountCents: 600 }]);
});

test('the erasure of a user id that is not UTF-8 is a 400, and nothing is erased', async () => {
  const answer = await founder.call('DELETE', `/apps/${founder.app.id}/users/jos%E9`);
  expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
});

// @promise erased-not-identified
test('an erased user id that a device reports again is not stored', async () => {
  const person = await newPerson();
  const deviceId = await founder.install();
  await complete(await erase(person.userId));
  const report = { deviceId, customerUserId: person.userId, identifiedAt: Date.now() };
  const options = { key: founder.app.sdkKey };
  // The same answer as for any user of the device.
  const answered = await founder.call('POST', '/sdk/identify', { ...options, body: report });
  expect(answered).toMatchObject({ status: 200, body: { attributionId: expect.stringMatching(/^att_/) } });
  expect(await findInTables(service.sql, Object.values(person))).toEqual([]);
});

test('two users of one device that are erased at the same time leave neither the device nor its click', async () => {
  const person = await newPerson();
  const former = `former-${randomUUID()}`;
  await founder.identify(person.deviceId, former);
  const begun = await Promise.all([erase(person.userId), erase(former)]);
  await Promise.all(begun.map(complete));
  expect(await findInTables(service.sql, [...Object.values(person), former])).toEqual([]);
});

test('a sign-up on a server that was reported without its user leaves no device with the name of the user', async () => {
  for (const userId of [`user-${randomUUID()}`, `user-${'x'.repeat(300)}-${randomUUID()}`]) {
    const hash = createHash('sha256').update(userId).digest('hex');
    const deviceId = userId.length > 100 ? `srv_${hash}` : `srv_${userId}`;
    const install = { deviceId, affiliateCode: founder.slug, firstOpenAt: Date.now() };
    await founder.ok('POST', '/sdk/install', install, founder.app.sdkKey);
    await complete(await erase(userId));
    expect(await findInTables(service.sql, [deviceId])).toEqual([]);
  }
});

// @promise erased-not-identified
test('a sign-up on a server that is reported after the erasure of its user stores no device with the name of the user', async () => {
  const person = await newPerson();
  await complete(await erase(person.userId));
  const deviceId = `srv_${person.userId}`;
  const { sdkKey: testKey } = await founder.ok<{ sdkKey: string }>(
    'POST',
    `/apps/${founder.app.id}/sdk-key/rotate`,
    { kind: 'test' },
  );
  const install = { deviceId, affiliateCode: founder.slug, firstOpenAt: Date.now() };
  for (const key of [founder.app.sdkKey, testKey])
    expect(await founder.call('POST', '/sdk/install', { key, body: install })).toMatchObject({
      status: 404,
      body: { code: 'no_attributable_click' },
    });
  expect(await findInTables(service.sql, [person.userId])).toEqual([]);
});

test('a click that only a test install has found loses its token and its address', async () => {
  const userId = `tester-${randomUUID()}`;
  const [deviceId, claimToken] = [`device-${randomUUID()}`, randomUUID()];
  const ipHash = 'a'.repeat(64);
  const click = { customerAppId: founder.app.id, slug: founder.slug, claimToken, ipHash };
  await founder.ok('POST', '/clicks', click);
  const { sdkKey: testKey } = await founder.ok<{ sdkKey: string }>(
    'POST',
    `/apps/${founder.app.id}/sdk-key/rotate`,
    { kind: 'test' },
  );
  const install = { deviceId, claimToken, firstOpenAt: Date.now() };
  await founder.ok('POST', '/sdk/install', install, testKey);
  const identify = { deviceId, customerUserId: userId, identifiedAt: Date.now() };
  await founder.ok('POST', '/sdk/identify', identify, testKey);
  await complete(await erase(userId));
  expect(await findInTables(service.sql, [userId, deviceId, claimToken, ipHash])).toEqual([]);
});

// @promise erased-shared-device
test('a device that another user was reported on keeps its id, and that user keeps everything', async () => {
  const person = await newPerson();
  const partner = `user-${randomUUID()}`;
  await founder.identify(person.deviceId, partner);
  await founder.purchase(partner, 10);
  await complete(await erase(person.userId));
  expect(await findInTables(service.sql, [person.userId])).toEqual([]);
  expect((await findInTables(service.sql, [person.deviceId])).length).toBeGreaterThan(0);
  expect(await commissionsOf(partner)).toHaveLength(1);
  expect((await founder.purchase(partner, 10)).body.commissionId).toMatch(/^com_/);
});

const subscription = ({ userId, subscriptionId, customerId }: Person) =>
  bodyOf(stripeSubscription({ userId, subscriptionId, customerId }));

// @promise erased-late-keys
test('a key that a webhook ties to an erased person leads to the earlier payments and bodies of that key', async () => {
  const person = await newPerson();
  const { customerId, email } = person;
  const early = await founder.stripe(invoice(person, { amount: 5000 }));
  expect(early.body.commissionId).toBeNull();
  await founder.stripe(
    bodyOf(stripeEvent('customer.updated', { id: customerId, object: 'customer', email }, {})),
  );
  const { pseudonym } = await complete(await erase(person.userId));
  await founder.stripe(subscription(person));
  await eventually('the early payment earns', async () => (await commissionsOf(pseudonym)).length === 1);
  await eventually('no row and no body names the person', async () => {
    const left = await findInTables(service.sql, Object.values(person));
    return left.length === 0;
  });
  expect(await commissionsOf(pseudonym)).toEqual([{ kind: 'earning', amountCents: 1000, bodyStored: false }]);
  await expectConsistentLedger(service.sql);
});

// @promise erased-again
test('the same request after an erasure erases what was stored since, also under keys that only a body names', async () => {
  const person = await newPerson();
  await founder.stripe(subscription(person));
  await founder.stripe(invoice(person));
  const first = await complete(await erase(person.userId));
  // A process of an older version, or a restored backup, stores identifiers and bodies in clear.
  const renewal = await founder.stripe(invoice(person, { invoiceId: newProviderId('in') }));
  const { eventId } = renewal.body;
  await service.sql`
    insert into identities (app_id, device_id, customer_user_id, position, identified_at)
    values (${founder.app.id}, ${person.deviceId}, ${person.userId}, 1, now())`;
  await service.sql`
    insert into delivery_bodies (delivery_id, body)
    select id, ${invoice(person)}::bytea from deliveries where event_id = ${eventId}`;
  const other = await founder.purchase('another user', 10);
  await service.sql`
    update delivery_bodies set body = ${Buffer.from(JSON.stringify({ note: `Order of ${person.userId}, by phone` }))}
     where delivery_id = (select id from deliveries where event_id = ${other.body.eventId})`;
  await service.sql`
    update payment_user_keys set user_key = case position when 0 then ${person.subscriptionId} else ${person.customerId} end
     where payment_id = (select id from payments where event_id = ${eventId})`;
  const again = await erase(person.userId);
  expect(again).toMatchObject({
    erasureId: first.erasureId,
    status: 'in_progress',
    pseudonym: first.pseudonym,
  });
  const last = await complete(again);
  expect(last.erased['bodies']).toBe((first.erased['bodies'] ?? 0) + 2);
  expect(last.erased['identities']).toBe((first.erased['identities'] ?? 0) + 1);
  expect(await findInTables(service.sql, Object.values(person))).toEqual([]);
  await founder.stripe(invoice(person, { invoiceId: newProviderId('in') }));
  expect(await commissionsOf(first.pseudonym)).toHaveLength(3);
  await expectConsistentLedger(service.sql);
});

// @promise erased-user-and-key
test('a user id that is also the key of an erased person gets a pseudonym of its own, and the key still pays its creator', async () => {
  const person = await newPerson();
  const userId = person.subscriptionId;
  await founder.identify(await founder.install(founder.slug, Date.now() - 60 * DAY_MS), userId);
  await founder.purchase(userId, 10);
  await founder.stripe(subscription(person));
  const byKey = await complete(await erase(person.userId));
  // The user of that id was not erased: the money of the user goes on.
  expect((await founder.purchase(userId, 10)).body.commissionId).toMatch(/^com_/);
  expect(await commissionsOf(userId)).toHaveLength(2);
  const byId = await complete(await erase(userId));
  expect(byId.pseudonym).not.toBe(byKey.pseudonym);
  expect((await founder.stripe(invoice(person))).body.commissionId).toMatch(/^com_/);
  expect((await founder.purchase(userId, 10)).body.commissionId).toMatch(/^com_/);
  expect(await commissionsOf(byKey.pseudonym)).toHaveLength(1);
  expect(await commissionsOf(byId.pseudonym)).toHaveLength(3);
  expect(await findInTables(service.sql, Object.values(person))).toEqual([]);
  await expectConsistentLedger(service.sql);
});

describe('a customer whom a code bound before the sign-in', () => {
  const promotion = { discounts: [{ id: 'di_1', promotion_code: 'promo_spring' }] };

  /** Returns the ids of a new customer who bought with a code. */
  async function newCustomer() {
    const customer = {
      userId: `user-${randomUUID()}`,
      customerId: newProviderId('cus'),
      subscriptionId: newProviderId('sub'),
    };
    await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'when_unattributed' });
    const path = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/codes`;
    await founder.call('POST', path, {
      body: { namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' },
    });
    const { subscriptionId, customerId } = customer;
    const bought = withFields(
      stripeInvoicePaid({ userId: null, subscriptionId, customerId, occurredAt: Date.now() + 1_000 }),
      ['data', 'object'],
      promotion,
    );
    expect((await founder.stripe(bodyOf(bought))).body.commissionId).toMatch(/^com_/);
    return customer;
  }

  const renew = async ({ subscriptionId, customerId }: Pick<Person, 'subscriptionId' | 'customerId'>) => {
    const ids = { subscriptionId, customerId, invoiceId: newProviderId('in') };
    return await founder.stripe(
      bodyOf(stripeInvoicePaid({ userId: null, ...ids, occurredAt: Date.now() + 2_000 })),
    );
  };

  // @promise erased-bound-key
  test.each([
    ['by the user id, after it', true],
    ['by the subscription that stands for it', false],
  ])('is erased %s, and the subscription still pays its creator', async (_, signsIn) => {
    const customer = await newCustomer();
    if (signsIn) {
      await founder.stripe(bodyOf(stripeSubscription(customer)));
      await eventually(
        'the user is bound',
        async () =>
          (await service.sql`select from bindings where customer_user_id = ${customer.userId}`).length === 1,
      );
    }
    await complete(await erase(signsIn ? customer.userId : customer.subscriptionId));
    expect(await findInTables(service.sql, Object.values(customer))).toEqual([]);
    expect((await renew(customer)).body.commissionId).toMatch(/^com_/);
    expect(await findInTables(service.sql, Object.values(customer))).toEqual([]);
    await expectConsistentLedger(service.sql);
  });

  // @promise erased-bound-key
  test.each([
    ['a code', true],
    ['no code', false],
  ])('is erased by a later event, while a renewal with %s arrives, which earns', async (_, hasCode) => {
    const person = await newPerson();
    await complete(await erase(person.userId));
    const { subscriptionId, customerId } = await newCustomer();
    const renewal = (over: object, code: object) =>
      founder.stripe(
        bodyOf(
          withFields(
            stripeInvoicePaid({
              userId: null,
              subscriptionId,
              customerId,
              invoiceId: newProviderId('in'),
              occurredAt: Date.now() + 2_000,
              ...over,
            }),
            ['data', 'object'],
            code,
          ),
        ),
      );
    await renewal({ userId: person.userId }, {});
    await renewal({}, hasCode ? promotion : {});
    await eventually('the erasure is complete, and all three earn', async () => {
      const open =
        await service.sql`select from erasures where app_id = ${founder.app.id} and finished_at is null`;
      const earned = await service.sql`
          select from payments p
            join commissions c on c.payment_id = p.id
           where p.app_id = ${founder.app.id} and p.occurred_at > now() - interval '1 minute'`;
      const left = await findInTables(service.sql, [subscriptionId, customerId]);
      return open.length === 0 && left.length === 0 && earned.length >= 3;
    });
    await expectConsistentLedger(service.sql);
  });
});
