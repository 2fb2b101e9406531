import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { importRates } from '../../src/db/rates.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { earnByPolicy } from '../support/policies.ts';
import {
  bodyOf,
  revenuecatEvent,
  revenuecatTransfer,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
  stripeRefund,
} from '../support/provider-fixtures.ts';
import { runOn } from '../support/postgres-admin.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
});
beforeEach(async () => {
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
});

interface Row {
  readonly id: string;
  readonly kind: string;
  readonly affiliateId: string;
  readonly amountCents: number;
  readonly matchMethod: string;
}

const give = async (body: object, key = founder.key) =>
  await founder.call<Record<string, unknown>>('POST', `/apps/${founder.app.id}/manual-attributions`, {
    body: { reason: 'Told us in the chat', affiliateId: founder.affiliateId, ...body },
    key,
  });
const preview = async (body: object) =>
  await founder.call<Record<string, unknown>>('POST', `/apps/${founder.app.id}/manual-attributions/preview`, {
    body: { affiliateId: founder.affiliateId, ...body },
  });
const commissions = async (): Promise<Row[]> =>
  (await founder.ok<{ items: Row[] }>('GET', `/apps/${founder.app.id}/commissions?limit=100`)).items;

/** Delivers a payment of $10. Returns what it earned. */
async function pay(
  customerUserId: string,
  occurredAt: number,
  transactionId: string = randomUUID(),
): Promise<Row | undefined> {
  const { body } = await founder.purchase(customerUserId, 10, { occurredAt, transactionId });
  return (await commissions()).find(({ id }) => id === body.commissionId);
}

describe('a user who belongs to nobody', () => {
  // @promise post-manual-attribution, manual-from-now, get-manual-attributions
  test('earns for the creator from now on; earlier payments never do, however late they are reported', async () => {
    const user = randomUUID();
    expect(await pay(user, Date.now() - DAY_MS)).toBeUndefined();
    const { status, body } = await give({ customerUserId: user });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      customerUserId: user,
      affiliateId: founder.affiliateId,
      reassigns: false,
      payments: 0,
      earnedCents: 0,
      reason: 'Told us in the chat',
    });
    expect(await pay(user, Date.now() - HOUR_MS)).toBeUndefined();
    expect(await pay(user, Date.now() + 1_000)).toMatchObject({
      amountCents: 200,
      affiliateId: founder.affiliateId,
      matchMethod: 'manual',
    });
    expect(await commissions()).toHaveLength(1);
    const { items } = await founder.ok<{ items: object[] }>(
      'GET',
      `/apps/${founder.app.id}/manual-attributions`,
    );
    expect(items).toEqual([body]);
    // The payment from before is evaluated again in the background.
    await eventually('the earlier payment has its cause', async () => {
      const unattributed = await founder.ok<{ items: { likelyCause: string }[] }>(
        'GET',
        `/apps/${founder.app.id}/diagnostics/unattributed`,
      );
      const causes = unattributed.items.map(({ likelyCause }) => likelyCause);
      return causes.length === 2 && causes.every((cause) => cause === 'outside_attribution_window');
    });
  });

  // @promise post-manual-attribution
  test('is given to no removed creator, and can then be given to another one', async () => {
    const user = randomUUID();
    const removed = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/affiliates`, {
      name: 'Bob',
    });
    await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${removed.id}`, { status: 'removed' });
    const from = Date.now() - DAY_MS;
    expect(
      await give({ customerUserId: user, affiliateId: removed.id, from, expectedCents: 0 }),
    ).toMatchObject({
      status: 404,
    });
    expect((await give({ customerUserId: user })).status).toBe(201);
  });

  test('payments from before a manual attribution are counted as settled, and others are not', async () => {
    const own = await setUpFounder(service);
    const at = Date.now() - DAY_MS;
    const [given, other] = [randomUUID(), randomUUID()];
    for (const user of [given, given, other]) await own.purchase(user, 10, { occurredAt: at });
    const causes = async () =>
      (
        await own.ok<{ causes: { likelyCause: string; count: number; settledCount: number }[] }>(
          'GET',
          `/apps/${own.app.id}/diagnostics/unattributed/summary`,
        )
      ).causes.map(({ likelyCause, count, settledCount }) => [likelyCause, count, settledCount]);
    expect(await causes()).toEqual([['user_never_identified', 3, 0]]);
    await own.ok('POST', `/apps/${own.app.id}/manual-attributions`, {
      customerUserId: given,
      affiliateId: own.affiliateId,
      reason: 'Podcast',
    });
    await eventually('the earlier payments are settled', async () => {
      const found = Object.fromEntries((await causes()).map(([cause, ...counts]) => [cause, counts.join()]));
      return found['outside_attribution_window'] === '2,2' && found['user_never_identified'] === '1,0';
    });
  });

  // @promise manual-from, preview-manual-attribution
  test('earns for earlier payments from an instant on, exactly as previewed or not at all', async () => {
    const user = randomUUID();
    const at = Date.now() - 10 * DAY_MS;
    for (const n of [0, 1, 2]) await pay(user, at + n * DAY_MS, `${user}-${n}`);
    await founder.refund(user, 4, `${user}-2`);
    const from = at + DAY_MS;
    expect((await preview({ customerUserId: user, from })).body).toEqual({
      payments: 2,
      earnedCents: 320,
      currency: 'USD',
      current: null,
    });
    expect(await commissions()).toEqual([]);
    expect((await give({ customerUserId: user, from, expectedCents: 319 })).body).toMatchObject({
      code: 'total_changed',
    });
    expect(await commissions()).toEqual([]);
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, ['read', 'write']);
    expect((await give({ customerUserId: user, from, expectedCents: 320 }, key)).status).toBe(403);
    const { status, body } = await give({ customerUserId: user, from, expectedCents: 320 });
    expect([status, body['payments'], body['earnedCents']]).toEqual([201, 2, 320]);
    expect((await commissions()).map(({ kind, amountCents }) => [kind, amountCents])).toEqual([
      ['reversal', -80],
      ['earning', 200],
      ['earning', 200],
    ]);
    expect((await give({ customerUserId: user, from, expectedCents: 320 })).body).toMatchObject({
      code: 'user_attributed',
    });
    await eventually(
      'the binding is healed',
      async () =>
        (await service.sql`select from bindings where app_id = ${founder.app.id} and healed_at is null`)
          .length === 0,
    );
    expect(await commissions()).toHaveLength(3);
  });

  test('is not given from an instant on while payments since then wait for an exchange rate', async () => {
    const customerUserId = randomUUID();
    const occurredAt = Date.now() - HOUR_MS;
    const inFrancs = stripeInvoicePaid({
      userId: customerUserId,
      amount: 100_000,
      currency: 'chf',
      occurredAt,
    });
    await founder.stripe(bodyOf(inFrancs));
    const from = occurredAt - 1_000;
    expect(await preview({ customerUserId, from })).toMatchObject({
      status: 409,
      body: { code: 'payments_wait_for_rate' },
    });
    expect(await give({ customerUserId, from, expectedCents: 0 })).toMatchObject({
      status: 409,
      body: { code: 'payments_wait_for_rate' },
    });
    expect((await give({ customerUserId })).status).toBe(201);
  });

  // @promise manual-from
  test.each([
    ['a refund', 'SEK', stripeRefund],
    ['a dispute', 'NOK', stripeDispute],
  ])(
    'is not given from an instant on while %s of a payment since then waits for an exchange rate',
    async (_, currency, takeBack) => {
      const customerUserId = randomUUID();
      const paymentIntentId = `pi_${customerUserId}`;
      const occurredAt = Date.now() - HOUR_MS;
      await founder.stripe(
        bodyOf(
          stripeCheckoutSession({
            userId: customerUserId,
            customerId: null,
            paymentIntentId,
            amount: 10_000,
            occurredAt,
          }),
        ),
      );
      // Half of the payment, at the rate below.
      const inOtherCurrency = {
        amount: 50_000,
        currency: currency.toLowerCase(),
        occurredAt: occurredAt + 1_000,
      };
      await founder.stripe(bodyOf(takeBack({ paymentIntentId, chargeId: null, ...inOtherCurrency })));
      const from = occurredAt - 60_000;
      const waits = { status: 409, body: { code: 'payments_wait_for_rate' } };
      expect(await preview({ customerUserId, from })).toMatchObject(waits);
      expect(await give({ customerUserId, from, expectedCents: 2_000 })).toMatchObject(waits);
      expect(await commissions()).toEqual([]);

      // A rate of the day before counts, too.
      const day = new Date(occurredAt - DAY_MS).toISOString().slice(0, 10);
      const rates = [{ currency, day, units: '10', worthUsd: '1' }];
      await importRates(service.sql, { source: 'operator', rates });
      expect((await preview({ customerUserId, from })).body).toMatchObject({
        payments: 1,
        earnedCents: 1_000,
      });
      expect((await give({ customerUserId, from, expectedCents: 1_000 })).status).toBe(201);
      expect((await commissions()).map(({ kind, amountCents }) => [kind, amountCents])).toEqual([
        ['reversal', -1_000],
        ['earning', 2_000],
      ]);
    },
  );

  test('passes on what others got of its purchases before for later payments only', async () => {
    const [user, receiver] = [randomUUID(), randomUUID()];
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [user], to: [receiver] })));
    expect(await pay(receiver, Date.now() - HOUR_MS)).toBeUndefined();
    const from = Date.now() - DAY_MS;
    expect((await preview({ customerUserId: user, from })).body).toMatchObject({ earnedCents: 0 });
    expect((await give({ customerUserId: user, from, expectedCents: 0 })).status).toBe(201);
    await eventually(
      'the bindings are healed',
      async () =>
        (
          await service.sql`
            select from bindings where app_id = ${founder.app.id} and customer_user_id = ${receiver} and healed_at is not null`
        ).length === 1,
    );
    expect(await commissions()).toHaveLength(0);
    expect(await pay(receiver, Date.now() + 1_000)).toMatchObject({ matchMethod: 'manual' });
  });

  test('numbers its earlier payments by the policy in effect, in one transaction', async () => {
    await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ when: { paymentNumber: { to: 1 } }, percentBps: 10_000 }, { percentBps: 100 }],
    });
    const user = randomUUID();
    const at = Date.now() - 10 * DAY_MS;
    for (const n of [0, 1, 2]) await pay(user, at + n * DAY_MS);
    expect((await give({ customerUserId: user, from: at, expectedCents: 1_020 })).status).toBe(201);
    expect(await pay(user, Date.now())).toMatchObject({ amountCents: 10 });
  });

  test('two founders at once: the user belongs to one of them', async () => {
    const other = await founder.newAffiliate();
    const user = randomUUID();
    const at = Date.now() - DAY_MS;
    await pay(user, at);
    const answers = await Promise.all(
      [founder.affiliateId, other.affiliateId, founder.affiliateId, other.affiliateId].map(
        async (affiliateId) =>
          await give({ customerUserId: user, affiliateId, from: at, expectedCents: 200 }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409, 409]);
    expect(await commissions()).toHaveLength(1);
  });
});

describe('a user who belongs to somebody', () => {
  // @promise manual-reassign
  test('is given away for later payments only, and a refund is taken back from whoever earned', async () => {
    const other = await founder.newAffiliate('Other');
    const user = await founder.customer();
    const before = `${user}-before`;
    expect(await pay(user, Date.now() - 2 * DAY_MS, before)).toMatchObject({
      affiliateId: founder.affiliateId,
    });
    expect((await preview({ customerUserId: user, affiliateId: other.affiliateId })).body).toEqual({
      payments: 0,
      earnedCents: 0,
      currency: 'USD',
      current: { affiliateId: founder.affiliateId, affiliateName: expect.any(String) },
    });
    const { status, body } = await give({ customerUserId: user, affiliateId: other.affiliateId });
    expect(status).toBe(201);
    expect(body).toMatchObject({ reassigns: true, affiliateId: other.affiliateId, affiliateName: 'Other' });
    expect(
      (
        await give({
          customerUserId: user,
          affiliateId: other.affiliateId,
          from: Date.now() - DAY_MS,
          expectedCents: 0,
        })
      ).body,
    ).toMatchObject({ code: 'user_attributed' });
    const after = `${user}-after`;
    expect(await pay(user, Date.now() - DAY_MS)).toMatchObject({ affiliateId: founder.affiliateId });
    expect(await pay(user, Date.now() + 2_000, after)).toMatchObject({
      affiliateId: other.affiliateId,
      matchMethod: 'manual',
    });
    await founder.refund(user, 10, before);
    await founder.refund(user, 5, after);
    const reversals = (await commissions()).filter(({ kind }) => kind === 'reversal');
    const taken = Object.fromEntries(
      reversals.map(({ affiliateId, amountCents }) => [affiliateId, amountCents]),
    );
    expect(taken).toEqual({ [founder.affiliateId]: -200, [other.affiliateId]: -100 });
  });

  // @promise manual-counts
  test('adds no install and no identified user to the creator', async () => {
    const other = await founder.newAffiliate('Other');
    await give({ customerUserId: await founder.customer(), affiliateId: other.affiliateId });
    await give({ customerUserId: randomUUID(), affiliateId: other.affiliateId });
    const funnelOf = async (affiliateId: string) =>
      (
        await founder.ok<{ funnel: object }>(
          'GET',
          `/apps/${founder.app.id}/affiliates/${affiliateId}/overview`,
        )
      ).funnel;
    expect(await funnelOf(other.affiliateId)).toMatchObject({ installs: 0, identified: 0 });
    expect(await funnelOf(founder.affiliateId)).toMatchObject({ installs: 1, identified: 1 });
  });

  // @promise manual-counts
  test('counts as paying for the creator who earned from the first payment', async () => {
    const other = await founder.newAffiliate('Other');
    const [early, late] = [await founder.customer(), await founder.customer()];
    await pay(early, Date.now() - HOUR_MS);
    for (const customerUserId of [early, late])
      await give({ customerUserId, affiliateId: other.affiliateId });
    for (const user of [early, late]) await pay(user, Date.now() + 2_000);
    const paidOf = async (affiliateId: string) =>
      (
        await founder.ok<{ funnel: { paid: number } }>(
          'GET',
          `/apps/${founder.app.id}/affiliates/${affiliateId}/overview`,
        )
      ).funnel.paid;
    expect([await paidOf(founder.affiliateId), await paidOf(other.affiliateId)]).toEqual([1, 1]);
    await expect(
      runOn(
        service.database.url,
        `update bindings set first_paid_attribution_id = attribution_id where customer_user_id = '${late}'`,
      ),
    ).rejects.toThrow(/cannot be changed/);
  });

  // @promise manual-nobody
  test('can belong to nobody from now on, and to somebody again', async () => {
    const user = await founder.customer();
    expect((await give({ customerUserId: randomUUID(), affiliateId: null })).body).toMatchObject({
      code: 'user_not_attributed',
    });
    expect((await give({ customerUserId: user, affiliateId: null })).body).toMatchObject({
      affiliateId: null,
      reassigns: true,
    });
    expect(await pay(user, Date.now() + 2_000)).toBeUndefined();
    await give({ customerUserId: user });
    expect(await pay(user, Date.now() + 4_000)).toMatchObject({
      affiliateId: founder.affiliateId,
      matchMethod: 'manual',
    });
  });
});

// @promise manual-input
test.each<[string, object, string]>([
  ['a placeholder', { customerUserId: 'guest' }, 'placeholder_user_id'],
  ['no reason', { customerUserId: 'u', reason: ' ' }, 'invalid_request'],
  ['no user', {}, 'invalid_request'],
  ['an unknown creator', { customerUserId: 'u', affiliateId: 'aff_00000000000000000000000000' }, 'not_found'],
  [
    'an instant without the expected sum',
    { customerUserId: 'u', from: Date.now() - DAY_MS },
    'invalid_request',
  ],
  ['an expected sum without an instant', { customerUserId: 'u', expectedCents: 1 }, 'invalid_request'],
  [
    'an instant a year back',
    { customerUserId: 'u', from: Date.now() - 366 * DAY_MS, expectedCents: 0 },
    'invalid_request',
  ],
  [
    'an instant in the future',
    { customerUserId: 'u', from: Date.now() + DAY_MS, expectedCents: 0 },
    'invalid_request',
  ],
])('%s is refused', async (_, body, code) => {
  expect((await give(body)).body).toMatchObject({ code });
});

// @promise manual-erasure, manual-input
test('an erasure removes the reason, and the user cannot be given to anybody again', async () => {
  const user = randomUUID();
  await give({ customerUserId: user, reason: `Mail of ${user}` });
  await founder.ok('DELETE', `/apps/${founder.app.id}/users/${user}`);
  await eventually('the reason is removed', async () => {
    const { items } = await founder.ok<{ items: { reason: string | null }[] }>(
      'GET',
      `/apps/${founder.app.id}/manual-attributions`,
    );
    return items.every(({ reason }) => reason === null);
  });
  expect((await give({ customerUserId: user })).body).toMatchObject({ code: 'user_erased' });
});

describe('a payment without a user', () => {
  const SUBSCRIPTION = 'sub_waits';
  /** Stripe states whole seconds. */
  const at = Math.floor(Date.now() / 1_000) * 1_000 - 2 * DAY_MS;

  interface Shown {
    readonly eventId: string;
    readonly attributableKey?: object;
  }
  const listed = async (): Promise<Shown[]> =>
    (await founder.ok<{ items: Shown[] }>('GET', `/apps/${founder.app.id}/diagnostics/unattributed`)).items;
  /** Returns the key that the list and the explanation of an event offer. */
  const offered = async (eventId: string | undefined): Promise<object | undefined> => {
    const inList = (await listed()).find((row) => row.eventId === eventId);
    const { steps } = await founder.ok<{ steps: { step: string; facts: Partial<Shown> }[] }>(
      'GET',
      `/apps/${founder.app.id}/events/${eventId}/explanation`,
    );
    const { facts } = steps.find(({ step }) => step === 'attribute') ?? {};
    expect(facts?.attributableKey).toEqual(inList?.attributableKey);
    return inList?.attributableKey;
  };
  /** Delivers an invoice of $10 that names no user. Returns the id of its event. */
  const invoice = async (invoiceId: string, subscriptionId: string, occurredAt = at) =>
    (
      await founder.stripe(
        bodyOf(
          stripeInvoicePaid({
            userId: null,
            invoiceId,
            subscriptionId,
            customerId: 'cus_company',
            amount: 1_000,
            occurredAt,
          }),
        ),
      )
    ).body.eventId;

  // @promise attributable-key
  test('is given to a creator by its subscription, exactly as previewed, and its renewals earn', async () => {
    const first = await invoice('in_1', SUBSCRIPTION);
    const renewal = await invoice('in_2', SUBSCRIPTION, at + HOUR_MS);
    const key = { customerUserId: SUBSCRIPTION, keySource: 'stripe', standsFor: 'subscription' };
    expect([await offered(first), await offered(renewal)]).toEqual([key, key]);

    const asked = { customerUserId: SUBSCRIPTION, from: at };
    expect((await preview(asked)).body).toMatchObject({ payments: 2, earnedCents: 400 });
    expect((await give({ ...asked, expectedCents: 300 })).status).toBe(409);
    const { status, body } = await give({ ...asked, expectedCents: 400 });
    expect([status, body]).toMatchObject([201, { payments: 2, earnedCents: 400 }]);
    expect(await listed()).toEqual([]);
  });

  test.each([true, false])(
    'earns by the last word of a founder, which reaches further back (about its subscription: %s)',
    async (isKeyLast) => {
      const last = await founder.newAffiliate('Last');
      const [user, key] = [randomUUID(), randomUUID()];
      const report = async (userId: string) =>
        await founder.revenuecat(
          bodyOf(
            revenuecatEvent({
              userId,
              transactionId: randomUUID(),
              originalTransactionId: key,
              usd: 10,
              occurredAt: at,
            }),
          ),
        );
      await report('$RCAnonymousID:guest');
      const words = [user, `app_store:${key}`];
      const [first, second] = isKeyLast ? words : words.toReversed();
      for (const asked of [
        { customerUserId: first, from: at - HOUR_MS },
        { customerUserId: second, from: at - 2 * HOUR_MS, affiliateId: last.affiliateId },
      ]) {
        const { earnedCents: expectedCents } = (await preview(asked)).body;
        expect((await give({ ...asked, expectedCents })).status).toBe(201);
      }
      await report(user);
      expect((await commissions())[0]).toMatchObject({ affiliateId: last.affiliateId });
    },
  );

  test('passes its creator on to whom an event named with the key, also if every payment of the key has earned', async () => {
    const other = await founder.newAffiliate('Other');
    const [owner, guest, key] = [await founder.customer(), randomUUID(), randomUUID()];
    const report = async (userId: string, transactionId: string, originalTransactionId: string, usd = 10) =>
      await founder.revenuecat(
        bodyOf(
          revenuecatEvent({
            userId,
            transactionId,
            originalTransactionId,
            usd,
            occurredAt: Date.now() + 1_000,
          }),
        ),
      );
    for (const user of [owner, guest]) await report(user, `${key}-1`, key);
    expect(await commissions()).toHaveLength(1);
    await give({ customerUserId: `app_store:${key}`, affiliateId: other.affiliateId });
    await eventually(
      'the guest has a creator',
      async () =>
        (
          await service.sql`select from bindings where app_id = ${founder.app.id} and customer_user_id = ${guest}`
        ).length === 1,
    );
    expect(await pay(guest, Date.now() + 2_000)).toMatchObject({ affiliateId: other.affiliateId });
  });

  test('that stays without a commission offers no key once its subscription belongs to somebody', async () => {
    const first = await invoice('in_1', SUBSCRIPTION);
    await give({ customerUserId: SUBSCRIPTION });
    expect((await listed()).map(({ eventId }) => eventId)).toEqual([first]);
    expect(await offered(first)).toBeUndefined();
  });

  test('offers the anonymous customer of the SDK, and nothing of a customer who may be a company', async () => {
    const anonymous = `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;
    const { body } = await founder.purchase(anonymous, 10, { occurredAt: at });
    expect(await offered(body.eventId)).toEqual({
      customerUserId: anonymous,
      keySource: 'revenuecat',
      standsFor: 'anonymous_customer',
    });
    const once = await founder.stripe(
      bodyOf(
        stripeCheckoutSession({
          userId: null,
          mode: 'payment',
          paymentIntentId: 'pi_once',
          customerId: 'cus_company',
          occurredAt: at,
        }),
      ),
    );
    expect((await listed()).map(({ eventId }) => eventId)).toContain(once.body.eventId);
    expect(await offered(once.body.eventId)).toBeUndefined();
  });

  test('offers no key if another event names the user, or if a user has the same id', async () => {
    const user = randomUUID();
    const named = await invoice('in_1', SUBSCRIPTION);
    await founder.stripe(
      bodyOf(
        stripeInvoicePaid({
          userId: user,
          invoiceId: 'in_1',
          subscriptionId: SUBSCRIPTION,
          customerId: 'cus_company',
          amount: 1_000,
          occurredAt: at,
        }),
      ),
    );
    expect(await offered(named)).toBeUndefined();
    await founder.identify(await founder.install(), 'sub_user');
    expect(await offered(await invoice('in_2', 'sub_user'))).toBeUndefined();
  });
});

// @promise manual-database
test('a manual attribution is never changed, and a payment keeps the attribution that it earned through', async () => {
  const user = await founder.customer();
  await pay(user, Date.now() - DAY_MS);
  const { body } = await give({ customerUserId: user });
  const { sql } = service;
  await expect(sql`update manual_attributions set reason = 'other' where id = ${body['id']}`).rejects.toThrow(
    /cannot be changed/,
  );
  await expect(
    sql`update manual_attributions set effective_from = now(), reason = null where id = ${body['id']}`,
  ).rejects.toThrow(/cannot be changed/);
  await expect(sql`delete from manual_attributions`).rejects.toThrow();
  await expect(sql`
    update payments p set attribution_id = m.attribution_id from manual_attributions m
     where m.id = ${body['id']} and p.app_id = ${founder.app.id}`).rejects.toThrow(/keeps the attribution/);
});

// @promise manual-database
test('the database refuses a manual attribution that does not fit its user, and to forget one', async () => {
  const [user, bystander] = [await founder.customer(), await founder.customer()];
  const { body } = await give({ customerUserId: user });
  const { sql } = service;
  await expect(
    sql`update bindings set reassigned_at = null where app_id = ${founder.app.id} and customer_user_id = ${user}`,
  ).rejects.toThrow(/cannot be changed/);
  const insert = async (customerUserId: string, attribution: string) =>
    await sql`
      insert into manual_attributions (id, app_id, binding_id, position, attribution_id, effective_from, payments, earned_cents, account_id, key_id)
      select ${newId('manualAttribution')}, m.app_id, b.id, 5, t.id, now(), 0, 0, m.account_id, m.key_id
        from manual_attributions m
        join bindings b on b.app_id = m.app_id and b.customer_user_id = ${customerUserId}
        join attributions t on t.app_id = m.app_id and t.match_method = ${attribution}
       where m.id = ${body['id']} limit 1`;
  await expect(insert(bystander, 'manual')).rejects.toThrow(/does not fit its user/);
  await expect(insert(user, 'claim_token')).rejects.toThrow(/does not fit its user/);
});

test('the explanation of a payment says that somebody attributed the user', async () => {
  const user = randomUUID();
  await give({ customerUserId: user });
  const { body } = await founder.revenuecat(
    bodyOf(revenuecatEvent({ userId: user, usd: 10, occurredAt: Date.now() + 1_000 })),
  );
  const { steps } = await founder.ok<{ steps: { step: string; explanation: string }[] }>(
    'GET',
    `/apps/${founder.app.id}/events/${body.eventId}/explanation`,
  );
  expect(steps.find(({ step }) => step === 'attribute')?.explanation).toBe(
    `The user is ${user}. Somebody attributed the user to Test creator by hand.`,
  );
});

// @promise manual-database
test('the database refuses what an older version would attribute against a manual attribution', async () => {
  const other = await founder.newAffiliate('Other');
  const [given, moved] = [randomUUID(), await founder.customer()];
  await pay(given, Date.now() - DAY_MS);
  await give({ customerUserId: given });
  await give({ customerUserId: moved, affiliateId: other.affiliateId });
  const attributes = async (user: string) =>
    await service.sql`
      update payments p set binding_id = b.id from bindings b, payment_users u
       where b.app_id = ${founder.app.id} and b.customer_user_id = ${user} and u.app_id = b.app_id
         and u.customer_user_id = b.customer_user_id and p.id = u.payment_id and p.binding_id is null`;
  await expect(attributes(given)).rejects.toThrow(/belongs to another creator, or to nobody/);
  await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${other.affiliateId}`, { status: 'paused' });
  const sandboxed = await founder.revenuecat(
    bodyOf(
      revenuecatEvent({ userId: moved, usd: 10, occurredAt: Date.now() + 2_000, environment: 'SANDBOX' }),
    ),
  );
  expect(sandboxed.status).toBe(200);
  await expect(attributes(moved)).rejects.toThrow(/belongs to another creator, or to nobody/);
});
