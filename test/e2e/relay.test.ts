import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { acceptDelivery, claimUnfinishedDeliveries } from '../../src/db/deliveries.ts';
import { newId } from '../../src/db/new-id.ts';
import { cancelReprocessRun, finishReprocessRun } from '../../src/db/reprocess.ts';
import { connect } from '../../src/db/sql.ts';
import type { DeliveryKeys } from '../../src/domain/delivery.ts';
import type { AppId, BindingId, DeliveryId, ReprocessRunId, SecretId } from '../../src/domain/ids.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { runAdminIn } from '../support/run-admin.ts';
import { HEALS_IN_FLIGHT, RELAY_IN_FLIGHT, startRelay } from '../../temporal/relay.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { requestRun } from '../support/reprocess.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

/** Workflows that do nothing, on a reachable server. */
const NO_WORKFLOWS = {
  isReachable: () => true,
  runHeal: async () => 'running' as const,
  runWebhook: async () => 'running' as const,
  runEmail: async () => 'running' as const,
  startInBackground: () => {},
  startPayoutRun: () => {},
  startReprocess: () => {},
};

let service: TestService;
let founder: Founder;

beforeAll(async () => {
  service = await startTestService({
    settings: { relay: { overdueMs: 300, pauseMs: DAY_MS }, erasureSettleMs: 100 },
  });
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

/** Stores a signed delivery in the webhookCache as the webhook endpoint does, without starting its workflow. */
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
    currentSecretId: null,
    secretId: secret.id,
    proof: { kind: 'headers', headers: { 'stripe-signature': signature } },
    bodySha256: createHash('sha256').update(body).digest(),
    body: stored,
  });
  return deliveryId;
}

describe('the outbox relay', () => {
  // @promise recover-command
  test('tributary recover starts what the relay claimed a moment ago, and nothing the second time', async () => {
    const { sql } = service;
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    // An app of its own: a webhook of an app with an erasure is stored only with the hashes of its texts.
    const other = await setUpFounder(service);
    const deliveryId = await accept(
      founder,
      bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000, occurredAt: Date.now() - 40 * DAY_MS })),
      Date.now(),
    );
    const erasure = await other.ok<{ erasureId: string }>(
      'DELETE',
      `/apps/${other.app.id}/users/${await other.customer()}`,
    );
    await sql`update deliveries set relayed_at = now() where id = ${deliveryId}`;
    await sql`update erasures set relayed_at = now() where id = ${erasure.erasureId}`;
    const recover = async () => {
      const { status, out } = await runAdminIn({ DATABASE_URL: service.database.url }, 'recover', '--json');
      return {
        status,
        ...(JSON.parse(out) as { open: object; left: object }),
      };
    };
    const none = { deliveries: 0, erasures: 0 };
    expect(await recover()).toMatchObject({ status: 0, open: { deliveries: 1, erasures: 1 }, left: none });
    await eventually('the delivery has earned', async () => (await amountsOf(affiliateId)).length === 1);
    await eventually('the erasure is complete', async () => {
      const { status } = await other.ok<{ status: string }>(
        'GET',
        `/apps/${other.app.id}/erasures/${erasure.erasureId}`,
      );
      return status === 'complete';
    });
    expect(await recover()).toMatchObject({ status: 0, open: none, left: none });
    expect(await amountsOf(affiliateId)).toEqual([200]);
  });

  // @promise relay-after-30-s
  test('the relay starts a delivery whose workflow was never started', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }));
    await accept(founder, body, Date.now() - 60_000);
    await eventually('the delivery has earned', async () => {
      await service.relay.round();
      return (await amountsOf(affiliateId)).length === 1;
    });
  });

  // @promise relay-after-30-s
  test('the relay starts deliveries without an outcome after thirty seconds, and no younger ones', async () => {
    const { sql } = service;
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    const started: DeliveryId[] = [];
    const runDelivery = async ({ deliveryId: id }: DeliveryKeys) => {
      started.push(id);
      return 'started' as const;
    };
    const workflows = { ...NO_WORKFLOWS, runDelivery };
    /** Runs rounds beside a young delivery and an old one. Returns both, and for how long the young one was there, ms. */
    const runRounds = async () => {
      const [begin, now] = [performance.now(), Date.now()];
      const [young, old] = [
        await accept(founder, body, now - 25_000),
        await accept(founder, body, now - 31_000),
      ];
      const relay = startRelay({ sql, workflows, logger: pino({ level: 'silent' }) });
      // The first round may already be running.
      await relay.round();
      await relay.stop();
      return { young, old, tookMs: performance.now() - begin };
    };
    let { young, old, tookMs } = await runRounds();
    // On a machine that stalls for a moment the young one becomes old.
    for (let again = 0; again < 3 && tookMs >= 4_500; again += 1)
      ({ young, old, tookMs } = await runRounds());
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

  // @promise relay-paced-by-capacity
  test('the relay starts a heal when one in flight has ended, and claims no more than it starts soon', async () => {
    const other = await setUpFounder(service);
    const backlog = 70;
    await other.customer();
    const overdue = service.sql.fragment`app_id = ${other.app.id}`;
    const ids = Array.from({ length: backlog }, () => newId('binding'));
    await service.sql`
      insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, created_at)
      select x.id, b.app_id, x.id, b.attribution_id, b.identified_at, now() - interval '1 day'
        from bindings b, unnest(${ids}::text[]) x (id) where b.${overdue}`;
    const healed = new Set<BindingId>();
    let [inFlight, most, mostClaimed] = [0, 0, 0];
    const runHeal = async (id: BindingId) => {
      inFlight += 1;
      most = Math.max(most, inFlight);
      const { claimed } = await service.sql.one<{ claimed: number }>`
        select count(*)::int as claimed from bindings
         where ${overdue} and healed_at is null and relayed_at > now() - interval '1 hour'`;
      mostClaimed = Math.max(mostClaimed, claimed);
      await service.sql`update bindings set healed_at = now() where id = ${id}`;
      healed.add(id);
      inFlight -= 1;
      return 'started' as const;
    };
    const relay = startRelay({
      sql: service.sql,
      workflows: { ...NO_WORKFLOWS, runDelivery: async () => 'running' as const, runHeal },
      logger: pino({ level: 'silent' }),
      pauseMs: 60_000,
    });
    await eventually('all are healed', async () => healed.size >= backlog).finally(relay.stop);
    expect(most).toBe(HEALS_IN_FLIGHT);
    expect(mostClaimed).toBeLessThan(backlog);
  });

  // @promise cancelled-within-seconds
  test('the next round of the relay passes on that a reprocess run was cancelled, once', async () => {
    const id = await requestRun(service.sql, founder.app.id, { dryRun: true });
    const passed: [ReprocessRunId, boolean][] = [];
    const relay = startRelay({
      sql: service.sql,
      workflows: {
        ...NO_WORKFLOWS,
        runDelivery: async () => 'running' as const,
        startPayoutRun: () => {},
        startReprocess: (run) => void passed.push([run.id, run.isCancelled]),
      },
      logger: pino({ level: 'silent' }),
      pauseMs: 60_000,
    });
    await eventually('it was started', async () => passed.length === 1);
    await relay.round();
    expect(await cancelReprocessRun(service.sql, id)).toBe(true);
    await relay.round();
    expect(await cancelReprocessRun(service.sql, id)).toBe(true);
    await relay.round();
    await relay.stop();
    expect(passed).toEqual([
      [id, false],
      [id, true],
    ]);
    await finishReprocessRun(service.sql, id);
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

  test('a round of the relay whose first claim is not full claims no second time', async () => {
    const other = await setUpFounder(service);
    const body = bodyOf(stripeInvoicePaid({ amount: 1_000 }));
    // What the tests before have left.
    await service.sql`update deliveries set relayed_at = now() where completed_at is null`;
    await accept(other, body, Date.now() - DAY_MS);
    let claims = 0;
    const sql = connect({
      url: service.database.url,
      onStatement: ({ text }) => {
        if (/update deliveries\b.*\brelayed_at = /s.test(text)) claims += 1;
      },
    });
    let started = 0;
    const runDelivery = async () => {
      started += 1;
      return 'started' as const;
    };
    const workflows = { ...NO_WORKFLOWS, runDelivery };
    const relay = startRelay({ sql, workflows, logger: pino({ level: 'silent' }), pauseMs: 60_000 });
    await eventually('it was started', async () => started > 0);
    await relay.stop();
    await sql.close();
    expect({ started, claims }).toEqual({ started: 1, claims: 1 });
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

  // @promise durations-by-the-process
  test('a clock that is set back an hour between two rounds of the relay delays no evaluation of a payment', async () => {
    const other = await setUpFounder(service);
    await other.purchase(await other.customer(), 10);
    let converts = 0;
    const workflows = {
      ...NO_WORKFLOWS,
      runDelivery: async () => 'running' as const,
      startInBackground: (name: string) => {
        if (name === 'convert') converts += 1;
      },
    };
    const { now } = Date;
    try {
      Date.now = () => now() + HOUR_MS;
      const { sql } = service;
      const relay = startRelay({
        sql,
        workflows,
        logger: pino({ level: 'silent' }),
        overdueMs: 20,
        pauseMs: DAY_MS,
      });
      const round = async () => {
        await sql`update payments set recheck_since = now() - interval '1 day' where app_id = ${other.app.id}`;
        await sleep(40);
        await relay.round();
        return converts;
      };
      const before = await round();
      Date.now = now;
      const after = await round();
      await relay.stop();
      expect(before).toBeGreaterThan(0);
      expect(after).toBeGreaterThan(before);
    } finally {
      Date.now = now;
    }
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
    await eventually('the delivery has earned', async () => {
      await service.relay.round();
      return (await amountsOf(affiliateId)).length === 1;
    });
  });

  // @promise verified-by-body-hash
  test('a delivery whose body was changed in the database fails and earns nothing', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    const body = bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000 }));
    const changed = Buffer.from(body.toString().replace('1000', '9000'));
    const deliveryId = await accept(founder, body, Date.now() - 60_000, changed);
    await eventually('the delivery has failed', async () => {
      await service.relay.round();
      const row = await service.sql.one<{
        status: string;
      }>`select processing_status as status from deliveries where id = ${deliveryId}`;
      return row.status === 'failed';
    });
    expect(await amountsOf(affiliateId)).toEqual([]);
  });
});
