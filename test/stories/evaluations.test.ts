import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { applyEvaluation, loadPayments } from '../../src/db/payments.ts';
import { evaluatePayment } from '../../src/domain/evaluate-payment.ts';
import type { AppId } from '../../src/domain/ids.ts';
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

test('of many evaluations made from one look at a payment, one appends and the others look again', async () => {
  const user = await founder.customer();
  const ref = randomUUID();
  await founder.purchase(user, 10, { transactionId: ref });
  const selector = {
    appId: founder.app.id as AppId,
    environment: 'production',
    store: 'app_store',
    refs: [ref],
  } as const;
  const [before] = await loadPayments(service.sql, selector);
  await service.sql`
    insert into adjustments (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                             amount_minor, usd_cents, occurred_at, event_id)
    select 'adj_01h455vb4pex5vsknk084sn02q', app_id, environment, store, 'refund-1', ref, 'refund', 'applied', 1, false, 'USD',
           400, 400, now(), event_id from payments where id = ${before!.paymentId}`;
  const [payment] = await loadPayments(service.sql, selector);
  const evaluation = evaluatePayment(payment!);
  expect(evaluation.reversals.map((reversal) => reversal.amountCents)).toEqual([-80]);
  const applied = await Promise.all(
    Array.from({ length: 8 }, async () => await applyEvaluation(service.sql, payment!, evaluation, null)),
  );
  expect(applied.filter((result) => result !== null)).toHaveLength(1);
  const { reversed } = await service.sql.one<{ reversed: number }>`
    select sum(amount_cents)::bigint as reversed from commissions where payment_id = ${payment!.paymentId} and kind = 'reversal'`;
  expect(reversed).toBe(-80);
});
