import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { DAY_MS } from '../../src/domain/time.ts';
import type { heal } from '../../workflows/heal.ts';
import { startChildService } from '../support/child-service.ts';
import type { ChildService } from '../support/child-service.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { isLong } from '../support/rounds.ts';
import { temporalAddress } from '../support/service.ts';
import { untilWaiting } from '../support/waiting.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';

let database: TestDatabase;
let child: ChildService;
let founder: Founder;

beforeAll(async () => {
  database = await createTestDatabase();
  child = await startChildService(database.url);
  founder = await setUpFounder({ sql: database.sql, url: child.url });
});
afterAll(async () => {
  await child.kill();
  await database.drop();
});

async function restart(): Promise<void> {
  child = await startChildService(database.url);
  founder.url = child.url;
}

/** Sends an event until it is processed, as a provider does. */
async function sendUntilProcessed(body: Buffer): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const response = await founder.stripe(body).catch(() => undefined);
    if (response?.status === 200 && response.body.pending === undefined) return;
    await sleep(100);
  }
  throw new Error('not processed after fifty attempts');
}

/** The tokens of clicks that were answered before a kill. */
const answeredClicks: string[] = [];
// The work that a killed process left. Another one completes it: the relay and Temporal start it again after 30 s.
let purchased: { readonly affiliateId: string; readonly purchases: number };
let healing: {
  readonly affiliateId: string;
  readonly payments: number;
  readonly user: string;
  readonly users: string[];
};

interface Earned {
  readonly n: number;
  readonly payments: number;
  readonly cents: number;
}

async function earnedBy(affiliateId: string): Promise<Earned> {
  return await database.sql.one<Earned>`
    select count(*)::int as n, count(distinct payment_id)::int as payments, coalesce(sum(amount_cents), 0)::bigint as cents
      from commissions where affiliate_id = ${affiliateId}`;
}

const bindingsOf = async (users: readonly string[]) =>
  await database.sql<{ id: string; user: string }>`
    select id, customer_user_id as "user" from bindings where customer_user_id = any(${users}::text[])`;

/** Sends a click and notes its token when it is answered. */
async function click(slug: string): Promise<void> {
  const claimToken = randomUUID();
  const body = { customerAppId: founder.app.id, slug, claimToken };
  const response = await founder.call('POST', '/clicks', { body }).catch(() => undefined);
  if (response?.status === 200) answeredClicks.push(claimToken);
}

/** Kills the process at several moments of a burst of webhooks, which are then sent again as a provider does. */
async function killDuringWebhooks(): Promise<void> {
  const { affiliateId, slug } = await founder.newAffiliate();
  const user = await founder.customer(slug);
  let purchases = 0;
  for (const delayMs of isLong ? [3, 12, 25, 60] : [3, 25]) {
    const bodies = Array.from({ length: 12 }, () =>
      bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000, occurredAt: Date.now() - 40 * DAY_MS })),
    );
    purchases += bodies.length;
    await click(slug);
    const sent = bodies.map((body) => founder.stripe(body).catch(() => undefined));
    const clicks = Array.from({ length: 40 }, () => click(slug));
    await sleep(delayMs);
    await child.kill();
    await Promise.all([...sent, ...clicks]);
    await restart();
    await Promise.all(bodies.map(sendUntilProcessed));
  }
  purchased = { affiliateId, purchases };
}

/** The advisory lock that triggers of this test wait for. */
const GATE = 61;

/** Makes the statements wait whose triggers call `test_waits`, until the returned client ends. */
async function closeGate(): Promise<pg.Client> {
  const gate = new pg.Client(database.url);
  await gate.connect();
  await gate.query(`select pg_advisory_lock(${GATE})`);
  return gate;
}

/** Kills the process during an identify, an install and the heal of another identify. */
async function killDuringHeal(): Promise<void> {
  const { affiliateId, slug } = await founder.newAffiliate();
  const at = Date.now() - 3 * DAY_MS;
  const pay = (user: string) => founder.purchase(user, 10, { occurredAt: at + DAY_MS });
  const identify = (deviceId: string, customerUserId: string) =>
    founder.call('POST', '/sdk/identify', {
      key: founder.app.sdkKey,
      body: { deviceId, customerUserId, identifiedAt: at + 1 },
    });
  const [identified, installed, healed] = [randomUUID(), randomUUID(), randomUUID()];
  const [known, fresh, third] = [
    await founder.install(slug, at),
    randomUUID(),
    await founder.install(slug, at),
  ];
  await pay(identified);
  await pay(installed);
  expect((await identify(fresh, installed)).status).toBe(404);
  const many = 110;
  for (let sent = 0; sent < many; sent += 10) {
    await Promise.all(Array.from({ length: 10 }, () => pay(healed)));
  }
  await runOn(
    database.url,
    `create function test_waits() returns trigger language plpgsql as $$
       begin perform pg_advisory_xact_lock_shared(${GATE}); return new; end $$;
     create function test_stalls_shortly() returns trigger language plpgsql as $$ begin perform pg_sleep(0.03); return new; end $$;
     create trigger test_stalls before insert on commissions for each row execute function test_stalls_shortly();`,
  );
  const users = [identified, installed, healed];
  await identify(third, healed);
  await eventually('the heal has started', async () => (await earnedBy(affiliateId)).n > 0);
  const gate = await closeGate();
  // The heal waits as well, before its next commission.
  await runOn(
    database.url,
    `create trigger test_waits before insert on commissions for each row execute function test_waits();
     create trigger test_waits before insert on identities for each row execute function test_waits();
     create trigger test_waits before insert on attributions for each row execute function test_waits();`,
  );
  const install = { deviceId: fresh, affiliateCode: slug, firstOpenAt: at, codeEnteredAt: at };
  const lost = [
    identify(known, identified),
    founder.call('POST', '/sdk/install', { body: install, key: founder.app.sdkKey }),
  ].map((call) => call.catch(() => undefined));
  // The text of a statement is cut off there. A shared one that waits for longer than 250 ms is sent again alone, and then waits on.
  await eventually('Postgres has both calls', async () => {
    const stalled = await database.sql`
      select from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query ~ '^\\s*with (named|claimed) as'
         and query_start < now() - interval '1 second'`;
    return stalled.length === lost.length;
  });
  expect(await bindingsOf(users)).toHaveLength(1);
  expect((await earnedBy(affiliateId)).n).toBeLessThan(many);
  await child.kill();
  expect(await Promise.all(lost)).toEqual([undefined, undefined]);
  await gate.end();
  // Postgres completes statements that it has received. So both calls commit without a response.
  await runOn(
    database.url,
    `drop function test_waits() cascade; drop function test_stalls_shortly() cascade;`,
  );
  expect(await bindingsOf(users)).toHaveLength(3);

  await restart();
  healing = { affiliateId, payments: many + 2, user: healed, users };
}

describe('SIGKILL and SIGTERM', () => {
  beforeAll(async () => {
    await killDuringWebhooks();
    await killDuringHeal();
  }, 240_000);

  // @promise export-killed-process
  test.each([
    ['before the workflow runs', 2, 0],
    ['inside the settling statement', 250, 500],
    ['at about the commit of the payout', 520, 500],
  ])(
    'an export whose process is killed %s pays exactly once, and its Idempotency-Key returns the CSV',
    async (_title, delayMs, stallMs) => {
      const { affiliateId, slug } = await founder.newAffiliate();
      const user = await founder.customer(slug);
      for (let n = 0; n < 3; n += 1)
        await founder.purchase(user, 10, { occurredAt: Date.now() - 40 * DAY_MS });
      await runOn(
        database.url,
        `create or replace function test_stalls() returns trigger language plpgsql as $$ begin perform pg_sleep(${stallMs / 1000}); return new; end $$;
         create or replace trigger test_stalls before insert on payouts for each row execute function test_stalls();`,
      );
      const headers = { 'idempotency-key': randomUUID() };
      const lost = founder.exportCsv(affiliateId, { headers }).catch(() => undefined);
      await sleep(delayMs);
      await child.kill();
      await lost;
      await runOn(database.url, 'drop trigger test_stalls on payouts');
      await restart();
      const response = await founder.exportCsv(affiliateId, { headers });
      expect(response.status).toBe(200);
      expect(response.text.trimEnd().split('\r\n')).toHaveLength(4);
      const after = await founder.exportCsv(affiliateId);
      expect(after.text.trimEnd().split('\r\n')).toHaveLength(1);
      const sums = await database.sql.one<{ payouts: number; total: number; unpaid: number }>`
        select count(*)::int as payouts, sum(total_cents)::bigint as total,
               (select count(*)::int from commissions where affiliate_id = ${affiliateId} and status <> 'paid') as unpaid
          from payouts where affiliate_id = ${affiliateId}`;
      expect(sums).toEqual({ payouts: 1, total: 600, unpaid: 0 });
      await expectConsistentLedger(database.sql);
    },
  );

  // Another process continues a delivery whose process died between its facts and its commission.
  test('every click that was answered before a kill is stored', async () => {
    const stored = await database.sql`
      select from clicks where claim_token = any(${answeredClicks}::text[]::uuid[])`;
    expect(stored).toHaveLength(answeredClicks.length);
    expect(answeredClicks.length).toBeGreaterThan(0);
  });

  // @promise killed-process-no-duplicate
  test('every purchase earns exactly once when the process is killed during webhooks', async () => {
    const { affiliateId, purchases: n } = purchased;
    await eventually('all purchases have earned', async () => (await earnedBy(affiliateId)).n >= n);
    expect(await earnedBy(affiliateId)).toEqual({ n, cents: n * 200, payments: n });
    await expectConsistentLedger(database.sql);
  });

  // @promise heal-after-crash
  test('an identify, an install and a heal complete without another call when the process is killed', async () => {
    const { affiliateId, payments, user: healed, users } = healing;
    await eventually(
      'all payments have earned',
      async () => (await earnedBy(affiliateId)).n >= payments,
      60_000,
    );
    const connection = await Connection.connect({ address: temporalAddress() });
    for (const { id, user } of await bindingsOf(users)) {
      const { pages } = await new Client({ connection }).workflow
        .getHandle<typeof heal>(`heal:${id}`)
        .result();
      // A page that is read again after the kill leaves out what had earned, so that the last page may be gone.
      expect(user === healed ? [2, 3] : [1]).toContain(pages);
    }
    await connection.close();
    expect(await earnedBy(affiliateId)).toEqual({ n: payments, payments, cents: payments * 200 });
    await expectConsistentLedger(database.sql);
  }, 120_000);

  test('SIGTERM completes the requests in flight and ends with exit status 0', async () => {
    const user = await founder.customer();
    const gate = await closeGate();
    await runOn(
      database.url,
      `create function test_waits() returns trigger language plpgsql as $$
         begin perform pg_advisory_xact_lock_shared(${GATE}); return new; end $$;
       create trigger test_waits before insert on deliveries for each row execute function test_waits();`,
    );
    const sent = Array.from({ length: 8 }, () =>
      founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 500 }))),
    );
    // Only a request that has arrived is in flight.
    await untilWaiting(database.sql, sent.length);
    const status = child.stop();
    await gate.end();
    const responses = await Promise.all(sent);
    expect(responses.every((response) => response.status === 200)).toBe(true);
    expect(await status).toBe(0);
  });
});
