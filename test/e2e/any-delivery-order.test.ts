import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { pino } from 'pino';
import { createActivities } from '../../activities/index.ts';
import type { Activities } from '../../activities/index.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { listAppIds } from '../../src/db/apps.ts';
import { finishDelivery } from '../../src/db/deliveries.ts';
import { withRollback } from '../../src/db/with-rollback.ts';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { PROVIDER_NAMES } from '../../src/providers/index.ts';
import type { ProviderName } from '../../src/providers/index.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
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
import { carryOut, centsFound, order } from '../support/reprocess.ts';

// The life of a subscription as each provider tells it, in any order and with any repetition, has to end in the one
// ledger that it gives in order. The whole service but for Temporal: each delivery's activities run in the request.

let api: TestApi;
let activities: Activities;
/** Whether deliveries are read by an earlier version, which understands none of them. */
let isEarlierVersion = false;

beforeAll(async () => {
  api = await startTestApi({
    workflows: {
      processDelivery: async (id) => {
        if (isEarlierVersion) {
          const reason = 'an earlier version could not read it';
          await finishDelivery(api.sql, id, { status: 'failed', reason, sourceEventId: null, eventCount: 0 });
          return null;
        }
        return await activities.processDelivery(id);
      },
      healBinding: () => {},
      settlePayout: async () => {},
    },
  });
  activities = createActivities({
    sql: api.sql,
    secretBox: createSecretBox([TEST_KEY]),
    logger: pino({ level: 'silent' }),
    onOutcome: () => {},
    onCommissions: () => {},
    onSettled: () => {},
    onBindings: () => {},
    ratesUrl: null,
    withRollback: (work) => withRollback(api.database.url, work),
  });
});
afterAll(async () => {
  await api.close();
});

const START = Date.UTC(2026, 4, 1);
const at = (day: number) => START + day * DAY_MS;

interface Life {
  /** What the provider tells, in the order in which it happened. */
  readonly events: (userId: string, name: string) => Payload[];
  /** Earned, taken back, and revenue that stays, in cents, for each payment in turn; at a rate of 20 %. */
  readonly ledger: readonly (readonly [earned: number, reversed: number, revenue: number])[];
}

const LIVES: Readonly<Record<ProviderName, Life>> = {
  revenuecat: {
    events: (userId, name) => {
      const life = { userId, originalTransactionId: `${name}-1` };
      const tell = (type: string, day: number, over: object) =>
        revenuecatEvent({ ...life, type, occurredAt: at(day), eventId: `${name}-${type}-${day}`, ...over });
      return [
        tell('INITIAL_PURCHASE', 0, { usd: 0, transactionId: `${name}-1`, extra: { period_type: 'TRIAL' } }),
        tell('RENEWAL', 7, { usd: 9.99, transactionId: `${name}-2`, extra: { is_trial_conversion: true } }),
        tell('RENEWAL', 37, { usd: 9.99, transactionId: `${name}-3` }),
        tell('PRODUCT_CHANGE', 38, { usd: 0, transactionId: `${name}-3` }),
        tell('RENEWAL', 39, { usd: 19.99, transactionId: `${name}-4` }),
        tell('BILLING_ISSUE', 60, { usd: 0, transactionId: `${name}-4` }),
        revenuecatRefund({
          ...life,
          usd: 9.99,
          transactionId: `${name}-3`,
          occurredAt: at(61),
          eventId: `${name}-r1`,
        }),
        tell('REFUND_REVERSED', 62, { usd: 9.99, transactionId: `${name}-3` }),
        revenuecatRefund({
          ...life,
          usd: 5,
          transactionId: `${name}-4`,
          occurredAt: at(63),
          eventId: `${name}-r2`,
        }),
        tell('CANCELLATION', 64, {
          usd: 0,
          transactionId: `${name}-4`,
          extra: { cancel_reason: 'UNSUBSCRIBE' },
        }),
        tell('EXPIRATION', 69, { usd: 0, transactionId: `${name}-4` }),
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
      const tell = (type: string, day: number, over: object) =>
        adaptyEvent({
          userId,
          type,
          originalTransactionId: `${name}-1`,
          occurredAt: at(day),
          eventId: `${name}-${type}-${day}`,
          ...over,
        });
      return [
        tell('subscription_started', 0, { usd: 9.99, transactionId: `${name}-1` }),
        tell('subscription_renewed', 30, { usd: 9.99, transactionId: `${name}-2` }),
        tell('subscription_renewal_cancelled', 40, { usd: 9.99, transactionId: `${name}-2` }),
        adaptyRefund({
          userId,
          usd: 9.99,
          transactionId: `${name}-2`,
          occurredAt: at(41),
          eventId: `${name}-refund`,
        }),
        tell('subscription_expired', 60, { usd: 9.99, transactionId: `${name}-2` }),
      ];
    },
    ledger: [
      [200, 0, 999],
      [200, 200, 0],
    ],
  },
  superwall: {
    events: (userId, name) => {
      const tell = (type: string, day: number, over: object) =>
        superwallEvent({
          userId,
          type,
          originalTransactionId: `${name}-1`,
          occurredAt: at(day),
          eventId: `${name}-${type}-${day}`,
          ...over,
        });
      return [
        tell('initial_purchase', 0, { usd: 9.99, transactionId: `${name}-1` }),
        tell('renewal', 30, { usd: 9.99, transactionId: `${name}-2` }),
        tell('cancellation', 40, { usd: 0, transactionId: `${name}-2` }),
        superwallRefund({
          userId,
          usd: 4.99,
          transactionId: `${name}-2`,
          occurredAt: at(41),
          eventId: `${name}-refund`,
        }),
        tell('expiration', 60, { usd: 0, transactionId: `${name}-2` }),
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

interface Place {
  readonly app: TestApp;
  readonly secret: string;
}

/** An app with that provider set up and a user whose purchases earn. */
async function furnish(provider: ProviderName, userId: string): Promise<Place> {
  const app = await newApp(api, undefined, { commissionRateBps: 2000 });
  const secret = fakeSecret(provider);
  const put = await api.call<{ secret?: string }>('PUT', `/apps/${app.appId}/webhooks/${provider}/secret`, {
    key: app.key,
    body: { environment: 'production', ...(secret === null ? {} : { secret }) },
  });
  const affiliateCode = await newAffiliate(api, app);
  const device = { deviceId: userId };
  const install = { ...device, affiliateCode, firstOpenAt: START - DAY_MS };
  expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install })).status).toBe(200);
  const identify = { ...device, customerUserId: userId, identifiedAt: START - DAY_MS };
  expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify })).status).toBe(200);
  return { app, secret: secret ?? put.body.secret ?? '' };
}

async function ledgerOf({ app }: Place): Promise<number[][]> {
  const rows = await api.sql<{ earned: number; reversed: number; revenue: number }>`
    select p.earned_cents as earned, p.reversed_cents as reversed,
           coalesce((select sum(v.amount_cents)::bigint from revenue_entries v where v.payment_id = p.id), 0) as revenue
      from payments p where p.app_id = ${app.appId} order by p.occurred_at`;
  return rows.map(({ earned, reversed, revenue }) => [earned, reversed, revenue]);
}

describe.each(PROVIDER_NAMES.map((provider) => [provider] as const))('%s', (provider) => {
  const { events, ledger } = LIVES[provider];

  async function tell(arrivals: readonly number[]): Promise<Place> {
    const name = randomUUID().slice(0, 8);
    const userId = `user-${name}`;
    const place = await furnish(provider, userId);
    const told = events(userId, name).map((payload) => bodyOf(payload));
    // Providers sign as of now, and one of them refuses what comes from the future. The user was bound before.
    api.clock.now = Date.now() + 1;
    for (const index of arrivals) {
      const body = told[index] ?? Buffer.alloc(0);
      const answer = await api.call('POST', `/webhooks/${provider}/${place.app.appId}`, {
        body: body.toString(),
        headers: PROOFS[provider](body, place.secret),
      });
      expect(answer.status).toBe(200);
    }
    return place;
  }

  const indexes = events('u', 'n').map((_, index) => index);
  const anyArrivals = fc
    .tuple(
      fc.shuffledSubarray(indexes, { minLength: indexes.length }),
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(...indexes)), { maxLength: 4 }),
    )
    .map(([once, repeats]) =>
      repeats.reduce(
        (sequence, [place, index]) => sequence.toSpliced(place % (sequence.length + 1), 0, index),
        once,
      ),
    );

  test('the life of a subscription gives the ledger that it should', async () => {
    expect(await ledgerOf(await tell(indexes))).toEqual(ledger);
  });

  test('it gives the same in any order of arrival, with any repetition', async () => {
    await fc.assert(
      fc.asyncProperty(anyArrivals, async (arrivals) => {
        expect(await ledgerOf(await tell(arrivals))).toEqual(ledger);
      }),
      { numRuns: 25 },
    );
  }, 120_000);

  // @promise dry-run-equals-run
  test('it gives the same when a reprocess reads what an earlier version could not, as the dry run had said', async () => {
    await fc.assert(
      fc.asyncProperty(anyArrivals, async (arrivals) => {
        isEarlierVersion = true;
        const place = await tell(arrivals).finally(() => {
          isEarlierVersion = false;
        });
        const { appId } = place.app;
        expect(await ledgerOf(place)).toEqual([]);
        const dry = await carryOut(api.sql, activities, await order(api.sql, appId, { dryRun: true }));
        expect(await ledgerOf(place)).toEqual([]);
        const real = await carryOut(api.sql, activities, await order(api.sql, appId));
        expect(await ledgerOf(place)).toEqual(ledger);
        expect(real).toMatchObject({ seen: arrivals.length, changed: dry.changed });
        const told = ({ found }: typeof real) =>
          found.map(({ deliveryId, changes }) => ({ deliveryId, changes }));
        expect(told(dry)).toEqual(told(real));
        const sums = ledger.map(([earned, reversed, revenue]) => [earned - reversed, revenue]);
        expect(centsFound(dry, 'commission')).toBe(sums.reduce((sum, [net = 0]) => sum + net, 0));
        expect(centsFound(dry, 'revenue')).toBe(sums.reduce((sum, [, revenue = 0]) => sum + revenue, 0));
      }),
      { numRuns: 5 },
    );
  }, 120_000);
});

// @promise reprocess-nothing-to-do
test('a reprocess of what this version processed finds nothing to change, whatever came in whatever order', async () => {
  const apps = await listAppIds(api.sql);
  expect(apps.length).toBeGreaterThan(PROVIDER_NAMES.length * 20);
  // Each app is one arrival of one provider; every fourth is enough to have many of each.
  for (const appId of apps.filter((_, index) => index % 4 === 0)) {
    const { seen, found } = await carryOut(api.sql, activities, await order(api.sql, appId));
    expect({ appId, found }).toEqual({ appId, found: [] });
    expect(seen).toBeGreaterThan(0);
  }
}, 120_000);

test('the roll-ups equal the facts after all of it', async () => {
  expect(await findRollupDifferences(api.sql)).toEqual([]);
});
