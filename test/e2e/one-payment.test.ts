import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { applyEvaluation } from '../../src/db/evaluations.ts';
import { loadPayments } from '../../src/db/payments.ts';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  bodyOf,
  stripeCharge,
  stripeCheckoutSession,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripeRefund,
} from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

// One payment may have several references (invoice, payment intent, charge). Aliases tie them together in any order.

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService({ settings: { relay: { overdueMs: 300, pauseMs: 60_000 } } });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

interface Row {
  readonly id: string;
  readonly kind: string;
  readonly amountCents: number;
  readonly reversesCommissionId: string | null;
  readonly reason: string | null;
}

/** Returns the commissions of an affiliate, the first written first. */
async function commissionsOf(affiliateId: string): Promise<Row[]> {
  const { items } = await founder.ok<{ items: Row[] }>(
    'GET',
    `/apps/${founder.app.id}/commissions?affiliateId=${affiliateId}`,
  );
  return items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

async function amountsOf(affiliateId: string): Promise<number[]> {
  return (await commissionsOf(affiliateId)).map((row) => row.amountCents);
}

/** Returns the revenue of an affiliate's payments in all time. */
async function revenueOf(affiliateId: string): Promise<number> {
  const row = await service.sql.one<{ cents: number }>`
    select coalesce(sum(amount_cents), 0)::bigint as cents from revenue_entries where affiliate_id = ${affiliateId}`;
  return row.cents;
}

/** A sale of 50 dollars that Stripe reports under a payment intent and, separately, under an invoice. */
async function newSale() {
  const { affiliateId, slug } = await founder.newAffiliate();
  const userId = await founder.customer(slug);
  const [invoiceId, paymentIntentId, chargeId] = [
    `in_${randomUUID()}`,
    `pi_${randomUUID()}`,
    `ch_${randomUUID()}`,
  ];
  const amount = 5_000;
  const occurredAt = Date.now() - 2 * DAY_MS;
  const session = stripeCheckoutSession({ userId, amount, paymentIntentId, invoiceId: null, occurredAt });
  const invoice = stripeInvoicePaid({ userId, amount, invoiceId, occurredAt });
  /** The invoice as API versions before 2025-03-31 state it: with its payment intent and charge. */
  const tiedInvoice = () => {
    const body = JSON.parse(bodyOf(stripeInvoicePaid({ userId, amount, invoiceId, occurredAt })).toString());
    Object.assign(body.data.object, { payment_intent: paymentIntentId, charge: chargeId });
    return Buffer.from(JSON.stringify(body));
  };
  const link = () => bodyOf(stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount, occurredAt }));
  const refund = (cents: number, names: { paymentIntentId?: string | null; chargeId?: string | null }) =>
    bodyOf(stripeRefund({ paymentIntentId: null, chargeId: null, amount: cents, ...names }));
  return {
    affiliateId,
    invoiceId,
    paymentIntentId,
    chargeId,
    session: bodyOf(session),
    invoice: bodyOf(invoice),
    tiedInvoice,
    link,
    refund,
  };
}

describe('a refund finds its payment by any of its references', () => {
  // @promise refund-any-reference
  test.each([
    ['after', ['session', 'tie', 'refund']],
    ['before', ['session', 'refund', 'tie']],
  ])(
    'a refund that names only the charge, reported %s the invoice that ties both, reverses',
    async (_title, order) => {
      const sale = await newSale();
      const steps: Record<string, Buffer> = {
        session: sale.session,
        tie: sale.tiedInvoice(),
        refund: sale.refund(5_000, { chargeId: sale.chargeId }),
      };
      for (const step of order) await founder.stripe(steps[step] ?? '');
      expect(await amountsOf(sale.affiliateId)).toEqual([1_000, -1_000]);
      expect(await revenueOf(sale.affiliateId)).toBe(0);
    },
  );

  // @promise refund-any-reference
  test('a charge that two events tie to two references connects both', async () => {
    const sale = await newSale();
    const { chargeId, paymentIntentId } = sale;
    await founder.stripe(sale.session);
    await founder.stripe(bodyOf(stripeCharge({ chargeId, paymentIntentId, amount: 5_000 })));
    const invoice = JSON.parse(sale.invoice.toString());
    Object.assign(invoice.data.object, { charge: chargeId });
    await founder.stripe(Buffer.from(JSON.stringify(invoice)));
    expect(await amountsOf(sale.affiliateId)).toEqual([1_000]);
  });
});

describe('a payment that earned under two references is corrected', () => {
  // @promise earned-twice-is-corrected
  test('the event that ties both references appends one correction, and further events append none', async () => {
    const sale = await newSale();
    await founder.stripe(sale.session);
    await founder.stripe(sale.invoice);
    expect(await amountsOf(sale.affiliateId)).toEqual([1_000, 1_000]);
    await founder.stripe(sale.link());
    const [first, second, correction, ...others] = await commissionsOf(sale.affiliateId);
    expect(others).toEqual([]);
    expect(first).toMatchObject({ kind: 'earning', reason: null });
    expect(correction).toMatchObject({
      kind: 'correction',
      amountCents: -1_000,
      reversesCommissionId: second?.id,
      reason: 'earned_under_another_reference',
    });
    expect(await revenueOf(sale.affiliateId)).toBe(5_000);
    await founder.stripe(sale.link());
    await founder.stripe(sale.tiedInvoice());
    expect(await amountsOf(sale.affiliateId)).toEqual([1_000, 1_000, -1_000]);
  });

  // @promise earned-twice-is-corrected
  test('refunds before and after the correction count once, for the earning that stays', async () => {
    const sale = await newSale();
    await founder.stripe(sale.session);
    await founder.stripe(sale.invoice);
    const dispute = JSON.parse(sale.refund(1_000, {}).toString());
    Object.assign(dispute.data.object, { payment_intent: sale.invoiceId });
    await founder.stripe(sale.refund(500, { paymentIntentId: sale.paymentIntentId }));
    await founder.stripe(Buffer.from(JSON.stringify(dispute)));
    expect(await amountsOf(sale.affiliateId)).toEqual([1_000, 1_000, -100, -200]);
    await founder.stripe(sale.link());
    const sum = async () => (await amountsOf(sale.affiliateId)).reduce((total, cents) => total + cents, 0);
    expect(await sum()).toBe(700);
    expect(await revenueOf(sale.affiliateId)).toBe(3_500);
    await founder.stripe(sale.refund(3_500, { paymentIntentId: sale.paymentIntentId }));
    expect(await sum()).toBe(0);
    expect(await revenueOf(sale.affiliateId)).toBe(0);
  });

  // @promise earned-twice-is-corrected
  test('the relay corrects a payment whose references were tied without an evaluation', async () => {
    const sale = await newSale();
    await founder.stripe(sale.session);
    await founder.stripe(sale.invoice);
    await service.sql`
      insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
      values (${founder.app.id}, 'production', 'stripe', ${sale.paymentIntentId}, ${sale.invoiceId})`;
    await eventually('the relay starts it', async () => {
      await service.relay?.round();
      return (await amountsOf(sale.affiliateId)).length === 3;
    });
    expect(await amountsOf(sale.affiliateId)).toEqual([1_000, 1_000, -1_000]);
    const marked = await service.sql`select id from payments where recheck_since is not null`;
    expect(marked).toEqual([]);
  });

  test('an evaluation that has not seen the tie of two references is not applied, so that their mark stays', async () => {
    const { affiliateId, session, invoice, invoiceId, paymentIntentId } = await newSale();
    await founder.stripe(session);
    await founder.stripe(invoice);
    const selector = { appId: founder.app.id as AppId, environment: 'production', store: 'stripe' } as const;
    const [early] = await loadPayments(service.sql, { ...selector, refs: [invoiceId] });
    await service.sql`
      insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
      values (${founder.app.id}, 'production', 'stripe', ${paymentIntentId}, ${invoiceId})`;
    expect(await applyEvaluation(service.sql, early!, evaluatePayment(early!), null)).toBeNull();
    await eventually('the relay corrects the payment', async () => {
      await service.relay?.round();
      return (await amountsOf(affiliateId)).length === 3;
    });
  });

  // @promise earned-twice-is-corrected
  test('the database refuses a second correction, and one without an earlier earning of the payment', async () => {
    const sale = await newSale();
    await founder.stripe(sale.session);
    await founder.stripe(sale.invoice);
    const [kept, second] = await commissionsOf(sale.affiliateId);
    const correct = async (id: string, ofId: string | undefined, becauseOf: string | undefined) =>
      await service.sql`
        insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, kind,
                                 reverses_commission_id, reason, duplicate_of_commission_id, rate_bps, base_cents,
                                 amount_cents, source, customer_user_id, match_method, occurred_at, due_at)
        select ${id}, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, 'correction', id,
               'earned_under_another_reference', ${becauseOf ?? null}, rate_bps, 0, -amount_cents, source,
               customer_user_id, match_method, occurred_at, due_at
          from commissions where id = ${ofId ?? null}`;
    const refused = 'needs an earlier earning of the same payment';
    await expect(correct('com_01h455vb4pex5vsknk084sn02q', second?.id, kept?.id)).rejects.toThrow(refused);
    await founder.stripe(sale.link());
    await expect(correct('com_01h455vb4pex5vsknk084sn02q', kept?.id, second?.id)).rejects.toThrow(refused);
    await expect(correct('com_01h455vb4pex5vsknk084sn02q', second?.id, kept?.id)).rejects.toThrow(
      'one_correction_per_earning',
    );
    expect(await amountsOf(sale.affiliateId)).toEqual([1_000, 1_000, -1_000]);
  });

  // @promise earned-twice-is-corrected
  test('a payout nets the correction, and the explanation of its event states it', async () => {
    const sale = await newSale();
    await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { holdPeriodDays: 0 });
    await founder.stripe(sale.session);
    const { body } = await founder.stripe(sale.invoice);
    await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, { holdPeriodDays: 30 });
    await founder.stripe(sale.link());
    const csv = await founder.exportCsv(sale.affiliateId);
    expect(csv.status).toBe(200);
    const { total } = await service.sql.one<{ total: number }>`
      select total_cents as total from payouts where affiliate_id = ${sale.affiliateId}`;
    expect(total).toBe(1_000);
    const { steps } = await founder.ok<{ steps: { step: string; decision: string }[] }>(
      'GET',
      `/apps/${founder.app.id}/events/${body.eventId}/explanation`,
    );
    expect(steps.find(({ step }) => step === 'write_commission')).toMatchObject({ decision: 'corrected' });
  });
});

test('no check of the ledger finds anything after all of this', async () => {
  await expectConsistentLedger(service.sql);
});
