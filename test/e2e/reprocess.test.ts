import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { evaluateAndApply } from '../../activities/evaluate.ts';
import { createReprocessActivities } from '../../activities/reprocess.ts';
import type { ReprocessActivities, ReprocessActivityDeps } from '../../activities/reprocess.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { finishDelivery } from '../../src/db/deliveries.ts';
import { recordEventFacts } from '../../src/db/events.ts';
import { loadPayments } from '../../src/db/payments.ts';
import type { NewCommission, StoredPayment } from '../../src/db/payments.ts';
import { withRollback } from '../../src/db/with-rollback.ts';
import {
  cancelReprocessRun,
  claimReprocessRuns,
  findReprocessRun,
  listReprocessedCommissions,
  sumReprocessed,
} from '../../src/db/reprocess.ts';
import { connect, DatabaseUnavailable, instant } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId, DeliveryId, EventId, ReprocessRunId } from '../../src/domain/ids.ts';
import type { NormalizedEvent } from '../../src/domain/events.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { revenuecat } from '../../src/providers/revenuecat/index.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import {
  bodyOf,
  eventOf,
  revenuecatEvent,
  revenuecatRefund,
  revenuecatTransfer,
} from '../support/provider-fixtures.ts';
import { carryOut, centsFound, order } from '../support/reprocess.ts';
import type { Reprocessed } from '../support/reprocess.ts';
import { expectSoundLedger } from '../support/sound-ledger.ts';

// What an earlier version made of a delivery is played by writing its outcome by hand; the delivery itself came through
// the real door, with its bytes and its proof.

let api: TestApi;
let app: TestApp;
let affiliateId: string;
let token: string;
let activities: ReprocessActivities;
let commissions: NewCommission[] = [];

function reprocessing(over: Partial<ReprocessActivityDeps> = {}): ReprocessActivities {
  return createReprocessActivities({
    sql: api.sql,
    secretBox: createSecretBox([TEST_KEY]),
    logger: pino({ level: 'silent' }),
    withRollback: (scene) => withRollback(api.database.url, scene),
    onCommissions: (written) => void commissions.push(...written),
    onBindings: () => {},
    ...over,
  });
}

beforeAll(async () => {
  api = await startTestApi();
  activities = reprocessing();
});
beforeEach(furnish);

/** A new app with RevenueCat and an affiliate. */
async function furnish(): Promise<void> {
  commissions = [];
  api.clock.now = Date.now();
  app = await newApp(api, undefined, {
    commissionRateBps: 2000,
    holdPeriodDays: 30,
    attributionWindowDays: 30,
  });
  affiliateId = await newAffiliate(api, app);
  const answer = await api.call<{ secret: string }>('PUT', `/apps/${app.appId}/webhooks/revenuecat/secret`, {
    key: app.key,
    body: {},
  });
  token = answer.body.secret;
}
afterAll(async () => {
  await expectSoundLedger(api.sql);
  await api.close();
});

/** A user bound to the affiliate as of now, whose touch was `touchedAt`. */
async function bind(userId: string, touchedAt = Date.now() - 60 * DAY_MS): Promise<void> {
  const install = { deviceId: userId, affiliateCode: affiliateId, firstOpenAt: touchedAt };
  expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install })).status).toBe(200);
  const identify = { deviceId: userId, customerUserId: userId, identifiedAt: touchedAt };
  expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify })).status).toBe(200);
}

interface Delivered {
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly event: NormalizedEvent;
}

/** Has a body accepted at the door, as of now, and left without an outcome. */
async function accept(body: Buffer): Promise<Delivered> {
  api.clock.now = Date.now();
  const path = `/webhooks/revenuecat/${app.appId}`;
  const answer = await api.call<{ eventId: EventId }>('POST', path, {
    body: body.toString(),
    headers: { authorization: token },
  });
  expect(answer.status).toBe(200);
  const { eventId } = answer.body;
  const { id } = await api.sql.one<{ id: DeliveryId }>`select id from deliveries where event_id = ${eventId}`;
  return { deliveryId: id, eventId, event: eventOf(revenuecat.parse(body)) };
}

/** A body that an earlier version could not read. */
async function failedOnce(body: Buffer): Promise<Delivered> {
  const delivered = await accept(body);
  const reason = 'an earlier version could not read it';
  await finishDelivery(api.sql, delivered.deliveryId, {
    status: 'failed',
    reason,
    sourceEventId: null,
    eventCount: 0,
  });
  return delivered;
}

/** A body that an earlier version read like this, and found nothing to evaluate in. */
async function readOnceAs(
  body: Buffer,
  over: Partial<NormalizedEvent>,
  outcome: { status: 'processed' | 'ignored'; reason: string | null } = { status: 'processed', reason: null },
): Promise<Delivered> {
  const delivered = await accept(body);
  const { deliveryId, eventId, event } = delivered;
  await recordEventFacts(api.sql, {
    deliveryId,
    eventId,
    appId: app.appId as AppId,
    source: 'revenuecat',
    environment: over.environment ?? 'production',
    receivedAt: Date.now(),
    event: { ...event, ...over },
  });
  await api.sql`
    update events set likely_cause = 'missing_user_id' where id = ${eventId} and likely_cause = 'processing'`;
  await finishDelivery(api.sql, deliveryId, {
    ...outcome,
    sourceEventId: event.sourceEventId,
    eventCount: 1,
  });
  return delivered;
}

const purchase = (userId: string, over: Partial<Parameters<typeof revenuecatEvent>[0]> = {}) =>
  bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt: Date.now() - DAY_MS, ...over }));

const user = () => `user-${randomUUID()}`;

async function reprocess(over: Parameters<typeof order>[2] = {}): Promise<Reprocessed> {
  return await carryOut(api.sql, activities, await order(api.sql, app.appId, over));
}

async function ledger(): Promise<{ kind: string; amountCents: number; eventId: string }[]> {
  return await api.sql`
    select kind, amount_cents, event_id from commissions
     where app_id = ${app.appId} order by created_at, id`;
}

/** Every row of the app that a reprocess could touch, but for the reprocess runs themselves. */
async function everything(): Promise<string> {
  const { rows } = await api.sql.one<{ rows: string }>`
    select jsonb_build_array(
      (select jsonb_agg(to_jsonb(t) order by id) from deliveries t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by id) from events t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by id) from payments t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by payment_id, customer_user_id) from payment_users t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by id) from adjustments t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by id) from commissions t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by payment_id, position) from revenue_entries t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by id) from bindings t where app_id = ${app.appId}),
      (select jsonb_agg(to_jsonb(t) order by event_id, role, customer_user_id) from user_transfers t where app_id = ${app.appId})
    )::text as rows`;
  return rows;
}

const changesOf = ({ found }: Reprocessed, { deliveryId }: Delivered) =>
  found.find((delivery) => delivery.deliveryId === deliveryId)?.changes ?? [];

describe('a delivery that an earlier version could not read', () => {
  // @promise dry-run-changes-nothing
  test('is shown by a dry run with all that it would append, and nothing is changed', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await failedOnce(purchase(userId));
    const before = await everything();
    const reprocessed = await reprocess({ dryRun: true });
    expect(await everything()).toBe(before);
    expect(reprocessed).toMatchObject({ seen: 1, deliveries: 1, changed: 1, applied: 0 });
    expect(changesOf(reprocessed, delivered)).toEqual([
      { what: 'event', stored: null, today: 'purchase, production', action: 'append' },
      { what: 'payment', stored: null, today: '1 more', action: 'append' },
      { what: 'users', stored: null, today: '1 more', action: 'append' },
      {
        what: 'commission',
        stored: null,
        today: 'earning at 2000 bps',
        action: 'append',
        amountCents: 200,
        affiliateId,
      },
      { what: 'revenue', stored: null, today: 'payment', action: 'append', amountCents: 1000 },
      { what: 'status', stored: 'failed', today: 'processed', action: 'append' },
    ]);
    expect(commissions).toEqual([]);
  });

  // @promise reprocess-appends-once
  test('earns when it is reprocessed, once, and a second reprocess finds nothing', async () => {
    const userId = user();
    await bind(userId);
    const { deliveryId, eventId } = await failedOnce(purchase(userId));
    expect(await reprocess()).toMatchObject({ changed: 1, applied: 1 });
    expect(await ledger()).toEqual([{ kind: 'earning', amountCents: 200, eventId }]);
    expect(commissions).toMatchObject([{ eventId }]);
    const { commissionId } = commissions[0] ?? {};
    expect(
      await api.sql.one`
        select processing_status as status, last_error as error, event_count as events, commission_id
          from deliveries where id = ${deliveryId}`,
    ).toEqual({ status: 'processed', error: null, events: 1, commissionId });
    const after = await everything();
    expect(await reprocess()).toMatchObject({ seen: 1, changed: 0, applied: 0 });
    expect(await everything()).toBe(after);
  });

  test('that came twice under one event id earns once, and the second is a duplicate', async () => {
    const userId = user();
    await bind(userId);
    const body = purchase(userId);
    const [first, second] = [await failedOnce(body), await failedOnce(body)];
    const dry = await reprocess({ dryRun: true });
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
    expect(await ledger()).toEqual([{ kind: 'earning', amountCents: 200, eventId: first.eventId }]);
    expect(changesOf(real, second)).toEqual([
      { what: 'status', stored: 'failed', today: 'duplicate', action: 'append' },
    ]);
  });

  test('is attributed by the rules of a late look: a binding that came after it has to cover it', async () => {
    const [early, covered, tooOld, beforeTouch] = [user(), user(), user(), user()];
    await bind(early, Date.now() - 1000);
    for (const [userId, age] of [
      [early, 50 * DAY_MS],
      [covered, 29 * DAY_MS],
      [tooOld, 31 * DAY_MS],
      [beforeTouch, 5 * DAY_MS],
    ] as const) {
      await failedOnce(purchase(userId, { occurredAt: Date.now() - age }));
    }
    await bind(covered);
    await bind(tooOld);
    await bind(beforeTouch, Date.now() - 4 * DAY_MS);
    await reprocess();
    const earning = await api.sql<{ userId: string }>`
      select customer_user_id as user_id from commissions where app_id = ${app.appId}`;
    expect(earning.map(({ userId }) => userId).toSorted()).toEqual([early, covered].toSorted());
    const causes = await api.sql`
      select likely_cause as cause from events where app_id = ${app.appId} and likely_cause is not null`;
    expect(causes).toEqual([
      { cause: 'outside_attribution_window' },
      { cause: 'outside_attribution_window' },
    ]);
  });

  test('earns nothing while its stored bytes or its proof are not what was accepted', async () => {
    const userId = user();
    await bind(userId);
    const { deliveryId } = await failedOnce(purchase(userId));
    const forged = purchase(userId, { usd: 1000 });
    await api.sql`update delivery_bodies set body = ${forged}::bytea where delivery_id = ${deliveryId}`;
    const reprocessed = await reprocess();
    expect(reprocessed).toMatchObject({ changed: 1, applied: 0 });
    expect(reprocessed.found[0]?.changes).toEqual([
      {
        what: 'refused',
        stored: null,
        today: expect.stringContaining('does not match its signature'),
        action: 'keep',
      },
    ]);
    expect(await ledger()).toEqual([]);
  });

  test('that cannot be read today either is left as it is', async () => {
    const { deliveryId } = await failedOnce(purchase(user()));
    await api.sql`
      with body as (select '{}'::bytea as bytes)
      , changed as (update delivery_bodies set body = bytes from body where delivery_id = ${deliveryId})
      update deliveries set body_sha256 = sha256(bytes) from body where id = ${deliveryId}`;
    const before = await everything();
    expect(await reprocess()).toMatchObject({ seen: 1, changed: 0 });
    expect(await everything()).toBe(before);
  });
});

describe('a delivery that an earlier version read otherwise', () => {
  // @promise reprocess-never-edits
  test('with another amount: the difference is told and nothing is appended or edited', async () => {
    const userId = user();
    await bind(userId);
    const body = purchase(userId);
    const delivered = await readOnceAs(body, {
      payment: {
        store: 'app_store',
        ref: eventOf(revenuecat.parse(body)).payment?.ref ?? '',
        currency: 'USD',
        amountMinor: 900,
        usdCents: 900,
      },
    });
    const before = await everything();
    const reprocessed = await reprocess();
    expect(changesOf(reprocessed, delivered)).toEqual([
      { what: 'event.amountMinor', stored: '900', today: '1000', action: 'keep' },
      { what: 'event.usdCents', stored: '900', today: '1000', action: 'keep' },
    ]);
    expect(reprocessed).toMatchObject({ changed: 1, applied: 0 });
    expect(await everything()).toBe(before);
  });

  test('without its user: the user is appended and the payment finds its creator', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await readOnceAs(purchase(userId), { userIds: [] });
    const reprocessed = await reprocess();
    expect(changesOf(reprocessed, delivered)).toMatchObject([
      { what: 'users' },
      { what: 'commission', amountCents: 200 },
      { what: 'revenue', amountCents: 1000 },
    ]);
    expect(await ledger()).toMatchObject([{ kind: 'earning', amountCents: 200 }]);
  });

  test('as something without money: the payment is appended, and what the event had said stays', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await readOnceAs(
      purchase(userId),
      { kind: 'other', payment: null },
      { status: 'ignored', reason: 'an earlier version knew no such event' },
    );
    const reprocessed = await reprocess();
    expect(changesOf(reprocessed, delivered).map(({ what, action }) => [what, action])).toEqual([
      ['event.kind', 'keep'],
      ['payment', 'append'],
      ['users', 'append'],
      ['commission', 'append'],
      ['revenue', 'append'],
      ['status', 'append'],
    ]);
    expect(
      await api.sql`select kind, amount_cents as cents from events where id = ${delivered.eventId}`,
    ).toEqual([{ kind: 'other', cents: 1000 }]);
    const explained = await api.call<{ earns: boolean }>(
      'GET',
      `/apps/${app.appId}/events/${delivered.eventId}/explanation`,
      { key: app.key },
    );
    expect(explained.status).toBe(200);
    expect(await reprocess()).toMatchObject({ changed: 1, applied: 0 });
  });

  test('as sandbox money: it stays sandbox, and earns nothing', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await readOnceAs(purchase(userId), { environment: 'sandbox' });
    expect(changesOf(await reprocess(), delivered)).toEqual([
      { what: 'event.environment', stored: 'sandbox', today: 'production', action: 'keep' },
    ]);
    expect(await ledger()).toEqual([]);
  });
});

describe('money', () => {
  test('of a refund that was read under another name then is not taken back twice', async () => {
    const userId = user();
    await bind(userId);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await failedOnce(purchase(userId, { transactionId, occurredAt }));
    await reprocess();
    const body = bodyOf(revenuecatRefund({ userId, usd: 5, transactionId, occurredAt: occurredAt + 1000 }));
    const { adjustment } = eventOf(revenuecat.parse(body));
    if (adjustment === null) throw new Error('the refund has no money');
    const refund = await readOnceAs(body, { adjustment: { ...adjustment, ref: 'named otherwise' } });
    const evaluated = await order(api.sql, app.appId, { deliveryId: refund.deliveryId });
    expect(centsFound(await carryOut(api.sql, activities, evaluated), 'commission')).toBe(-100);
    expect(await reprocess()).toMatchObject({ applied: 0 });
    expect(await ledger()).toMatchObject([{ amountCents: 200 }, { amountCents: -100 }]);
    expect(await api.sql`select ref from adjustments where app_id = ${app.appId}`).toEqual([
      { ref: 'named otherwise' },
    ]);
  });

  // @promise reprocess-report-from-ledger
  test('that came between the plan and its doing is reported from the ledger, not from the plan', async () => {
    const userId = user();
    await failedOnce(purchase(userId));
    const id = await order(api.sql, app.appId);
    let isBound = false;
    const meanwhile = reprocessing({
      withRollback: async (scene) => {
        const result = await withRollback(api.database.url, scene);
        if (!isBound) await bind(userId, Date.now() - 20 * DAY_MS);
        isBound = true;
        return result;
      },
    });
    const reprocessed = await carryOut(api.sql, meanwhile, id);
    expect(centsFound(reprocessed, 'commission')).toBe(0);
    expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
    expect(await sumReprocessed(api.sql, id)).toEqual({ commissionCents: 200, revenueCents: 1000 });
    expect(await listReprocessedCommissions(api.sql, id, null, 10)).toMatchObject([
      { affiliateId, kind: 'earning', amountCents: 200 },
    ]);
  });

  // @promise reprocess-report-from-ledger
  test('of two reprocess runs at once is appended once, and each reports its own', async () => {
    const userId = user();
    await bind(userId);
    for (let n = 0; n < 30; n += 1) await failedOnce(purchase(userId));
    const ids = [await order(api.sql, app.appId), await order(api.sql, app.appId)];
    // Where they wait for each other for too long, one tries again, as its workflow would.
    const untilDone = async (id: ReprocessRunId): Promise<void> => {
      for (;;) {
        const progress = await activities.reprocessPage(id).catch(() => null);
        if (progress?.done === true) return;
      }
    };
    await Promise.all(ids.map(untilDone));
    expect(await ledger()).toHaveLength(30);
    const sums = await Promise.all(ids.map(async (id) => await sumReprocessed(api.sql, id)));
    expect(sums.reduce((sum, { commissionCents }) => sum + commissionCents, 0)).toBe(6_000);
    expect(sums.reduce((sum, { revenueCents }) => sum + revenueCents, 0)).toBe(30_000);
  });

  test('of one payment under two names is earned once, also when one was looked at before they were tied together', async () => {
    for (let n = 0; n < 20; n += 1) {
      await furnish();
      const userId = user();
      const refs = [randomUUID(), randomUUID()];
      for (const transactionId of refs) await readOnceAs(purchase(userId, { transactionId }), {});
      await bind(userId);
      const paid = { appId: app.appId as AppId, environment: 'production', store: 'app_store' } as const;
      const alone = await loadPayments(api.sql, { ...paid, refs: refs.slice(0, 1) });
      await api.sql`
        insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
        values (${app.appId}, 'production', 'app_store', ${refs[0]}, ${refs[1]})`;
      const tied = await loadPayments(api.sql, { ...paid, refs: refs.slice(1) });
      // One after the other first, then at once.
      const evaluate = async (payment: StoredPayment) => await evaluateAndApply(api.sql, payment, null);
      if (n === 0) for (const payment of [...alone, ...tied]) await evaluate(payment);
      else await Promise.all([...alone, ...tied].map(evaluate));
      expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
    }
  });

  test('of one payment under two names is earned once, also when both are evaluated at once', async () => {
    for (let n = 0; n < 12; n += 1) {
      await furnish();
      const userId = user();
      const refs = [randomUUID(), randomUUID()];
      for (const transactionId of refs) await readOnceAs(purchase(userId, { transactionId }), {});
      await api.sql`
        insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
        values (${app.appId}, 'production', 'app_store', ${refs[0]}, ${refs[1]})`;
      await bind(userId);
      const appId = app.appId as AppId;
      const twins = await loadPayments(api.sql, {
        appId,
        environment: 'production',
        store: 'app_store',
        refs,
      });
      expect(twins).toHaveLength(2);
      await Promise.all(twins.map(async (payment) => await evaluateAndApply(api.sql, payment, null)));
      expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
    }
  });

  test('that a reprocess appended is told for ever: what it found is neither edited nor removed', async () => {
    await failedOnce(purchase(user()));
    await reprocess();
    const edit = api.sql`update reprocess_changes set changes = '[{}]' where app_id = ${app.appId}`;
    await expect(edit).rejects.toThrow('never edited');
    for (const table of ['reprocess_changes', 'reprocess_runs']) {
      await expect(unsafely(`delete from ${table}`)).rejects.toThrow();
    }
  });

  test('is none of what live work appended: that names no reprocess', async () => {
    const userId = user();
    await bind(userId);
    const { deliveryId } = await failedOnce(purchase(userId));
    const id = await order(api.sql, app.appId, { dryRun: true });
    await carryOut(api.sql, activities, id);
    expect(await sumReprocessed(api.sql, id)).toEqual({ commissionCents: 0, revenueCents: 0 });
    const real = await order(api.sql, app.appId, { deliveryId });
    await carryOut(api.sql, activities, real);
    expect(
      await api.sql`select distinct reprocess_run_id as id from commissions where app_id = ${app.appId}`,
    ).toEqual([{ id: real }]);
  });
});

describe('why a payment earns nothing', () => {
  const causes = () =>
    api.sql<{ cause: string | null }>`
      select likely_cause as cause from events where app_id = ${app.appId} order by received_at`;

  test('is known of an appended payment of a user whom nobody brought', async () => {
    const { deliveryId } = await failedOnce(purchase(user()));
    const reprocessed = await reprocess();
    expect(reprocessed.found[0]?.changes).toContainEqual({
      what: 'cause',
      stored: null,
      today: 'user_never_identified',
      action: 'append',
    });
    expect(await causes()).toEqual([{ cause: 'user_never_identified' }]);
    expect(await reprocess({ deliveryId })).toMatchObject({ changed: 0 });
  });

  test('is told at the payment alone where two events speak of it', async () => {
    const transactionId = randomUUID();
    const userId = user();
    for (let n = 0; n < 2; n += 1) await failedOnce(purchase(userId, { transactionId }));
    await reprocess();
    expect(await causes()).toEqual([{ cause: 'user_never_identified' }, { cause: null }]);
  });
});

test('an event of a payment that live work appended in the same moment has no cause of its own', async () => {
  const userId = user();
  await bind(userId);
  const transactionId = randomUUID();
  await failedOnce(purchase(userId, { transactionId }));
  const { deliveryId, eventId, event } = await accept(purchase(userId, { transactionId }));
  const live = connect({ url: api.database.url, max: 1 });
  const committed: Promise<unknown>[] = [];
  const racing = reprocessing({
    withRollback: async (scene) => {
      const result = await withRollback(api.database.url, scene);
      if (committed.length > 0) return result;
      // Its facts are not committed yet when the reprocess appends its own, which wait for them and can't see them.
      await live`begin`;
      const appId = app.appId as AppId;
      const told = { source: 'revenuecat', environment: 'production', receivedAt: Date.now() } as const;
      await recordEventFacts(live, { deliveryId, eventId, appId, ...told, event });
      committed.push(sleep(300).then(async () => await live`commit`));
      return result;
    },
  });
  try {
    await carryOut(api.sql, racing, await order(api.sql, app.appId));
    await Promise.all(committed);
  } finally {
    await live.close();
  }
  await finishDelivery(api.sql, deliveryId, {
    status: 'processed',
    reason: null,
    sourceEventId: event.sourceEventId,
    eventCount: 1,
  });
  expect(
    await api.sql`
      select e.id = p.event_id as is_payments, e.id = ${eventId} as is_live, e.likely_cause as cause
        from events e join payments p on p.app_id = e.app_id and p.ref = e.payment_ref
       where e.app_id = ${app.appId} order by 1`,
  ).toEqual([
    { isPayments: false, isLive: false, cause: null },
    { isPayments: true, isLive: true, cause: null },
  ]);
  expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
});

describe('what cannot be reprocessed', () => {
  // @promise reprocess-skips-refused
  test('is refused, and the rest goes on: its secret cannot be opened any more', async () => {
    const userId = user();
    await bind(userId);
    const lost = await failedOnce(purchase(userId));
    // The key of that time is gone from SECRETS_KEY.
    await api.sql`update webhook_secrets set encryption_key_id = 'gone' where app_id = ${app.appId}`;
    const answer = await api.call<{ secret: string }>(
      'PUT',
      `/apps/${app.appId}/webhooks/revenuecat/secret`,
      {
        key: app.key,
        body: {},
      },
    );
    token = answer.body.secret;
    await failedOnce(purchase(userId));
    const reprocessed = await reprocess();
    expect(reprocessed).toMatchObject({ seen: 2, changed: 2, applied: 1 });
    expect(changesOf(reprocessed, lost)).toMatchObject([
      { what: 'refused', today: expect.stringContaining('gone'), action: 'keep' },
    ]);
    expect(await ledger()).toHaveLength(1);
  });

  // @promise reprocess-skips-refused
  test('is refused, and the rest goes on: the database takes it in the dry run and not for good', async () => {
    const userId = user();
    await bind(userId);
    const [first, second] = [await failedOnce(purchase(userId)), await failedOnce(purchase(userId))];
    const id = await order(api.sql, app.appId);
    const refusing = reprocessing({
      withRollback: async (scene) => {
        const result = await withRollback(api.database.url, scene);
        await unsafely(
          `alter table events add constraint test_refusal check (id <> '${first.eventId}') not valid`,
        );
        return result;
      },
    });
    await refusing.reprocessPage(id);
    await unsafely('alter table events drop constraint test_refusal');
    const { found } = await carryOut(api.sql, activities, id);
    expect(found).toMatchObject([
      { deliveryId: first.deliveryId, appliedAt: null, refusal: expect.stringContaining('test_refusal') },
      { deliveryId: second.deliveryId, appliedAt: expect.any(Number), refusal: null },
    ]);
    expect(await ledger()).toMatchObject([{ eventId: second.eventId }]);
  });

  test('for another reason is tried again, and who waits learns why and where', async () => {
    const { deliveryId } = await failedOnce(purchase(user()));
    const id = await order(api.sql, app.appId);
    const away = reprocessing({
      withRollback: async () => {
        throw new DatabaseUnavailable('it is away');
      },
    });
    await expect(away.reprocessPage(id)).rejects.toThrow('it is away');
    expect(await findReprocessRun(api.sql, id)).toMatchObject({ lastError: 'it is away', isFinished: false });
    const broken = reprocessing({
      withRollback: async (scene) =>
        await withRollback(
          api.database.url,
          async (stage) =>
            await scene({
              ...stage,
              savepoint: async () => {
                throw new TypeError('quotes the body');
              },
            }),
        ),
    });
    await expect(broken.reprocessPage(id)).rejects.toThrow(deliveryId);
    expect((await findReprocessRun(api.sql, id))?.lastError).toBe(`delivery ${deliveryId}: TypeError`);
    await carryOut(api.sql, activities, id);
    expect(await findReprocessRun(api.sql, id)).toMatchObject({ lastError: null, isFinished: true });
  });

  // @promise reprocess-cancelled-whole
  test('because it was cancelled after any statement leaves no delivery half done', async () => {
    for (let survives = 0; ; survives += 1) {
      await furnish();
      const userId = user();
      await bind(userId);
      for (let n = 0; n < 2; n += 1) await failedOnce(purchase(userId));
      const id = await order(api.sql, app.appId);
      await claimReprocessRuns(api.sql, 0, 100);
      await carryOut(api.sql, reprocessing({ sql: dyingAfter(survives) }), id).catch(() => {});
      const isOver = (await findReprocessRun(api.sql, id))?.isFinished ?? false;
      expect(await cancelReprocessRun(api.sql, id)).toBe(!isOver);
      expect((await findReprocessRun(api.sql, id))?.isFinished).toBe(isOver);
      const { applied, found } = await carryOut(api.sql, activities, id);
      expect(await findReprocessRun(api.sql, id)).toMatchObject({ isFinished: true, isCancelled: !isOver });
      expect(found.filter(({ appliedAt }) => appliedAt !== null)).toHaveLength(applied);
      const rows = await api.sql<{ status: string; earnings: number; facts: number }>`
        select d.processing_status as status,
               (select count(*) from commissions c where c.event_id = d.event_id) as earnings,
               (select count(*) from payments p where p.event_id = d.event_id) as facts
          from deliveries d where d.app_id = ${app.appId} order by d.id`;
      const whole = (n: number) =>
        n < applied
          ? { status: 'processed', earnings: 1, facts: 1 }
          : { status: 'failed', earnings: 0, facts: 0 };
      expect(rows).toEqual(rows.map((_row, n) => whole(n)));
      if (isOver) return;
    }
  }, 120_000);

  test('because it was cancelled gives up what fails for ever, and says why', async () => {
    const userId = user();
    await bind(userId);
    await failedOnce(purchase(userId));
    const id = await order(api.sql, app.appId);
    await claimReprocessRuns(api.sql, 0, 100);
    const failing = reprocessing({
      onCommissions: () => {
        throw new TypeError('for ever');
      },
    });
    await expect(carryOut(api.sql, failing, id)).rejects.toThrow('TypeError');
    await cancelReprocessRun(api.sql, id);
    const { found } = await carryOut(api.sql, failing, id);
    expect(found).toMatchObject([{ appliedAt: null, refusal: 'TypeError' }]);
    expect(await findReprocessRun(api.sql, id)).toMatchObject({ isFinished: true, isCancelled: true });
  });

  // @promise reprocess-cancelled-whole
  test('because nobody has taken it up ends at once when it is cancelled', async () => {
    const id = await order(api.sql, app.appId);
    expect(await cancelReprocessRun(api.sql, id)).toBe(true);
    expect(await findReprocessRun(api.sql, id)).toMatchObject({
      isCancelled: true,
      isFinished: true,
      seen: 0,
    });
  });

  test('because it was cancelled ends at its page, and what it had appended stays', async () => {
    const userId = user();
    await bind(userId);
    for (let n = 0; n < 25; n += 1) await failedOnce(purchase(userId));
    const id = await order(api.sql, app.appId);
    const { seen } = await activities.reprocessPage(id);
    expect(await cancelReprocessRun(api.sql, id)).toBe(true);
    expect(await carryOut(api.sql, activities, id)).toMatchObject({ seen, applied: seen, done: true });
    expect(await findReprocessRun(api.sql, id)).toMatchObject({ isCancelled: true, isFinished: true });
    expect(await ledger()).toHaveLength(seen);
    expect(await cancelReprocessRun(api.sql, await finishedReprocessRun())).toBe(false);
  });

  async function finishedReprocessRun(): Promise<ReprocessRunId> {
    const id = await order(api.sql, app.appId, { from: Date.now() });
    await carryOut(api.sql, activities, id);
    return id;
  }
});

describe('which deliveries', () => {
  // @promise reprocess-selection
  test('one alone, or those received from one instant until just before another', async () => {
    const delivered = [];
    for (let n = 0; n < 4; n += 1) delivered.push(await failedOnce(purchase(user())));
    const at = (n: number) => Date.now() - (10 - n) * 1000;
    for (const [n, { deliveryId }] of delivered.entries()) {
      await api.sql`update deliveries set received_at = ${instant(at(n))} where id = ${deliveryId}`;
    }
    const rows = await api.sql<{ id: string; at: number }>`
      select id, received_at as at from deliveries where app_id = ${app.appId} order by received_at`;
    const [, second, , fourth] = rows;
    const seen = async (over: Parameters<typeof order>[2]) =>
      (await reprocess({ dryRun: true, ...over })).found.map(({ deliveryId }) => deliveryId);
    expect(await seen({ from: second?.at ?? 0, to: fourth?.at ?? 0 })).toEqual([rows[1]?.id, rows[2]?.id]);
    expect(await seen({ from: (second?.at ?? 0) + 1, to: (fourth?.at ?? 0) + 1 })).toEqual([
      rows[2]?.id,
      rows[3]?.id,
    ]);
    expect(await seen({ deliveryId: delivered[2]?.deliveryId ?? null })).toEqual([delivered[2]?.deliveryId]);
    expect(await seen({})).toHaveLength(4);
  });

  test('none that is refused or still has no outcome, and none of another app', async () => {
    await accept(purchase(user()));
    await api.call('POST', `/webhooks/revenuecat/${app.appId}`, {
      body: '{}',
      headers: { authorization: 'wrong' },
    });
    expect(await reprocess()).toMatchObject({ seen: 0, deliveries: 0 });
    const delivered = await failedOnce(purchase(user()));
    const stranger = await newApp(api);
    await expect(order(api.sql, stranger.appId, { deliveryId: delivered.deliveryId })).rejects.toThrow(
      'not ordered',
    );
    expect(await carryOut(api.sql, activities, await order(api.sql, stranger.appId))).toMatchObject({
      seen: 0,
    });
  });
});

describe('a long reprocess', () => {
  // @promise dry-run-many-pages
  test('a dry run sees over many pages what a real one then does', async () => {
    const userId = user();
    await bind(userId);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await failedOnce(
      bodyOf(revenuecatRefund({ userId, usd: 5, transactionId, occurredAt: occurredAt + 1000 })),
    );
    for (let n = 0; n < 45; n += 1) await failedOnce(purchase(user()));
    await failedOnce(purchase(userId, { transactionId, occurredAt }));
    const dry = await reprocess({ dryRun: true });
    expect(await ledger()).toEqual([]);
    expect(centsFound(dry, 'commission')).toBe(100);
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
    expect(await ledger()).toMatchObject([{ amountCents: 200 }, { amountCents: -100 }]);
  });

  // @promise dry-run-many-pages
  test('a dry run plays what a delivery builds on, however long ago that was', async () => {
    const userId = user();
    await bind(userId);
    const body = purchase(userId);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await failedOnce(body);
    await failedOnce(purchase(userId, { transactionId, occurredAt }));
    for (let n = 0; n < 65; n += 1) await failedOnce(purchase(user()));
    const again = await failedOnce(body);
    const refund = await failedOnce(
      bodyOf(revenuecatRefund({ userId, usd: 5, transactionId, occurredAt: occurredAt + 1000 })),
    );
    const dry = await reprocess({ dryRun: true });
    expect(changesOf(dry, again)).toEqual([
      { what: 'status', stored: 'failed', today: 'duplicate', action: 'append' },
    ]);
    expect(changesOf(dry, refund)).toContainEqual({
      what: 'commission',
      stored: null,
      today: 'reversal',
      action: 'append',
      amountCents: -100,
    });
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
  });

  test('and tells of nothing that comes later, also when its page died after it was written down', async () => {
    const [giver, receiver] = [user(), user()];
    await bind(giver);
    const bought = await failedOnce(purchase(receiver));
    await reprocess({ deliveryId: bought.deliveryId });
    await failedOnce(bodyOf(revenuecatTransfer({ from: [giver], to: [receiver], occurredAt: Date.now() })));
    const whole = await reprocess({ dryRun: true });
    for (let survives = 0; survives < 6; survives += 1) {
      const id = await order(api.sql, app.appId, { dryRun: true });
      await carryOut(api.sql, reprocessing({ sql: dyingAfter(survives) }), id).catch(() => {});
      const { found } = await carryOut(api.sql, activities, id);
      expect(found.map(({ changes }) => changes)).toEqual(whole.found.map(({ changes }) => changes));
    }
    expect(changesOf(whole, bought)).toEqual([]);
  });

  // @promise dry-run-many-pages
  test('and a purchase by who received from one who had received himself', async () => {
    const [first, second, third] = [user(), user(), user()];
    await bind(first);
    for (const [from, to] of [[first, second] as const, [second, third] as const]) {
      await failedOnce(bodyOf(revenuecatTransfer({ from: [from], to: [to], occurredAt: Date.now() })));
      for (let n = 0; n < 21; n += 1) await failedOnce(purchase(user()));
    }
    const bought = await failedOnce(purchase(third));
    const dry = await reprocess({ dryRun: true });
    expect(changesOf(dry, bought)).toContainEqual(
      expect.objectContaining({ what: 'commission', amountCents: 200, affiliateId }),
    );
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
  });

  // @promise dry-run-many-pages
  test('and a purchase by who received from a customer further back', async () => {
    const [giver, receiver] = [user(), user()];
    await bind(giver);
    await failedOnce(bodyOf(revenuecatTransfer({ from: [giver], to: [receiver], occurredAt: Date.now() })));
    for (let n = 0; n < 25; n += 1) await failedOnce(purchase(user()));
    const bought = await failedOnce(purchase(receiver));
    const dry = await reprocess({ dryRun: true });
    expect(changesOf(dry, bought)).toContainEqual(
      expect.objectContaining({ what: 'commission', amountCents: 200, affiliateId }),
    );
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
  });

  // @promise reprocess-takes-no-lock
  test('a dry run keeps no sum of a dashboard locked', async () => {
    const userId = user();
    await bind(userId);
    await failedOnce(purchase(userId));
    const id = await order(api.sql, app.appId);
    let locked: string[] = [];
    const looking = reprocessing({
      withRollback: async (scene) =>
        await withRollback(api.database.url, async (stage) => {
          const result = await scene(stage);
          locked = (
            await stage.sql<{ name: string }>`
              select distinct relation::regclass::text as name from pg_locks
               where pid = pg_backend_pid() and mode = 'RowExclusiveLock' and locktype = 'relation'`
          ).map(({ name }) => name);
          return result;
        }),
    });
    await carryOut(api.sql, looking, id);
    expect(locked).toContain('commissions');
    expect(locked.filter((name) => name.includes('rollup'))).toEqual([]);
  });

  // @promise reprocess-survives-crash
  test('dies after any statement, and the next one goes on: all is appended once and all is told', async () => {
    for (let survives = 0; ; survives += 1) {
      await furnish();
      const userId = user();
      await bind(userId);
      const delivered = [
        await failedOnce(purchase(userId)),
        await readOnceAs(purchase(userId), { userIds: [] }),
      ];
      const eventIds = delivered.map(({ eventId }) => eventId);
      const id = await order(api.sql, app.appId);
      const isDead = await carryOut(api.sql, reprocessing({ sql: dyingAfter(survives) }), id).then(
        () => false,
        () => true,
      );
      const reprocessed = await carryOut(api.sql, activities, id);
      expect(reprocessed).toMatchObject({ changed: 2, applied: 2 });
      expect(centsFound(reprocessed, 'commission')).toBe(400);
      expect(await sumReprocessed(api.sql, id)).toEqual({ commissionCents: 400, revenueCents: 2_000 });
      expect(
        await api.sql`
          select d.commission_id = c.id as is_named from deliveries d join commissions c on c.event_id = d.event_id
           where d.app_id = ${app.appId}`,
      ).toEqual([{ isNamed: true }, { isNamed: true }]);
      expect((await ledger()).map(({ eventId, amountCents }) => [eventId, amountCents])).toEqual(
        eventIds.map((eventId) => [eventId, 200]),
      );
      if (isDead) continue;
      expect(survives).toBeGreaterThan(20);
      return;
    }
  }, 120_000);
});

/** Carries out a statement that takes no parameters. */
async function unsafely(statement: string): Promise<void> {
  await api.sql(Object.assign([statement], { raw: [statement] }));
}

/** The database of a process that lives for so many statements: the next one is carried out, and it never learns so. */
function dyingAfter(statements: number): Sql {
  let left = statements;
  const dies =
    <A extends unknown[], R>(send: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const result = await send(...args);
      left -= 1;
      if (left < 0) throw new DatabaseUnavailable('killed');
      return result;
    };
  const { sql } = api;
  const one: Sql['one'] = (strings, ...values) => sql.one(strings, ...values);
  const maybe: Sql['maybe'] = (strings, ...values) => sql.maybe(strings, ...values);
  return Object.assign(dies(sql), {
    one: dies(one),
    maybe: dies(maybe),
    fragment: (strings: TemplateStringsArray, ...values: unknown[]) => sql.fragment(strings, ...values),
    json: (value: unknown) => sql.json(value),
    close: () => sql.close(),
  });
}
