import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import {
  bodyOf,
  stripeInvoicePaid,
  stripeInvoicePaymentPaid,
  stripeRefund,
} from '../support/provider-fixtures.ts';
import { rounds } from '../support/rounds.ts';
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

const ROUNDS = rounds(20, 200);
const CONCURRENT = 10;

/** Calls `run` this many `times`, ten calls concurrently. */
async function repeat(run: (n: number) => Promise<void>, times = ROUNDS): Promise<void> {
  for (let n = 0; n < times; n += CONCURRENT) {
    await Promise.all(Array.from({ length: CONCURRENT }, (_, k) => run(n + k)));
  }
}

/** Waits up to 6 ms, so that both orders and overlaps happen. */
const jitter = () => sleep(Math.random() * 6);

describe('concurrent facts', () => {
  // @promise event-attributed, concurrent-facts
  test('a purchase concurrent with an identify creates exactly one commission in every round', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    await repeat(async () => {
      const user = `user-${randomUUID()}`;
      const device = await founder.install(slug, Date.now() - 2 * DAY_MS);
      const buy = async () => {
        await jitter();
        const response = await founder.purchase(user, 10, { occurredAt: Date.now() - DAY_MS });
        expect(response.status).toBe(200);
      };
      const identify = async () => {
        await jitter();
        await founder.identify(device, user);
      };
      await Promise.all([buy(), identify()]);
    });
    await eventually(`${ROUNDS} commissions`, async () => {
      const { n } = await service.sql.one<{ n: number }>`
          select count(*)::int as n from commissions where affiliate_id = ${affiliateId}`;
      return n === ROUNDS;
    });
    const { events } = await service.sql.one<{ events: number }>`
      select count(*)::int as events from events where app_id = ${founder.app.id} and likely_cause is not null`;
    expect(events).toBe(0);
  });

  // @promise concurrent-facts
  test('a refund concurrent with its payment and their link reverses exactly its share', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    await repeat(async () => {
      const invoiceId = `in_${randomUUID()}`;
      const paymentIntentId = `pi_${randomUUID()}`;
      const occurredAt = Date.now() - DAY_MS;
      const bodies = [
        stripeInvoicePaid({ userId: user, amount: 1_000, invoiceId, occurredAt }),
        stripeRefund({ paymentIntentId, amount: 400, occurredAt }),
        stripeInvoicePaymentPaid({ invoiceId, paymentIntentId, amount: 1_000, occurredAt }),
      ];
      await Promise.all(
        bodies.map(async (body) => {
          await jitter();
          expect((await founder.stripe(bodyOf(body))).status).toBe(200);
        }),
      );
    });
    // An evaluation that has not seen a fact beside it leaves a mark, and the relay has the payment evaluated again.
    await eventually('all deliveries have an outcome, and all payments are evaluated', async () => {
      const { open } = await service.sql.one<{ open: number }>`
        select (select count(*) from deliveries where app_id = ${founder.app.id} and completed_at is null)::int
             + (select count(*) from payments where app_id = ${founder.app.id} and recheck_since is not null)::int as open`;
      return open === 0;
    });
    const sums = await service.sql.one<{ earned: number; reversed: number; payments: number }>`
      select sum(amount_cents) filter (where kind = 'earning')::bigint as earned,
             sum(amount_cents) filter (where kind = 'reversal')::bigint as reversed,
             count(distinct payment_id)::int as payments
        from commissions where affiliate_id = ${affiliateId}`;
    expect(sums).toEqual({ earned: ROUNDS * 200, reversed: ROUNDS * -80, payments: ROUNDS });
  });

  // @promise identify-any-order
  test('an install concurrent with an identify binds the user', async () => {
    const { slug } = await founder.newAffiliate();
    const users: string[] = [];
    await repeat(async () => {
      const user = `user-${randomUUID()}`;
      users.push(user);
      const deviceId = `device-${randomUUID()}`;
      const claimToken = randomUUID();
      await founder.ok('POST', '/clicks', { customerAppId: founder.app.id, slug, claimToken }, null);
      const install = async () => {
        await jitter();
        await founder.ok(
          'POST',
          '/sdk/install',
          { deviceId, claimToken, firstOpenAt: Date.now() },
          founder.app.sdkKey,
        );
      };
      const identify = async () => {
        await jitter();
        const body = { deviceId, customerUserId: user, identifiedAt: Date.now() };
        const { status } = await founder.call('POST', '/sdk/identify', { body, key: founder.app.sdkKey });
        expect([200, 404]).toContain(status);
      };
      await Promise.all([install(), identify()]);
    });
    const { bound } = await service.sql.one<{ bound: number }>`
      select count(*)::int as bound from bindings where customer_user_id = any(${users}::text[])`;
    expect(bound).toBe(ROUNDS);
  });

  // @promise heal-two-devices
  test('two devices that identify one user concurrently create one binding, and each earlier payment earns once', async () => {
    const [ann, bob] = [await founder.newAffiliate(), await founder.newAffiliate()];
    const users: string[] = [];
    const half = ROUNDS / 2;
    await repeat(async () => {
      const user = `user-${randomUUID()}`;
      users.push(user);
      const devices = await Promise.all(
        [ann, bob].map(({ slug }) => founder.install(slug, Date.now() - 2 * DAY_MS)),
      );
      const occurredAt = Date.now() - DAY_MS;
      await Promise.all([5, 10].map((usd) => founder.purchase(user, usd, { occurredAt })));
      const responses = await Promise.all(
        devices.map(async (deviceId) => {
          await jitter();
          const body = { deviceId, customerUserId: user, identifiedAt: Date.now() };
          return await founder.ok<{ attributionId: string }>(
            'POST',
            '/sdk/identify',
            body,
            founder.app.sdkKey,
          );
        }),
      );
      // The answer is about the device. One binding decides about the payments.
      expect(new Set(responses.map(({ attributionId }) => attributionId)).size).toBe(2);
    }, half);
    await eventually('all bindings are healed', async () => {
      const { open } = await service.sql.one<{ open: number }>`
          select count(*)::int as open from bindings
           where customer_user_id = any(${users}::text[]) and healed_at is null`;
      return open === 0;
    });
    const sums = await service.sql.one`
      select count(distinct b.id)::int as bindings, count(c.id)::int as commissions,
             count(distinct c.payment_id)::int as payments, sum(c.amount_cents)::bigint as cents,
             count(*) filter (where c.affiliate_id is distinct from a.affiliate_id)::int as misattributed
        from bindings b
        join attributions a on a.id = b.attribution_id
        left join commissions c on c.binding_id = b.id
       where b.customer_user_id = any(${users}::text[])`;
    expect(sums).toEqual({
      bindings: half,
      commissions: 2 * half,
      payments: 2 * half,
      cents: half * 300,
      misattributed: 0,
    });
  }, 120_000);

  test('the ledger is consistent after concurrent facts', async () => {
    await expectConsistentLedger(service.sql);
  });
});
