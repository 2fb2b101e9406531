import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Activities } from '../../activities/index.ts';
import { listAppIds } from '../../src/db/apps.ts';
import { finishDelivery } from '../../src/db/deliveries.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { newAffiliate, newApp } from '../support/api.ts';
import { startProcessingApi } from '../support/processing-api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
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
  stripeDispute,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripeRefund,
  stripeSubscription,
  superwallEvent,
  superwallRefund,
} from '../support/provider-fixtures.ts';
import type { Payload } from '../support/provider-fixtures.ts';
import { cases, rounds } from '../support/rounds.ts';
import { runReprocess, centsFound, requestRun } from '../support/reprocess.ts';

// The events of a subscription, delivered in any order and with any repetition, must create the ledger that they create
// in order. Everything but Temporal is real: the activities of a delivery run during its request.

let api: TestApi;
let activities: Activities;
/** Whether deliveries fail as in an earlier version that could not read them. */
let isEarlierVersion = false;

beforeAll(async () => {
  ({ api, activities } = await startProcessingApi({
    awaitDelivery: async ({ deliveryId }, run) => {
      if (!isEarlierVersion) return await run();
      const reason = 'an earlier version could not read it';
      await finishDelivery(api.sql, deliveryId, {
        status: 'failed',
        reason,
        sourceEventId: null,
        eventCount: 0,
      });
      return null;
    },
  }));
});
afterAll(async () => {
  await api.close();
});

const START = Date.UTC(2026, 4, 1);
const at = (day: number) => START + day * DAY_MS;

interface Lifecycle {
  /** Returns the payloads in order of occurrence. */
  readonly events: (userId: string, name: string) => Payload[];
  /** For each payment in order: earned, reversed and net revenue in cents, at a rate of 20 %. */
  readonly ledger: readonly (readonly [earned: number, reversed: number, revenue: number])[];
}

const LIFECYCLES: Readonly<Record<ProviderName, Lifecycle>> = {
  revenuecat: {
    events: (userId, name) => {
      const subscription = { userId, originalTransactionId: `${name}-1` };
      const event = (type: string, day: number, over: object) =>
        revenuecatEvent({
          ...subscription,
          type,
          occurredAt: at(day),
          eventId: `${name}-${type}-${day}`,
          ...over,
        });
      return [
        event('INITIAL_PURCHASE', 0, { usd: 0, transactionId: `${name}-1`, extra: { period_type: 'TRIAL' } }),
        event('RENEWAL', 7, { usd: 9.99, transactionId: `${name}-2`, extra: { is_trial_conversion: true } }),
        event('RENEWAL', 37, { usd: 9.99, transactionId: `${name}-3` }),
        event('PRODUCT_CHANGE', 38, { usd: 0, transactionId: `${name}-3` }),
        event('RENEWAL', 39, { usd: 19.99, transactionId: `${name}-4` }),
        event('BILLING_ISSUE', 60, { usd: 0, transactionId: `${name}-4` }),
        revenuecatRefund({
          ...subscription,
          usd: 9.99,
          transactionId: `${name}-3`,
          occurredAt: at(61),
          eventId: `${name}-r1`,
        }),
        event('REFUND_REVERSED', 62, { usd: 9.99, transactionId: `${name}-3` }),
        revenuecatRefund({
          ...subscription,
          usd: 5,
          transactionId: `${name}-4`,
          occurredAt: at(63),
          eventId: `${name}-r2`,
        }),
        event('CANCELLATION', 64, {
          usd: 0,
          transactionId: `${name}-4`,
          extra: { cancel_reason: 'UNSUBSCRIBE' },
        }),
        event('EXPIRATION', 69, { usd: 0, transactionId: `${name}-4` }),
      ];
    },
    ledger: [
      [200, 0, 999],
      [200, 0, 999],
      [400, 100, 1499],
    ],
  },
  adapty: {
    events: (userId, name) => {
      const event = (type: string, day: number, over: object) =>
        adaptyEvent({
          userId,
          type,
          originalTransactionId: `${name}-1`,
          occurredAt: at(day),
          eventId: `${name}-${type}-${day}`,
          ...over,
        });
      return [
        event('subscription_started', 0, { usd: 9.99, transactionId: `${name}-1` }),
        event('subscription_renewed', 30, { usd: 9.99, transactionId: `${name}-2` }),
        event('subscription_renewal_cancelled', 40, { usd: 9.99, transactionId: `${name}-2` }),
        adaptyRefund({
          userId,
          usd: 9.99,
          transactionId: `${name}-2`,
          occurredAt: at(41),
          eventId: `${name}-refund`,
        }),
        event('subscription_expired', 60, { usd: 9.99, transactionId: `${name}-2` }),
      ];
    },
    ledger: [
      [200, 0, 999],
      [200, 200, 0],
    ],
  },
  superwall: {
    events: (userId, name) => {
      const event = (type: string, day: number, over: object) =>
        superwallEvent({
          userId,
          type,
          originalTransactionId: `${name}-1`,
          occurredAt: at(day),
          eventId: `${name}-${type}-${day}`,
          ...over,
        });
      return [
        event('initial_purchase', 0, { usd: 9.99, transactionId: `${name}-1` }),
        event('renewal', 30, { usd: 9.99, transactionId: `${name}-2` }),
        event('cancellation', 40, { usd: 0, transactionId: `${name}-2` }),
        superwallRefund({
          userId,
          usd: 4.99,
          transactionId: `${name}-2`,
          occurredAt: at(41),
          eventId: `${name}-refund`,
        }),
        event('expiration', 60, { usd: 0, transactionId: `${name}-2` }),
      ];
    },
    ledger: [
      [200, 0, 999],
      [200, 100, 500],
    ],
  },
  stripe: {
    events: (userId, name) => {
      const [subscriptionId, customerId] = [`sub_${name}`, `cus_${name}`];
      const invoice = (number: number, day: number, amount: number) =>
        stripeInvoicePaid({
          userId,
          subscriptionId,
          customerId,
          amount,
          invoiceId: `in_${name}_${number}`,
          occurredAt: at(day),
          eventId: `evt_${name}_i${number}`,
        });
      const paid = (number: number, day: number, amount: number) =>
        stripeInvoicePaymentPaid({
          invoiceId: `in_${name}_${number}`,
          paymentIntentId: `pi_${name}_${number}`,
          amount,
          occurredAt: at(day),
          eventId: `evt_${name}_p${number}`,
        });
      const refund = (number: number, day: number, amount: number, id: string) =>
        stripeRefund({
          paymentIntentId: `pi_${name}_${number}`,
          chargeId: `ch_${name}_${number}`,
          amount,
          id,
          occurredAt: at(day),
          eventId: `evt_${id}`,
        });
      const dispute = (type: string, status: string, day: number) =>
        stripeDispute({
          type,
          status,
          id: `du_${name}`,
          paymentIntentId: `pi_${name}_2`,
          chargeId: `ch_${name}_2`,
          amount: 2000,
          occurredAt: at(day),
          eventId: `evt_${name}_${status}`,
        });
      return [
        stripeSubscription({
          userId,
          subscriptionId,
          customerId,
          status: 'active',
          occurredAt: at(0),
          eventId: `evt_${name}_s`,
        }),
        invoice(1, 0, 1000),
        paid(1, 0, 1000),
        refund(1, 5, 300, `re_${name}_1`),
        refund(1, 6, 200, `re_${name}_2`),
        invoice(2, 30, 2000),
        paid(2, 30, 2000),
        dispute('charge.dispute.created', 'needs_response', 31),
        dispute('charge.dispute.closed', 'won', 50),
        invoice(3, 60, 2000),
        paid(3, 60, 2000),
        refund(3, 61, 2000, `re_${name}_3`),
      ];
    },
    ledger: [
      [200, 100, 500],
      [400, 0, 2000],
      [400, 400, 0],
    ],
  },
  paddle: {
    events: (userId, name) => {
      const subscriptionId = `sub_${name}`;
      const sale = (number: number, day: number, amount: number) =>
        paddleTransaction({
          userId,
          subscriptionId,
          amount,
          transactionId: `txn_${name}_${number}`,
          occurredAt: at(day),
          eventId: `evt_${name}_t${number}`,
        });
      const adjust = (number: number, day: number, action: string, amount: number) =>
        paddleAdjustment({
          action,
          amount,
          adjustmentId: `adj_${name}_${action}`,
          transactionId: `txn_${name}_${number}`,
          occurredAt: at(day),
          eventId: `evt_${name}_${action}`,
        });
      return [
        paddleSubscription({
          userId,
          subscriptionId,
          type: 'subscription.activated',
          status: 'active',
          occurredAt: at(0),
          eventId: `evt_${name}_s`,
        }),
        sale(1, 0, 1000),
        adjust(1, 3, 'refund', 250),
        sale(2, 30, 2000),
        adjust(2, 31, 'chargeback', 2000),
        adjust(2, 45, 'chargeback_reverse', 2000),
        paddleSubscription({
          userId,
          subscriptionId,
          type: 'subscription.canceled',
          status: 'canceled',
          occurredAt: at(60),
          eventId: `evt_${name}_c`,
        }),
      ];
    },
    ledger: [
      [200, 50, 750],
      [400, 0, 2000],
    ],
  },
};

interface ConfiguredApp {
  readonly app: TestApp;
  readonly secret: string;
}

/** Creates an app with webhooks of the provider and a user whose purchases earn. */
async function setUpApp(provider: ProviderName, userId: string): Promise<ConfiguredApp> {
  const app = await newApp(api, undefined, { commissionRateBps: 2000 });
  const secret = fakeSecret(provider);
  const put = await api.call<{ secret?: string }>('PUT', `/apps/${app.appId}/webhooks/${provider}/secret`, {
    key: app.key,
    body: { environment: 'production', ...(secret === null ? {} : { secret }) },
  });
  const affiliateCode = await newAffiliate(api, app);
  const device = { deviceId: userId };
  const install = { ...device, affiliateCode, firstOpenAt: START - DAY_MS, codeEnteredAt: START - DAY_MS };
  expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install })).status).toBe(200);
  const identify = { ...device, customerUserId: userId, identifiedAt: START - DAY_MS };
  expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify })).status).toBe(200);
  return { app, secret: secret ?? put.body.secret ?? '' };
}

async function ledgerOf({ app }: ConfiguredApp): Promise<number[][]> {
  const rows = await api.sql<{ earned: number; reversed: number; revenue: number }>`
    select p.earned_cents as earned, p.reversed_cents as reversed,
           coalesce((select sum(v.amount_cents)::bigint from revenue_entries v where v.payment_id = p.id), 0) as revenue
      from payments p where p.app_id = ${app.appId} order by p.occurred_at`;
  return rows.map(({ earned, reversed, revenue }) => [earned, reversed, revenue]);
}

describe.each(PROVIDER_NAMES.map((provider) => [provider] as const))('%s', (provider) => {
  const { events, ledger } = LIFECYCLES[provider];

  async function deliver(deliveries: readonly number[]): Promise<ConfiguredApp> {
    const name = randomUUID().slice(0, 8);
    const userId = `user-${name}`;
    const configured = await setUpApp(provider, userId);
    const payloads = events(userId, name).map((payload) => bodyOf(payload));
    // Payloads are signed with the current time, and one provider rejects times in the future.
    api.clock.now = Date.now() + 1;
    for (const index of deliveries) {
      const body = payloads[index] ?? Buffer.alloc(0);
      const response = await api.call('POST', `/webhooks/${provider}/${configured.app.appId}`, {
        body: body.toString(),
        headers: PROOFS[provider](body, configured.secret),
      });
      expect(response.status).toBe(200);
    }
    return configured;
  }

  const indexes = events('u', 'n').map((_, index) => index);
  const anyDeliveries = fc
    .tuple(
      fc.shuffledSubarray(indexes, { minLength: indexes.length }),
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(...indexes)), { maxLength: 4 }),
    )
    .map(([once, repeats]) =>
      repeats.reduce(
        (sequence, [position, index]) => sequence.toSpliced(position % (sequence.length + 1), 0, index),
        once,
      ),
    );

  test(`the events of a ${provider} subscription in order create the expected ledger`, async () => {
    expect(await ledgerOf(await deliver(indexes))).toEqual(ledger);
  });

  test(`the events of a ${provider} subscription in any order and with any repetition create the same ledger`, async () => {
    await fc.assert(
      fc.asyncProperty(anyDeliveries, async (deliveries) => {
        expect(await ledgerOf(await deliver(deliveries))).toEqual(ledger);
      }),
      cases(4, 25),
    );
  }, 120_000);

  // @promise dry-run-equals-run
  test(`a reprocess of failed ${provider} deliveries creates the same ledger, as its dry run reported`, async () => {
    await fc.assert(
      fc.asyncProperty(anyDeliveries, async (deliveries) => {
        isEarlierVersion = true;
        const configured = await deliver(deliveries).finally(() => {
          isEarlierVersion = false;
        });
        const { appId } = configured.app;
        expect(await ledgerOf(configured)).toEqual([]);
        const dry = await runReprocess(
          api.sql,
          activities,
          await requestRun(api.sql, appId, { dryRun: true }),
        );
        expect(await ledgerOf(configured)).toEqual([]);
        const real = await runReprocess(api.sql, activities, await requestRun(api.sql, appId));
        expect(await ledgerOf(configured)).toEqual(ledger);
        expect(real).toMatchObject({ seen: deliveries.length, changed: dry.changed });
        const reported = ({ found }: typeof real) =>
          found.map(({ deliveryId, changes }) => ({ deliveryId, changes }));
        expect(reported(dry)).toEqual(reported(real));
        const sums = ledger.map(([earned, reversed, revenue]) => [earned - reversed, revenue]);
        expect(centsFound(dry, 'commission')).toBe(sums.reduce((sum, [net = 0]) => sum + net, 0));
        expect(centsFound(dry, 'revenue')).toBe(sums.reduce((sum, [, revenue = 0]) => sum + revenue, 0));
      }),
      cases(2, 5),
    );
  }, 120_000);
});

// @promise reprocess-nothing-to-do
test('a reprocess of deliveries that this version processed finds nothing to change', async () => {
  const apps = await listAppIds(api.sql);
  expect(apps.length).toBeGreaterThan(PROVIDER_NAMES.length * rounds(4, 25));
  // Each app has one sequence of deliveries. Every fourth app covers each provider.
  for (const appId of apps.filter((_, index) => index % 4 === 0)) {
    const { seen, found } = await runReprocess(api.sql, activities, await requestRun(api.sql, appId));
    expect({ appId, found }).toEqual({ appId, found: [] });
    expect(seen).toBeGreaterThan(0);
  }
}, 120_000);

test('the roll-ups equal the base tables after all deliveries', async () => {
  expect(await findRollupDifferences(api.sql)).toEqual([]);
});
