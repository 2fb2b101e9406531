import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChildService } from '../support/child-service.ts';
import type { ChildService } from '../support/child-service.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { DAY_MS, eventually, setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { expectSoundLedger } from '../support/sound-ledger.ts';

let database: TestDatabase;
let child: ChildService;
let founder: Founder;

beforeAll(async () => {
  database = await createTestDatabase();
  child = await startChildService(database.url);
  founder = await setUpFounder({ sql: database.sql, url: child.url });
}, 60_000);
afterAll(async () => {
  await child.kill();
  await database.drop();
});

async function restart(): Promise<void> {
  child = await startChildService(database.url);
  founder.url = child.url;
}

/** Sends until it is answered, as a provider would. */
async function insist(body: Buffer): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const answer = await founder.stripe(body).catch(() => undefined);
    if (answer?.status === 200 && answer.body.pending === undefined) return;
    await sleep(100);
  }
  throw new Error('no answer after fifty tries');
}

describe('killed with SIGKILL', () => {
  test('in the middle of webhooks: every purchase earns exactly once', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = await founder.customer(slug);
    let purchases = 0;
    for (const delayMs of [3, 12, 25, 60]) {
      const bodies = Array.from({ length: 12 }, () =>
        bodyOf(stripeInvoicePaid({ userId: user, amount: 1_000, occurredAt: Date.now() - 40 * DAY_MS })),
      );
      purchases += bodies.length;
      const sent = bodies.map((body) => founder.stripe(body).catch(() => undefined));
      await sleep(delayMs);
      await child.kill();
      await Promise.all(sent);
      await restart();
      await Promise.all(bodies.map(insist));
    }
    // A delivery whose process died between its facts and its commission goes on in another process by itself.
    const count = async () =>
      await database.sql.one<{ n: number; cents: number; payments: number }>`
        select count(*)::int as n, coalesce(sum(amount_cents), 0)::bigint as cents, count(distinct payment_id)::int as payments
          from commissions where affiliate_id = ${affiliateId}`;
    await eventually('all purchases have earned', async () => (await count()).n >= purchases, 45_000);
    expect(await count()).toEqual({ n: purchases, cents: purchases * 200, payments: purchases });
    await expectSoundLedger(database.sql);
  }, 120_000);

  test.each([
    ['before the workflow got to it', 2, 0],
    ['inside the money statement', 250, 500],
    ['about when the money was committed', 520, 500],
  ])(
    'in the middle of an export, %s: paid exactly once, and the same key gets the CSV',
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
      const answer = await founder.exportCsv(affiliateId, { headers });
      expect(answer.status).toBe(200);
      expect(answer.body.trimEnd().split('\r\n')).toHaveLength(4);
      const after = await founder.exportCsv(affiliateId);
      expect(after.body.trimEnd().split('\r\n')).toHaveLength(1);
      const sums = await database.sql.one<{ payouts: number; total: number; unpaid: number }>`
        select count(*)::int as payouts, sum(total_cents)::bigint as total,
               (select count(*)::int from commissions where affiliate_id = ${affiliateId} and status <> 'paid') as unpaid
          from payouts where affiliate_id = ${affiliateId}`;
      expect(sums).toEqual({ payouts: 1, total: 600, unpaid: 0 });
      await expectSoundLedger(database.sql);
    },
    60_000,
  );

  test('SIGTERM drains: requests under way are answered and the exit status is 0', async () => {
    const user = await founder.customer();
    const sent = Array.from({ length: 8 }, () =>
      founder.stripe(bodyOf(stripeInvoicePaid({ userId: user, amount: 500 }))),
    );
    await sleep(5);
    const status = child.stop();
    const answers = await Promise.all(sent);
    expect(answers.every((answer) => answer.status === 200)).toBe(true);
    expect(await status).toBe(0);
    await restart();
  }, 60_000);
});
