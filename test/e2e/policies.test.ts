import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { addMonths } from '../../src/domain/calendar.ts';
import type { PolicyTerms } from '../../src/domain/policy.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { assignPolicy, earnByPolicy, moveToGroup, publishPolicy, takesEffect } from '../support/policies.ts';
import {
  bodyOf,
  revenuecatEvent,
  revenuecatRefund,
  revenuecatTransfer,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripePaymentIntent,
  stripeRefund,
} from '../support/provider-fixtures.ts';
import { startRelayedApi } from '../support/relayed-api.ts';
import type { RelayedApi } from '../support/relayed-api.ts';

let service: RelayedApi;
let founder: Founder;

beforeAll(async () => {
  service = await startRelayedApi();
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
  readonly amountCents: number;
  readonly baseCents: number;
  readonly rateBps: number;
  readonly policy?: Record<string, unknown>;
}

const YEAR_THEN_LESS: PolicyTerms = {
  base: 'proceeds',
  rules: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps: 5_000 }, { percentBps: 2_000 }],
};

/** Returns the rows of the founder's ledger, the latest purchase first. */
async function commissions(of = founder): Promise<Row[]> {
  const { items } = await of.ok<{ items: Row[] }>('GET', `/apps/${of.app.id}/commissions?limit=100`);
  return items;
}

/** Delivers a RevenueCat payment of $9.99 with tax and store fee. Returns what it earned. */
async function pay(
  userId: string,
  occurredAt: number,
  {
    extra = {},
    transactionId = randomUUID(),
    usd = 9.99,
  }: { extra?: object; transactionId?: string; usd?: number } = {},
): Promise<Row | undefined> {
  const body = revenuecatEvent({
    userId,
    usd,
    occurredAt,
    transactionId,
    extra: { tax_percentage: 0.19, commission_percentage: 0.15, ...extra },
  });
  const { body: response } = await founder.revenuecat(bodyOf(body));
  const rows = await commissions();
  return rows.find(({ id }) => id === response.commissionId);
}

describe('a policy by months', () => {
  // @promise policy-by-months
  test('15 monthly payments earn 50 % of the proceeds twelve times, then 20 %; a half refund of month 3 takes back half of it', async () => {
    await earnByPolicy(founder, service.sql, YEAR_THEN_LESS);
    const first = Date.UTC(2025, 0, 31, 12);
    const user = await founder.customer(founder.slug, first - DAY_MS);
    // Stores charge up to two days early.
    const times = Array.from({ length: 15 }, (_, n) => addMonths(first, n) - (n % 3) * 20 * HOUR_MS);
    for (const [n, at] of times.entries()) await pay(user, at, { transactionId: `${user}-${n}` });
    const earned = (await commissions()).toReversed();
    // 9.99 less 1.90 tax and 1.50 fee is 6.59, of which half is 3.30 and a fifth 1.32.
    expect(earned.map(({ baseCents, amountCents, rateBps }) => [baseCents, amountCents, rateBps])).toEqual([
      ...Array.from({ length: 12 }, () => [659, 330, 5_000]),
      ...Array.from({ length: 3 }, () => [659, 132, 2_000]),
    ]);
    expect(earned[0]?.policy).toMatchObject({
      name: 'Test policy',
      version: 1,
      ruleIndex: 0,
      base: 'proceeds',
      baseEstimated: true,
    });
    expect(earned[14]?.policy).toMatchObject({ ruleIndex: 1 });

    const refund = revenuecatRefund({
      userId: user,
      usd: 4.995,
      transactionId: `${user}-2`,
      occurredAt: Date.now() - DAY_MS,
    });
    await founder.revenuecat(bodyOf(refund));
    const reversal = (await commissions()).find(({ kind }) => kind === 'reversal');
    // Half of 9.99 is read as 5.00.
    expect(reversal).toMatchObject({ amountCents: -165, baseCents: -330, rateBps: 5_000 });
    expect(reversal?.policy).toEqual(earned[2]?.policy);
  });
});

describe('what a creator sees of a policy', () => {
  // @promise creator-computed-from
  test('each commission says what a policy computed it from, and one of another rate does not', async () => {
    const user = await founder.customer();
    const monthsAgo = (months: number) => Date.now() - months * 31 * DAY_MS;
    await pay(user, monthsAgo(3));
    await earnByPolicy(
      founder,
      service.sql,
      {
        base: 'proceeds',
        rules: [{ when: { productIds: ['lifetime'] }, flatCents: 1_500 }, { percentBps: 5_000 }],
      },
      { from: monthsAgo(2) },
    );
    const transactionId = randomUUID();
    await pay(user, monthsAgo(1), { transactionId });
    await pay(user, Date.now() - DAY_MS, { usd: 100, extra: { product_id: 'lifetime' } });
    const refund = { userId: user, usd: 9.99, transactionId, occurredAt: Date.now() - DAY_MS / 2 };
    await founder.revenuecat(bodyOf(revenuecatRefund(refund)));
    const path = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/creator/commissions`;
    const { items } = await founder.ok<{ items: (Row & { computedFrom?: object })[] }>('GET', path);
    const base = { base: 'proceeds', baseEstimated: true };
    expect(items.map(({ amountCents, computedFrom }) => [amountCents, computedFrom])).toEqual([
      [-330, { ...base, baseCents: -659 }],
      [1_500, { flatCents: 1_500 }],
      [330, { ...base, baseCents: 659 }],
      [expect.any(Number), undefined],
    ]);
    const text = JSON.stringify(items);
    for (const hidden of [user, 'customerUserId', 'eventId', 'policyId', 'paymentNumber', 'lifetime'])
      expect(text).not.toContain(hidden);
    const csv = await founder.call('GET', path, { headers: { accept: 'text/csv' } });
    expect(csv.text).not.toContain('computedFrom');
  });
});

describe('versions, assignments and groups', () => {
  // @promise policy-of-its-day
  test('a version of noon does not touch a payment of 11:59 that is delivered at 12:05', async () => {
    const noon = Date.now() - HOUR_MS;
    const policyId = await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ percentBps: 1_000 }],
    });
    await publishPolicy(
      founder,
      service.sql,
      { base: 'gross', rules: [{ percentBps: 5_000 }] },
      { policyId, from: noon },
    );
    const user = await founder.customer();
    expect(await pay(user, noon - MINUTE_MS, { usd: 10 })).toMatchObject({
      amountCents: 100,
      policy: { version: 1 },
    });
    expect(await pay(user, noon, { usd: 10 })).toMatchObject({ amountCents: 500, policy: { version: 2 } });
    // Also when the earlier payment comes last.
    expect(await pay(user, noon - 1, { usd: 10 })).toMatchObject({
      amountCents: 100,
      policy: { version: 1 },
    });
  });

  // @promise policy-of-the-narrowest-scope
  test("the creator's policy goes before the own rate, which goes before the group's policy, which goes before the app's", async () => {
    const percent = (percentBps: number): PolicyTerms => ({ base: 'gross', rules: [{ percentBps }] });
    const user = await founder.customer();
    const { affiliateId } = founder;
    let at = Date.now() - 20 * DAY_MS;
    const next = async () => {
      at += DAY_MS;
      return (await pay(user, at, { usd: 10 }))?.amountCents;
    };
    const from = () => at + HOUR_MS;
    expect(await next()).toBe(200);
    await earnByPolicy(founder, service.sql, percent(3_000), { from: from() });
    expect(await next()).toBe(300);
    const group = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/groups`, {
      name: 'VIPs',
    });
    await earnByPolicy(founder, service.sql, percent(4_000), { from: from(), scope: { groupId: group.id } });
    expect(await next()).toBe(300);
    await moveToGroup(founder, service.sql, affiliateId, group.id, from());
    expect(await next()).toBe(400);
    await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${affiliateId}`, {
      defaultCommissionRateBps: 4_500,
    });
    expect(await next()).toBe(450);
    const own = await earnByPolicy(founder, service.sql, percent(6_000), {
      from: from(),
      scope: { affiliateId },
    });
    expect(await next()).toBe(600);
    await assignPolicy(founder, service.sql, null, { affiliateId }, from());
    expect(await next()).toBe(450);
    await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${affiliateId}`, {
      defaultCommissionRateBps: null,
    });
    expect(await next()).toBe(400);
    await moveToGroup(founder, service.sql, affiliateId, null, from());
    expect(await next()).toBe(300);
    await assignPolicy(founder, service.sql, null, null, from());
    expect(await next()).toBe(200);
    await assignPolicy(founder, service.sql, own, null, from());
    expect(await next()).toBe(600);
  });
});

describe('the first payment of a customer', () => {
  const FIRST_ONLY: PolicyTerms = {
    base: 'gross',
    rules: [{ when: { paymentNumber: { to: 1 } }, flatCents: 500 }],
  };

  // @promise first-payment-once
  test('of 200 payments of one customer at once, exactly one earns as the first', async () => {
    await earnByPolicy(founder, service.sql, FIRST_ONLY);
    const user = await founder.customer();
    const at = Date.now() - DAY_MS;
    const sent = await Promise.all(
      Array.from(
        { length: 200 },
        async (_, n) =>
          await founder.revenuecat(
            bodyOf(
              revenuecatEvent({ userId: user, usd: 10, occurredAt: at + n, transactionId: `${user}-${n}` }),
            ),
          ),
      ),
    );
    expect(sent.filter(({ status }) => status !== 200)).toEqual([]);
    // A slow machine responds to some of them before their outcome.
    await eventually('the payments have the numbers from 1 to 200', async () => {
      const { numbers } = await service.sql.one<{ numbers: number[] | null }>`
        select jsonb_agg(number order by number) as numbers from payment_numbers where app_id = ${founder.app.id}`;
      return numbers?.length === 200 && numbers.every((number, n) => number === n + 1);
    });
    expect(await commissions()).toMatchObject([{ kind: 'earning', amountCents: 500 }]);
  });

  // @promise policy-numbers
  test('payments from before the first policy have the first numbers, in the order in which they earned', async () => {
    const user = await founder.customer();
    const at = Date.now() - 10 * DAY_MS;
    await pay(user, at + DAY_MS, { usd: 10 });
    await pay(user, at, { usd: 10 });
    await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ when: { paymentNumber: { from: 3, to: 3 } }, percentBps: 9_000 }, { percentBps: 100 }],
    });
    expect(await pay(user, at + 2 * DAY_MS, { usd: 10 })).toMatchObject({ amountCents: 900 });
    expect(await pay(user, at + 3 * DAY_MS, { usd: 10 })).toMatchObject({ amountCents: 10 });
    const numbers = await service.sql<{ number: number; occurredAt: number; firstPaidAt: number }>`
      select n.number, p.occurred_at, n.first_paid_at from payment_numbers n join payments p on p.id = n.payment_id
       where n.app_id = ${founder.app.id} order by number`;
    expect(numbers.map(({ number, occurredAt }) => [number, (occurredAt - at) / DAY_MS])).toEqual([
      [1, 1],
      [2, 0],
      [3, 2],
      [4, 3],
    ]);
    expect(new Set(numbers.map(({ firstPaidAt }) => firstPaidAt))).toEqual(new Set([at + DAY_MS]));
  });

  // @promise policy-numbers
  test('whoever gets transferred purchases goes on with the numbers of the giver', async () => {
    await earnByPolicy(founder, service.sql, FIRST_ONLY);
    const user = await founder.customer();
    expect(await pay(user, Date.now() - 3 * DAY_MS)).toMatchObject({
      amountCents: 500,
      rateBps: 0,
      policy: { flatCents: 500 },
    });
    const receiver = `user-${randomUUID()}`;
    await founder.revenuecat(
      bodyOf(revenuecatTransfer({ from: [user], to: [receiver], occurredAt: Date.now() - 2 * DAY_MS })),
    );
    expect(await pay(receiver, Date.now() - DAY_MS)).toBeUndefined();
    expect(await commissions()).toHaveLength(1);
  });

  // @promise policy-numbers
  test('a user who was identified on the device before the transfer arrives goes on with the numbers, one who has paid does not', async () => {
    await earnByPolicy(founder, service.sql, FIRST_ONLY);
    const user = await founder.customer();
    const { deviceId } = await service.sql.one<{ deviceId: string }>`
      select device_id from identities where app_id = ${founder.app.id} and customer_user_id = ${user}`;
    const [receiver, payer] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
    for (const other of [receiver, payer]) await founder.identify(deviceId, other);
    await pay(user, Date.now() - 4 * DAY_MS);
    await pay(payer, Date.now() - 3 * DAY_MS);
    expect(await commissions()).toHaveLength(2);
    await founder.revenuecat(
      bodyOf(
        revenuecatTransfer({ from: [user], to: [receiver, payer], occurredAt: Date.now() - 2 * DAY_MS }),
      ),
    );
    expect(await pay(receiver, Date.now() - DAY_MS)).toBeUndefined();
    expect(await commissions()).toHaveLength(2);
    const rows = await service.sql<{ customerUserId: string; isGivers: boolean }>`
      select b.customer_user_id, coalesce(b.counts_with = g.id, false) as is_givers
        from bindings b, bindings g
       where b.app_id = ${founder.app.id} and g.app_id = b.app_id and g.customer_user_id = ${user}`;
    const counted = rows.filter(({ isGivers }) => isGivers).map(({ customerUserId }) => customerUserId);
    expect(counted).toEqual([receiver]);
    const change = async (name: string, root: string | null) =>
      await service.sql`
        update bindings b set counts_with = (
          select g.id from bindings g where g.app_id = b.app_id and g.customer_user_id = ${root}::text)
         where b.app_id = ${founder.app.id} and b.customer_user_id = ${name} returning 1`;
    // Who has paid, and with whom somebody counts, keeps the own numbers.
    expect([await change(payer, user), await change(user, receiver)]).toEqual([[], []]);
    for (const root of [null, payer])
      await expect(change(receiver, root)).rejects.toThrow('the binding of a user cannot be changed');
  });

  // @promise policy-numbers
  test('a transfer of two givers makes nobody count with them, identified before it or after it', async () => {
    await earnByPolicy(founder, service.sql, FIRST_ONLY);
    const device = await founder.install();
    const [one, two] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
    const [before, after] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
    for (const user of [one, two, before]) await founder.identify(device, user);
    await founder.revenuecat(
      bodyOf(revenuecatTransfer({ from: [one, two], to: [before, after], occurredAt: Date.now() })),
    );
    await founder.identify(device, after);
    const rows = await service.sql`
      select customer_user_id, counts_with from bindings
       where app_id = ${founder.app.id} and customer_user_id = any(${[before, after]}::text[])`;
    expect(rows).toEqual(
      expect.arrayContaining([
        { customerUserId: before, countsWith: null },
        { customerUserId: after, countsWith: null },
      ]),
    );
    for (const user of [before, after])
      expect(await pay(user, Date.now() + 1_000)).toMatchObject({ amountCents: expect.any(Number) });
  });

  // @promise policy-numbers
  test('givers who are one person bind whom they transfer purchases to', async () => {
    await earnByPolicy(founder, service.sql, FIRST_ONLY);
    const [member, receiver] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
    const user = await founder.customer();
    const transfer = async (from: readonly string[], to: string) =>
      await founder.revenuecat(bodyOf(revenuecatTransfer({ from, to: [to], occurredAt: Date.now() })));
    await transfer([user], member);
    await transfer([user, member], receiver);
    expect(await pay(member, Date.now() + 1_000)).toMatchObject({ amountCents: 500 });
    expect(await pay(receiver, Date.now() + 2_000)).toBeUndefined();
    const { cause } = await service.sql.one<{ cause: string | null }>`
      select e.likely_cause as cause from events e
       where e.app_id = ${founder.app.id} and e.customer_user_id = ${receiver} and e.amount_minor is not null`;
    expect(cause).toBe('no_policy_rule');
  });

  // @promise policy-numbers
  test('all receivers of a transfer count with its giver, also beside one who is named as a giver, too', async () => {
    await earnByPolicy(founder, service.sql, FIRST_ONLY);
    const [giver, both, receiver] = ['0', '1', '2'].map((order) => `user-${order}-${randomUUID()}`);
    if (giver === undefined || both === undefined || receiver === undefined) throw new Error('three users');
    await founder.revenuecat(
      bodyOf(revenuecatTransfer({ from: [giver, both], to: [receiver, both], occurredAt: Date.now() })),
    );
    await founder.identify(await founder.install(), giver);
    await eventually('the receivers are bound', async () => {
      const { bound } = await service.sql.one<{ bound: number }>`
        select count(*)::int as bound from bindings where app_id = ${founder.app.id}`;
      return bound === 3;
    });
    await pay(both, Date.now() + 1_000);
    expect(await pay(receiver, Date.now() + 2_000)).toBeUndefined();
    expect(await commissions()).toHaveLength(1);
  });

  // @promise policy-numbers
  test('a paused creator and a price of a rule that pays nothing use up a number', async () => {
    await earnByPolicy(founder, service.sql, FIRST_ONLY);
    const user = await founder.customer();
    const path = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`;
    await founder.ok('PATCH', path, { status: 'paused' });
    expect(await pay(user, Date.now() - 3 * DAY_MS)).toBeUndefined();
    await founder.ok('PATCH', path, { status: 'active' });
    expect(await pay(user, Date.now() - 2 * DAY_MS)).toBeUndefined();
    expect(await commissions()).toEqual([]);
  });
});

// @promise policy-dated-ahead
test('a payment that the provider dates ahead earns by the policies and the group of when its webhook arrived', async () => {
  const percent = (percentBps: number): PolicyTerms => ({ base: 'gross', rules: [{ percentBps }] });
  const soon = Date.now() + 12 * HOUR_MS;
  const group = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/groups`, { name: 'VIPs' });
  await earnByPolicy(founder, service.sql, percent(5_000), { scope: { groupId: group.id } });
  const policyId = await earnByPolicy(founder, service.sql, percent(1_000));
  await publishPolicy(founder, service.sql, percent(2_000), { policyId, from: soon });
  const user = await founder.customer();
  const renew = async () => (await pay(user, Date.now() + DAY_MS, { usd: 10 }))?.amountCents;
  expect(await renew()).toBe(100);
  await moveToGroup(founder, service.sql, founder.affiliateId, group.id, soon);
  expect(await renew()).toBe(100);
  await takesEffect(service.sql, founder.app, Date.now());
  expect(await renew()).toBe(500);
});

describe('bases', () => {
  // @promise policy-base
  test('a stated component goes before an estimate of the provider, which goes before what the policy assumes', async () => {
    await earnByPolicy(founder, service.sql, {
      base: 'proceeds',
      assumed: { taxBps: 1_000, feeBps: { app_store: 2_000 } },
      rules: [{ percentBps: 10_000 }],
    });
    const user = await founder.customer();
    const assumed = await pay(user, Date.now() - 3 * DAY_MS, {
      usd: 10,
      extra: { tax_percentage: null, commission_percentage: null },
    });
    // 10.00 less 1.00 tax and a fifth of the rest.
    expect(assumed).toMatchObject({ baseCents: 720, policy: { baseEstimated: true } });
    const estimated = await pay(user, Date.now() - 2 * DAY_MS, {
      usd: 10,
      extra: { tax_percentage: 0.2, commission_percentage: 0.15 },
    });
    expect(estimated).toMatchObject({ baseCents: 650, policy: { baseEstimated: true } });
    const invoice = stripeInvoicePaid({ userId: user, amount: 1_000, occurredAt: Date.now() - DAY_MS });
    const { body } = await founder.stripe(
      bodyOf({
        ...invoice,
        data: {
          object: { ...(invoice['data'] as { object: object }).object, total_taxes: [{ amount: 160 }] },
        },
      }),
    );
    const stated = (await commissions()).find(({ id }) => id === body.commissionId);
    // Stripe states the tax, and nothing about a fee: none is assumed.
    expect(stated).toMatchObject({ baseCents: 840, policy: { baseEstimated: true } });
  });

  // @promise policy-flat
  test('a fixed amount is at most the base, unless the rule says otherwise', async () => {
    const policyId = await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ flatCents: 1_500 }],
    });
    const user = await founder.customer();
    expect(await pay(user, Date.now() - 3 * DAY_MS, { usd: 10 })).toMatchObject({
      amountCents: 1_000,
      baseCents: 1_000,
    });
    await publishPolicy(
      founder,
      service.sql,
      { base: 'gross', rules: [{ flatCents: 1_500, aboveBase: true }] },
      { policyId, from: Date.now() - 2 * DAY_MS },
    );
    expect(await pay(user, Date.now() - DAY_MS, { usd: 10 })).toMatchObject({
      amountCents: 1_500,
      baseCents: 1_000,
    });
  });
});

// @promise policy-conversion
test.each([['the whole last'], ['the whole first']])(
  'an invoice that is paid in parts has the rule and the number of one payment, with %s',
  async (order) => {
    await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ when: { paymentNumber: { to: 1 } }, percentBps: 5_000 }, { percentBps: 1_000 }],
    });
    const user = await founder.customer();
    const [invoiceId, paymentIntentId] = [`in_${randomUUID()}`, `pi_${randomUUID()}`];
    const occurredAt = Date.now() - DAY_MS;
    const part = [
      stripePaymentIntent({ userId: user, paymentIntentId, amount: 4_000, occurredAt }),
      stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount: 4_000, occurredAt }),
    ];
    const whole = stripeInvoicePaid({ userId: user, invoiceId, amount: 10_000, occurredAt });
    for (const event of order === 'the whole last' ? [...part, whole] : [whole, ...part])
      await founder.stripe(bodyOf(event));
    const sum = async () => (await commissions()).reduce((total, { amountCents }) => total + amountCents, 0);
    expect(await sum()).toBe(5_000);
    await founder.stripe(
      bodyOf(stripeRefund({ id: `re_${randomUUID()}`, paymentIntentId, amount: 2_500, occurredAt })),
    );
    expect(await sum()).toBe(3_750);
    const numbers = await service.sql<{ number: number; isWhole: boolean }>`
      select n.number, p.amount_minor = 10000 as is_whole from payment_numbers n join payments p on p.id = n.payment_id
       where n.app_id = ${founder.app.id} order by p.amount_minor`;
    expect(numbers.filter(({ isWhole }) => isWhole)).toEqual([{ number: 1, isWhole: true }]);
  },
);

// @promise policy-explained
test('an explanation says by which rule a payment earned, and from which inputs', async () => {
  await earnByPolicy(founder, service.sql, YEAR_THEN_LESS);
  const user = await founder.customer();
  const at = Date.now() - DAY_MS;
  const { body } = await founder.revenuecat(
    bodyOf(
      revenuecatEvent({
        userId: user,
        usd: 9.99,
        occurredAt: at,
        extra: { tax_percentage: 0.19, commission_percentage: 0.15 },
      }),
    ),
  );
  const { steps } = await founder.ok<{
    steps: { explanation: string; facts: { commissions: Record<string, unknown>[] } }[];
  }>('GET', `/apps/${founder.app.id}/events/${body.eventId}/explanation`);
  const last = steps.at(-1);
  expect(last?.explanation).toBe(
    '$3.30: 50 % of $6.59, the proceeds (estimated), by rule 1 of the policy Test policy, version 1, assigned to the app. It is payment 1 of this customer, in month 1.',
  );
  expect(last?.facts.commissions[0]).toMatchObject({
    rateSource: 'policy',
    policyScope: 'app',
    policy: { name: 'Test policy', ruleIndex: 0, base: 'proceeds', baseEstimated: true },
    policyInputs: {
      grossCents: 999,
      paidMinor: 999,
      tax: { minor: 190, origin: 'estimated' },
      storeFee: { minor: 150, origin: 'estimated' },
      store: 'app_store',
      paymentNumber: 1,
      monthsSinceFirst: 0,
    },
  });
});

describe('what a review broke', () => {
  const FIRST: PolicyTerms = {
    base: 'gross',
    rules: [{ when: { paymentNumber: { to: 1 } }, percentBps: 5_000 }, { percentBps: 1_000 }],
  };
  const at = () => Date.now() - DAY_MS;

  // @promise policy-numbers
  test('a customer whose only earlier payment counts for somebody else goes on', async () => {
    const [one, other] = [await founder.customer(), await founder.customer()];
    const [invoiceId, paymentIntentId] = [`in_${one}`, `pi_${one}`];
    const occurredAt = at();
    for (const event of [
      stripeInvoicePaid({ userId: one, invoiceId, amount: 4_000, occurredAt }),
      stripePaymentIntent({ userId: other, paymentIntentId, amount: 4_000, occurredAt }),
      stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount: 4_000, occurredAt }),
    ])
      await founder.stripe(bodyOf(event));
    await eventually('the second one is corrected', async () =>
      (await commissions()).some(({ kind }) => kind === 'correction'),
    );
    await earnByPolicy(founder, service.sql, FIRST, { from: Date.now() - HOUR_MS });
    expect(await pay(other, Date.now(), { usd: 10 })).toMatchObject({ amountCents: 500 });
  });

  // @promise policy-conversion
  test('an invoice that replaces an invoice that replaced a part has the number of the part', async () => {
    await earnByPolicy(founder, service.sql, FIRST);
    const user = await founder.customer();
    const paymentIntentId = `pi_${user}`;
    const occurredAt = at();
    const tie = (invoiceId: string) =>
      stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount: 4_000, occurredAt });
    for (const event of [
      stripePaymentIntent({ userId: user, paymentIntentId, amount: 4_000, occurredAt }),
      tie(`in_${user}_1`),
      stripeInvoicePaid({ userId: user, invoiceId: `in_${user}_1`, amount: 10_000, occurredAt }),
      tie(`in_${user}_2`),
      stripeInvoicePaid({ userId: user, invoiceId: `in_${user}_2`, amount: 20_000, occurredAt }),
    ])
      expect((await founder.stripe(bodyOf(event))).body.pending).toBeUndefined();
    await eventually('the last invoice earns', async () => {
      const rows = await commissions();
      return rows.reduce((sum, { amountCents }) => sum + amountCents, 0) === 10_000;
    });
  });

  // @promise policy-numbers
  test('whom a transfer binds while another one moves the giver counts with whom the giver does', async () => {
    const device = await founder.install();
    const [root, giver, receiver] = ['root', 'giver', 'receiver'].map((name) => `${name}-${randomUUID()}`);
    for (const user of [root, giver]) await founder.identify(device, user ?? '');
    const idOf = async (user = '') =>
      await service.sql.one<{ id: string; countsWith: string | null; attributionId: string }>`
        select id, counts_with, attribution_id from bindings where app_id = ${founder.app.id} and customer_user_id = ${user}`;
    const first = await idOf(root);
    const { id, attributionId } = await idOf(giver);
    let bound: Promise<unknown> = Promise.resolve();
    await service.sql.transaction(async (tx) => {
      await tx`update bindings set counts_with = ${first.id} where id = ${id}`;
      bound = service.sql`
        insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, counts_with)
        values (${newId('binding')}, ${founder.app.id}, ${receiver ?? ''}, ${attributionId}, now(), ${id})`;
      await eventually(
        'the new binding waits',
        async () =>
          (
            await service.sql`
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query ~ 'insert into bindings'`
          ).length > 0,
      );
    });
    await bound;
    expect(await idOf(receiver)).toMatchObject({ countsWith: first.id });
  });

  // @promise policy-numbers
  test('a receiver who was bound by an earlier version is counted with the giver', async () => {
    const user = await founder.customer();
    await pay(user, at(), { usd: 10 });
    const receiver = `user-${randomUUID()}`;
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [user], to: [receiver], occurredAt: at() })));
    const { countsWith, giver } = await service.sql.one<{ countsWith: string; giver: string }>`
      select r.counts_with, g.id as giver from bindings r, bindings g
       where r.app_id = ${founder.app.id} and r.customer_user_id = ${receiver}
         and g.app_id = r.app_id and g.customer_user_id = ${user}`;
    expect(countsWith).toBe(giver);
    await earnByPolicy(founder, service.sql, FIRST, { from: Date.now() - HOUR_MS });
    expect(await pay(receiver, Date.now(), { usd: 10 })).toMatchObject({ amountCents: 100 });
  });

  // @promise policy-numbers
  test('a payment that waits for a lock while the first policy takes effect gets its number', async () => {
    const user = await founder.customer();
    await earnByPolicy(founder, service.sql, FIRST, { from: Date.now() + 2_000 });
    const transactionId = randomUUID();
    let sent: Promise<unknown> = Promise.resolve();
    await service.sql.transaction(async (tx) => {
      // The binding is written with the payment.
      await tx`select from bindings where app_id = ${founder.app.id} and customer_user_id = ${user} for update`;
      sent = pay(user, at(), { usd: 10, transactionId });
      await tx`select pg_sleep(3)`;
    });
    await sent;
    await eventually(
      'the payment is attributed',
      async () =>
        (await service.sql`select from payments where app_id = ${founder.app.id} and binding_id is not null`)
          .length === 1,
    );
    expect(await pay(user, Date.now(), { usd: 10 })).toMatchObject({ amountCents: 100 });
    expect(await service.sql`select from payment_numbers where app_id = ${founder.app.id}`).toHaveLength(2);
  });
});
