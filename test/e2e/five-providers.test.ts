import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  adaptyEvent,
  adaptyRefund,
  bodyOf,
  fakeSecret,
  paddleAdjustment,
  paddleSubscription,
  paddleTransaction,
  PROOFS,
  revenuecatEvent,
  revenuecatRefund,
  stripeInvoicePaid,
  stripeRefund,
  superwallEvent,
  superwallRefund,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
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

interface Sale {
  readonly userId: string;
  readonly cents: number;
  /** Names the sale: the provider's ids are made of it. */
  readonly ref: string;
  readonly occurredAt: number;
}

/** How one provider speaks. */
interface Voice {
  readonly sells: (sale: Sale, isSandbox: boolean) => Payload;
  readonly refunds: (sale: Sale) => Payload;
}

const VOICES: Readonly<Record<ProviderName, Voice>> = {
  revenuecat: {
    sells: ({ cents, ref: transactionId, ...sale }, isSandbox) =>
      revenuecatEvent({
        ...sale,
        transactionId,
        usd: cents / 100,
        environment: isSandbox ? 'SANDBOX' : 'PRODUCTION',
      }),
    refunds: ({ cents, ref: transactionId, ...sale }) =>
      revenuecatRefund({ ...sale, transactionId, usd: cents / 100 }),
  },
  adapty: {
    sells: ({ cents, ref: transactionId, ...sale }, isSandbox) =>
      adaptyEvent({
        ...sale,
        transactionId,
        usd: cents / 100,
        environment: isSandbox ? 'Sandbox' : 'Production',
      }),
    refunds: ({ cents, ref: transactionId, ...sale }) =>
      adaptyRefund({ ...sale, transactionId, usd: cents / 100 }),
  },
  superwall: {
    sells: ({ cents, ref: transactionId, ...sale }, isSandbox) =>
      superwallEvent({
        ...sale,
        transactionId,
        usd: cents / 100,
        environment: isSandbox ? 'SANDBOX' : 'PRODUCTION',
      }),
    refunds: ({ cents, ref: transactionId, ...sale }) =>
      superwallRefund({ ...sale, transactionId, usd: cents / 100 }),
  },
  stripe: {
    sells: ({ cents: amount, ref, ...sale }, isSandbox) =>
      stripeInvoicePaid({
        ...sale,
        amount,
        invoiceId: `in_${ref}`,
        environment: isSandbox ? 'sandbox' : 'production',
        legacy: { chargeId: `ch_${ref}`, paymentIntentId: `pi_${ref}` },
      }),
    refunds: ({ cents: amount, ref, occurredAt }) =>
      stripeRefund({ amount, paymentIntentId: `pi_${ref}`, occurredAt }),
  },
  paddle: {
    sells: ({ cents: amount, ref, ...sale }, simulated) =>
      paddleTransaction({ ...sale, amount, transactionId: `txn_${ref}`, simulated }),
    refunds: ({ cents: amount, ref, occurredAt }) =>
      paddleAdjustment({ amount, transactionId: `txn_${ref}`, occurredAt }),
  },
};

const SECRETS = Object.fromEntries(PROVIDER_NAMES.map((name) => [name, fakeSecret(name)])) as Record<
  ProviderName,
  string | null
>;

/** Sets a provider's webhooks up as a founder would; answers the secret, whoever made it. */
async function setUp(name: ProviderName, secret = SECRETS[name], over: object = {}): Promise<string> {
  const given = { environment: 'production', ...(secret === null ? {} : { secret }), ...over };
  const put = await founder.ok<{ secret?: string }>(
    'PUT',
    `/apps/${founder.app.id}/webhooks/${name}/secret`,
    given,
  );
  return put.secret ?? secret ?? '';
}

async function amountsOf(affiliateId: string): Promise<number[]> {
  const { items } = await founder.ok<{ items: { amountCents: number }[] }>(
    'GET',
    `/apps/${founder.app.id}/commissions?affiliateId=${affiliateId}`,
  );
  return items.map((item) => item.amountCents).toSorted((a, b) => a - b);
}

async function post(name: ProviderName, payload: Payload, secret: string) {
  const body = bodyOf(payload);
  return await founder.webhook(name, body, PROOFS[name](body, secret));
}

/** A user who came through a link of an affiliate of his own, and a sale of 10.00 USD to him five days ago. */
async function customer(): Promise<{ affiliateId: string; sale: Sale }> {
  const { affiliateId, slug } = await founder.newAffiliate();
  const userId = await founder.customer(slug);
  const ref = randomUUID();
  return { affiliateId, sale: { userId, cents: 1_000, ref, occurredAt: Date.now() - 5 * DAY_MS } };
}

const earned = expect.stringMatching(/^com_/);

describe.each(PROVIDER_NAMES)('%s', (name) => {
  const voice = VOICES[name];

  // @promise purchase-earns, post-webhook-of-five-providers, dedup-by-event-id, sandbox-never-earns
  test('a signed purchase earns once, its refund takes back its share, the sandbox earns nothing', async () => {
    const secret = await setUp(name);
    const { affiliateId, sale } = await customer();

    const purchase = voice.sells(sale, false);
    expect(await post(name, purchase, secret)).toMatchObject({ status: 200, body: { commissionId: earned } });
    expect(await post(name, purchase, secret)).toMatchObject({ status: 200, body: { duplicate: true } });
    expect(await amountsOf(affiliateId)).toEqual([250]);

    const refund = voice.refunds({ ...sale, cents: 400, occurredAt: Date.now() - DAY_MS });
    expect(await post(name, refund, secret)).toMatchObject({ status: 200, body: { commissionId: earned } });
    expect(await post(name, refund, secret)).toMatchObject({ status: 200, body: { duplicate: true } });
    expect(await amountsOf(affiliateId)).toEqual([-100, 250]);

    const sandbox = voice.sells({ ...sale, ref: randomUUID() }, true);
    expect(await post(name, sandbox, secret)).toMatchObject({ status: 200, body: { commissionId: null } });
    expect(await amountsOf(affiliateId)).toEqual([-100, 250]);
  });

  // @promise refund-waits
  test('a refund that comes before its purchase waits for it', async () => {
    const secret = await setUp(name);
    const { affiliateId, sale } = await customer();
    const refund = await post(name, voice.refunds({ ...sale, occurredAt: Date.now() - DAY_MS }), secret);
    expect(refund).toMatchObject({ status: 200, body: { commissionId: null } });
    await post(name, voice.sells(sale, false), secret);
    expect(await amountsOf(affiliateId)).toEqual([-250, 250]);
  });

  // @promise webhook-bad-signature, webhook-failed-check
  test('what was tampered with is a 401 and earns nothing', async () => {
    const secret = await setUp(name);
    const { affiliateId, sale } = await customer();
    const body = bodyOf(voice.sells(sale, false));
    const headers = PROOFS[name](body, secret);

    expect((await founder.webhook(name, body, {})).status).toBe(401);
    const forged = Object.entries(headers).map(([key, value]) => [
      key,
      value.replace(/.(?=..$)/, (character) => (character === 'a' ? 'b' : 'a')),
    ]);
    expect((await founder.webhook(name, body, Object.fromEntries(forged))).status).toBe(401);
    if (name !== 'revenuecat' && name !== 'adapty') {
      const richer = bodyOf(voice.sells({ ...sale, cents: 999_999 }, false));
      expect((await founder.webhook(name, richer, { ...headers })).status).toBe(401);
    }
    expect(await amountsOf(affiliateId)).toEqual([]);
  });

  // @promise secret-grace-verifies
  test('the secret before is accepted for its grace period, and cut at once where that is none', async () => {
    const before = await setUp(name);
    const newer = fakeSecret(name) ?? `token-${randomUUID()}`;
    const now = await setUp(name, SECRETS[name] === null ? null : newer);
    const { affiliateId, sale } = await customer();
    expect((await post(name, voice.sells(sale, false), before)).body.commissionId).toEqual(earned);
    const second = voice.sells({ ...sale, ref: randomUUID() }, false);
    expect((await post(name, second, now)).body.commissionId).toEqual(earned);

    const last = await setUp(name, SECRETS[name], { graceSeconds: 0 });
    const third = voice.sells({ ...sale, ref: randomUUID() }, false);
    expect((await post(name, third, now)).status).toBe(401);
    expect((await post(name, third, last)).body.commissionId).toEqual(earned);
    expect(await amountsOf(affiliateId)).toEqual([250, 250, 250]);
  });
});

describe('what is special', () => {
  // @promise store-purchase-once
  test('two providers that report one store purchase earn once', async () => {
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

  test("Adapty's check of a set-up is answered with JSON, also in its older form, but not without the token", async () => {
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
  test("what a sandbox account of Paddle signs earns nothing: the secret's environment counts", async () => {
    const live = await setUp('paddle');
    const sandbox = await setUp('paddle', `pdl_ntfset_sandbox_${randomUUID()}`, { environment: 'sandbox' });
    const { affiliateId, sale } = await customer();
    const tried = await post('paddle', VOICES.paddle.sells(sale, false), sandbox);
    expect(tried).toMatchObject({ status: 200, body: { commissionId: null } });
    const bought = await post('paddle', VOICES.paddle.sells({ ...sale, ref: randomUUID() }, false), live);
    expect(bought.body.commissionId).toEqual(earned);
    expect(await amountsOf(affiliateId)).toEqual([250]);
  });

  // @promise reversal-in-original-currency
  test('a Paddle sale in pounds earns from the dollars it is paid out in', async () => {
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

  test('a Paddle refund counts when it is approved, and a chargeback that is won comes back without it', async () => {
    const secret = await setUp('paddle');
    const { affiliateId, sale } = await customer();
    await post('paddle', VOICES.paddle.sells(sale, false), secret);
    const about = { transactionId: `txn_${sale.ref}`, occurredAt: Date.now() - DAY_MS };
    const refund = { ...about, adjustmentId: `adj_${sale.ref}`, amount: 400 };
    await post('paddle', paddleAdjustment({ ...refund, status: 'pending_approval' }), secret);
    expect(await amountsOf(affiliateId)).toEqual([250]);
    await post('paddle', paddleAdjustment({ ...refund, type: 'adjustment.updated' }), secret);
    expect(await amountsOf(affiliateId)).toEqual([-100, 250]);
    await post('paddle', paddleAdjustment({ ...about, action: 'chargeback', amount: 600 }), secret);
    expect(await amountsOf(affiliateId)).toEqual([-150, -100, 250]);
    const won = { ...about, occurredAt: Date.now(), action: 'chargeback_reverse', amount: 600 };
    await post('paddle', paddleAdjustment(won), secret);
    expect(await amountsOf(affiliateId)).toEqual([-150, -100, 150, 250]);
  });

  test('a Paddle subscription that names its user only later still earns for its first payment', async () => {
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
