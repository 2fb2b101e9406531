import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { applyEvaluation } from '../../src/db/evaluations.ts';
import { loadPayments } from '../../src/db/payments.ts';
import type { StoredPayment } from '../../src/db/payments.ts';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import type { AppId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService();
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await service.close();
});

/** Returns a payment of $10 with a refund of $4 that no evaluation has read. */
async function refundedPayment(adjustmentId: string): Promise<StoredPayment> {
  const user = await founder.customer();
  const ref = randomUUID();
  await founder.purchase(user, 10, { transactionId: ref });
  await service.sql`
    insert into adjustments (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                             amount_minor, usd_cents, occurred_at, stated_at, event_id)
    select ${adjustmentId}, app_id, environment, store, ${adjustmentId}, ref, 'refund', 'applied', 1, false, 'USD', 400, 400, now(), now(),
           event_id from payments where app_id = ${founder.app.id} and ref = ${ref}`;
  const [payment] = await loadPayments(service.sql, {
    appId: founder.app.id as AppId,
    environment: 'production',
    store: 'app_store',
    refs: [ref],
  });
  return payment!;
}

// @promise concurrent-evaluations
test('of several evaluations of one snapshot of a payment, exactly one appends a row', async () => {
  const payment = await refundedPayment('adj_01h455vb4pex5vsknk084sn02q');
  const evaluation = evaluatePayment(payment);
  expect(evaluation.reversals.map((reversal) => reversal.amountCents)).toEqual([-80]);
  const applied = await Promise.all(
    Array.from({ length: 8 }, async () => await applyEvaluation(service.sql, payment, evaluation, null)),
  );
  expect(applied.filter((result) => result !== null)).toHaveLength(1);
  const { reversed } = await service.sql.one<{ reversed: number }>`
    select sum(amount_cents)::bigint as reversed from commissions where payment_id = ${payment.paymentId} and kind = 'reversal'`;
  expect(reversed).toBe(-80);
  const sums = await service.sql.one`
    select earned_cents, reversed_cents, corrected_cents from payments where id = ${payment.paymentId}`;
  expect(sums).toEqual({ earnedCents: 200, reversedCents: 80, correctedCents: 0 });
});

test('an evaluation that appends a commission writes the row of its payment once', async () => {
  const payment = await refundedPayment('adj_01h455vb4pex5vsknk084sn03q');
  const writes = await service.sql.transaction(async (sql) => {
    // The view counts what the connection has done since its last report, in earlier transactions too.
    const updates = async () =>
      await sql.one<{ count: number }>`
        select n_tup_upd::int as count from pg_stat_xact_user_tables where relname = 'payments'`;
    const before = await updates();
    const applied = await applyEvaluation(sql, payment, evaluatePayment(payment), null);
    expect(applied?.commissions).toHaveLength(1);
    return (await updates()).count - before.count;
  });
  expect(writes).toBe(1);
});

describe('calculated commissions', () => {
  interface Row {
    readonly id: string;
    readonly kind: string;
    readonly amountCents: number;
    readonly rateBps: number;
    readonly occurredAt: number;
    readonly dueAt: number;
    readonly reversesCommissionId: string | null;
  }
  const rowsOf = async (affiliateId: string) =>
    (
      await founder.ok<{ items: Row[] }>(
        'GET',
        `/apps/${founder.app.id}/commissions?affiliateId=${affiliateId}`,
      )
    ).items;

  // @promise rate-snapshot, new-rate-not-retroactive, rate-and-hold-fixed, due-at
  test('a changed rate and hold period apply only to commissions calculated afterwards', async () => {
    const other = await setUpFounder(service, { commissionRateBps: 2_000, holdPeriodDays: 30 });
    const user = await other.customer();
    const occurredAt = Date.now() - 10 * DAY_MS;
    const commissions = async () =>
      (await other.ok<{ items: Row[] }>('GET', `/apps/${other.app.id}/commissions`)).items;
    await other.purchase(user, 10, { occurredAt });
    const before = await commissions();
    expect(before).toMatchObject([{ rateBps: 2_000, amountCents: 200, dueAt: occurredAt + 30 * DAY_MS }]);
    const settings = { commissionRateBps: 1_000, holdPeriodDays: 60 };
    await other.ok('PATCH', `/apps/${other.app.id}/settings`, settings);
    expect(await commissions()).toEqual(before);
    await other.purchase(user, 10, { occurredAt: occurredAt + 1 });
    expect(await commissions()).toEqual([
      expect.objectContaining({ rateBps: 1_000, amountCents: 100, dueAt: occurredAt + 1 + 60 * DAY_MS }),
      ...before,
    ]);
  });

  // @promise inactive-affiliate-keeps-rows, reversal-row
  test.each(['paused', 'removed'])(
    'a refund of a %s affiliate has the rate and due date of its earning and the time of the refund',
    async (status) => {
      const { affiliateId, slug } = await founder.newAffiliate();
      const user = await founder.customer(slug);
      const transactionId = randomUUID();
      await founder.purchase(user, 10, { transactionId, occurredAt: Date.now() - 10 * DAY_MS });
      const [earning] = await rowsOf(affiliateId);
      await founder.ok('PATCH', `/apps/${founder.app.id}/affiliates/${affiliateId}`, { status });
      expect((await founder.purchase(user, 10)).body.commissionId).toBeNull();
      await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, {
        commissionRateBps: 5_000,
        holdPeriodDays: 1,
      });
      const begin = Date.now();
      await founder.refund(user, 4, transactionId);
      await founder.ok('PATCH', `/apps/${founder.app.id}/settings`, {
        commissionRateBps: 2_000,
        holdPeriodDays: 30,
      });
      const [reversal, ...others] = await rowsOf(affiliateId);
      expect(others).toEqual([earning]);
      expect(reversal).toMatchObject({
        kind: 'reversal',
        amountCents: -80,
        reversesCommissionId: earning?.id,
        rateBps: earning?.rateBps,
        dueAt: earning?.dueAt,
      });
      expect(Math.abs((reversal?.occurredAt ?? 0) - (begin - DAY_MS))).toBeLessThan(5_000);
    },
  );
});
