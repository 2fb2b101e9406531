import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { acceptDelivery } from '../../src/db/deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import type { AppId, DeliveryId, SecretId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { startRelay } from '../../temporal/relay.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  bodyOf,
  revenuecatTransfer,
  signStripe,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
} from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectSoundLedger } from '../support/sound-ledger.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService({ settings: { relay: { overdueMs: 300, pauseMs: 60_000 } } });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

async function amountsOf(affiliateId: string): Promise<number[]> {
  const rows = await service.sql<{ amount: number }>`
    select amount_cents as amount from commissions where affiliate_id = ${affiliateId} order by id`;
  return rows.map((row) => row.amount);
}

/** Puts a signed delivery into the inbox as the door does, and starts nothing. */
async function accept(owner: Founder, body: Buffer, receivedAt: number, stored = body): Promise<DeliveryId> {
  const deliveryId = newId('delivery');
  const secret = await service.sql.one<{ id: SecretId }>`
    select id from webhook_secrets where app_id = ${owner.app.id} and provider = 'stripe'`;
  const signature = signStripe(body, owner.stripeSecret, Math.floor(receivedAt / 1000));
  await acceptDelivery(service.sql, {
    deliveryId,
    eventId: newId('event'),
    appId: owner.app.id as AppId,
    provider: 'stripe',
    receivedAt,
    secretId: secret.id,
    proof: { kind: 'headers', headers: { 'stripe-signature': signature } },
    bodySha256: createHash('sha256').update(body).digest(),
    body: stored,
  });
  return deliveryId;
}

describe('news that comes late', () => {
  test.each([
    ['the session tells the user, then the user is identified', ['invoice', 'session', 'identify']],
    ['the user is identified first, the session comes last', ['invoice', 'identify', 'session']],
    ['the invoice comes last', ['session', 'identify', 'invoice']],
  ])('a Stripe user known only by subscription: %s', async (_title, order) => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = `user-${randomUUID()}`;
    const subscriptionId = `sub_${randomUUID()}`;
    const device = await founder.install(slug, Date.now() - 2 * DAY_MS);
    const occurredAt = Date.now() - DAY_MS;
    const steps: Record<string, () => Promise<unknown>> = {
      invoice: () =>
        founder.stripe(
          bodyOf(stripeInvoicePaid({ userId: null, subscriptionId, amount: 1_000, occurredAt })),
        ),
      session: () =>
        founder.stripe(
          bodyOf(stripeCheckoutSession({ mode: 'subscription', userId: user, subscriptionId, occurredAt })),
        ),
      identify: () => founder.identify(device, user),
    };
    for (const step of order) await steps[step]?.();
    await eventually('the invoice earns', async () => (await amountsOf(affiliateId)).length === 1);
    expect(await amountsOf(affiliateId)).toEqual([200]);
  });

  // @promise payment-aliases
  test.each([
    ['before both', ['link', 'session', 'invoice']],
    ['between the two', ['session', 'link', 'invoice']],
  ])('one payment told under two names, tied together %s, earns once', async (_title, order) => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const [invoiceId, paymentIntentId] = [`in_${randomUUID()}`, `pi_${randomUUID()}`];
    const bodies = {
      session: stripeCheckoutSession({ userId: user, amount: 5_000, paymentIntentId, invoiceId: null }),
      invoice: stripeInvoicePaid({ userId: user, amount: 5_000, invoiceId }),
      link: stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount: 5_000 }),
    };
    for (const name of order) await founder.stripe(bodyOf(bodies[name as keyof typeof bodies]));
    expect(await amountsOf(affiliateId)).toEqual([1_000]);
  });

  // @promise dispute-one-state
  test('a dispute counts with the amount of its terminal state', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const paymentIntentId = `pi_${randomUUID()}`;
    await founder.stripe(bodyOf(stripeCheckoutSession({ userId: user, amount: 5_000, paymentIntentId })));
    const id = `du_${randomUUID()}`;
    const tell = async (type: string, status: string, amount: number) =>
      await founder.stripe(bodyOf(stripeDispute({ id, paymentIntentId, type, status, amount })));
    await tell('charge.dispute.created', 'needs_response', 1_000);
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200]);
    await tell('charge.dispute.closed', 'lost', 2_500);
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200, -300]);
    await tell('charge.dispute.funds_withdrawn', 'lost', 1_000);
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200, -300]);
  });

  // @promise dispute-one-state
  test('a won dispute gives everything back, whichever of its events comes first', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const paymentIntentId = `pi_${randomUUID()}`;
    await founder.stripe(bodyOf(stripeCheckoutSession({ userId: user, amount: 5_000, paymentIntentId })));
    const [inOrder, outOfOrder] = [`du_${randomUUID()}`, `du_${randomUUID()}`];
    const tell = async (id: string, type: string, status: string) =>
      await founder.stripe(bodyOf(stripeDispute({ id, paymentIntentId, type, status, amount: 1_000 })));
    await tell(inOrder, 'charge.dispute.created', 'needs_response');
    await tell(inOrder, 'charge.dispute.closed', 'won');
    await tell(outOfOrder, 'charge.dispute.closed', 'won');
    await tell(outOfOrder, 'charge.dispute.created', 'needs_response');
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200, 200]);
  });

  // @promise transfer-binds-receiver
  test('a production transfer binds the receiver once; a sandbox one binds nobody', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const giver = await founder.customer(slug);
    const receiver = `user-${randomUUID()}`;
    await founder.revenuecat(
      bodyOf(revenuecatTransfer({ from: [giver], to: [receiver], environment: 'SANDBOX' })),
    );
    await founder.purchase(receiver, 10);
    expect(await amountsOf(affiliateId)).toEqual([]);
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [giver], to: [receiver] })));
    await founder.purchase(receiver, 20);
    await eventually('the purchase after the transfer earns', async () =>
      (await amountsOf(affiliateId)).includes(400),
    );
  });

  // @promise transfer-before-giver
  test('a transfer that is told before its giver is known counts once he is, and so does one after it', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const [giver, middle, receiver] = [randomUUID(), randomUUID(), randomUUID()];
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [middle], to: [receiver] })));
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [giver], to: [middle] })));
    const deviceId = await founder.install(slug, Date.now() - 60 * DAY_MS);
    await founder.purchase(receiver, 10);
    expect(await amountsOf(affiliateId)).toEqual([]);
    await founder.identify(deviceId, giver);
    await eventually('the last receiver is bound', async () => {
      const bound =
        await service.sql`select 1 from bindings where customer_user_id = ${receiver} and healed_at is not null`;
      return bound.length === 1;
    });
    await founder.purchase(receiver, 20);
    await eventually('the purchase after it earns', async () => (await amountsOf(affiliateId)).includes(400));
  });

  // @promise transfer-binds-receiver
  test('a transfer of two givers with an attribution binds nobody; of two with one of them it binds', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const [one, two] = [await founder.customer(slug), await founder.customer(slug)];
    const [unclear, clear] = [`user-${randomUUID()}`, `user-${randomUUID()}`];
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [one, two], to: [unclear] })));
    await founder.revenuecat(
      bodyOf(revenuecatTransfer({ from: [one, `user-${randomUUID()}`], to: [clear] })),
    );
    expect((await founder.purchase(unclear, 10)).body.commissionId).toBeNull();
    expect((await founder.purchase(clear, 20)).body.commissionId).toMatch(/^com_/);
    expect(await amountsOf(affiliateId)).toEqual([400]);
  });

  // @promise transfer-keeps-existing
  test('a transfer leaves the receiver the attribution it has, and moves no money that was earned', async () => {
    const [giving, having] = [await founder.newAffiliate(), await founder.newAffiliate()];
    const [giver, receiver] = [await founder.customer(giving.slug), await founder.customer(having.slug)];
    await founder.purchase(giver, 10);
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [giver], to: [receiver] })));
    await founder.purchase(receiver, 20);
    expect(await amountsOf(giving.affiliateId)).toEqual([200]);
    expect(await amountsOf(having.affiliateId)).toEqual([400]);
  });

  // @promise payment-aliases
  test.each(['identify', 'a later event'])(
    'a payment with two names whose user is learnt from %s earns once',
    async (source) => {
      const { affiliateId, slug } = await founder.newAffiliate();
      const userId = `user-${randomUUID()}`;
      const isNamed = source === 'identify';
      const [invoiceId, paymentIntentId] = [`in_${userId}`, `pi_${userId}`];
      const customerId = `cus_${randomUUID()}`;
      const sale = { amount: 5_000, customerId, occurredAt: Date.now() - DAY_MS };
      for (const payload of [
        stripeCheckoutSession({ ...sale, userId: isNamed ? userId : null, paymentIntentId, invoiceId: null }),
        stripeInvoicePaid({
          ...sale,
          userId: isNamed ? userId : null,
          invoiceId,
          subscriptionId: `sub_${userId}`,
        }),
        stripeInvoicePaymentPaid({ ...sale, invoiceId, paymentIntentId }),
      ]) {
        await founder.stripe(bodyOf(payload));
      }
      expect(await amountsOf(affiliateId)).toEqual([]);
      await founder.identify(await founder.install(slug, Date.now() - 20 * DAY_MS), userId);
      if (!isNamed) {
        await founder.stripe(bodyOf(stripeCheckoutSession({ userId, customerId, mode: 'subscription' })));
      }
      await eventually('it earns', async () => (await amountsOf(affiliateId)).length > 0);
      // The other name is evaluated, too, before the heal is done.
      await eventually('the user is healed', async () => {
        const { healed } = await service.sql.one<{ healed: boolean }>`
          select healed_at is not null as healed from bindings where customer_user_id = ${userId}`;
        return healed;
      });
      expect(await amountsOf(affiliateId)).toEqual([1_000]);
    },
  );

  // @promise alias-keeps-user
  test('an event that tells of a payment again still says who paid', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const told = { transactionId: `tx-${randomUUID()}`, occurredAt: Date.now() - DAY_MS };
    const unknown = await founder.purchase('$RCAnonymousID:0123456789abcdef', 10, told);
    expect(unknown.body.commissionId).toBeNull();
    await founder.purchase(user, 10, told);
    expect(await amountsOf(affiliateId)).toEqual([200]);
    const [commission] =
      await service.sql`select event_id from commissions where affiliate_id = ${affiliateId}`;
    expect(commission).toEqual({ eventId: unknown.body.eventId });
  });

  // @promise relay-after-30-s
  test('the relay finishes a delivery whose workflow was never started', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }));
    await accept(founder, body, Date.now() - 60_000);
    await service.relay?.round();
    await eventually('the delivery has earned', async () => (await amountsOf(affiliateId)).length === 1);
  });

  // @promise relay-after-30-s
  test('which is one that has had no outcome for thirty seconds', async () => {
    const { sql } = service;
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    const [young, old] = [
      await accept(founder, body, Date.now() - 25_000),
      await accept(founder, body, Date.now() - 31_000),
    ];
    const started: DeliveryId[] = [];
    const workflows = {
      isReachable: () => true,
      startDelivery: async (id: DeliveryId) => void started.push(id),
      healBinding: () => {},
      startConvert: () => {},
      startReprocess: () => {},
    };
    const relay = startRelay({
      sql,
      workflows,
      logger: pino({ level: 'silent' }),
    });
    // Its first round may have begun already.
    await relay.round();
    await relay.stop();
    expect(started).toContain(old);
    expect(started).not.toContain(young);
  });

  // @promise verified-by-accepting-secret
  test('a delivery that was stuck for long is verified against its time of receipt and the secret that accepted it', async () => {
    const other = await setUpFounder(service);
    const { affiliateId, slug } = await other.newAffiliate();
    const user = await other.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }));
    await accept(other, body, Date.now() - 10 * DAY_MS);
    await other.ok('PUT', `/apps/${other.app.id}/webhooks/stripe/secret`, {
      secret: 'whsec_test_rotated',
      graceSeconds: 0,
    });
    await service.relay?.round();
    await eventually('the delivery has earned', async () => (await amountsOf(affiliateId)).length === 1);
  });

  // @promise verified-by-body-hash
  test('a stored body that was changed in the database earns nothing and says so', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }));
    const changed = Buffer.from(body.toString().replace('1000', '9000'));
    const deliveryId = await accept(founder, body, Date.now() - 60_000, changed);
    await service.relay?.round();
    await eventually('the delivery has failed', async () => {
      const row = await service.sql.one<{
        status: string;
      }>`select processing_status as status from deliveries where id = ${deliveryId}`;
      return row.status === 'failed';
    });
    expect(await amountsOf(affiliateId)).toEqual([]);
  });
});

test('afterwards no check of the ledger finds anything', async () => {
  await expectSoundLedger(service.sql);
});
