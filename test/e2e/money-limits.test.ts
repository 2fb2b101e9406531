import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { evaluateAndApply } from '../../activities/evaluate.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { checkLedger } from '../../src/db/ledger-checks/index.ts';
import { loadPayments } from '../../src/db/payments.ts';
import { importRates } from '../../src/db/rates.ts';
import type { Sql, Statements } from '../../src/db/sql.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import type { AccountId, AppId, PaymentId } from '../../src/domain/ids.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { assignPolicy, earnByPolicy, publishPolicy, takesEffect } from '../support/policies.ts';
import {
  bodyOf,
  revenuecatEvent,
  stripeCheckoutSession,
  stripeInvoicePaid,
  withFields,
} from '../support/provider-fixtures.ts';
import { startRelayedApi } from '../support/relayed-api.ts';
import type { RelayedApi } from '../support/relayed-api.ts';

// What no sequence of calls may bring about: money for the past without the permission to pay, data of others, a lost commission.

let service: RelayedApi;
let founder: Founder;

beforeAll(async () => {
  service = await startRelayedApi();
});
beforeEach(async () => {
  founder = await setUpFounder(service, { purchaseCodes: 'when_unattributed' });
});
afterAll(async () => {
  await service.close();
});

interface Row {
  readonly id: string;
  readonly affiliateId: string;
  readonly amountCents: number;
  readonly occurredAt: number;
}

const commissions = async (): Promise<Row[]> =>
  (await founder.ok<{ items: Row[] }>('GET', `/apps/${founder.app.id}/commissions?limit=100`)).items;
const findings = async () =>
  (await checkLedger(service.sql, [founder.app.id as AppId])).filter(({ ok }) => !ok).map(({ name }) => name);
const writer = async () =>
  (await createAccountKey(service.sql, founder.accountId as AccountId, ['read', 'write'])).key;

/** Registers a code, as if that was 29 days ago. */
async function registered(body: object, affiliateId = founder.affiliateId): Promise<string> {
  const path = `/apps/${founder.app.id}/affiliates/${affiliateId}/codes`;
  const added = await founder.ok<{ id: string }>('POST', path, body);
  await service.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update codes set created_at = created_at - interval '29 days' where id = ${added.id}`;
  });
  return added.id;
}

async function buy(
  userId: string,
  at: number,
  extra: Record<string, unknown> = {},
): Promise<Row | undefined> {
  const { body } = await founder.revenuecat(
    bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt: at, extra })),
  );
  return (await commissions()).find(({ id }) => id === body.commissionId);
}

const waitsForRate = async () =>
  await eventually(
    'it waits for a rate',
    async () =>
      (
        await service.sql`select from payments where app_id = ${founder.app.id} and likely_cause = 'missing_exchange_rate'`
      ).length === 1,
  );

const importRate = async (currency: string, at: number) =>
  await importRates(service.sql, {
    source: 'operator',
    rates: [{ currency, day: new Date(at).toISOString().slice(0, 10), units: '1', worthUsd: '0.01' }],
  } as never);

test('nobody reads the policy assignment of another tenant by naming its creator and instant', async () => {
  const other = await setUpFounder(service, {});
  const path = (of: Founder) => `/apps/${of.app.id}/affiliates/${founder.affiliateId}/policy-assignment`;
  const effectiveFrom = Date.now() + 10 * DAY_MS;
  await founder.ok('PUT', path(founder), { policyId: null, effectiveFrom });
  const { status, text } = await other.call('PUT', path(other), { body: { policyId: null, effectiveFrom } });
  expect({ status, text }).toMatchObject({ status: 404 });
});

test('names of groups and policies of another tenant are not read either', async () => {
  const other = await setUpFounder(service, {});
  const effectiveFrom = Date.now() + 10 * DAY_MS;
  const group = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/groups`, {
    name: 'Secret group',
  });
  const policy = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/policies`, {
    name: 'Secret policy',
  });
  const body = { policyId: policy.id, effectiveFrom };
  await founder.ok('PUT', `/apps/${founder.app.id}/groups/${group.id}/policy-assignment`, body);
  const { status, text } = await other.call(
    'PUT',
    `/apps/${other.app.id}/groups/${group.id}/policy-assignment`,
    { body },
  );
  expect({ status, text }).toMatchObject({ status: 404, text: expect.not.stringContaining('Secret') });
});

/** A one-off sale of a Stripe customer with a code and no user. */
async function oneOffSale(money: { currency: string; amount: number; occurredAt: number }): Promise<void> {
  await registered({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' });
  const [paymentIntentId, customerId] = [`pi_${randomUUID()}`, `cus_${randomUUID()}`];
  const session = stripeCheckoutSession({
    userId: null,
    mode: 'payment',
    paymentIntentId,
    customerId,
    ...money,
  });
  const discounts = [{ id: 'di_1', promotion_code: 'promo_spring' }];
  await founder.stripe(bodyOf(withFields(session, ['data', 'object'], { discounts })));
}

test('a one-off sale of a Stripe customer with a code earns once there is a rate', async () => {
  const at = Date.now() - 2 * DAY_MS;
  await oneOffSale({ currency: 'php', amount: 100_000, occurredAt: at });
  await waitsForRate();
  await importRate('PHP', at);
  await eventually('it earns', async () => (await commissions()).length === 1, 15_000);
}, 60_000);

const ABOVE_THE_LIMIT = 2 * DEFAULT_LIMITS.maxPaymentCents;
const HIGHER_LIMIT = { ...DEFAULT_LIMITS, maxPaymentCents: 2 * ABOVE_THE_LIMIT };
const aboveTheLimit = async () =>
  await service.sql.one<{ id: PaymentId }>`
    select id from payments where app_id = ${founder.app.id} and likely_cause = 'price_unknown'`;

/** Evaluates a payment with a higher limit, as its reprocessing does. */
async function evaluateAgain(id: PaymentId, sql: Sql = service.sql) {
  const [payment] = await loadPayments(sql, { rowId: id });
  if (payment === undefined) throw new Error('the payment is not there');
  return (await evaluateAndApply(sql, payment, null, { limits: HIGHER_LIMIT })).evaluation.earning;
}

test('a one-off sale with a code above the largest payment earns once the limit is raised', async () => {
  await oneOffSale({ currency: 'usd', amount: ABOVE_THE_LIMIT, occurredAt: Date.now() - DAY_MS });
  const { id } = await aboveTheLimit();
  expect(await evaluateAgain(id)).toMatchObject({
    amountCents: ABOVE_THE_LIMIT / 5,
    binding: { affiliateId: founder.affiliateId },
  });
});

/** Returns statements that do something else before each `one`. */
function before<S extends Statements>(sql: S, first: () => Promise<unknown>): S {
  const all = (async (...call: Parameters<Statements['one']>) => await sql(...call)) as unknown as S;
  return Object.assign(all, sql, {
    one: async (...call: Parameters<Statements['one']>) => {
      await first();
      return await sql.one(...call);
    },
  });
}

test('a payment whose user is given away while it waits for its number earns for the new creator', async () => {
  const other = await founder.newAffiliate('Other');
  await earnByPolicy(founder, service.sql, { base: 'gross', rules: [{ percentBps: 1_000 }] });
  const user = await founder.customer();
  await founder.purchase(user, ABOVE_THE_LIMIT / 100, { occurredAt: Date.now() + MINUTE_MS });
  const { id } = await aboveTheLimit();
  // Its first evaluations find that somebody else has changed it, so that the next one waits for other payments of the customer.
  const change = async () => await service.sql`update payments set version = version + 1 where id = ${id}`;
  let isGiven = false;
  const giveAway = async () => {
    if (isGiven) return;
    isGiven = true;
    const body = { customerUserId: user, affiliateId: other.affiliateId, reason: 'A test' };
    await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, body);
  };
  const transaction: Sql['transaction'] = async (work) =>
    await service.sql.transaction(async (tx) => await work(before(tx, giveAway)));
  const sql = Object.assign(before(service.sql, change), { transaction });
  const earning = await evaluateAgain(id, sql);
  expect({ isGiven, earning }).toMatchObject({
    isGiven: true,
    earning: { amountCents: ABOVE_THE_LIMIT / 10, binding: { affiliateId: other.affiliateId } },
  });
});

test('a manual attribution that reaches back while the first policy takes effect is booked', async () => {
  const user = `user-${randomUUID()}`;
  await founder.purchase(user, 10, { occurredAt: Date.now() - DAY_MS });
  const later = { from: Date.now() + 2_000 };
  await earnByPolicy(founder, service.sql, { base: 'gross', rules: [{ percentBps: 1_000 }] }, later);
  const target = { customerUserId: user, affiliateId: founder.affiliateId, from: Date.now() - 2 * DAY_MS };
  let sent: ReturnType<Founder['call']> | undefined;
  await service.sql.transaction(async (tx) => {
    await tx`select from payments where app_id = ${founder.app.id} for update`;
    sent = founder.call('POST', `/apps/${founder.app.id}/manual-attributions`, {
      body: { ...target, expectedCents: 200, reason: 'A test' },
    });
    await tx`select pg_sleep(3)`;
  });
  expect(await sent).toMatchObject({ status: 201, body: { payments: 1, earnedCents: 200 } });
});

test('what a founder is shown for a user leaves out payments of others, who go on with their numbers', async () => {
  const other = await founder.newAffiliate('Other');
  const [x, y] = [await founder.customer(), `user-${randomUUID()}`];
  await founder.purchase(x, 10);
  await eventually('the first one earns', async () => (await commissions()).length === 1);
  await earnByPolicy(
    founder,
    service.sql,
    { base: 'gross', rules: [{ when: { paymentNumber: { to: 1 } }, flatCents: 300 }, { percentBps: 1_000 }] },
    { from: Date.now() - 10 * MINUTE_MS },
  );
  const at = Date.now() - 5 * MINUTE_MS;
  await founder.revenuecat(
    bodyOf(
      revenuecatEvent({
        userId: x,
        usd: 10,
        occurredAt: at,
        extra: { aliases: [x, y], price: null, price_in_purchased_currency: 1_000, currency: 'ISK' },
      }),
    ),
  );
  await waitsForRate();
  await importRate('ISK', at);
  const target = { customerUserId: y, affiliateId: other.affiliateId, from: Date.now() - 30 * DAY_MS };
  const path = `/apps/${founder.app.id}/manual-attributions`;
  const preview = await founder.call<{ earnedCents: number; payments: number }>('POST', `${path}/preview`, {
    body: target,
  });
  await founder.call('POST', path, {
    body: { ...target, reason: 'A test', expectedCents: preview.body.earnedCents },
  });
  await eventually('the second one earns', async () => (await commissions()).length === 2, 20_000);
  expect({
    shown: preview.body.earnedCents,
    amounts: (await commissions()).map(({ amountCents }) => amountCents),
    findings: await findings(),
  }).toEqual({ shown: 0, amounts: [100, 200], findings: [] });
});

test("a payment that waits for a rate for another user's creator does not refuse a manual attribution", async () => {
  const other = await founder.newAffiliate('Other');
  const [x, y] = [await founder.customer(), `user-${randomUUID()}`];
  await founder.revenuecat(
    bodyOf(
      revenuecatEvent({
        userId: x,
        usd: 10,
        occurredAt: Date.now() - 5 * MINUTE_MS,
        extra: { aliases: [x, y], price: null, price_in_purchased_currency: 1_000, currency: 'THB' },
      }),
    ),
  );
  await waitsForRate();
  const { status, text } = await founder.call('POST', `/apps/${founder.app.id}/manual-attributions/preview`, {
    body: { customerUserId: y, affiliateId: other.affiliateId, from: Date.now() - 30 * DAY_MS },
  });
  expect({ status, text }).toMatchObject({ status: 200 });
});

test('without the permission to pay, nobody brings a creator to a rule above the base by a policy without a version', async () => {
  const shared = await publishPolicy(founder, service.sql, {
    base: 'gross',
    rules: [{ flatCents: 50_000, aboveBase: true }],
  });
  await assignPolicy(founder, service.sql, shared);
  const own = await publishPolicy(founder, service.sql, { base: 'gross', rules: [{ percentBps: 100 }] });
  await assignPolicy(founder, service.sql, own, { affiliateId: founder.affiliateId });
  const user = await founder.customer();
  await founder.purchase(user, 10, { occurredAt: Date.now() - 60 * MINUTE_MS });
  await eventually('it earns 1 %', async () => (await commissions())[0]?.amountCents === 10);

  const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, ['read', 'write']);
  const path = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/policy-assignment`;
  expect((await founder.call('PUT', path, { key, body: { policyId: null } })).status).toBe(403);
  const empty = await founder.ok<{ id: string }>(
    'POST',
    `/apps/${founder.app.id}/policies`,
    { name: 'Empty' },
    key,
  );
  const assigned = await founder.call('PUT', path, { key, body: { policyId: empty.id } });
  await takesEffect(service.sql, founder.app, Date.now() - 30 * MINUTE_MS);
  await founder.purchase(user, 10, { occurredAt: Date.now() - MINUTE_MS });
  await eventually('the second one earns', async () => (await commissions()).length === 2);
  expect({
    status: assigned.status,
    amounts: (await commissions()).map(({ amountCents }) => amountCents),
  }).toEqual({
    status: 403,
    amounts: [10, 10],
  });
});

test('with read and write alone, nobody makes earlier payments earn by switching codes on', async () => {
  await registered({ namespace: 'app_store', value: 'SPRING20' });
  await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'off' });
  const key = await writer();
  const user = randomUUID();
  for (let day = 28; day > 0; day -= 4)
    await buy(user, Date.now() - day * DAY_MS, { offer_code: 'SPRING20' });
  expect(await commissions()).toEqual([]);
  await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'when_unattributed' }, key);
  expect(await buy(user, Date.now(), { offer_code: 'SPRING20' })).toBeDefined();
  await service.settled();
  expect(await commissions()).toHaveLength(1);
}, 60_000);

test('without the permission for the identity secret, nobody claims users by turning their verification off', async () => {
  const path = `/apps/${founder.app.id}/settings`;
  await founder.ok('POST', `/apps/${founder.app.id}/identity-secret/rotate`, {});
  await founder.ok('PATCH', path, { identityVerification: true });
  const user = `user-${randomUUID()}`;
  await founder.purchase(user, 10, { occurredAt: Date.now() - 5 * DAY_MS });
  const key = await writer();
  const { status } = await founder.call('PATCH', path, { key, body: { identityVerification: false } });
  const deviceId = randomUUID();
  const touchedAt = Date.now() - 20 * DAY_MS;
  const touch = { affiliateCode: founder.slug, firstOpenAt: touchedAt, codeEnteredAt: touchedAt };
  await founder.ok('POST', '/sdk/install', { deviceId, ...touch }, founder.app.sdkKey);
  const claim = { deviceId, customerUserId: user, identifiedAt: Date.now() };
  await founder.call('POST', '/sdk/identify', { key: founder.app.sdkKey, body: claim });
  await service.settled();
  expect({ status, earned: await commissions() }).toEqual({ status: 403, earned: [] });
  expect((await founder.call('PATCH', path, { body: { identityVerification: false } })).status).toBe(200);
});

test('a payment that was made while the creator of its code was removed never earns by it', async () => {
  await registered({ namespace: 'app_store', value: 'SPRING20' });
  const user = randomUUID();
  const of = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
  const key = await writer();
  await founder.ok('PATCH', of, { status: 'removed' });
  await service.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update codes set deactivated_at = now() - interval '1 hour' where app_id = ${founder.app.id}`;
  });
  expect(await buy(user, Date.now() - 30 * MINUTE_MS, { offer_code: 'SPRING20' })).toBeUndefined();
  await founder.ok('PATCH', of, { status: 'active' }, key);
  expect(await buy(user, Date.now(), { offer_code: 'SPRING20' })).toBeUndefined();
  await founder.ok('POST', `${of}/codes`, { namespace: 'app_store', value: 'SPRING20' }, key);
  expect(await buy(user, Date.now(), { offer_code: 'SPRING20' })).toBeDefined();
  await service.settled();
  expect(await commissions()).toHaveLength(1);
}, 60_000);

test('a payment with codes of two creators earns for none, also once one of them is removed', async () => {
  const other = await founder.newAffiliate('Other');
  await registered({ namespace: 'app_store', value: 'ONE' });
  await registered({ namespace: 'attribute', value: 'TWO' }, other.affiliateId);
  const user = randomUUID();
  const both = { offer_code: 'ONE', subscriber_attributes: { tributary_code: { value: 'TWO' } } };
  expect(await buy(user, Date.now() - 30 * MINUTE_MS, both)).toBeUndefined();
  const of = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
  await founder.ok('PATCH', of, { status: 'removed' }, await writer());
  expect(await buy(user, Date.now(), both)).toBeDefined();
  await service.settled();
  expect(await commissions()).toHaveLength(1);
});

test('a key of an erased person is not written down again by hand', async () => {
  const user = randomUUID();
  const anonymous = `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;
  await founder.revenuecat(
    bodyOf(
      revenuecatEvent({
        userId: user,
        usd: 10,
        occurredAt: Date.now(),
        extra: { aliases: [anonymous, user], original_app_user_id: anonymous },
      }),
    ),
  );
  await founder.ok('DELETE', `/apps/${founder.app.id}/users/${user}`);
  await eventually(
    'erased',
    async () => (await service.sql`select from payment_user_keys where user_key = ${anonymous}`).length === 0,
  );
  const { status, text } = await founder.call('POST', `/apps/${founder.app.id}/manual-attributions`, {
    body: { customerUserId: anonymous, affiliateId: founder.affiliateId, reason: 'x' },
  });
  const left = await service.sql`select id from bindings where customer_user_id = ${anonymous}`;
  expect({ status, text, left: left.length }).toMatchObject({ status: 409, left: 0 });
});

test('a check finds an earning whose tax no event states', async () => {
  await earnByPolicy(founder, service.sql, { base: 'net_of_tax', rules: [{ percentBps: 5_000 }] });
  const user = await founder.customer();
  const invoice = stripeInvoicePaid({ userId: user, amount: 1_000, occurredAt: Date.now() - DAY_MS });
  await founder.stripe(
    bodyOf({
      ...invoice,
      data: { object: { ...(invoice['data'] as { object: object }).object, total_taxes: [{ amount: 160 }] } },
    }),
  );
  await eventually('it earns', async () => (await commissions())[0]?.amountCents === 420);
  await service.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      update commissions set policy_inputs = jsonb_set(policy_inputs, '{tax,minor}', '0'), base_cents = 1000, amount_cents = 500
       where app_id = ${founder.app.id}`;
  });
  const found = await findings();
  expect(found.filter((name) => name.includes('polic'))).not.toEqual([]);
});

test('a check finds an earning by the rule of a product that no event states', async () => {
  await earnByPolicy(founder, service.sql, {
    base: 'gross',
    rules: [{ when: { productIds: ['lifetime'] }, percentBps: 5_000 }, { percentBps: 1_000 }],
  });
  const user = await founder.customer();
  await founder.revenuecat(
    bodyOf(
      revenuecatEvent({
        userId: user,
        usd: 10,
        occurredAt: Date.now() - DAY_MS,
        extra: { product_id: 'monthly' },
      }),
    ),
  );
  await eventually('it earns', async () => (await commissions())[0]?.amountCents === 100);
  await service.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      update commissions set policy_inputs = jsonb_set(policy_inputs, '{productId}', '"lifetime"'), rule_index = 0, rate_bps = 5000, amount_cents = 500
       where app_id = ${founder.app.id}`;
  });
  const found = await findings();
  expect(found.filter((name) => name.includes('polic'))).not.toEqual([]);
});
