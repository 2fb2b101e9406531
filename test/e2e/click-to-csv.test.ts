import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash, randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { sendRequest } from '../support/http-client.ts';
import { bodyOf, stripeInvoicePaid, stripeRefund } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service, { commissionRateBps: 2_500, holdPeriodDays: 30 });
});
afterAll(async () => {
  await service.close();
});

interface CommissionRow {
  id: string;
  status: string;
  amountCents: number;
  kind: string;
  payoutId: string | null;
  maturedAt: number | null;
}

async function commissionsOf(affiliateId: string): Promise<CommissionRow[]> {
  const { items } = await founder.ok<{ items: CommissionRow[] }>(
    'GET',
    `/apps/${founder.app.id}/commissions?affiliateId=${affiliateId}`,
  );
  return items;
}

const CSV_HEADER =
  'payout_id,affiliate_id,affiliate_name,commission_id,amount_usd_cents,amount_usd,currency,event_id,occurred_at';

describe('from a click to a payout CSV', () => {
  // @promise paid-through-csv, payout-id-and-count, matured-to-paid, webhook-returns-commission
  // @promise post-payout-export, get-payout-csv, preview-equals-export, nothing-due, export-headers
  // @promise payout-csv-again, payout-fields
  test('purchases of two providers and a refund are paid in one CSV, and a second export pays nothing', async () => {
    const { affiliateId, slug } = await founder.newAffiliate('Test creator A');
    const user = await founder.customer(slug);

    const bought = await founder.purchase(user, 10, { transactionId: '900001' });
    expect(bought).toMatchObject({
      status: 200,
      body: { eventId: expect.stringMatching(/^evt_/), commissionId: expect.stringMatching(/^com_/) },
    });

    const invoice = stripeInvoicePaid({
      userId: user,
      amount: 2_000,
      invoiceId: 'in_first',
      occurredAt: Date.now() - 35 * DAY_MS,
    });
    const paid = await founder.stripe(bodyOf(invoice));
    expect(paid).toMatchObject({ status: 200, body: { commissionId: expect.stringMatching(/^com_/) } });

    const refund = await founder.refund(user, 4, '900001');
    expect(refund.body.commissionId).toMatch(/^com_/);

    const preview = await founder.ok<{ rows: object[] }>('GET', `/apps/${founder.app.id}/payouts/preview`);
    expect(preview.rows).toContainEqual({
      affiliateId,
      affiliateName: 'Test creator A',
      count: 3,
      totalCents: 250 + 500 - 100,
      moreRemains: false,
    });

    const csv = await founder.exportCsv(affiliateId);
    expect(csv.status).toBe(200);
    expect(csv.headers.get('content-type')).toMatch(/^text\/csv/);
    expect(csv.headers.get('content-disposition')).toBe(
      `attachment; filename="${csv.headers.get('x-payout-id')}.csv"`,
    );
    const [header, ...rows] = csv.text.trimEnd().split('\r\n');
    expect(header).toBe(CSV_HEADER);
    expect(rows).toHaveLength(3);
    expect(rows.map((row) => Number(row.split(',')[4])).reduce((a, b) => a + b)).toBe(650);
    expect(csv.headers.get('x-payout-sha256')).toBe(createHash('sha256').update(csv.text).digest('hex'));
    const payoutId = csv.headers.get('x-payout-id');
    expect(rows.every((row) => row.startsWith(`${payoutId},${affiliateId},Test creator A,com_`))).toBe(true);

    const commissions = await commissionsOf(affiliateId);
    expect(commissions.map((c) => c.status)).toEqual(['paid', 'paid', 'paid']);
    expect(commissions.every((c) => c.payoutId === payoutId)).toBe(true);

    const second = await founder.exportCsv(affiliateId);
    expect(second.status).toBe(200);
    expect(second.text).toBe(`${CSV_HEADER}\r\n`);
    expect(second.headers.get('x-payout-id')).toBeNull();

    const stored = await founder.call('GET', `/apps/${founder.app.id}/payouts/${payoutId}/csv`);
    expect(stored.text).toBe(csv.text);
    const { items: payouts } = await founder.ok<{ items: object[] }>(
      'GET',
      `/apps/${founder.app.id}/payouts?affiliateId=${affiliateId}`,
    );
    expect(payouts).toEqual([
      {
        id: payoutId,
        affiliateId,
        affiliateName: 'Test creator A',
        itemCount: 3,
        totalCents: 650,
        currency: 'USD',
        createdAt: expect.any(Number),
        createdBy: { id: expect.any(String), display: expect.any(String), label: null },
        money: null,
        csvSha256: csv.headers.get('x-payout-sha256'),
        chainPosition: expect.any(Number),
        chainPreviousHash: null,
        chainHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ]);
  });

  // @promise commission-matures, timer-matures
  test('the hold timer matures a commission at its due date and not before', async () => {
    /** Makes two purchases, of which the first is due in so many ms. Returns what is read before that, or null on a slow machine. */
    const purchases = async (dueInMs: number) => {
      const { affiliateId, slug } = await founder.newAffiliate();
      const user = await founder.customer(slug);
      const dueAt = Date.now() + dueInMs;
      await founder.purchase(user, 10, { occurredAt: dueAt - 30 * DAY_MS });
      await founder.purchase(user, 10, { occurredAt: Date.now() - 20 * DAY_MS });
      const rows = await commissionsOf(affiliateId);
      return Date.now() < dueAt ? { affiliateId, dueAt, rows } : null;
    };
    const made = (await purchases(1_500)) ?? (await purchases(6_000)) ?? (await purchases(25_000));
    const { affiliateId = '', dueAt, rows } = made ?? {};
    expect(rows?.map((c) => c.status)).toEqual(['pending', 'pending']);
    await eventually('one of two has matured', async () => {
      const statuses = (await commissionsOf(affiliateId)).map((c) => c.status);
      return statuses.includes('matured');
    });
    const [later, earlier] = await commissionsOf(affiliateId);
    expect([later?.status, earlier?.status]).toEqual(['pending', 'matured']);
    expect(earlier?.maturedAt).toBeGreaterThanOrEqual(dueAt ?? Infinity);
  });

  // @promise event-unique, webhook-responses, event-duplicate, webhook-200
  test('a second delivery of the same event returns duplicate and creates no commission', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 5_000 }));
    expect((await founder.stripe(body)).body.commissionId).toMatch(/^com_/);
    expect((await founder.stripe(body)).body).toEqual({ duplicate: true });
    expect(await commissionsOf(affiliateId)).toHaveLength(1);
  });

  // @promise dedup-per-app
  test('one event id in two apps is two events, and each earns', async () => {
    const other = await setUpFounder(service, { commissionRateBps: 2_500 });
    const fields = { amount: 5_000, eventId: `evt_${randomUUID()}`, invoiceId: `in_${randomUUID()}` };
    for (const owner of [founder, other]) {
      const userId = await owner.customer();
      const response = await owner.stripe(bodyOf(stripeInvoicePaid({ ...fields, userId })));
      expect(response.body.commissionId).toMatch(/^com_/);
    }
  });

  // @promise event-unique
  test('twenty concurrent deliveries of one event create one commission', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 5_000 }));
    const responses = await Promise.all(Array.from({ length: 20 }, () => founder.stripe(body)));
    expect(responses.every((a) => a.status === 200)).toBe(true);
    // A response that came before the outcome is `pending` and names no commission.
    const named = responses.filter((a) => a.body.commissionId).length;
    expect(named).toBe(responses.some((a) => a.body.pending) ? Math.min(named, 1) : 1);
    await eventually('it has earned', async () => (await commissionsOf(affiliateId)).length > 0);
    expect(await commissionsOf(affiliateId)).toHaveLength(1);
  });

  test('two events of one store payment create one commission', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    await founder.purchase(user, 10, { transactionId: '700700' });
    const second = await founder.purchase(user, 10, { transactionId: '700700' });
    expect(second.body).toMatchObject({ commissionId: null });
    expect(await commissionsOf(affiliateId)).toHaveLength(1);
  });

  // @promise webhook-returns-commission
  test('a sandbox purchase is stored and creates no commission', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const response = await founder.stripe(
      bodyOf(stripeInvoicePaid({ userId: user, amount: 5_000, environment: 'sandbox' })),
    );
    expect(response.body).toMatchObject({ commissionId: null });
    expect(await commissionsOf(affiliateId)).toEqual([]);
  });

  test('a Stripe refund that names only the payment intent applies once the intent is linked to its invoice', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const { stripeInvoicePaymentPaid } = await import('../support/provider-fixtures.ts');
    const invoiceId = `in_${randomUUID()}`;
    const paymentIntentId = `pi_${randomUUID()}`;
    await founder.stripe(bodyOf(stripeRefund({ paymentIntentId, amount: 1_000, occurredAt: Date.now() })));
    await founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 4_000, invoiceId })));
    expect((await commissionsOf(affiliateId)).map((c) => c.amountCents)).toEqual([1_000]);
    await founder.stripe(bodyOf(stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount: 4_000 })));
    expect((await commissionsOf(affiliateId)).map((c) => c.amountCents).toSorted((a, b) => a - b)).toEqual([
      -250, 1_000,
    ]);
  });
});

describe('receiving webhooks', () => {
  // @promise error-401-webhook, refused-delivery-recorded
  test('a forged signature returns 401, records a rejected delivery without its body and starts no workflow', async () => {
    const body = bodyOf(stripeInvoicePaid({ amount: 100 }));
    const response = await founder.stripe(body, 'whsec_test_of_another_account');
    expect(response.status).toBe(401);
    await founder.ok('GET', `/apps/${founder.app.id}/diagnostics/webhooks`);
    const rows = await service.sql<{ id: string; refusedCount: number; hasBody: boolean; sha256: string }>`
      select d.id, d.refused_count, exists (select from delivery_bodies b where b.delivery_id = d.id) as has_body,
             encode(d.body_sha256, 'hex') as sha256
        from deliveries d where app_id = ${founder.app.id} and processing_status = 'rejected'`;
    const sha256 = createHash('sha256').update(body).digest('hex');
    expect(rows).toEqual([expect.objectContaining({ refusedCount: 1, hasBody: false, sha256 })]);
    await expect(service.temporal.workflow.getHandle(`delivery:${rows[0]?.id}`).describe()).rejects.toThrow();
  });

  // @promise flood-in-one-row
  test('thirty forged requests are counted in one row', async () => {
    await Promise.all(Array.from({ length: 30 }, () => founder.stripe('{}', 'whsec_test_flood')));
    await founder.ok('GET', `/apps/${founder.app.id}/diagnostics/webhooks`);
    const rows = await service.sql<{ refusedCount: number }>`
      select refused_count from deliveries where app_id = ${founder.app.id} and processing_status = 'rejected'`;
    expect(rows).toHaveLength(1);
    expect(rows[0]?.refusedCount).toBeGreaterThanOrEqual(31);
  });

  // @promise webhook-uniform-401
  test('an unknown app, a missing secret and a bad token return the same 401; an unknown app leaves no row', async () => {
    const post = async (path: string) => {
      const options = { body: {}, headers: { authorization: 'no' } };
      const { status, body } = await sendRequest(service.url, 'POST', path, options);
      const { requestId: _, ...rest } = body;
      return { status, body: rest };
    };
    const other = await setUpFounder(service);
    const bare = await other.ok<{ id: string }>('POST', '/apps', { name: 'No secrets' });
    const responses = await Promise.all([
      post(`/webhooks/revenuecat/${founder.app.id}`),
      post(`/webhooks/revenuecat/${bare.id}`),
      post(`/webhooks/revenuecat/app_01h455vb4pex5vsknk084sn02q`),
      post('/webhooks/revenuecat/nonsense'),
    ]);
    expect(responses[0]?.status).toBe(401);
    expect(new Set(responses.map((a) => JSON.stringify(a))).size).toBe(1);
    await founder.ok('GET', `/apps/${founder.app.id}/diagnostics/webhooks`);
    const rows = await service.sql<{ appId: string }>`
      select app_id from deliveries where provider = 'revenuecat' and not signature_valid`;
    expect(rows.map((row) => row.appId).toSorted()).toEqual([founder.app.id, bare.id].toSorted());
  });

  // @promise webhook-404-413
  test('an unknown provider returns 404, a body over 1 MiB returns 413', async () => {
    const unknown = await founder.webhook('unknown', '{}', {});
    expect(unknown.status).toBe(404);
    const large = await founder.stripe(Buffer.alloc(1_048_577, 32));
    expect(large.status).toBe(413);
  });

  // @promise unknown-type-ignored
  test('an event of an unknown type is stored as ignored with a reason and returns 200', async () => {
    const body = { ...stripeInvoicePaid({ amount: 100 }), type: 'lantern.lit' };
    const response = await founder.stripe(bodyOf(body));
    expect(response).toMatchObject({ status: 200, body: { commissionId: null } });
    const row = await service.sql.one<{ status: string; error: string; hasBody: boolean }>`
      select processing_status as status, last_error as error,
             exists (select from delivery_bodies b where b.delivery_id = d.id) as has_body
        from deliveries d where event_id = ${response.body.eventId}`;
    expect(row).toEqual({ status: 'ignored', error: expect.stringContaining('lantern.lit'), hasBody: true });
  });

  // @promise unreadable-body-failed
  test('a verified body that cannot be parsed is stored as failed with a reason and returns 200', async () => {
    const response = await founder.stripe('{"id": 5');
    expect(response).toMatchObject({
      status: 200,
      body: { eventId: expect.stringMatching(/^evt_/), commissionId: null },
    });
    const row = await service.sql.one<{ status: string; error: string }>`
      select processing_status as status, last_error as error from deliveries where event_id = ${response.body.eventId}`;
    expect(row.status).toBe('failed');
    expect(row.error).not.toBe('');
  });
});
