import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES, providers } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { connectProvider, deliver } from '../support/connect-provider.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  adaptyEvent,
  asSuperwallV2,
  bodyOf,
  fakeSecret,
  paddleAdjustment,
  paddleSubscription,
  paddleTransaction,
  PAYLOADS,
  PROOFS,
  revenuecatEvent,
  superwallEvent,
  superwallRefund,
} from '../support/provider-fixtures.ts';
import type { Payload, Sale } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service, { commissionRateBps: 2_500 });
});
afterAll(async () => {
  await service.close();
});

const setUp = async (name: ProviderName, secret?: string | null, over: object = {}) =>
  await connectProvider(founder, name, { ...(secret === undefined ? {} : { secret }), ...over });
const post = async (name: ProviderName, payload: Payload, secret: string) =>
  await deliver(founder, name, payload, secret);

async function amountsOf(affiliateId: string): Promise<number[]> {
  const { items } = await founder.ok<{ items: { amountCents: number }[] }>(
    'GET',
    `/apps/${founder.app.id}/commissions?affiliateId=${affiliateId}`,
  );
  return items.map((item) => item.amountCents).toSorted((a, b) => a - b);
}

/** Returns a sale of 10.00 USD five days ago to a user of a new affiliate. */
async function customer(): Promise<{ affiliateId: string; sale: Sale }> {
  const { affiliateId, slug } = await founder.newAffiliate();
  const userId = await founder.customer(slug);
  const ref = randomUUID();
  return { affiliateId, sale: { userId, cents: 1_000, ref, occurredAt: Date.now() - 5 * DAY_MS } };
}

const earned = expect.stringMatching(/^com_/);

describe.each(PROVIDER_NAMES)('%s', (name) => {
  const payloads = PAYLOADS[name];

  // @promise purchase-earns, post-webhook-of-every-provider, dedup-by-event-id, sandbox-never-earns
  test('a signed purchase earns once, its refund reverses its share, a sandbox purchase earns nothing', async () => {
    const secret = await setUp(name);
    const { affiliateId, sale } = await customer();

    const purchase = payloads.purchase(sale, false);
    expect(await post(name, purchase, secret)).toMatchObject({ status: 200, body: { commissionId: earned } });
    expect(await post(name, purchase, secret)).toMatchObject({ status: 200, body: { duplicate: true } });
    expect(await amountsOf(affiliateId)).toEqual([250]);

    const refund = payloads.refund({ ...sale, cents: 400, occurredAt: Date.now() - DAY_MS });
    expect(await post(name, refund, secret)).toMatchObject({ status: 200, body: { commissionId: earned } });
    expect(await post(name, refund, secret)).toMatchObject({ status: 200, body: { duplicate: true } });
    expect(await amountsOf(affiliateId)).toEqual([-100, 250]);

    const sandbox = payloads.purchase({ ...sale, ref: randomUUID() }, true);
    expect(await post(name, sandbox, secret)).toMatchObject({ status: 200, body: { commissionId: null } });
    expect(await amountsOf(affiliateId)).toEqual([-100, 250]);
  });

  // @promise refund-waits
  test('a refund received before its purchase waits for it', async () => {
    const secret = await setUp(name);
    const { affiliateId, sale } = await customer();
    const refund = await post(name, payloads.refund({ ...sale, occurredAt: Date.now() - DAY_MS }), secret);
    expect(refund).toMatchObject({ status: 200, body: { commissionId: null } });
    await post(name, payloads.purchase(sale, false), secret);
    expect(await amountsOf(affiliateId)).toEqual([-250, 250]);
  });

  // @promise webhook-bad-signature, webhook-failed-check
  test('a webhook without a proof, with a forged proof or a changed body returns 401 and earns nothing', async () => {
    const secret = await setUp(name);
    const { affiliateId, sale } = await customer();
    const body = bodyOf(payloads.purchase(sale, false));
    const headers = PROOFS[name](body, secret);

    expect((await founder.webhook(name, body, {})).status).toBe(401);
    const forged = Object.entries(headers).map(([key, value]) => [
      key,
      value.replace(/.(?=..$)/, (character) => (character === 'a' ? 'b' : 'a')),
    ]);
    expect((await founder.webhook(name, body, Object.fromEntries(forged))).status).toBe(401);
    // A token does not depend on the body.
    if (providers[name].scheme === 'hmac') {
      const richer = bodyOf(payloads.purchase({ ...sale, cents: 999_999 }, false));
      expect((await founder.webhook(name, richer, { ...headers })).status).toBe(401);
    }
    expect(await amountsOf(affiliateId)).toEqual([]);
  });

  // @promise secret-grace-verifies
  test('the previous secret is accepted during its grace period and not at all without one', async () => {
    const before = await setUp(name);
    const newer = fakeSecret(name) ?? `token-${randomUUID()}`;
    const now = await setUp(name, fakeSecret(name) === null ? null : newer);
    const { affiliateId, sale } = await customer();
    expect((await post(name, payloads.purchase(sale, false), before)).body.commissionId).toEqual(earned);
    const second = payloads.purchase({ ...sale, ref: randomUUID() }, false);
    expect((await post(name, second, now)).body.commissionId).toEqual(earned);

    const last = await setUp(name, undefined, { graceSeconds: 0 });
    const third = payloads.purchase({ ...sale, ref: randomUUID() }, false);
    expect((await post(name, third, now)).status).toBe(401);
    expect((await post(name, third, last)).body.commissionId).toEqual(earned);
    expect(await amountsOf(affiliateId)).toEqual([250, 250, 250]);
  });
});

describe('provider specifics', () => {
  // @promise store-purchase-once
  test('one store purchase reported by three providers earns once', async () => {
    const revenuecat = await setUp('revenuecat');
    const adapty = await setUp('adapty');
    const superwall = await setUp('superwall');
    const { affiliateId, sale } = await customer();
    const { userId, ref: transactionId, occurredAt } = sale;
    const same = { userId, transactionId, occurredAt, usd: 10 };
    await post('adapty', adaptyEvent({ ...same, store: 'play_store' }), adapty);
    await post('revenuecat', revenuecatEvent({ ...same, store: 'PLAY_STORE' }), revenuecat);
    await post('superwall', superwallEvent({ ...same, store: 'PLAY_STORE' }), superwall);
    expect(await amountsOf(affiliateId)).toEqual([250]);
  });

  // @promise placeholder-transactions
  test.each(['revenuecat', 'adapty', 'superwall'] as const)(
    'sales of two users at %s with a placeholder as the transaction are not one payment: each is kept as failed',
    async (name) => {
      const secret = await setUp(name);
      const failed = async () => {
        const path = `/apps/${founder.app.id}/diagnostics/webhooks?processingStatus=failed`;
        const { items } = await founder.ok<{ items: { source: string; lastError: string }[] }>('GET', path);
        return items.filter(({ source }) => source === name).map(({ lastError }) => lastError);
      };
      expect(await failed()).toEqual([]);
      for (const { affiliateId, sale } of [await customer(), await customer()]) {
        const unnamed = { ...sale, ref: 'null' };
        const answer = { status: 200, body: { commissionId: null } };
        expect(await post(name, PAYLOADS[name].purchase(unnamed, false), secret)).toMatchObject(answer);
        expect(await post(name, PAYLOADS[name].refund(unnamed), secret)).toMatchObject(answer);
        expect(await amountsOf(affiliateId)).toEqual([]);
      }
      const reason = expect.stringMatching(/transaction_?Id is missing or not an id: "null"/i);
      expect(await failed()).toEqual([reason, reason, reason, reason]);
    },
  );

  // @promise superwall-v2
  test('a purchase and its refund that Superwall reports in both of its formats count once, each signed with its own secret', async () => {
    const legacy = await setUp('superwall');
    const v2 = await setUp('superwall', fakeSecret('superwall'), { graceSeconds: 30 * 86_400 });
    for (const order of ['legacy first', 'V2 first']) {
      const { affiliateId, sale } = await customer();
      const { userId, ref: transactionId, occurredAt } = sale;
      const same = { userId, transactionId, occurredAt };
      const purchase = superwallEvent({ ...same, usd: 10 });
      const refund = superwallRefund({ ...same, usd: 4 });
      for (const event of [purchase, refund]) {
        const posts = [
          async () => await post('superwall', event, legacy),
          async () => await post('superwall', asSuperwallV2(event), v2),
        ];
        const [first, second] = order === 'legacy first' ? posts : posts.toReversed();
        expect(await first?.()).toMatchObject({ status: 200, body: { commissionId: earned } });
        expect(await second?.()).toMatchObject({ status: 200, body: { duplicate: true } });
      }
      expect(await amountsOf(affiliateId)).toEqual([-100, 250]);
    }
  });

  test("Adapty's setup check returns JSON in its new and its older form, and 401 without the token", async () => {
    const secret = await setUp('adapty');
    const check = (body: string, headers: Record<string, string>) => founder.webhook('adapty', body, headers);
    expect(await check('{}', { authorization: secret })).toMatchObject({
      status: 200,
      body: { commissionId: null },
    });
    expect(await check('{"adapty_check":"lantern"}', { authorization: secret })).toMatchObject({
      status: 200,
      body: { adapty_check_response: 'lantern' },
    });
    expect(await check('{"adapty_check":"lantern"}', {})).toMatchObject({
      status: 401,
      body: expect.not.objectContaining({ adapty_check_response: 'lantern' }),
    });
  });

  // @promise paddle-environment-decides, sandbox-never-earns
  test('a purchase signed with a sandbox secret of Paddle earns nothing', async () => {
    const live = await setUp('paddle');
    const sandbox = await setUp('paddle', `pdl_ntfset_sandbox_${randomUUID()}`, { environment: 'sandbox' });
    const { affiliateId, sale } = await customer();
    const simulated = await post('paddle', PAYLOADS.paddle.purchase(sale, false), sandbox);
    expect(simulated).toMatchObject({ status: 200, body: { commissionId: null } });
    const bought = await post(
      'paddle',
      PAYLOADS.paddle.purchase({ ...sale, ref: randomUUID() }, false),
      live,
    );
    expect(bought.body.commissionId).toEqual(earned);
    expect(await amountsOf(affiliateId)).toEqual([250]);
  });

  // @promise reversal-in-original-currency
  test('a Paddle sale in pounds earns from its payout in dollars', async () => {
    const secret = await setUp('paddle');
    const { affiliateId, sale } = await customer();
    const { userId, occurredAt, ref } = sale;
    const pounds = { amount: 2150, currency: 'GBP', payout: { amount: 2871, currency: 'USD' } };
    const transactionId = `txn_${ref}`;
    await post('paddle', paddleTransaction({ userId, occurredAt, transactionId, ...pounds }), secret);
    expect(await amountsOf(affiliateId)).toEqual([718]);
    const half = { amount: 1075, currency: 'GBP', payout: { amount: 1500, currency: 'USD' } };
    await post('paddle', paddleAdjustment({ transactionId, occurredAt, ...half }), secret);
    expect(await amountsOf(affiliateId)).toEqual([-359, 718]);
  });

  test('a Paddle refund reverses once approved, and a won chargeback restores only the chargeback', async () => {
    const secret = await setUp('paddle');
    const { affiliateId, sale } = await customer();
    await post('paddle', PAYLOADS.paddle.purchase(sale, false), secret);
    const fields = { transactionId: `txn_${sale.ref}`, occurredAt: Date.now() - DAY_MS };
    const refund = { ...fields, adjustmentId: `adj_${sale.ref}`, amount: 400 };
    await post('paddle', paddleAdjustment({ ...refund, status: 'pending_approval' }), secret);
    expect(await amountsOf(affiliateId)).toEqual([250]);
    await post('paddle', paddleAdjustment({ ...refund, type: 'adjustment.updated' }), secret);
    expect(await amountsOf(affiliateId)).toEqual([-100, 250]);
    await post('paddle', paddleAdjustment({ ...fields, action: 'chargeback', amount: 600 }), secret);
    expect(await amountsOf(affiliateId)).toEqual([-150, -100, 250]);
    const won = { ...fields, occurredAt: Date.now(), action: 'chargeback_reverse', amount: 600 };
    await post('paddle', paddleAdjustment(won), secret);
    expect(await amountsOf(affiliateId)).toEqual([-150, -100, 150, 250]);
  });

  test('a Paddle subscription that identifies its user later earns for its first payment', async () => {
    const secret = await setUp('paddle');
    const { affiliateId, slug } = await founder.newAffiliate();
    const occurredAt = Date.now() - DAY_MS;
    const userId = await founder.customer(slug, occurredAt - DAY_MS);
    const subscriptionId = `sub_${randomUUID()}`;
    const unnamed = paddleTransaction({ userId: null, subscriptionId, amount: 1_000, occurredAt });
    expect((await post('paddle', unnamed, secret)).body.commissionId).toBeNull();
    const named = paddleSubscription({
      type: 'subscription.updated',
      status: 'active',
      userId,
      subscriptionId,
    });
    await post('paddle', named, secret);
    expect(await amountsOf(affiliateId)).toEqual([250]);
  });
});
