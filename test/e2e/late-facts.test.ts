import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  bodyOf,
  revenuecatTransfer,
  stripeCheckoutSession,
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
} from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
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

describe('late facts', () => {
  test.each([
    ['the session comes before the identify', ['invoice', 'session', 'identify']],
    ['the identify comes before the session', ['invoice', 'identify', 'session']],
    ['the invoice comes last', ['session', 'identify', 'invoice']],
  ])('an invoice of a Stripe subscription earns once its user is known: %s', async (_title, order) => {
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
    ['before both events', ['link', 'session', 'invoice']],
    ['between the two events', ['session', 'link', 'invoice']],
  ])('a payment with two references that are linked %s earns once', async (_title, order) => {
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
  test('a dispute reverses the amount of its terminal state', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const paymentIntentId = `pi_${randomUUID()}`;
    await founder.stripe(bodyOf(stripeCheckoutSession({ userId: user, amount: 5_000, paymentIntentId })));
    const id = `du_${randomUUID()}`;
    const post = async (type: string, status: string, amount: number) =>
      await founder.stripe(bodyOf(stripeDispute({ id, paymentIntentId, type, status, amount })));
    await post('charge.dispute.created', 'needs_response', 1_000);
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200]);
    await post('charge.dispute.closed', 'lost', 2_500);
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200, -300]);
    await post('charge.dispute.funds_withdrawn', 'lost', 1_000);
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200, -300]);
  });

  // @promise dispute-one-state
  test('a won dispute restores the whole commission, in any order of its events', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const paymentIntentId = `pi_${randomUUID()}`;
    await founder.stripe(bodyOf(stripeCheckoutSession({ userId: user, amount: 5_000, paymentIntentId })));
    const [inOrder, outOfOrder] = [`du_${randomUUID()}`, `du_${randomUUID()}`];
    const post = async (id: string, type: string, status: string) =>
      await founder.stripe(bodyOf(stripeDispute({ id, paymentIntentId, type, status, amount: 1_000 })));
    await post(inOrder, 'charge.dispute.created', 'needs_response');
    await post(inOrder, 'charge.dispute.closed', 'won');
    await post(outOfOrder, 'charge.dispute.closed', 'won');
    await post(outOfOrder, 'charge.dispute.created', 'needs_response');
    expect(await amountsOf(affiliateId)).toEqual([1_000, -200, 200]);
  });

  // @promise transfer-binds-receiver
  test('a production transfer binds the receiver, a sandbox transfer does not', async () => {
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
  test('a chain of transfers received before its giver is identified binds all receivers afterwards', async () => {
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
  test('a transfer binds the receiver only when exactly one giver has an attribution', async () => {
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
  test('a transfer changes neither an existing attribution of the receiver nor existing commissions', async () => {
    const [giving, having] = [await founder.newAffiliate(), await founder.newAffiliate()];
    const [giver, receiver] = [await founder.customer(giving.slug), await founder.customer(having.slug)];
    await founder.purchase(giver, 10);
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [giver], to: [receiver] })));
    await founder.purchase(receiver, 20);
    expect(await amountsOf(giving.affiliateId)).toEqual([200]);
    expect(await amountsOf(having.affiliateId)).toEqual([400]);
  });

  // @promise payment-aliases
  test.each(['an identify', 'a later event'])(
    'a payment with two references whose user is known from %s earns once',
    async (source) => {
      const { affiliateId, slug } = await founder.newAffiliate();
      const userId = `user-${randomUUID()}`;
      const isNamed = source === 'an identify';
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
      // The heal also evaluates the payment under its other reference.
      await eventually('the heal is complete', async () => {
        const { healed } = await service.sql.one<{ healed: boolean }>`
          select healed_at is not null as healed from bindings where customer_user_id = ${userId}`;
        return healed;
      });
      expect(await amountsOf(affiliateId)).toEqual([1_000]);
    },
  );

  // @promise alias-keeps-user
  test('a second event of a payment provides the user that the first event lacks', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const payment = { transactionId: `tx-${randomUUID()}`, occurredAt: Date.now() - DAY_MS };
    const unknown = await founder.purchase('$RCAnonymousID:0123456789abcdef', 10, payment);
    expect(unknown.body.commissionId).toBeNull();
    await founder.purchase(user, 10, payment);
    expect(await amountsOf(affiliateId)).toEqual([200]);
    const [commission] =
      await service.sql`select event_id from commissions where affiliate_id = ${affiliateId}`;
    expect(commission).toEqual({ eventId: unknown.body.eventId });
  });
});

test('the ledger is consistent after all late facts', async () => {
  await expectConsistentLedger(service.sql);
});
