import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { findRollupDifferences } from '../../src/db/rollups.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { bodyOf, revenuecatEvent, stripeInvoicePaid } from '../support/provider-fixtures.ts';
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

interface Totals {
  readonly pending: number;
  readonly matured: number;
  readonly paid: number;
  readonly lifetime: number;
}
interface Overview {
  readonly funnel: Record<string, number>;
  readonly revenueCents: number;
  readonly commissions: Totals;
  readonly earnings: Totals;
  readonly links: readonly { readonly clicks: number }[];
  readonly nextPayoutAt: number | null;
  readonly carriedBalanceCents: number;
}
interface Rows {
  readonly items: readonly Record<string, unknown>[];
}

const get = <T>(path: string) => founder.ok<T>('GET', `/apps/${founder.app.id}${path}`);

/** Counts funnel, revenue and commissions from the base tables instead of the roll-ups. */
async function facts(affiliateId: string | null) {
  return await service.sql.one<Record<string, number>>`
    with own as (select * from affiliates where app_id = ${founder.app.id} and id = coalesce(${affiliateId}, id))
    select (select count(*) from clicks where affiliate_id in (select id from own) and not is_bot) as clicks,
           (select count(*) from attributions where affiliate_id in (select id from own)) as installs,
           (select count(*) from bindings b join attributions a on a.id = b.attribution_id
             where a.affiliate_id in (select id from own)) as identified,
           (select count(*) from bindings b join attributions a on a.id = b.attribution_id
             where a.affiliate_id in (select id from own) and b.first_paid_at is not null) as paid,
           (select coalesce(sum(amount_cents), 0)::bigint from revenue_entries
             where affiliate_id in (select id from own)) as revenue_cents,
           (select coalesce(sum(amount_cents), 0)::bigint from commissions
             where affiliate_id in (select id from own) and status = 'pending') as pending,
           (select coalesce(sum(amount_cents), 0)::bigint from commissions
             where affiliate_id in (select id from own) and status = 'matured') as matured,
           (select coalesce(sum(amount_cents), 0)::bigint from commissions
             where affiliate_id in (select id from own) and status = 'paid') as paid_cents`;
}

// @promise dashboards, funnel-paid-users, lifetime-sum
test('the dashboards show the funnel, revenue and commissions of the base tables, to the cent', async () => {
  const other = await founder.newAffiliate('Second creator');
  const [first, second] = [await founder.customer(), await founder.customer()];
  const third = await founder.customer(other.slug);
  await founder.install(other.slug);
  await founder.ok(
    'POST',
    '/clicks',
    { customerAppId: founder.app.id, slug: founder.slug, claimToken: randomUUID() },
    null,
  );

  // Each purchase earns 20 %. The first affiliate is paid, then one purchase is refunded.
  const transactionId = `t-${randomUUID()}`;
  await founder.purchase(first, 30, { transactionId });
  await founder.purchase(second, 20);
  expect((await founder.exportCsv()).status).toBe(200);
  await founder.refund(first, 30, transactionId);
  await founder.purchase(third, 50, { occurredAt: Date.now() - DAY_MS });
  await founder.purchase(third, 10);

  await eventually('all due commissions have matured', async () => {
    const due = await service.sql`select from commissions where status = 'pending' and due_at <= now()`;
    return due.length === 0;
  });

  const overview = await get<Overview>('/overview');
  const { pending, matured, paidCents, revenueCents, ...funnel } = await facts(null);
  expect(overview.funnel).toEqual(funnel);
  expect(overview.funnel).toEqual({ clicks: 5, installs: 4, identified: 3, paid: 3 });
  expect([overview.revenueCents, revenueCents]).toEqual([8_000, 8_000]);
  expect(overview.commissions).toMatchObject({ pending, matured, paid: paidCents });
  expect(overview.commissions).toMatchObject({ paid: 1_000, lifetime: 1_000 - 600 + 1_000 + 200 });
  expect(overview.commissions.pending + overview.commissions.matured + overview.commissions.paid).toBe(
    overview.commissions.lifetime,
  );

  for (const affiliateId of [founder.affiliateId, other.affiliateId]) {
    const own = await get<Overview>(`/affiliates/${affiliateId}/overview`);
    const { pending: p, matured: m, paidCents: c, revenueCents: _, ...ownFunnel } = await facts(affiliateId);
    expect(own.funnel).toEqual(ownFunnel);
    expect([own.earnings.pending, own.earnings.matured, own.earnings.paid]).toEqual([p, m, c]);
    expect(own.links.map(({ clicks }) => clicks)).toEqual([ownFunnel['clicks']]);
  }
  const [owes, earns] = [
    await get<Overview>(`/affiliates/${founder.affiliateId}/overview`),
    await get<Overview>(`/affiliates/${other.affiliateId}/overview`),
  ];
  expect(owes).toMatchObject({ carriedBalanceCents: -600, nextPayoutAt: null });
  expect(earns.carriedBalanceCents).toBe(0);
  expect(earns.nextPayoutAt).toBeLessThan(Date.now());

  const { points } = await get<{ points: readonly Record<string, number>[] }>(
    `/timeseries?from=${Date.now() - 300 * DAY_MS}&to=${Date.now() + DAY_MS}&interval=month&timezone=Asia/Kathmandu`,
  );
  const sum = (name: string) => points.reduce((total, point) => total + (point[name] ?? 0), 0);
  for (const [name, count] of Object.entries(funnel)) expect([name, sum(name)]).toEqual([name, count]);
  expect([sum('revenueCents'), sum('commissionCents')]).toEqual([8_000, 1_600]);
  expect(await findRollupDifferences(service.sql)).toEqual([]);
});

test('the diagnostics report why a purchase earned nothing and whether the user ids match', async () => {
  const stranger = `stranger-${randomUUID()}`;
  const paid = await founder.purchase(stranger, 10, { occurredAt: Date.now() - 5 * DAY_MS });
  await founder.revenuecat(bodyOf(revenuecatEvent({ userId: 'sandbox-user', environment: 'SANDBOX' })));
  const { items } = await get<Rows>('/diagnostics/unattributed');
  expect(items).toMatchObject([
    {
      eventId: paid.body.eventId,
      customerUserId: stranger,
      likelyCause: 'user_never_identified',
      amountCents: 1_000,
    },
  ]);
  const identity = await get<{ billingOnlySamples: readonly string[] }>('/diagnostics/identity');
  expect(identity).toMatchObject({ verdict: 'ok', overlapCount: 3, truncated: false });
  expect(identity.billingOnlySamples.toSorted()).toEqual(['sandbox-user', stranger].toSorted());

  // After an identify on an attributed device, the purchase earns and leaves the list.
  await founder.identify(await founder.install(founder.slug, Date.now() - 60 * DAY_MS), stranger);
  await eventually('the purchase is re-evaluated', async () => {
    return (await get<Rows>('/diagnostics/unattributed')).items.length === 0;
  });
  expect(await get('/diagnostics/identity')).toMatchObject({ verdict: 'ok', overlapCount: 4 });
});

// @promise cause-user-id-mismatch
test.each([
  ['a different case', (id: string) => id.toUpperCase()],
  ['spaces around it', (id: string) => ` ${id} `],
  ['the prefix of a sign-in service', (id: string) => `auth0|${id}`],
])(
  'a paid user id that differs from an identified one by %s is reported as a mismatch, not as unknown',
  async (_, spelled) => {
    const user = await founder.customer();
    const causeOf = async (userId: string) => {
      const { body } = await founder.stripe(
        bodyOf(stripeInvoicePaid({ userId, amount: 1_000, occurredAt: Date.now() - DAY_MS })),
      );
      const { items } = await get<Rows>('/diagnostics/unattributed?limit=100');
      return items.find((row) => row['eventId'] === body.eventId)?.['likelyCause'];
    };
    expect(await causeOf(spelled(user))).toBe('user_id_mismatch');
    expect(await causeOf(`${user}0`)).toBe('user_never_identified');
    expect(await causeOf(`x${user}`)).toBe('user_never_identified');
    expect(await causeOf(user)).toBeUndefined();
  },
);

// @promise no-raw-payload, event-delivery-listed, delivery-workflow
test('a delivery has the id of its workflow and an error without text of the body or a secret', async () => {
  const user = await founder.customer();
  await runOn(
    service.database.url,
    `create function test_raises() returns trigger language plpgsql as $$
       begin raise exception 'refused: "%" of
%', new.customer_user_id, to_jsonb(new); end $$;
     create trigger test_raises before insert on commissions for each row execute function test_raises();`,
  );
  const { body } = await founder.purchase(user, 10);
  const deliveryOf = async () =>
    (await get<Rows>('/diagnostics/webhooks?limit=1')).items.find(
      (row) => row['processingStatus'] !== 'rejected',
    ) ?? {};
  await eventually('the delivery shows its error', async () => (await deliveryOf())['lastError'] !== null);
  const stuck = await deliveryOf();
  expect(stuck).toMatchObject({
    processingStatus: 'processing',
    lastError: 'writeCommission: PostgresError P0001',
    eventCount: 0,
    signatureValid: true,
  });
  const waiting = (await get<Rows>('/diagnostics/unattributed')).items.find(
    (row) => row['eventId'] === body.eventId,
  );
  expect(waiting).toMatchObject({ likelyCause: 'processing' });
  const handle = service.temporal.workflow.getHandle(String(stuck['workflowId']));
  expect((await handle.describe()).type).toBe('delivery');
  await runOn(service.database.url, 'drop trigger test_raises on commissions; drop function test_raises()');
  await handle.result();
  expect(await deliveryOf()).toMatchObject({ processingStatus: 'processed', lastError: null, eventCount: 1 });
  expect(body.pending).toBe(true);
});
