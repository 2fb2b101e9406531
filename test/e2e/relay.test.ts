import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { acceptDelivery, claimUnfinishedDeliveries } from '../../src/db/deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import { connect } from '../../src/db/sql.ts';
import type { DeliveryKeys } from '../../src/domain/delivery.ts';
import type { AppId, DeliveryId, SecretId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { RELAY_IN_FLIGHT, startRelay } from '../../temporal/relay.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

/** Workflows that do nothing, on a reachable server. */
const NO_WORKFLOWS = {
  isReachable: () => true,
  healBinding: () => {},
  startConvert: () => {},
  startReprocess: () => {},
};

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService({ settings: { relay: { overdueMs: 300, pauseMs: 60_000 } } });
  founder = await setUpFounder(service);
});
afterAll(async () => {
  await expectConsistentLedger(service.sql);
  await service.close();
});

async function amountsOf(affiliateId: string): Promise<number[]> {
  const rows = await service.sql<{ amount: number }>`
    select amount_cents as amount from commissions where affiliate_id = ${affiliateId} order by id`;
  return rows.map((row) => row.amount);
}

/** Stores a signed delivery in the inbox as the webhook endpoint does, without starting its workflow. */
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

describe('the outbox relay', () => {
  // @promise relay-after-30-s
  test('the relay starts a delivery whose workflow was never started', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }));
    await accept(founder, body, Date.now() - 60_000);
    await service.relay?.round();
    await eventually('the delivery has earned', async () => (await amountsOf(affiliateId)).length === 1);
  });

  // @promise relay-after-30-s
  test('the relay starts deliveries without an outcome after thirty seconds, and no younger ones', async () => {
    const { sql } = service;
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    const [young, old] = [
      await accept(founder, body, Date.now() - 25_000),
      await accept(founder, body, Date.now() - 31_000),
    ];
    const started: DeliveryId[] = [];
    const runDelivery = async ({ deliveryId: id }: DeliveryKeys) => {
      started.push(id);
      return 'started' as const;
    };
    const workflows = { ...NO_WORKFLOWS, runDelivery };
    const relay = startRelay({ sql, workflows, logger: pino({ level: 'silent' }) });
    // The first round may already be running.
    await relay.round();
    await relay.stop();
    expect(started).toContain(old);
    expect(started).not.toContain(young);
  });

  // @promise relay-paced-by-capacity
  test('a round of the relay starts the whole backlog, and the next delivery as soon as one in flight has ended', async () => {
    const other = await setUpFounder(service);
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    const backlog = 110;
    const accepted = await Promise.all(
      Array.from({ length: backlog }, () => accept(other, body, Date.now() - 60_000)),
    );
    const started = new Set<DeliveryId>();
    let inFlight = 0;
    let most = 0;
    const runDelivery = async ({ deliveryId: id }: DeliveryKeys) => {
      started.add(id);
      inFlight += 1;
      most = Math.max(most, inFlight);
      // Temporal has it at once; a slow one must not hold up the others.
      await sleep(started.size === 1 ? 500 : 2);
      inFlight -= 1;
      return 'started' as const;
    };
    const relay = startRelay({
      sql: service.sql,
      workflows: { ...NO_WORKFLOWS, runDelivery },
      logger: pino({ level: 'silent' }),
      pauseMs: 60_000,
    });
    await eventually('all were started', async () => accepted.every((id) => started.has(id))).finally(
      relay.stop,
    );
    expect(most).toBe(RELAY_IN_FLIGHT);
  });

  test('a round of the relay ends when Temporal stops taking deliveries, and leaves the rest unclaimed', async () => {
    const other = await setUpFounder(service);
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    await Promise.all(Array.from({ length: 60 }, () => accept(other, body, Date.now() - 60_000)));
    let tried = 0;
    const runDelivery = async () => {
      tried += 1;
      return 'refused' as const;
    };
    const relay = startRelay({
      sql: service.sql,
      workflows: { ...NO_WORKFLOWS, runDelivery },
      logger: pino({ level: 'silent' }),
      pauseMs: 60_000,
    });
    await eventually('Temporal refused', async () => tried > 0).finally(relay.stop);
    expect(tried).toBeLessThanOrEqual(RELAY_IN_FLIGHT);
    const { unclaimed } = await service.sql.one<{ unclaimed: number }>`
      select count(*)::int as unclaimed from deliveries
       where app_id = ${other.app.id} and relayed_at is null`;
    expect(unclaimed).toBeGreaterThan(0);
  });

  test('a round of the relay passes over a hundred running deliveries at most, and then pauses', async () => {
    const other = await setUpFounder(service);
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    await Promise.all(Array.from({ length: 180 }, () => accept(other, body, Date.now() - DAY_MS)));
    let passed = 0;
    const runDelivery = async () => {
      passed += 1;
      return 'running' as const;
    };
    const workflows = { ...NO_WORKFLOWS, runDelivery };
    const relay = startRelay({
      sql: service.sql,
      workflows,
      logger: pino({ level: 'silent' }),
      pauseMs: 60_000,
    });
    await eventually('it passed over some', async () => passed >= 50).finally(relay.stop);
    expect(passed).toBeLessThanOrEqual(100);
    await service.sql`update deliveries set completed_at = now(), processing_status = 'ignored' where app_id = ${other.app.id}`;
  });

  test('a claim of unfinished deliveries takes at most its limit, whatever plan it has', async () => {
    const other = await setUpFounder(service);
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    for (let n = 0; n < 3; n += 1) await accept(other, body, Date.now() - DAY_MS);
    const settings = {
      enable_hashjoin: 'off',
      enable_mergejoin: 'off',
      enable_hashagg: 'off',
      enable_sort: 'off',
    };
    const sql = connect({ url: service.database.url, settings });
    const claimed = await claimUnfinishedDeliveries(sql, 60_000, 2);
    await sql.close();
    expect(claimed).toHaveLength(2);
  });

  // @promise verified-by-accepting-secret
  test('a delivery stored ten days ago is verified at its time of receipt with the secret that accepted it', async () => {
    const other = await setUpFounder(service);
    const { affiliateId, slug } = await other.newAffiliate();
    const user = await other.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }));
    await accept(other, body, Date.now() - 10 * DAY_MS);
    await other.ok('PUT', `/apps/${other.app.id}/webhooks/stripe/secret`, {
      secret: 'whsec_test_after_a_rotation',
      graceSeconds: 0,
    });
    await service.relay?.round();
    await eventually('the delivery has earned', async () => (await amountsOf(affiliateId)).length === 1);
  });

  // @promise verified-by-body-hash
  test('a delivery whose body was changed in the database fails and earns nothing', async () => {
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
