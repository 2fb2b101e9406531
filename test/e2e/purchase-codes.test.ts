import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { newId } from '../../src/db/new-id.ts';
import { DAY_MS, MINUTE_MS } from '../../src/domain/time.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { connectProvider, deliver } from '../support/connect-provider.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { earnByPolicy } from '../support/policies.ts';
import {
  bodyOf,
  revenuecatEvent,
  superwallEvent,
  revenuecatTransfer,
  stripeCheckoutSession,
  stripeInvoicePaid,
  stripePaymentIntent,
  stripeSubscription,
  withFields,
} from '../support/provider-fixtures.ts';
import { startRelayedApi } from '../support/relayed-api.ts';
import type { RelayedApi } from '../support/relayed-api.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: RelayedApi;
let founder: Founder;

beforeAll(async () => {
  service = await startRelayedApi();
});
beforeEach(async () => {
  founder = await setUpFounder(service, { purchaseCodes: 'when_unattributed' });
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
});

interface Row {
  readonly id: string;
  readonly affiliateId: string;
  readonly amountCents: number;
  readonly matchMethod: string;
  readonly customerUserId: string;
}

const register = async (body: object, affiliateId = founder.affiliateId) =>
  await founder.call<{ id: string; code?: string }>(
    'POST',
    `/apps/${founder.app.id}/affiliates/${affiliateId}/codes`,
    { body },
  );
const commissions = async (): Promise<Row[]> =>
  (await founder.ok<{ items: Row[] }>('GET', `/apps/${founder.app.id}/commissions?limit=100`)).items;

/** Registers a code, as if that was an hour ago. */
async function registered(body: object, affiliateId = founder.affiliateId): Promise<string> {
  const { body: added, text, status } = await register(body, affiliateId);
  if (status !== 201) throw new Error(text);
  await service.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update codes set created_at = created_at - interval '1 hour' where id = ${added.id}`;
  });
  return added.id;
}

/** Delivers a purchase in the App Store with an offer code, or without one. */
async function buy(
  userId: string,
  { code, at = Date.now() - MINUTE_MS, extra = {} }: { code?: string; at?: number; extra?: object } = {},
): Promise<Row | undefined> {
  const { body } = await founder.revenuecat(
    bodyOf(
      revenuecatEvent({
        userId,
        usd: 10,
        occurredAt: at,
        extra: { ...(code && { offer_code: code }), ...extra },
      }),
    ),
  );
  return (await commissions()).find(({ id }) => id === body.commissionId);
}

describe('a purchase with a code', () => {
  // @promise code-binds, post-code
  test('earns for the creator of the code, and so do later purchases of the user; earlier ones do not', async () => {
    await registered({ namespace: 'app_store', value: 'Spring20' });
    const user = randomUUID();
    expect(await buy(user, { at: Date.now() - 10 * MINUTE_MS })).toBeUndefined();
    expect(await buy(user, { code: 'SPRING20' })).toMatchObject({
      amountCents: 200,
      affiliateId: founder.affiliateId,
      matchMethod: 'purchase_code',
      customerUserId: user,
    });
    expect(await buy(user, { at: Date.now() })).toMatchObject({
      amountCents: 200,
      matchMethod: 'purchase_code',
    });
    await eventually(
      'the binding is healed',
      async () =>
        (await service.sql`select from bindings where app_id = ${founder.app.id} and healed_at is null`)
          .length === 0,
    );
    expect(await commissions()).toHaveLength(2);
    const { funnel } = await founder.ok<{ funnel: object }>(
      'GET',
      `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/overview`,
    );
    expect(funnel).toMatchObject({ installs: 0, identified: 0, paid: 1 });
  });

  // @promise code-binds
  test('earns for a customer whom another provider knows by the id that the first one made, in any order', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const secret = await connectProvider(founder, 'superwall');
    for (const isLater of [false, true]) {
      const [id, transactionId] = [`$RCAnonymousID:${randomUUID()}`, randomUUID()];
      const money = { usd: 10, occurredAt: Date.now() - 2 * MINUTE_MS, transactionId };
      const sale = revenuecatEvent({ ...money, userId: id, extra: { offer_code: 'SPRING20' } });
      const named = superwallEvent({ ...money, userId: id });
      const send = [
        async () => await founder.revenuecat(bodyOf(sale)),
        async () => await deliver(founder, 'superwall', named, secret),
      ];
      for (const post of isLater ? send.toReversed() : send) expect((await post()).status).toBe(200);
      await eventually('the payment earns', async () =>
        (await commissions()).some(({ customerUserId }) => customerUserId === id),
      );
    }
    expect(await commissions()).toHaveLength(2);
  });

  // @promise code-binds
  test('binds the same one of the users whom its events name in different places, in any order', async () => {
    await registered({ namespace: 'app_store', value: 'PLACES' });
    const at = Date.now() - MINUTE_MS;
    for (const isLater of [false, true]) {
      const transactionId = randomUUID();
      const [first = '', second = ''] = [randomUUID(), randomUUID()].toSorted();
      const event = (aliases: readonly string[], extra = {}) =>
        bodyOf(
          revenuecatEvent({
            userId: aliases[0] ?? '',
            aliases,
            transactionId,
            occurredAt: at,
            usd: 10,
            extra,
          }),
        );
      const events = [event([second, first]), event([first])];
      for (const body of isLater ? events.toReversed() : events) await founder.revenuecat(body);
      await founder.revenuecat(event([`$RCAnonymousID:${randomUUID()}`], { offer_code: 'PLACES' }));
      const sale = async () =>
        (await commissions()).find(({ customerUserId }) => [first, second].includes(customerUserId));
      await eventually('the payment earns', async () => (await sale()) !== undefined);
      expect(await sale()).toMatchObject({ amountCents: 200, customerUserId: first });
    }
  });

  // @promise code-heals
  test('binds the user for a later purchase that was reported before it', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const user = randomUUID();
    expect(await buy(user, { at: Date.now() - MINUTE_MS })).toBeUndefined();
    expect(await buy(user, { code: 'SPRING20', at: Date.now() - 2 * MINUTE_MS })).toBeDefined();
    await eventually('the later purchase earns', async () => (await commissions()).length === 2);
  });

  // @promise code-when-unattributed
  test('changes nothing for a user who came through a device, also one that earns nothing', async () => {
    const other = await founder.newAffiliate('Other');
    await registered({ namespace: 'app_store', value: 'SPRING20' }, other.affiliateId);
    const user = await founder.customer();
    expect(await buy(user, { code: 'SPRING20' })).toMatchObject({
      affiliateId: founder.affiliateId,
      matchMethod: 'claim_token',
    });
    await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${founder.affiliateId}`, {
      status: 'paused',
    });
    expect(await buy(user, { code: 'SPRING20' })).toBeUndefined();
  });

  test('earns in whatever order the purchases with the code of one creator are reported', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const user = randomUUID();
    expect(await buy(user, { code: 'SPRING20', at: Date.now() - 5 * MINUTE_MS })).toBeDefined();
    expect(await buy(user, { code: 'SPRING20', at: Date.now() - 10 * MINUTE_MS })).toBeDefined();
    expect(await buy(user, { at: Date.now() - 10 * MINUTE_MS })).toBeUndefined();
  });

  test('attributes nothing for a user whom a founder took from everybody, and is processed', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const user = await founder.customer();
    const path = `/apps/${founder.app.id}/manual-attributions`;
    await founder.ok('POST', path, { customerUserId: user, affiliateId: null, reason: 'A test' });
    const { body } = await founder.revenuecat(
      bodyOf(
        revenuecatEvent({
          userId: user,
          usd: 10,
          occurredAt: Date.now() + 2_000,
          extra: { offer_code: 'SPRING20' },
        }),
      ),
    );
    expect(body).toEqual({ eventId: expect.any(String), commissionId: null });
  });

  test('of a removed creator attributes nothing, so the user is free for another one', async () => {
    const { id: other } = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/affiliates`, {
      name: 'Other',
    });
    await registered({ namespace: 'app_store', value: 'GONE' }, other);
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${other}`, { status: 'removed' });
    const user = randomUUID();
    expect(await buy(user, { code: 'GONE' })).toBeUndefined();
    expect(await buy(user, { code: 'SPRING20', at: Date.now() })).toMatchObject({
      affiliateId: founder.affiliateId,
    });
    // A code from now on would count from now on, once the creator comes back.
    const codes = `/apps/${founder.app.id}/affiliates/${other}/codes`;
    const late = { namespace: 'app_store', value: 'LATE' };
    expect((await founder.call('POST', codes, { body: late })).status).toBe(404);
    await expect(
      service.sql`
        insert into codes (id, app_id, affiliate_id, namespace, value)
        values (${newId('code')}, ${founder.app.id}, ${other}, 'app_store', 'LATE')`,
    ).rejects.toThrow(`creator ${other} was removed`);
    await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${other}`, { status: 'active' });
    expect((await founder.call('POST', codes, { body: late })).status).toBe(201);
  });

  test('that no database could store does not cost the sale', async () => {
    const user = await founder.customer();
    const extra = { subscriber_attributes: { $campaign: { value: 'A\u0085B' } } };
    expect(await buy(user, { at: Date.now(), extra })).toMatchObject({ matchMethod: 'claim_token' });
  });

  // @promise code-off
  test('attributes nothing while the setting is off', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    expect(
      await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'off' }),
    ).not.toHaveProperty('purchaseCodes');
    expect(await buy(randomUUID(), { code: 'SPRING20' })).toBeUndefined();
    expect(
      await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'when_unattributed' }),
    ).toMatchObject({ purchaseCodes: 'when_unattributed' });
    // What was paid before that never earns.
    expect(await buy(randomUUID(), { code: 'SPRING20' })).toBeUndefined();
    expect(await buy(randomUUID(), { code: 'SPRING20', at: Date.now() })).toBeDefined();
  });

  // @promise code-from-registration, post-code-deactivate
  test('counts from the registration of the code until it is deactivated', async () => {
    const { body } = await register({ namespace: 'app_store', value: 'SPRING20' });
    expect(await buy(randomUUID(), { code: 'SPRING20', at: Date.now() - MINUTE_MS })).toBeUndefined();
    expect(await buy(randomUUID(), { code: 'SPRING20', at: Date.now() + 1_000 })).toBeDefined();
    const user = randomUUID();
    await buy(user, { code: 'SPRING20', at: Date.now() + 1_000 });
    await founder.ok('POST', `/apps/${founder.app.id}/codes/${body.id}/deactivate`, {});
    expect(await buy(randomUUID(), { code: 'SPRING20', at: Date.now() + 5_000 })).toBeUndefined();
    // Whom the code has bound stays.
    expect(await buy(user, { at: Date.now() + 5_000 })).toBeDefined();
  });

  // @promise code-one-binding
  test('of 20 purchases of one user with codes of two creators at once, all earn for one creator', async () => {
    const other = await founder.newAffiliate('Other');
    await registered({ namespace: 'app_store', value: 'ONE' });
    await registered({ namespace: 'app_store', value: 'TWO' }, other.affiliateId);
    await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ when: { paymentNumber: { to: 1 } }, flatCents: 300 }, { percentBps: 1_000 }],
    });
    const user = randomUUID();
    const at = Date.now() - MINUTE_MS;
    await Promise.all(
      Array.from({ length: 20 }, async (_, n) => await buy(user, { code: n % 2 === 0 ? 'ONE' : 'TWO', at })),
    );
    await eventually('all of them earn', async () => (await commissions()).length === 20);
    const rows = await commissions();
    expect(new Set(rows.map(({ affiliateId }) => affiliateId)).size).toBe(1);
    expect(rows.map(({ amountCents }) => amountCents).toSorted((a, b) => a - b)).toEqual([
      ...Array.from({ length: 19 }, () => 100),
      300,
    ]);
  });

  test('the attribute that the app sets, and that of a campaign, are codes of their own namespaces', async () => {
    await registered({ namespace: 'attribute', value: 'podcast' });
    await registered({ namespace: 'campaign', value: 'podcast' });
    const attributes = (name: string, value: string) => ({
      subscriber_attributes: { [name]: { value, updated_at_ms: 1 } },
    });
    expect(await buy(randomUUID(), { extra: attributes('tributary_code', 'Podcast') })).toBeDefined();
    expect(await buy(randomUUID(), { extra: attributes('$campaign', 'podcast') })).toBeDefined();
    expect(await buy(randomUUID(), { extra: attributes('campaign', 'podcast') })).toBeUndefined();
    expect(
      await buy(randomUUID(), { extra: attributes('tributary_code', 'ada@example.com') }),
    ).toBeUndefined();
    const { stored } = await service.sql.one<{ stored: number }>`
      select count(*)::int as stored from payment_codes where app_id = ${founder.app.id}`;
    expect(stored).toBe(2);
  });
});

describe('Stripe', () => {
  const promotion = (session: object) => ({
    ...session,
    discounts: [{ coupon: null, promotion_code: 'promo_spring' }],
  });
  const withDiscount = (event: Record<string, unknown>) => ({
    ...event,
    data: { object: promotion((event['data'] as { object: object }).object) },
  });

  test('a subscription whose user is named later earns with its code, and so do the waiting purchases of the user', async () => {
    await registered({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' });
    const user = randomUUID();
    const [subscriptionId, customerId] = [`sub_${user}`, `cus_${user}`];
    expect(await buy(user, { at: Date.now() - MINUTE_MS })).toBeUndefined();
    const invoice = stripeInvoicePaid({
      userId: null,
      subscriptionId,
      customerId,
      amount: 1_000,
      occurredAt: Date.now() - 2 * MINUTE_MS,
    });
    await founder.stripe(bodyOf(withDiscount(invoice)));
    await founder.stripe(bodyOf(stripeSubscription({ subscriptionId, customerId, userId: user })));
    // Long before the relay looks for bindings that nobody healed.
    await eventually('both earn', async () => (await commissions()).length === 2, 5_000);
  });

  // @promise code-heals
  test('several subscriptions of a user give those who signed up for them to the creator, in an app with policies', async () => {
    await registered({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' });
    await earnByPolicy(founder, service.sql, { base: 'gross', rules: [{ percentBps: 1_000 }] });
    const user = randomUUID();
    const subscriptions = ['with the code', 'first', 'second', 'third'].map((name) => `sub_${name} ${user}`);
    const invoice = (subscriptionId: string | undefined, minutesAgo: number) =>
      stripeInvoicePaid({
        userId: user,
        subscriptionId: subscriptionId ?? '',
        customerId: `cus_${user}`,
        amount: 1_000,
        occurredAt: Date.now() - minutesAgo * MINUTE_MS,
      });
    // The user's payments wait, and so does one of each colleague.
    for (const [n, subscriptionId] of subscriptions.slice(1).entries()) {
      const colleague = `colleague ${n} ${user}`;
      await founder.stripe(bodyOf(invoice(subscriptionId, 10 - n)));
      await founder.stripe(bodyOf(stripeSubscription({ subscriptionId, userId: colleague })));
      expect(await buy(colleague)).toBeUndefined();
    }
    expect(await commissions()).toEqual([]);
    await founder.stripe(bodyOf(withDiscount(invoice(subscriptions[0], 20))));
    // Long before the relay looks for bindings that nobody healed.
    await eventually('all of them earn', async () => (await commissions()).length === 7, 5_000);
  });

  // @promise code-stripe
  test.each([['the session first'], ['the invoice first']])(
    'a promotion code of a subscription earns, and so do its renewals, with %s',
    async (order) => {
      await registered({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' });
      const user = randomUUID();
      const [invoiceId, subscriptionId, customerId] = [`in_${user}`, `sub_${user}`, `cus_${user}`];
      const at = Date.now() - 30 * MINUTE_MS;
      const session = withDiscount(
        stripeCheckoutSession({
          userId: user,
          mode: 'subscription',
          invoiceId,
          subscriptionId,
          customerId,
          occurredAt: at,
        }),
      );
      const invoice = (id: string, occurredAt: number) =>
        stripeInvoicePaid({
          userId: null,
          invoiceId: id,
          subscriptionId,
          customerId,
          amount: 1_000,
          occurredAt,
        });
      const first = [session, invoice(invoiceId, at)];
      for (const event of order === 'the session first' ? first : first.toReversed())
        await founder.stripe(bodyOf(event));
      await eventually('the first invoice earns', async () => (await commissions()).length === 1);
      await founder.stripe(bodyOf(invoice(`${invoiceId}-2`, at + 10 * MINUTE_MS)));
      await eventually('the renewal earns', async () => (await commissions()).length === 2);
      expect(await commissions()).toMatchObject([
        { amountCents: 200, matchMethod: 'purchase_code', customerUserId: user },
        { amountCents: 200, matchMethod: 'purchase_code', customerUserId: user },
      ]);
    },
  );
});

describe('a purchase that names no user', () => {
  const promotion = { discounts: [{ id: 'di_1', promotion_code: 'promo_spring' }] };
  const at = Date.now() - 30 * MINUTE_MS;
  const names = () => {
    const id = randomUUID();
    return { subscriptionId: `sub_${id}`, customerId: `cus_${id}`, invoiceId: `in_${id}` };
  };
  const invoice = (over: Partial<Parameters<typeof stripeInvoicePaid>[0]>, code: object = {}) =>
    bodyOf(
      withFields(
        stripeInvoicePaid({ userId: null, amount: 1_000, occurredAt: at, ...over }),
        ['data', 'object'],
        code,
      ),
    );
  const ofStripe = async () =>
    await registered({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_spring' });
  const earned = async (count: number) => {
    await eventually(`${count} earn`, async () => (await commissions()).length === count, 5_000);
    return (await commissions()).toReversed();
  };

  // @promise code-binds-key
  test('binds its subscription: renewals earn, another subscription of the company does not', async () => {
    await ofStripe();
    const { customerId, ...first } = names();
    await founder.stripe(invoice({ ...first, customerId }, promotion));
    await founder.stripe(invoice({ ...first, customerId, invoiceId: `${first.invoiceId}-2` }));
    await founder.stripe(invoice({ ...names(), customerId }));
    expect(await earned(2)).toMatchObject([
      { amountCents: 200, matchMethod: 'purchase_code', customerUserId: first.subscriptionId },
      { amountCents: 200, matchMethod: 'purchase_code', customerUserId: first.subscriptionId },
    ]);
  });

  // @promise code-key-first
  test('stays with the creator of its code when its customer signs in, also one who came through a device', async () => {
    const other = await founder.newAffiliate('Other');
    await ofStripe();
    const user = await founder.customer(other.slug);
    const ids = names();
    await founder.stripe(invoice(ids, promotion));
    await founder.stripe(invoice({ ...ids, invoiceId: `${ids.invoiceId}-2`, userId: user }));
    expect(await earned(2)).toMatchObject([
      { affiliateId: founder.affiliateId },
      { affiliateId: founder.affiliateId, customerUserId: ids.subscriptionId },
    ]);
    expect(await buy(user)).toMatchObject({ affiliateId: other.affiliateId });
  });

  // @promise code-sign-in
  test.each([
    ['an invoice names the user', false],
    ['the subscription is tied to the user', true],
  ])('gives its customer to the creator when %s, and counts all payments together', async (_, isTied) => {
    await ofStripe();
    await earnByPolicy(founder, service.sql, {
      base: 'gross',
      rules: [{ when: { paymentNumber: { to: 1 } }, flatCents: 300 }, { percentBps: 1_000 }],
    });
    const user = randomUUID();
    const ids = names();
    await founder.stripe(invoice(ids, promotion));
    expect(await buy(user)).toBeUndefined();
    await founder.stripe(
      isTied
        ? bodyOf(stripeSubscription({ ...ids, userId: user }))
        : invoice({ ...ids, invoiceId: `${ids.invoiceId}-2`, userId: user }),
    );
    const rows = await earned(isTied ? 2 : 3);
    expect(rows.map(({ amountCents }) => amountCents).toSorted((a, b) => b - a)).toEqual(
      isTied ? [300, 100] : [300, 100, 100],
    );
    expect(await buy(user, { at: Date.now() })).toMatchObject({ customerUserId: user, amountCents: 100 });
  });

  test('was reported after its renewal, which earns then', async () => {
    await ofStripe();
    const ids = names();
    await founder.stripe(invoice({ ...ids, invoiceId: `${ids.invoiceId}-2`, occurredAt: at + MINUTE_MS }));
    await founder.stripe(invoice(ids, promotion));
    await earned(2);
  });

  test('binds the anonymous customer of RevenueCat, who goes on to earn after the sign-in', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const anonymous = `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;
    const user = randomUUID();
    expect(await buy(anonymous, { code: 'SPRING20', at })).toMatchObject({ customerUserId: anonymous });
    // The heal of the customer could bind the user in the middle of the next delivery.
    await service.settled();
    const extra = { original_app_user_id: anonymous, aliases: [user, anonymous] };
    // The payment that names both binds the user first, and then belongs to the user.
    expect(await buy(user, { extra })).toMatchObject({ customerUserId: user });
    expect(await buy(user, { at: Date.now() })).toMatchObject({ customerUserId: user });
  });

  // @promise code-restored
  test('goes on to earn after its customer has restored it on a new phone, who is one paying customer', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const [first, second] = ['a', 'b'].map((phone) => `$RCAnonymousID:${phone}${randomUUID()}`);
    const subscription = { extra: { original_transaction_id: randomUUID() } };
    expect(await buy(first ?? '', { at, code: 'SPRING20', ...subscription })).toMatchObject({
      customerUserId: first,
    });
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [first ?? ''], to: [second ?? ''] })));
    expect(await buy(second ?? '', subscription)).toMatchObject({ affiliateId: founder.affiliateId });
    const user = randomUUID();
    const extra = { ...subscription.extra, aliases: [user, second] };
    expect(await buy(user, { extra })).toMatchObject({ affiliateId: founder.affiliateId });
    expect(await buy(user, { at: Date.now() })).toMatchObject({ customerUserId: user });
    const { funnel } = await founder.ok<{ funnel: object }>(
      'GET',
      `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/overview`,
    );
    expect(funnel).toMatchObject({ paid: 1 });
  });

  test('and has neither a subscription nor a customer earns alone', async () => {
    await ofStripe();
    const session = withFields(
      stripeCheckoutSession({
        userId: null,
        mode: 'payment',
        paymentIntentId: `pi_${randomUUID()}`,
        customerId: null,
        occurredAt: at,
      }),
      ['data', 'object'],
      promotion,
    );
    await founder.stripe(bodyOf(session));
    expect(await earned(1)).toMatchObject([
      { matchMethod: 'purchase_code', customerUserId: expect.stringMatching(/^(pi|cs)_/) },
    ]);
  });

  test('is given away for later payments, as a user is', async () => {
    const other = await founder.newAffiliate('Other');
    await ofStripe();
    const ids = names();
    await founder.stripe(invoice(ids, promotion));
    await earned(1);
    await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
      customerUserId: ids.subscriptionId,
      affiliateId: other.affiliateId,
      reason: 'A test',
    });
    const renewal = { ...ids, invoiceId: `${ids.invoiceId}-2`, occurredAt: Date.now() + 2_000 };
    await founder.stripe(invoice({ ...renewal, userId: randomUUID() }));
    expect(await earned(2)).toMatchObject([
      { affiliateId: founder.affiliateId },
      { affiliateId: other.affiliateId },
    ]);
  });

  // @promise code-key-by-hand
  test('is of a person whose subscription a founder has given away: one that is bound later is given away, too', async () => {
    await ofStripe();
    const [user, ids, later] = [randomUUID(), names(), names()];
    await founder.stripe(invoice({ ...ids, userId: user }, promotion));
    await earned(1);
    await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
      customerUserId: ids.subscriptionId,
      affiliateId: null,
      reason: 'A test',
    });
    await founder.stripe(invoice({ ...later, userId: user }));
    await earned(2);
    await founder.stripe(
      invoice({ ...later, invoiceId: `${later.invoiceId}-2`, occurredAt: Date.now() + 2_000 }),
    );
    expect(await commissions()).toHaveLength(2);
  });

  // @promise code-key-by-hand
  test('is of a person whom a founder has given away: the phone of an earlier payment is of the person, too', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const other = await founder.newAffiliate('Other');
    const [user, colleague, second] = [randomUUID(), randomUUID(), randomUUID()];
    const phone = `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;
    const subscription = { original_transaction_id: randomUUID() };
    await buy(user, { at, code: 'SPRING20', extra: subscription });
    await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
      customerUserId: user,
      affiliateId: other.affiliateId,
      reason: 'A test',
    });
    expect(await buy(colleague, { at: at + 1, extra: { aliases: [colleague, phone] } })).toBeUndefined();
    // It binds its user, who belongs to the other creator for payments from now on, before it binds the phone.
    await buy(second, { at: at + 2, extra: { ...subscription, aliases: [second, phone] } });
    expect((await earned(3)).map(({ affiliateId }) => affiliateId)).toEqual(
      Array.from({ length: 3 }, () => founder.affiliateId),
    );
  });

  // @promise code-key-by-hand
  test.each([['nobody'], ['another creator']])(
    'does not hold its user when a founder gives the user to %s',
    async (whom) => {
      const other = await founder.newAffiliate('Other');
      await ofStripe();
      const [user, ids] = [randomUUID(), names()];
      await founder.stripe(invoice(ids, promotion));
      await founder.stripe(bodyOf(stripeSubscription({ ...ids, userId: user })));
      await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
        customerUserId: user,
        affiliateId: whom === 'nobody' ? null : other.affiliateId,
        reason: 'A test',
      });
      const renewal = { ...ids, invoiceId: `${ids.invoiceId}-2`, occurredAt: Date.now() + 2_000 };
      await founder.stripe(invoice({ ...renewal, userId: user }));
      expect((await commissions()).map(({ affiliateId }) => affiliateId)).toEqual(
        whom === 'nobody' ? [founder.affiliateId] : [other.affiliateId, founder.affiliateId],
      );
    },
  );

  // @promise code-key-by-hand
  test.each([['nobody'], ['another creator']])(
    'does not hold the user of its subscription, one of several, when a founder gives the user to %s',
    async (whom) => {
      const other = await founder.newAffiliate('Other');
      await ofStripe();
      const [user, colleague, ids] = [randomUUID(), randomUUID(), names()];
      const renewal = (n: number, userId: string | null) =>
        invoice({ ...ids, invoiceId: `${ids.invoiceId}-${n}`, occurredAt: Date.now() + n * 1_000, userId });
      await founder.stripe(invoice(ids, promotion));
      await founder.stripe(bodyOf(stripeSubscription({ ...ids, userId: user })));
      await founder.stripe(renewal(1, colleague));
      const given = { affiliateId: whom === 'nobody' ? null : other.affiliateId, reason: 'A test' };
      await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
        customerUserId: user,
        ...given,
      });
      await founder.stripe(renewal(2, null));
      await founder.stripe(renewal(3, colleague));
      const own = [founder.affiliateId, founder.affiliateId];
      expect((await commissions()).map(({ affiliateId }) => affiliateId).toSorted()).toEqual(
        [...own, founder.affiliateId, ...(whom === 'nobody' ? [] : [other.affiliateId])].toSorted(),
      );
    },
  );

  test('with codes of two creators earns from when a founder gives its subscription to one', async () => {
    const other = await founder.newAffiliate('Other');
    await ofStripe();
    await registered({ namespace: 'stripe', value: 'OTHER', externalId: 'promo_other' }, other.affiliateId);
    const ids = names();
    const both = { discounts: [...promotion.discounts, { id: 'di_2', promotion_code: 'promo_other' }] };
    await founder.stripe(invoice(ids, both));
    await founder.ok('POST', `/apps/${founder.app.id}/manual-attributions`, {
      customerUserId: ids.subscriptionId,
      affiliateId: other.affiliateId,
      reason: 'A test',
    });
    const renewal = { ...ids, invoiceId: `${ids.invoiceId}-2`, occurredAt: Date.now() + 2_000 };
    await founder.stripe(invoice(renewal, promotion));
    expect(await commissions()).toMatchObject([{ affiliateId: other.affiliateId, matchMethod: 'manual' }]);
  });

  test('with codes of two creators offers its subscription to a person until an event names the user', async () => {
    const other = await founder.newAffiliate('Other');
    await ofStripe();
    await registered({ namespace: 'stripe', value: 'OTHER', externalId: 'promo_other' }, other.affiliateId);
    const ids = names();
    const both = { discounts: [...promotion.discounts, { id: 'di_2', promotion_code: 'promo_other' }] };
    const { body } = await founder.stripe(invoice(ids, both));
    const offered = async () =>
      (
        await founder.ok<{ items: { eventId: string; likelyCause: string; attributableKey?: object }[] }>(
          'GET',
          `/apps/${founder.app.id}/diagnostics/unattributed`,
        )
      ).items.find(({ eventId }) => eventId === body.eventId);
    expect(await offered()).toMatchObject({
      likelyCause: 'ambiguous_code',
      attributableKey: { customerUserId: ids.subscriptionId },
    });
    await founder.stripe(invoice({ ...ids, userId: randomUUID() }, both));
    expect(await offered()).toMatchObject({ likelyCause: 'ambiguous_code' });
    expect(await offered()).not.toHaveProperty('attributableKey');
  });

  test('gives its customer to the creator of several anonymous ids, also by an event without money', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const anonymous = [1, 2].map(() => `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`);
    for (const id of anonymous) await buy(id, { code: 'SPRING20', at });
    const user = randomUUID();
    const cancelled = revenuecatEvent({
      userId: user,
      type: 'CANCELLATION',
      usd: 0,
      extra: { cancel_reason: 'UNSUBSCRIBE', aliases: [...anonymous, user] },
    });
    await founder.revenuecat(bodyOf(cancelled));
    expect(await buy(user, { at: Date.now() })).toMatchObject({ customerUserId: user });
  });

  test('binds the subscription for both providers that reported it, whichever reports its renewal alone', async () => {
    await registered({ namespace: 'app_store', value: 'SPRING20' });
    const secret = await connectProvider(founder, 'superwall');
    const key = randomUUID();
    const of = (n: number) => ({
      transactionId: `${key}-${n}`,
      originalTransactionId: key,
      usd: 10,
      occurredAt: at + n,
      purchasedAt: at + n,
    });
    const anonymous = () => randomUUID().replaceAll('-', '');
    const bySuperwall = async (n: number) =>
      await deliver(
        founder,
        'superwall',
        superwallEvent({ ...of(n), userId: `$SuperwallAlias:${anonymous()}` }),
        secret,
      );
    const byRevenuecat = async (n: number, extra = {}) =>
      await founder.revenuecat(
        bodyOf(revenuecatEvent({ ...of(n), userId: `$RCAnonymousID:${anonymous()}`, extra })),
      );
    await bySuperwall(0);
    await byRevenuecat(0, { offer_code: 'SPRING20' });
    await bySuperwall(1);
    await byRevenuecat(2);
    expect(await commissions()).toHaveLength(3);
  });

  test('from before the sale of its subscription with the code is outside of the window', async () => {
    await ofStripe();
    const ids = names();
    await founder.stripe(invoice(ids, promotion));
    const { body } = await founder.stripe(
      invoice({ ...ids, invoiceId: `${ids.invoiceId}-0`, occurredAt: at - DAY_MS }),
    );
    expect(await service.sql`select likely_cause from events where id = ${body.eventId ?? ''}`).toEqual([
      { likelyCause: 'outside_attribution_window' },
    ]);
  });

  test('gives nothing to an id that a user has already', async () => {
    await ofStripe();
    const other = await founder.newAffiliate('Other');
    const ids = names();
    await founder.identify(await founder.install(other.slug), ids.subscriptionId);
    await founder.stripe(invoice(ids, promotion));
    expect(await commissions()).toEqual([]);
  });

  // @promise code-key-database
  test('keeps its key: no statement makes a user of it', async () => {
    await ofStripe();
    await founder.stripe(invoice(names(), promotion));
    await earned(1);
    await expect(
      service.sql`update bindings set key_source = null where app_id = ${founder.app.id}`,
    ).rejects.toThrow(/binding/);
  });
});

// @promise explained-codes
test('the explanation of a payment says what became of each of its codes', async () => {
  const gone = await founder.newAffiliate('Gone');
  await registered({ namespace: 'app_store', value: 'SPRING20' });
  await registered({ namespace: 'attribute', value: 'GONE' }, gone.affiliateId);
  const old = await registered({ namespace: 'attribute', value: 'OLD' });
  await founder.ok('POST', `/apps/${founder.app.id}/codes/${old}/deactivate`, {});
  await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${gone.affiliateId}`, { status: 'removed' });
  const stateOf = async (purchase: Parameters<typeof revenuecatEvent>[0]) => {
    const { body } = await founder.revenuecat(bodyOf(revenuecatEvent({ usd: 10, ...purchase })));
    const { steps } = await founder.ok<{ steps: { step: string; facts: { codes?: object[] } }[] }>(
      'GET',
      `/apps/${founder.app.id}/events/${body.eventId}/explanation`,
    );
    return steps.find(({ step }) => step === 'attribute')?.facts.codes;
  };
  const by = (offer: string | null, value?: string) => ({
    ...(offer === null ? {} : { offer_code: offer }),
    ...(value === undefined
      ? {}
      : { subscriber_attributes: { tributary_code: { value, updated_at_ms: 1 } } }),
  });
  const later = Date.now() + 1_000;
  const bought = async (extra: Record<string, unknown>, occurredAt = later) =>
    await stateOf({ userId: randomUUID(), occurredAt, extra });
  const { affiliateId } = founder;
  expect(await bought(by('spring20', 'NONE'))).toMatchObject([
    { namespace: 'app_store', value: 'spring20', state: 'in_force', affiliateId },
    { namespace: 'attribute', value: 'NONE', state: 'unregistered', affiliateId: null, affiliateName: null },
  ]);
  expect(await bought(by('SPRING20'), Date.now() - DAY_MS)).toMatchObject([
    { state: 'registered_later', affiliateId },
  ]);
  expect(await bought(by(null, 'OLD'))).toMatchObject([{ state: 'deactivated', affiliateId }]);
  expect(await bought(by(null, 'GONE'))).toMatchObject([{ state: 'creator_removed', affiliateName: 'Gone' }]);
  await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { purchaseCodes: 'off' });
  expect(await bought(by('SPRING20'))).toMatchObject([{ state: 'off', affiliateId }]);
  expect(await bought({})).toBeUndefined();
});

// @promise policy-dated-ahead
test('a purchase that the provider dates ahead used its code when its webhook arrived', async () => {
  const codeId = await registered({ namespace: 'app_store', value: 'SPRING20' });
  const event = bodyOf(
    revenuecatEvent({
      userId: randomUUID(),
      usd: 10,
      occurredAt: Date.now() + DAY_MS,
      extra: { offer_code: 'SPRING20' },
    }),
  );
  const { body } = await founder.revenuecat(event);
  await founder.ok('POST', `/apps/${founder.app.id}/codes/${codeId}/deactivate`, {});
  const { steps } = await founder.ok<{ steps: { step: string; facts: { codes?: object[] } }[] }>(
    'GET',
    `/apps/${founder.app.id}/events/${body.eventId}/explanation`,
  );
  expect(steps.find(({ step }) => step === 'attribute')?.facts.codes).toMatchObject([{ state: 'in_force' }]);
});

describe('registration', () => {
  // @promise get-codes, get-code, code-taken
  test('a code belongs to one creator at a time, whatever its case', async () => {
    const other = await founder.newAffiliate('Other');
    const { body } = await register({ namespace: 'stripe', value: 'SPRING20', externalId: 'promo_1' });
    expect(
      (await register({ namespace: 'stripe', value: 'spring20', externalId: 'promo_2' }, other.affiliateId))
        .body,
    ).toMatchObject({ code: 'code_taken', existingId: body.id });
    expect(
      (await register({ namespace: 'stripe', value: 'OTHER', externalId: 'promo_1' }, other.affiliateId))
        .body,
    ).toMatchObject({ code: 'code_taken', existingId: body.id });
    expect((await register({ namespace: 'attribute', value: 'SPRING20' }, other.affiliateId)).status).toBe(
      201,
    );
    const path = `/apps/${founder.app.id}/codes`;
    expect(await founder.ok('POST', `${path}/${body.id}/deactivate`, {})).toMatchObject({
      deactivatedAt: expect.any(Number),
    });
    const again = await founder.ok<{ deactivatedAt: number }>('POST', `${path}/${body.id}/deactivate`, {});
    expect(again.deactivatedAt).toBeLessThanOrEqual(Date.now());
    expect(await founder.ok('GET', `${path}/${body.id}`)).toEqual(again);
    expect(again).toMatchObject({ value: 'SPRING20', affiliateId: founder.affiliateId });
    expect(
      (await register({ namespace: 'stripe', value: 'spring20', externalId: 'promo_1' }, other.affiliateId))
        .status,
    ).toBe(201);
    const list = async (query: string) =>
      (await founder.ok<{ items: { affiliateId: string }[] }>('GET', `${path}${query}`)).items.map(
        ({ affiliateId }) => affiliateId,
      );
    expect(await list('')).toEqual([other.affiliateId, other.affiliateId, founder.affiliateId]);
    expect(await list(`?affiliateId=${founder.affiliateId}`)).toEqual([founder.affiliateId]);
  });

  test('a name of an offer may have spaces, and characters that Unicode writes in two ways', async () => {
    await registered({ namespace: 'app_store', value: 'Cafe\u0301 2026' });
    expect(await buy(randomUUID(), { code: 'CAF\u00C9 2026' })).toMatchObject({
      matchMethod: 'purchase_code',
    });
  });

  test('the id of a code is not what customers enter for another one', async () => {
    const { id: other } = await founder.ok<{ id: string }>('POST', `/apps/${founder.app.id}/affiliates`, {
      name: 'Other',
    });
    await registered({ namespace: 'stripe', value: 'SPRING', externalId: 'promo_1' });
    await registered({ namespace: 'stripe', value: 'PROMO_1', externalId: 'promo_2' }, other);
    const invoice = withFields(
      stripeInvoicePaid({ userId: randomUUID(), amount: 1_000, occurredAt: Date.now() - MINUTE_MS }),
      ['data', 'object'],
      { discounts: [{ id: 'di_1', promotion_code: 'promo_1' }] },
    );
    await founder.stripe(bodyOf(invoice));
    expect(await commissions()).toMatchObject([{ affiliateId: founder.affiliateId }]);
  });

  // @promise code-input
  test.each<[string, object]>([
    ['an unknown namespace', { namespace: 'web', value: 'A' }],
    ['no value', { namespace: 'app_store' }],
    ['an empty value', { namespace: 'app_store', value: ' ' }],
    ['a control character', { namespace: 'app_store', value: 'A\u0085B' }],
    ['half of a character', { namespace: 'app_store', value: 'A\uD800' }],
    ['an id of a code whose events state no id', { namespace: 'app_store', value: 'A', externalId: 'B' }],
    ['an address', { namespace: 'app_store', value: 'a@example.com' }],
    ['65 characters', { namespace: 'app_store', value: 'a'.repeat(65) }],
    ['a code of Stripe without its id', { namespace: 'stripe', value: 'SPRING20' }],
    ['a discount of Paddle without its id', { namespace: 'paddle', value: 'SPRING20' }],
  ])('%s is a 400', async (_, body) => {
    expect(await register(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
  });

  // @promise code-database
  test('a code is never changed, and another binding of its user is refused', async () => {
    const id = await registered({ namespace: 'app_store', value: 'SPRING20' });
    const { sql } = service;
    await expect(sql`update codes set value = 'OTHER' where id = ${id}`).rejects.toThrow(/cannot be changed/);
    await expect(sql`delete from codes`).rejects.toThrow();
    await expect(sql`
      insert into attributions (id, app_id, affiliate_id, match_method, touched_at, first_open_at)
      values (${`att_${id.slice(4)}`}, ${founder.app.id}, ${founder.affiliateId}, 'purchase_code', now(), now())`).rejects.toThrow(
      /purchase_code_has_its_code/,
    );
  });
});

test('a payment of another day with the code of last month belongs to the window', async () => {
  await registered({ namespace: 'app_store', value: 'SPRING20' });
  const user = randomUUID();
  await buy(user, { code: 'SPRING20' });
  expect(await buy(user, { at: Date.now() + DAY_MS })).toBeDefined();
});

describe('a code of a sale that may still be tied to its user', () => {
  let slow: TestService;
  beforeAll(async () => {
    slow = await startTestService({
      settings: { keyGraceMs: 1_500, relay: { overdueMs: 300, pauseMs: 50 } },
    });
  });
  afterAll(async () => {
    await expectConsistentLedger(slow.sql);
    await slow.close();
  });

  // @promise code-waits-for-user
  test.each([
    ['binds the user whom the next event names', true],
    ['binds the payment, if no event does', false],
  ])('%s', async (_, names) => {
    const seller = await setUpFounder(slow, { purchaseCodes: 'when_unattributed' });
    await seller.ok('POST', `/apps/${seller.app.id}/affiliates/${seller.affiliateId}/codes`, {
      namespace: 'stripe',
      value: 'SPRING20',
      externalId: 'promo_spring',
    });
    // Not before the registration: Stripe states whole seconds.
    const at = Date.now() + 1_000;
    const paymentIntentId = `pi_${randomUUID()}`;
    const session = withFields(
      stripeCheckoutSession({
        userId: null,
        mode: 'payment',
        paymentIntentId,
        customerId: null,
        occurredAt: at,
      }),
      ['data', 'object'],
      { discounts: [{ coupon: null, promotion_code: 'promo_spring' }] },
    );
    const { body } = await seller.stripe(bodyOf(session));
    expect(body).toEqual({ eventId: expect.any(String), commissionId: null });
    // Meanwhile it waits, and is not said to be without a user.
    const events = async () =>
      (await seller.ok<{ items: Row[] }>('GET', `/apps/${seller.app.id}/events?outcome=waiting`)).items;
    const waiting = {
      explanation: expect.stringContaining('decided about a minute after it arrived'),
      waitsUntil: expect.any(Number),
    };
    expect(await events()).toMatchObject([{ outcome: 'waiting', ...waiting }]);
    expect(
      (await seller.ok<{ items: Row[] }>('GET', `/apps/${seller.app.id}/diagnostics/unattributed`)).items,
    ).toMatchObject([{ likelyCause: 'missing_user_id', ...waiting }]);
    const user = randomUUID();
    if (names) {
      await seller.stripe(bodyOf(stripePaymentIntent({ userId: user, paymentIntentId, occurredAt: at })));
    }
    const list = async () =>
      (await seller.ok<{ items: Row[] }>('GET', `/apps/${seller.app.id}/commissions`)).items;
    await eventually('it earns', async () => (await list()).length === 1, 10_000);
    expect(await list()).toMatchObject([{ customerUserId: names ? user : paymentIntentId }]);
    expect(await events()).toEqual([]);
  });
});
