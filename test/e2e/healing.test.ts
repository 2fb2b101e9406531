import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../src/domain/time.ts';
import { backgroundQueue } from '../../temporal/names.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { bodyOf, revenuecatTransfer } from '../support/provider-fixtures.ts';
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

interface Row {
  readonly id: string;
  readonly amountCents: number;
  readonly rateBps: number;
  readonly occurredAt: number;
  readonly dueAt: number;
}
const rowsOf = async (affiliateId: string, of = founder) =>
  (
    await of.ok<{ items: Row[] }>(
      'GET',
      `/apps/${of.app.id}/commissions?limit=100&affiliateId=${affiliateId}`,
    )
  ).items;

/** Waits until all earlier payments of a user are re-evaluated. Returns the id of the binding. */
async function healed(userId: string): Promise<string> {
  let id: string | undefined;
  await eventually(`${userId} is healed`, async () => {
    const row = await service.sql.maybe<{ id: string }>`
      select id from bindings where customer_user_id = ${userId} and healed_at is not null`;
    id = row?.id;
    return id !== undefined;
  });
  return id ?? '';
}

async function causeOf(eventId: string | undefined): Promise<string | null> {
  const { cause } = await service.sql.one<{ cause: string | null }>`
    select likely_cause as cause from events where id = ${eventId ?? ''}`;
  return cause;
}

describe('a late identify', () => {
  // @promise heal-workflow
  test('a late identify heals 101 payments in three pages of one workflow, which Temporal lists by id and type', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = `user-${randomUUID()}`;
    const device = await founder.install(slug, Date.now() - 3 * DAY_MS);
    const payments = 101;
    for (let sent = 0; sent < payments; sent += 10) {
      const batch = Array.from({ length: Math.min(10, payments - sent) }, () =>
        founder.purchase(user, 10, { occurredAt: Date.now() - DAY_MS }),
      );
      for (const { body } of await Promise.all(batch)) expect(body.commissionId ?? null).toBeNull();
    }
    // A response may be `pending`; the identify must come after every evaluation.
    await eventually('every payment is evaluated', async () => {
      const row = await service.sql.one<{ n: number }>`
        select count(*)::int as n from events e join payments p on p.event_id = e.id
         where e.customer_user_id = ${user} and p.evaluated_at is not null`;
      return row.n === payments;
    });
    await founder.identify(device, user);
    const bindingId = await healed(user);
    const { n, distinct, cents } = await service.sql.one<{ n: number; distinct: number; cents: number }>`
      select count(*)::int as n, count(distinct payment_id)::int as distinct, sum(amount_cents)::bigint as cents
        from commissions where affiliate_id = ${affiliateId}`;
    expect({ n, distinct, cents }).toEqual({ n: payments, distinct: payments, cents: payments * 200 });

    const handle = service.temporal.workflow.getHandle(`heal:${bindingId}`);
    expect(await handle.result()).toEqual({ pages: 3 });
    const { events } = await handle.fetchHistory();
    const pages = (events ?? []).filter(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'healPage',
    );
    expect(pages).toHaveLength(3);
    const found: string[] = [];
    await eventually('the workflow is listed', async () => {
      found.length = 0;
      const query = `WorkflowType = 'heal' and TaskQueue = '${backgroundQueue(service.taskQueue)}'`;
      for await (const workflow of service.temporal.workflow.list({ query })) found.push(workflow.workflowId);
      return found.includes(`heal:${bindingId}`);
    });
  });

  // @promise heal-once
  test('repeating the identify, the purchase and the heal creates no second commission', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const user = `user-${randomUUID()}`;
    const device = await founder.install(slug, Date.now() - 3 * DAY_MS);
    const payment = { transactionId: randomUUID(), occurredAt: Date.now() - DAY_MS };
    await founder.purchase(user, 10, payment);
    await founder.identify(device, user);
    const bindingId = await healed(user);
    const before = await rowsOf(affiliateId);
    expect(before).toHaveLength(1);
    await founder.identify(device, user);
    await founder.purchase(user, 10, payment);
    // The binding is healed a moment before its workflow ends, and an open workflow cannot be started.
    await service.temporal.workflow.getHandle(`heal:${bindingId}`).result();
    await service.temporal.workflow.execute('heal', {
      workflowId: `heal:${bindingId}`,
      taskQueue: backgroundQueue(service.taskQueue),
      args: [{ bindingId }],
    });
    expect(await rowsOf(affiliateId)).toEqual(before);
  });

  // @promise heal-current-settings
  test('a healed payment earns with the rate and hold period at the time of the heal', async () => {
    const other = await setUpFounder(service, { commissionRateBps: 2_000, holdPeriodDays: 30 });
    const user = `user-${randomUUID()}`;
    const device = await other.install(other.slug, Date.now() - 3 * DAY_MS);
    const occurredAt = Date.now() - DAY_MS;
    await other.purchase(user, 10, { occurredAt });
    const settings = { commissionRateBps: 1_500, holdPeriodDays: 7 };
    await other.ok('PATCH', `/apps/${other.app.id}/settings`, settings);
    await other.identify(device, user);
    await healed(user);
    expect(await rowsOf(other.affiliateId, other)).toMatchObject([
      { rateBps: 1_500, amountCents: 150, occurredAt, dueAt: occurredAt + 7 * DAY_MS },
    ]);
  });

  // @promise heal-current-settings
  test.each([
    ['paused', 'affiliate_paused'],
    ['removed', 'affiliate_removed'],
  ])(
    'a healed payment of a %s affiliate earns nothing, even when the affiliate is active again',
    async (status, cause) => {
      const { affiliateId, slug } = await founder.newAffiliate();
      const user = `user-${randomUUID()}`;
      const device = await founder.install(slug, Date.now() - 3 * DAY_MS);
      const paid = await founder.purchase(user, 10, { occurredAt: Date.now() - DAY_MS });
      const path = `/apps/${founder.app.id}/affiliates/${affiliateId}`;
      await founder.ok('PATCH', path, { status });
      await founder.identify(device, user);
      await healed(user);
      expect(await causeOf(paid.body.eventId)).toBe(cause);
      await founder.ok('PATCH', path, { status: 'active' });
      await founder.identify(device, user);
      const next = await founder.purchase(user, 20, { occurredAt: Date.now() - DAY_MS });
      expect(next.body.commissionId).toMatch(/^com_/);
      expect(await rowsOf(affiliateId)).toMatchObject([{ amountCents: 400 }]);
    },
  );
});

describe('other sources of a binding', () => {
  // @promise heal-any-source
  test('an install after the identify heals earlier payments', async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const [deviceId, user] = [`device-${randomUUID()}`, `user-${randomUUID()}`];
    const known = { deviceId, customerUserId: user, identifiedAt: Date.now() };
    const { status } = await founder.call('POST', '/sdk/identify', { body: known, key: founder.app.sdkKey });
    expect(status).toBe(404);
    const paid = await founder.purchase(user, 10, { occurredAt: Date.now() - DAY_MS });
    expect(await causeOf(paid.body.eventId)).toBe('user_not_attributed');
    const at = Date.now() - 2 * DAY_MS;
    const opened = { deviceId, affiliateCode: slug, firstOpenAt: at, codeEnteredAt: at };
    await founder.ok('POST', '/sdk/install', opened, founder.app.sdkKey);
    await healed(user);
    expect(await rowsOf(affiliateId)).toMatchObject([{ amountCents: 200 }]);
  });

  // @promise heal-any-source
  test("a transfer heals the receiver's payments after the giver's touch, and none before it", async () => {
    const { affiliateId, slug } = await founder.newAffiliate();
    const clickedAt = Date.now() - 3 * DAY_MS;
    const giver = await founder.customer(slug, clickedAt);
    const receiver = `user-${randomUUID()}`;
    await founder.purchase(receiver, 10, { occurredAt: clickedAt });
    const early = await founder.purchase(receiver, 20, { occurredAt: clickedAt - 1 });
    await founder.revenuecat(bodyOf(revenuecatTransfer({ from: [giver], to: [receiver] })));
    await healed(receiver);
    expect(await rowsOf(affiliateId)).toMatchObject([{ amountCents: 200, occurredAt: clickedAt }]);
    expect(await causeOf(early.body.eventId)).toBe('outside_attribution_window');
  });
});

test('the ledger is consistent after all heals', async () => {
  await expectConsistentLedger(service.sql);
});
