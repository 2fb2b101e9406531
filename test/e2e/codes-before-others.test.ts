import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { evaluateEach } from '../../activities/evaluate.ts';
import { DEFAULT_LIMITS } from '../../src/domain/evaluation.ts';
import type { PaymentId } from '../../src/domain/ids.ts';
import { MINUTE_MS } from '../../src/domain/time.ts';
import { NO_CALLBACKS } from '../../tools/no-callbacks.ts';
import type { TestApi } from '../support/api.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import {
  bodyOf,
  stripeCheckoutSession,
  stripeInvoicePaid,
  withFields,
} from '../support/provider-fixtures.ts';

/*
 * A code that was registered after its purchase binds a subscription when something else has the purchase evaluated again. What is
 * evaluated after it belongs to its creator at once: here nothing heals a binding.
 */

let api: TestApi;
let founder: Founder;
const at = Date.now() - 30 * MINUTE_MS;

beforeAll(async () => {
  ({ api } = await startProcessingApi());
  api.clock.now = Date.now();
});
afterAll(async () => {
  await expectConsistentLedger(api.sql);
  await api.close();
});

interface Ids {
  readonly subscriptionId: string;
  readonly customerId: string;
  readonly invoiceId: string;
}
let ids: Ids;

const invoice = (suffix: string, fields: object = {}) =>
  bodyOf(
    withFields(
      stripeInvoicePaid({
        ...ids,
        invoiceId: `${ids.invoiceId}${suffix}`,
        userId: null,
        amount: 1_000,
        occurredAt: at,
      }),
      ['data', 'object'],
      fields,
    ),
  );
const withCode = (code: string) => ({ discounts: [{ id: 'di_1', promotion_code: code }] });
const earnings = async () =>
  (
    await api.sql<{ ref: string }>`
    select p.ref from commissions c join payments p on p.id = c.payment_id where c.app_id = ${founder.app.id} order by p.ref`
  ).map(({ ref }) => ref);

/** Reports an invoice with a code and its renewal. Registers the code afterwards, as of an hour ago. */
beforeEach(async () => {
  founder = await setUpFounder(api, { purchaseCodes: 'when_unattributed' });
  const id = randomUUID();
  ids = { subscriptionId: `sub_${id}`, customerId: `cus_${id}`, invoiceId: `in_${id}` };
  await founder.stripe(invoice('', withCode('promo_spring')));
  await founder.stripe(invoice('-2'));
  const path = `/apps/${founder.app.id}/affiliates/${founder.affiliateId}/codes`;
  const code = await founder.ok('POST', path, {
    namespace: 'stripe',
    value: 'SPRING20',
    externalId: 'promo_spring',
  });
  await api.sql.transaction(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`update codes set created_at = ${new Date(at - MINUTE_MS)} where id = ${String(code['id'])}`;
  });
});

test('of payments that are evaluated together, a renewal earns after the payment whose code binds its subscription', async () => {
  expect(await earnings()).toEqual([]);
  const rows = await api.sql<{ id: PaymentId }>`
    select id from payments where app_id = ${founder.app.id} order by ref`;
  const result = await evaluateEach(
    {
      ...NO_CALLBACKS,
      sql: api.sql,
      logger: pino({ level: 'silent' }),
      limits: { ...DEFAULT_LIMITS, keyGraceMs: 0 },
    },
    rows.map(({ id }) => id),
  );
  expect(result).toEqual({ evaluated: 2, failed: 0, commissions: 2, hasBound: true });
});

test('of an event that names a renewal and ties the subscription to a user, the renewal earns after the payment with the code', async () => {
  expect(await earnings()).toEqual([]);
  const session = stripeCheckoutSession({
    ...ids,
    invoiceId: `${ids.invoiceId}-2`,
    userId: randomUUID(),
    mode: 'subscription',
    occurredAt: at,
  });
  // A code that nobody has registered: it names the renewal, and binds nobody.
  await founder.stripe(bodyOf(withFields(session, ['data', 'object'], withCode('promo_of_nobody'))));
  expect(await earnings()).toEqual([ids.invoiceId, `${ids.invoiceId}-2`]);
});
