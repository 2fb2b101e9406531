import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { evaluateAndApply } from '../../activities/evaluate.ts';
import { createReprocessActivities } from '../../activities/reprocess.ts';
import type { ReprocessActivities, ReprocessActivityDeps } from '../../activities/reprocess.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { newId } from '../../src/db/new-id.ts';
import { finishDelivery } from '../../src/db/deliveries.ts';
import { recordEventFacts } from '../../src/db/events.ts';
import { findPaymentsToRecheck, loadPayments } from '../../src/db/payments.ts';
import { importRates } from '../../src/db/rates.ts';
import type { HeldCommission } from '../../src/db/maturing.ts';
import type { StoredPayment } from '../../src/db/payments.ts';
import { withRollback } from '../../src/db/with-rollback.ts';
import {
  cancelReprocessRun,
  claimReprocessRuns,
  findReprocessRun,
  listReprocessedCommissions,
  sumReprocessed,
} from '../../src/db/reprocess.ts';
import { DatabaseUnavailable } from '../../src/db/errors.ts';
import { connect, instant } from '../../src/db/sql.ts';
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
  withFields,
} from '../support/provider-fixtures.ts';
import { runOn } from '../support/postgres-admin.ts';
import { centsFound, requestRun, runReprocess } from '../support/reprocess.ts';
import type { ReprocessResult } from '../support/reprocess.ts';
import { rounds } from '../support/rounds.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { untilWaiting } from '../support/waiting.ts';

// The outcome of an earlier version is written by hand. The delivery itself is received by the real endpoint, with its
// bytes and its proof.

/** A reprocess is interrupted after every third of its statements; after each of them in the long tests. */
const STATEMENTS = rounds(3, 1);

let api: TestApi;
let app: TestApp;
let affiliateId: string;
let token: string;
let activities: ReprocessActivities;
let commissions: HeldCommission[] = [];

function newActivities(over: Partial<ReprocessActivityDeps> = {}): ReprocessActivities {
  return createReprocessActivities({
    sql: api.sql,
    secretBox: createSecretBox([TEST_KEY]),
    logger: pino({ level: 'silent' }),
    withRollback: (work) => withRollback(api.database.url, work),
    onCommissions: (written) => void commissions.push(...written),
    onBindings: () => {},
    ...over,
  });
}

beforeAll(async () => {
  api = await startTestApi();
  activities = newActivities();
});
beforeEach(setUpApp);

/** Creates an app with webhooks of RevenueCat and an affiliate. */
async function setUpApp(): Promise<void> {
  commissions = [];
  api.clock.now = Date.now();
  app = await newApp(api, undefined, {
    commissionRateBps: 2000,
    holdPeriodDays: 30,
    attributionWindowDays: 30,
  });
  affiliateId = await newAffiliate(api, app);
  const response = await api.call<{ secret: string }>(
    'PUT',
    `/apps/${app.appId}/webhooks/revenuecat/secret`,
    {
      key: app.key,
      body: {},
    },
  );
  token = response.body.secret;
}
afterAll(async () => {
  await expectConsistentLedger(api.sql);
  await api.close();
});

/** Binds a user to the affiliate now, with a touch at `touchedAt`. */
async function bind(userId: string, touchedAt = Date.now() - 60 * DAY_MS): Promise<void> {
  const install = {
    deviceId: userId,
    affiliateCode: affiliateId,
    firstOpenAt: touchedAt,
    codeEnteredAt: touchedAt,
  };
  expect((await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install })).status).toBe(200);
  const identify = { deviceId: userId, customerUserId: userId, identifiedAt: touchedAt };
  expect((await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify })).status).toBe(200);
}

interface AcceptedDelivery {
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly event: NormalizedEvent;
}

/** Posts a webhook that is accepted now and left without an outcome. */
async function accept(body: Buffer): Promise<AcceptedDelivery> {
  api.clock.now = Date.now();
  const path = `/webhooks/revenuecat/${app.appId}`;
  const response = await api.call<{ eventId: EventId }>('POST', path, {
    body: body.toString(),
    headers: { authorization: token },
  });
  expect(response.status).toBe(200);
  const { eventId } = response.body;
  const { id } = await api.sql.one<{ id: DeliveryId }>`select id from deliveries where event_id = ${eventId}`;
  return { deliveryId: id, eventId, event: eventOf(revenuecat.parse(body)) };
}

/** Accepts a body and records that an earlier version could not read it. */
async function acceptAsFailed(body: Buffer): Promise<AcceptedDelivery> {
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

/** Accepts a body and records the facts that an earlier version read from it, without an evaluation. */
async function acceptAsReadBefore(
  body: Buffer,
  over: Partial<NormalizedEvent>,
  outcome: { status: 'processed' | 'ignored'; reason: string | null } = { status: 'processed', reason: null },
): Promise<AcceptedDelivery> {
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

/** Dates all deliveries of the app an hour back, as a transaction of the database stores them by its own clock. */
async function receivedInOneMicrosecond(): Promise<void> {
  await runOn(
    api.database.url,
    `set session_replication_role = replica;
     update deliveries set received_at = date_trunc('second', now()) - interval '1 hour' + interval '123456 microseconds'
      where app_id = '${app.appId}'`,
  );
}

const purchase = (userId: string, over: Partial<Parameters<typeof revenuecatEvent>[0]> = {}) =>
  bodyOf(revenuecatEvent({ userId, usd: 10, occurredAt: Date.now() - DAY_MS, ...over }));

const user = () => `user-${randomUUID()}`;

async function reprocess(over: Parameters<typeof requestRun>[2] = {}): Promise<ReprocessResult> {
  return await runReprocess(api.sql, activities, await requestRun(api.sql, app.appId, over));
}

async function ledger(): Promise<{ kind: string; amountCents: number; eventId: string }[]> {
  return await api.sql`
    select kind, amount_cents, event_id from commissions
     where app_id = ${app.appId} order by created_at, id`;
}

/** Returns every row of the app that a reprocess can change, except the reprocess runs, as one text. */
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

const changesOf = ({ found }: ReprocessResult, { deliveryId }: AcceptedDelivery) =>
  found.find((delivery) => delivery.deliveryId === deliveryId)?.changes ?? [];

describe('deliveries that an earlier version could not read', () => {
  // @promise dry-run-changes-nothing
  test('a dry run lists everything that a reprocess would append, and changes nothing', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await acceptAsFailed(purchase(userId));
    const before = await everything();
    const reprocessed = await reprocess({ dryRun: true });
    expect(await everything()).toBe(before);
    expect(reprocessed).toMatchObject({ seen: 1, deliveries: 1, changed: 1, applied: 0 });
    expect(changesOf(reprocessed, delivered)).toEqual([
      { what: 'event', stored: null, today: 'purchase, production', action: 'append' },
      { what: 'payment', stored: null, today: '1 more', action: 'append' },
      { what: 'users', stored: null, today: '1 more', action: 'append' },
      { what: 'userKeys', stored: null, today: '1 more', action: 'append' },
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
  test('a reprocessed delivery earns once, and a second reprocess finds nothing', async () => {
    const userId = user();
    await bind(userId);
    const { deliveryId, eventId } = await acceptAsFailed(purchase(userId));
    expect(await reprocess()).toMatchObject({ changed: 1, applied: 1 });
    expect(await ledger()).toEqual([{ kind: 'earning', amountCents: 200, eventId }]);
    expect(commissions).toMatchObject([{ appId: app.appId }]);
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

  test('two failed deliveries of one event earn once, and the second becomes a duplicate', async () => {
    const userId = user();
    await bind(userId);
    const body = purchase(userId);
    const [first, second] = [await acceptAsFailed(body), await acceptAsFailed(body)];
    const dry = await reprocess({ dryRun: true });
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
    expect(await ledger()).toEqual([{ kind: 'earning', amountCents: 200, eventId: first.eventId }]);
    expect(changesOf(real, second)).toEqual([
      { what: 'status', stored: 'failed', today: 'duplicate', action: 'append' },
    ]);
  });

  test('a reprocessed payment earns only when a binding made after it covers its time', async () => {
    const [early, covered, tooOld, beforeTouch] = [user(), user(), user(), user()];
    await bind(early, Date.now() - 1000);
    for (const [userId, age] of [
      [early, 50 * DAY_MS],
      [covered, 29 * DAY_MS],
      [tooOld, 31 * DAY_MS],
      [beforeTouch, 5 * DAY_MS],
    ] as const) {
      await acceptAsFailed(purchase(userId, { occurredAt: Date.now() - age }));
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

  test('a delivery whose stored body does not match its proof is refused and earns nothing', async () => {
    const userId = user();
    await bind(userId);
    const { deliveryId } = await acceptAsFailed(purchase(userId));
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

  test('a reprocess leaves a delivery that is still unreadable unchanged', async () => {
    const { deliveryId } = await acceptAsFailed(purchase(user()));
    await api.sql`
      with body as (select '{}'::bytea as bytes)
      , changed as (update delivery_bodies set body = bytes from body where delivery_id = ${deliveryId})
      update deliveries set body_sha256 = sha256(bytes) from body where id = ${deliveryId}`;
    const before = await everything();
    expect(await reprocess()).toMatchObject({ seen: 1, changed: 0 });
    expect(await everything()).toBe(before);
  });
});

describe('deliveries that an earlier version read differently', () => {
  // @promise reprocess-never-edits
  test('a reprocess reports a different amount and appends and edits nothing', async () => {
    const userId = user();
    await bind(userId);
    const body = purchase(userId);
    const delivered = await acceptAsReadBefore(body, {
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

  test('a reprocess appends a missing user, and the payment earns for its affiliate', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await acceptAsReadBefore(purchase(userId), { userIds: [] });
    const reprocessed = await reprocess();
    expect(changesOf(reprocessed, delivered)).toMatchObject([
      { what: 'users' },
      { what: 'commission', amountCents: 200 },
      { what: 'revenue', amountCents: 1000 },
    ]);
    expect(await ledger()).toMatchObject([{ kind: 'earning', amountCents: 200 }]);
  });

  // @promise payment-components
  test('a reprocess adds the tax and the store fee that an earlier version did not read, and changes no stored one', async () => {
    const userId = user();
    await bind(userId);
    const body = purchase(userId);
    const { payment } = eventOf(revenuecat.parse(body));
    if (payment === null) throw new Error('a purchase without a payment');
    const { components, ...before } = payment;
    expect(components).toEqual({ tax: { ppm: 0 }, storeFee: { ppm: 150_000 } });
    const delivered = await acceptAsReadBefore(body, { payment: before });
    const stored = async () =>
      await api.sql`
        select tax_minor, tax_ppm, store_fee_minor, store_fee_ppm, amount_minor, customer_user_id from events where id = ${delivered.eventId}`;
    const nothing = { taxMinor: null, storeFeeMinor: null };
    const same = { amountMinor: 1000, customerUserId: userId };
    expect(await stored()).toEqual([{ ...nothing, ...same, taxPpm: null, storeFeePpm: null }]);
    expect(changesOf(await reprocess(), delivered)).toMatchObject([
      { what: 'components', today: '1 more', action: 'append' },
      { what: 'commission', amountCents: 200 },
      { what: 'revenue', amountCents: 1000 },
    ]);
    expect(await stored()).toEqual([{ ...nothing, ...same, taxPpm: 0, storeFeePpm: 150_000 }]);
    expect(await reprocess()).toMatchObject({ changed: 0, applied: 0 });
    // A stored component stays, in whatever form, and a missing one is added beside it.
    await api.sql`
      update events set tax_ppm = null, tax_minor = 5, store_fee_ppm = null where id = ${delivered.eventId}`;
    expect(changesOf(await reprocess(), delivered)).toMatchObject([{ what: 'components' }]);
    expect(await stored()).toEqual([
      { ...same, taxMinor: 5, taxPpm: null, storeFeeMinor: null, storeFeePpm: 150_000 },
    ]);
    const explained = await api.call<{ steps: { step: string; facts: object }[] }>(
      'GET',
      `/apps/${app.appId}/events/${delivered.eventId}/explanation`,
      { key: app.key },
    );
    expect(explained.body.steps.find(({ step }) => step === 'normalize')?.facts).toMatchObject({
      amountMinor: 1000,
      tax: { amountMinor: 5, estimated: false },
      storeFee: { amountMinor: 150, estimated: true },
    });
  });

  // @promise payment-components
  test.each([
    ['two forms of one', 'tax_minor = 1, tax_ppm = 1'],
    ['more than was paid', 'tax_minor = 1001'],
    ['a negative amount', 'store_fee_minor = -1'],
    ['more than the whole', 'store_fee_ppm = 1000001'],
    ['a part of no payment', 'payment_ref = null, amount_minor = null'],
  ])('the database refuses components with %s', async (_title, change) => {
    const userId = user();
    const { eventId } = await acceptAsReadBefore(purchase(userId), {});
    const text = `update events set ${change} where id = '${eventId}'`;
    await expect(api.sql(Object.assign([text], { raw: [text] }))).rejects.toThrow(
      'components_are_parts_of_the_payment',
    );
  });

  // @promise reprocess-fills-kind
  test('a reprocess appends a missing payment, with the kind of the event', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await acceptAsReadBefore(
      purchase(userId),
      { kind: 'other', payment: null },
      { status: 'ignored', reason: 'an earlier version did not know this event' },
    );
    const reprocessed = await reprocess();
    expect(changesOf(reprocessed, delivered).map(({ what, action }) => [what, action])).toEqual([
      ['payment', 'append'],
      ['users', 'append'],
      ['userKeys', 'append'],
      ['commission', 'append'],
      ['revenue', 'append'],
      ['status', 'append'],
    ]);
    expect(
      await api.sql`select kind, amount_cents as cents from events where id = ${delivered.eventId}`,
    ).toEqual([{ kind: 'purchase', cents: 1000 }]);
    const explained = await api.call<{ earns: boolean }>(
      'GET',
      `/apps/${app.appId}/events/${delivered.eventId}/explanation`,
      { key: app.key },
    );
    expect(explained.status).toBe(200);
    expect(await reprocess()).toMatchObject({ changed: 0, applied: 0 });
  });

  test('a reprocess leaves an event that was stored as sandbox in the sandbox', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await acceptAsReadBefore(purchase(userId), { environment: 'sandbox' });
    expect(changesOf(await reprocess(), delivered)).toEqual([
      { what: 'event.environment', stored: 'sandbox', today: 'production', action: 'keep' },
    ]);
    expect(await ledger()).toEqual([]);
  });
});

describe('commissions of a reprocess', () => {
  test('a refund that was stored under another reference is not reversed twice', async () => {
    const userId = user();
    await bind(userId);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await acceptAsFailed(purchase(userId, { transactionId, occurredAt }));
    await reprocess();
    const body = bodyOf(revenuecatRefund({ userId, usd: 5, transactionId, occurredAt: occurredAt + 1000 }));
    const { adjustment } = eventOf(revenuecat.parse(body));
    if (adjustment === null) throw new Error('the refund has no money');
    const refund = await acceptAsReadBefore(body, { adjustment: { ...adjustment, ref: 'another-ref' } });
    const evaluated = await requestRun(api.sql, app.appId, { deliveryId: refund.deliveryId });
    expect(centsFound(await runReprocess(api.sql, activities, evaluated), 'commission')).toBe(-100);
    expect(await reprocess()).toMatchObject({ applied: 0 });
    expect(await ledger()).toMatchObject([{ amountCents: 200 }, { amountCents: -100 }]);
    expect(await api.sql`select ref from adjustments where app_id = ${app.appId}`).toEqual([
      { ref: 'another-ref' },
    ]);
  });

  // @promise refund-converted
  test('a refund without a rate that a reprocess appends is listed, and reversed when the rate is imported', async () => {
    const userId = user();
    await bind(userId);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await acceptAsFailed(purchase(userId, { transactionId, occurredAt }));
    await reprocess();
    const refund = revenuecatRefund({ userId, usd: 5, transactionId, occurredAt: occurredAt + 1000 });
    const { eventId } = await acceptAsFailed(
      bodyOf(
        withFields(refund, ['event'], { currency: 'SEK', price: null, price_in_purchased_currency: -50 }),
      ),
    );
    await reprocess();
    expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
    const cause = async () => await api.sql`select likely_cause from events where id = ${eventId}`;
    expect(await cause()).toEqual([{ likelyCause: 'missing_exchange_rate' }]);
    const day = new Date(occurredAt).toISOString().slice(0, 10);
    await importRates(api.sql, {
      source: 'operator',
      rates: [{ currency: 'SEK', day, units: '10', worthUsd: '1' }],
    });
    for (const { id } of await findPaymentsToRecheck(api.sql, { limit: 10 })) {
      const [payment] = await loadPayments(api.sql, { paymentIds: [id] });
      await evaluateAndApply(api.sql, payment!, null);
    }
    expect(await ledger()).toMatchObject([{ amountCents: 200 }, { amountCents: -100 }]);
    expect(await cause()).toEqual([{ likelyCause: null }]);
  });

  // @promise reprocess-report-from-ledger
  test('a commission that arises between the plan and its application is reported from the ledger', async () => {
    const userId = user();
    await acceptAsFailed(purchase(userId));
    const id = await requestRun(api.sql, app.appId);
    let isBound = false;
    const meanwhile = newActivities({
      withRollback: async (work) => {
        const result = await withRollback(api.database.url, work);
        if (!isBound) await bind(userId, Date.now() - 20 * DAY_MS);
        isBound = true;
        return result;
      },
    });
    const reprocessed = await runReprocess(api.sql, meanwhile, id);
    expect(centsFound(reprocessed, 'commission')).toBe(0);
    expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
    expect(await sumReprocessed(api.sql, id)).toEqual({ commissionCents: 200, revenueCents: 1000 });
    expect(await listReprocessedCommissions(api.sql, id, null, 10)).toMatchObject([
      { affiliateId, kind: 'earning', amountCents: 200 },
    ]);
  });

  // @promise reprocess-report-from-ledger
  test('two concurrent reprocess runs append each commission once, and each reports its own', async () => {
    const userId = user();
    await bind(userId);
    for (let n = 0; n < 30; n += 1) await acceptAsFailed(purchase(userId));
    const ids = [await requestRun(api.sql, app.appId), await requestRun(api.sql, app.appId)];
    // When a run waits too long for the other, it fails and is retried, as its workflow does.
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

  test('a payment with two references earns once when one of them is loaded before the alias is stored', async () => {
    for (let n = 0; n < 20; n += 1) {
      await setUpApp();
      const userId = user();
      const refs = [randomUUID(), randomUUID()];
      for (const transactionId of refs) await acceptAsReadBefore(purchase(userId, { transactionId }), {});
      await bind(userId);
      const paid = { appId: app.appId as AppId, environment: 'production', store: 'app_store' } as const;
      const alone = await loadPayments(api.sql, { ...paid, refs: refs.slice(0, 1) });
      await api.sql`
        insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
        values (${app.appId}, 'production', 'app_store', ${refs[0]}, ${refs[1]})`;
      const tied = await loadPayments(api.sql, { ...paid, refs: refs.slice(1) });
      // The first round evaluates in sequence, the others concurrently.
      const evaluate = async (payment: StoredPayment) => await evaluateAndApply(api.sql, payment, null);
      if (n === 0) for (const payment of [...alone, ...tied]) await evaluate(payment);
      else await Promise.all([...alone, ...tied].map(evaluate));
      expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
    }
  });

  test('a payment with two references earns once when both are evaluated concurrently', async () => {
    for (let n = 0; n < 12; n += 1) {
      await setUpApp();
      const userId = user();
      const refs = [randomUUID(), randomUUID()];
      for (const transactionId of refs) await acceptAsReadBefore(purchase(userId, { transactionId }), {});
      await api.sql`
        insert into payment_aliases (app_id, environment, store, alias_ref, payment_ref)
        values (${app.appId}, 'production', 'app_store', ${refs[0]}, ${refs[1]})`;
      await bind(userId);
      const appId = app.appId as AppId;
      const aliases = await loadPayments(api.sql, {
        appId,
        environment: 'production',
        store: 'app_store',
        refs,
      });
      expect(aliases).toHaveLength(2);
      await Promise.all(aliases.map(async (payment) => await evaluateAndApply(api.sql, payment, null)));
      expect(await ledger()).toMatchObject([{ amountCents: 200 }]);
    }
  });

  test('the changes that a reprocess reports can be neither edited nor deleted', async () => {
    await acceptAsFailed(purchase(user()));
    await reprocess();
    const edit = api.sql`update reprocess_changes set changes = '[{}]' where app_id = ${app.appId}`;
    await expect(edit).rejects.toThrow('never edited');
    for (const table of ['reprocess_changes', 'reprocess_runs']) {
      await expect(runStatement(`delete from ${table}`)).rejects.toThrow();
    }
  });

  test('a reprocess run counts only the commissions that it appended', async () => {
    const userId = user();
    await bind(userId);
    const { deliveryId } = await acceptAsFailed(purchase(userId));
    const id = await requestRun(api.sql, app.appId, { dryRun: true });
    await runReprocess(api.sql, activities, id);
    expect(await sumReprocessed(api.sql, id)).toEqual({ commissionCents: 0, revenueCents: 0 });
    const real = await requestRun(api.sql, app.appId, { deliveryId });
    await runReprocess(api.sql, activities, real);
    expect(
      await api.sql`select distinct reprocess_run_id as id from commissions where app_id = ${app.appId}`,
    ).toEqual([{ id: real }]);
  });
});

describe('likely causes of a reprocess', () => {
  const causes = () =>
    api.sql<{ cause: string | null }>`
      select likely_cause as cause from events where app_id = ${app.appId} order by received_at`;

  test('an appended payment of an unknown user has the cause user_never_identified', async () => {
    const { deliveryId } = await acceptAsFailed(purchase(user()));
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

  test('only the first event of a payment has a likely cause', async () => {
    const transactionId = randomUUID();
    const userId = user();
    for (let n = 0; n < 2; n += 1) await acceptAsFailed(purchase(userId, { transactionId }));
    await reprocess();
    expect(await causes()).toEqual([{ cause: 'user_never_identified' }, { cause: null }]);
  });
});

test('a second event of a payment has no likely cause when a live delivery appends the payment concurrently', async () => {
  const userId = user();
  await bind(userId);
  const transactionId = randomUUID();
  await acceptAsFailed(purchase(userId, { transactionId }));
  const { deliveryId, eventId, event } = await accept(purchase(userId, { transactionId }));
  const live = connect({ url: api.database.url, max: 1 });
  const committed: Promise<unknown>[] = [];
  const racing = newActivities({
    withRollback: async (work) => {
      const result = await withRollback(api.database.url, work);
      if (committed.length > 0) return result;
      // The live facts are uncommitted when the reprocess appends its own, which wait for them but cannot see them.
      await live`begin`;
      const appId = app.appId as AppId;
      const origin = { source: 'revenuecat', environment: 'production', receivedAt: Date.now() } as const;
      await recordEventFacts(live, { deliveryId, eventId, appId, ...origin, event });
      committed.push(untilWaiting(api.sql).then(async () => await live`commit`));
      return result;
    },
  });
  try {
    await runReprocess(api.sql, racing, await requestRun(api.sql, app.appId));
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

describe('deliveries that cannot be reprocessed', () => {
  // @promise reprocess-skips-refused
  test('a delivery whose secret cannot be decrypted is refused, and the others are reprocessed', async () => {
    const userId = user();
    await bind(userId);
    const lost = await acceptAsFailed(purchase(userId));
    // SECRETS_KEY no longer has this encryption key.
    await api.sql`update webhook_secrets set encryption_key_id = 'gone' where app_id = ${app.appId}`;
    const response = await api.call<{ secret: string }>(
      'PUT',
      `/apps/${app.appId}/webhooks/revenuecat/secret`,
      {
        key: app.key,
        body: {},
      },
    );
    token = response.body.secret;
    await acceptAsFailed(purchase(userId));
    const reprocessed = await reprocess();
    expect(reprocessed).toMatchObject({ seen: 2, changed: 2, applied: 1 });
    expect(changesOf(reprocessed, lost)).toMatchObject([
      { what: 'refused', today: expect.stringContaining('gone'), action: 'keep' },
    ]);
    expect(await ledger()).toHaveLength(1);
  });

  // @promise reprocess-skips-refused
  test('a delivery that the database rejects only when applied is refused, and the others are reprocessed', async () => {
    const userId = user();
    await bind(userId);
    const [first, second] = [await acceptAsFailed(purchase(userId)), await acceptAsFailed(purchase(userId))];
    const id = await requestRun(api.sql, app.appId);
    const refusing = newActivities({
      withRollback: async (work) => {
        const result = await withRollback(api.database.url, work);
        await runStatement(
          `alter table events add constraint test_refusal check (id <> '${first.eventId}') not valid`,
        );
        return result;
      },
    });
    await refusing.reprocessPage(id);
    await runStatement('alter table events drop constraint test_refusal');
    const { found } = await runReprocess(api.sql, activities, id);
    expect(found).toMatchObject([
      { deliveryId: first.deliveryId, appliedAt: null, refusal: expect.stringContaining('test_refusal') },
      { deliveryId: second.deliveryId, appliedAt: expect.any(Number), refusal: null },
    ]);
    expect(await ledger()).toMatchObject([{ eventId: second.eventId }]);
  });

  test('a page that fails for another reason is retried, and the run shows the error and the delivery', async () => {
    const { deliveryId } = await acceptAsFailed(purchase(user()));
    const id = await requestRun(api.sql, app.appId);
    const away = newActivities({
      withRollback: async () => {
        throw new DatabaseUnavailable('it is unavailable');
      },
    });
    await expect(away.reprocessPage(id)).rejects.toThrow('it is unavailable');
    expect(await findReprocessRun(api.sql, id)).toMatchObject({
      lastError: 'it is unavailable',
      isFinished: false,
    });
    const broken = newActivities({
      withRollback: async (work) =>
        await withRollback(
          api.database.url,
          async (dryRun) =>
            await work({
              ...dryRun,
              savepoint: async () => {
                throw new TypeError('quotes the body');
              },
            }),
        ),
    });
    await expect(broken.reprocessPage(id)).rejects.toThrow(deliveryId);
    expect((await findReprocessRun(api.sql, id))?.lastError).toBe(`delivery ${deliveryId}: TypeError`);
    await runReprocess(api.sql, activities, id);
    expect(await findReprocessRun(api.sql, id)).toMatchObject({ lastError: null, isFinished: true });
  });

  // @promise reprocess-cancelled-whole
  test('a reprocess cancelled after any statement leaves no delivery half done', async () => {
    for (let completed = 0; ; completed += STATEMENTS) {
      await setUpApp();
      const userId = user();
      await bind(userId);
      for (let n = 0; n < 2; n += 1) await acceptAsFailed(purchase(userId));
      const id = await requestRun(api.sql, app.appId);
      await claimReprocessRuns(api.sql, 0, 100);
      await runReprocess(api.sql, newActivities({ sql: failingAfter(completed) }), id).catch(() => {});
      const isOver = (await findReprocessRun(api.sql, id))?.isFinished ?? false;
      expect(await cancelReprocessRun(api.sql, id)).toBe(!isOver);
      expect((await findReprocessRun(api.sql, id))?.isFinished).toBe(isOver);
      const { applied, found } = await runReprocess(api.sql, activities, id);
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

  test('a cancelled reprocess refuses a delivery that keeps failing, with the error', async () => {
    const userId = user();
    await bind(userId);
    await acceptAsFailed(purchase(userId));
    const id = await requestRun(api.sql, app.appId);
    await claimReprocessRuns(api.sql, 0, 100);
    const failing = newActivities({
      onCommissions: () => {
        throw new TypeError('permanent');
      },
    });
    await expect(runReprocess(api.sql, failing, id)).rejects.toThrow('TypeError');
    await cancelReprocessRun(api.sql, id);
    const { found } = await runReprocess(api.sql, failing, id);
    expect(found).toMatchObject([{ appliedAt: null, refusal: 'TypeError' }]);
    expect(await findReprocessRun(api.sql, id)).toMatchObject({ isFinished: true, isCancelled: true });
  });

  // @promise reprocess-cancelled-whole
  test('a reprocess that is cancelled before its start is finished', async () => {
    const id = await requestRun(api.sql, app.appId);
    expect(await cancelReprocessRun(api.sql, id)).toBe(true);
    expect(await findReprocessRun(api.sql, id)).toMatchObject({
      isCancelled: true,
      isFinished: true,
      seen: 0,
    });
  });

  test('a cancelled reprocess ends after its page, and its appended rows stay', async () => {
    const userId = user();
    await bind(userId);
    for (let n = 0; n < 25; n += 1) await acceptAsFailed(purchase(userId));
    const id = await requestRun(api.sql, app.appId);
    const { seen } = await activities.reprocessPage(id);
    expect(await cancelReprocessRun(api.sql, id)).toBe(true);
    expect(await runReprocess(api.sql, activities, id)).toMatchObject({ seen, applied: seen, done: true });
    expect(await findReprocessRun(api.sql, id)).toMatchObject({ isCancelled: true, isFinished: true });
    expect(await ledger()).toHaveLength(seen);
    expect(await cancelReprocessRun(api.sql, await finishedReprocessRun())).toBe(false);
  });

  async function finishedReprocessRun(): Promise<ReprocessRunId> {
    const id = await requestRun(api.sql, app.appId, { from: Date.now() });
    await runReprocess(api.sql, activities, id);
    return id;
  }
});

describe('runs that are requested over the API', () => {
  interface RunBody {
    readonly id: ReprocessRunId;
    readonly status: string;
    readonly applies: string | null;
    readonly deliveries: number;
    readonly commissionCents: number | null;
    readonly revenueCents: number | null;
    readonly code: string;
    readonly detail: string;
  }

  const runs = () => `/apps/${app.appId}/reprocess-runs`;
  const request = async (body: object) => {
    // The range ends now, and what arrived in the same millisecond is not in it.
    api.clock.now = Date.now() + 1;
    return await api.call<RunBody>('POST', runs(), { key: app.key, body });
  };
  const lastDay = { from: Date.now() - DAY_MS };
  const read = async (id: string) =>
    (await api.call<RunBody>('GET', `${runs()}/${id}`, { key: app.key })).body;
  const plansOf = async (id: string) =>
    (
      await api.call<{
        items: { deliveryId: string; outcome: string; refusal: string | null; changes: object[] }[];
      }>('GET', `${runs()}/${id}/changes`, { key: app.key })
    ).body.items;

  /** Requests a run and executes it as its workflow does. */
  const run = async (body: object): Promise<RunBody> => {
    const made = await request(body);
    expect(made).toMatchObject({ status: 201, body: { status: 'waiting' } });
    await runReprocess(api.sql, activities, made.body.id);
    return await read(made.body.id);
  };

  test('of deliveries that were received in one microsecond, a dry run of several pages and the run that applies it leave none out', async () => {
    const userId = user();
    await bind(userId);
    for (let n = 0; n < 45; n += 1) await acceptAsFailed(purchase(userId));
    await receivedInOneMicrosecond();
    const dry = await run(lastDay);
    expect(dry).toMatchObject({ changed: 45, commissionCents: 45 * 200 });
    expect(await run({ apply: dry.id })).toMatchObject({ applied: 45 });
    expect(await ledger()).toHaveLength(45);
    const listed = new Set<string>();
    let cursor: string | null = '';
    while (cursor !== null) {
      const { body }: { body: { items: { id: string }[]; nextCursor: string | null } } = await api.call(
        'GET',
        `/apps/${app.appId}/diagnostics/webhooks?limit=20${cursor && `&cursor=${cursor}`}`,
        { key: app.key },
      );
      for (const { id } of body.items) listed.add(id);
      cursor = body.nextCursor;
    }
    expect(listed.size).toBe(45);
  });

  test('a range that ends in the future ends when the run is requested, and one that begins there is a 400', async () => {
    const made = await request({ ...lastDay, to: Date.now() + DAY_MS });
    expect(made).toMatchObject({ status: 201, body: { to: api.clock.now } });
    expect(await request({ from: Date.now() + DAY_MS, to: Date.now() + 2 * DAY_MS })).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'from' }] },
    });
  });

  // @promise reprocess-api-applies-shown, reprocess-api-get, reprocess-api-changes
  test('a dry run over the API shows its money, and the run that applies it appends exactly that', async () => {
    const userId = user();
    await bind(userId);
    const delivered = await acceptAsFailed(purchase(userId));
    const before = await everything();
    const dry = await run(lastDay);
    expect(await everything()).toBe(before);
    expect(dry).toMatchObject({
      dryRun: true,
      applies: null,
      status: 'finished',
      deliveries: 1,
      seen: 1,
      changed: 1,
      applied: 0,
      commissionCents: 200,
      revenueCents: 1000,
    });
    expect(await plansOf(dry.id)).toMatchObject([
      {
        deliveryId: delivered.deliveryId,
        outcome: 'would_append',
        refusal: null,
        changes: [
          {},
          {},
          {},
          {},
          { what: 'commission', amountCents: 200, affiliateId, appended: true },
          {},
          {},
        ],
      },
    ]);
    // What arrives after the dry run was not shown, so it is not appended.
    await acceptAsFailed(purchase(userId));
    const applied = await run({ apply: dry.id });
    expect(applied).toMatchObject({
      dryRun: false,
      applies: dry.id,
      deliveries: 1,
      applied: 1,
      commissionCents: 200,
      revenueCents: 1000,
    });
    expect(await plansOf(applied.id)).toMatchObject([{ outcome: 'appended' }]);
    expect(await ledger()).toEqual([{ kind: 'earning', amountCents: 200, eventId: delivered.eventId }]);
    // Applied again, nothing is left.
    const again = await run({ apply: dry.id });
    expect(again).toMatchObject({ applied: 0, commissionCents: 0 });
    expect(await plansOf(again.id)).toMatchObject([{ outcome: 'refused', changes: [{ what: 'nothing' }] }]);
    expect(await ledger()).toHaveLength(1);
  });

  // @promise reprocess-api-applies-shown
  test('a delivery that would append something else since the dry run is refused, and the next ones are planned without it', async () => {
    const [userId, other] = [user(), user()];
    await bind(other);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await acceptAsFailed(purchase(userId, { transactionId, occurredAt }));
    await acceptAsFailed(
      bodyOf(revenuecatRefund({ userId, usd: 5, transactionId, occurredAt: occurredAt + 1000 })),
    );
    await acceptAsFailed(purchase(other));
    const dry = await run(lastDay);
    expect(dry).toMatchObject({ changed: 3, commissionCents: 200 });
    // The dry run showed no commission for this user, who is bound only now.
    await bind(userId);
    const applied = await run({ apply: dry.id });
    const plans = await plansOf(applied.id);
    expect(plans.map(({ outcome }) => outcome)).toEqual(['refused', 'appended', 'appended']);
    expect(plans[0]).toMatchObject({
      refusal: 'What it would append has changed since the dry run. Start a new dry run.',
    });
    expect(plans[0]?.changes).toContainEqual(
      expect.objectContaining({ what: 'commission', amountCents: 200 }),
    );
    // On top of the refused purchase, the refund would have taken money back, and would have been refused, too.
    expect(applied).toMatchObject({ applied: 2, commissionCents: 200 });
    expect(await ledger()).toHaveLength(1);
    // The next dry run shows what is left: the commission, less the half that was refunded.
    expect(await run(lastDay)).toMatchObject({ changed: 1, commissionCents: 100 });
  });

  // @promise reprocess-api-applies-shown
  test('a run that is killed after any statement, and goes on under another rate, appends what was shown or nothing', async () => {
    let earned = 0;
    for (let completed = 0; ; completed += STATEMENTS) {
      await setUpApp();
      const userId = user();
      await bind(userId);
      await acceptAsFailed(purchase(userId));
      const dry = await run(lastDay);
      const { body: applying } = await request({ apply: dry.id });
      const isKilled = await runReprocess(
        api.sql,
        newActivities({ sql: failingAfter(completed) }),
        applying.id,
      ).then(
        () => false,
        () => true,
      );
      await api.call('PATCH', `/apps/${app.appId}/settings`, {
        key: app.key,
        body: { commissionRateBps: 5_000 },
      });
      await runReprocess(api.sql, activities, applying.id);
      const [plan] = await plansOf(applying.id);
      const rows = await ledger();
      expect(rows).toMatchObject(plan?.outcome === 'appended' ? [{ amountCents: 200 }] : []);
      expect(plan?.refusal ?? null).toBe(
        rows.length > 0 ? null : 'What it would append has changed since the dry run. Start a new dry run.',
      );
      earned += rows.length;
      if (isKilled) continue;
      expect(completed).toBeGreaterThan(earned);
      expect(earned).toBeGreaterThan(1);
      return;
    }
  }, 120_000);

  test('only a dry run that shows something to append, and that no run has applied, can be applied', async () => {
    await acceptAsReadBefore(purchase(user()), { environment: 'sandbox' });
    expect(await run(lastDay)).toMatchObject({ status: 'finished', changed: 1, isApplicable: false });
    await acceptAsFailed(purchase(user()));
    expect((await request(lastDay)).body).toMatchObject({ isApplicable: false });
    await api.sql`update reprocess_runs set finished_at = now(), cancelled = true where finished_at is null`;
    const dry = await run(lastDay);
    expect(dry).toMatchObject({ changed: 2, isApplicable: true });
    expect(await run({ apply: dry.id })).toMatchObject({ applied: 1, isApplicable: false });
    expect(await read(dry.id)).toMatchObject({ isApplicable: false });
  });

  test('a dry run reads only the deliveries of its filters', async () => {
    const failed = await acceptAsFailed(purchase(user()));
    await acceptAsReadBefore(purchase(user()), {});
    expect(await run({ ...lastDay, processingStatus: 'failed' })).toMatchObject({ deliveries: 1, seen: 1 });
    expect(await run({ ...lastDay, processingStatus: 'processed' })).toMatchObject({
      deliveries: 1,
      seen: 1,
    });
    expect(await run({ ...lastDay, source: 'stripe' })).toMatchObject({ deliveries: 0, seen: 0 });
    expect(await run({ ...lastDay, source: 'revenuecat' })).toMatchObject({ deliveries: 2, seen: 2 });
    expect(await run({ deliveryId: failed.deliveryId })).toMatchObject({
      deliveryId: failed.deliveryId,
      from: null,
      seen: 1,
    });
  });

  // @promise reprocess-api-one-at-a-time, reprocess-api-cancel
  test('of many concurrent requests one gets the run of the app, and the others a 409 that names it', async () => {
    await acceptAsFailed(purchase(user()));
    const answers = await Promise.all(Array.from({ length: 6 }, async () => await request(lastDay)));
    const made = answers.filter(({ status }) => status === 201);
    expect(made).toHaveLength(1);
    const id = made[0]?.body.id ?? '';
    for (const refused of answers.filter(({ status }) => status !== 201)) {
      expect(refused).toMatchObject({ status: 409, body: { code: 'reprocess_run_in_progress' } });
      expect(refused.body.detail).toContain(id);
    }
    // Another app is free.
    const other = await newApp(api);
    const path = `/apps/${other.appId}/reprocess-runs`;
    expect((await api.call('POST', path, { key: other.key, body: lastDay })).status).toBe(201);
    const cancelled = await api.call<RunBody>('POST', `${runs()}/${id}/cancel`, { key: app.key });
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } });
    expect((await request(lastDay)).status).toBe(201);
  });

  // @promise reprocess-api-refusals
  test("a request is refused for a run that cannot be applied, another app's ids and a range that is too long", async () => {
    const delivered = await acceptAsFailed(purchase(user()));
    const dry = await run(lastDay);
    const applied = await run({ apply: dry.id });
    const notApplicable = { status: 409, body: { code: 'reprocess_run_not_applicable' } };
    expect(await request({ apply: applied.id })).toMatchObject(notApplicable);
    expect(await request({ apply: (await run({ from: Date.now() - 1, to: Date.now() })).id })).toMatchObject(
      notApplicable,
    );
    const other = await newApp(api);
    const elsewhere = async (body: object) =>
      await api.call('POST', `/apps/${other.appId}/reprocess-runs`, { key: other.key, body });
    expect((await elsewhere({ apply: dry.id })).status).toBe(404);
    expect((await elsewhere({ apply: newId('reprocessRun') })).status).toBe(404);
    for (const deliveryId of [delivered.deliveryId, newId('delivery'), 'x']) {
      expect(await elsewhere({ deliveryId })).toMatchObject({
        status: 400,
        body: { errors: [{ path: 'deliveryId' }] },
      });
    }
    for (const body of [
      {},
      { ...lastDay, apply: dry.id },
      { apply: dry.id, source: 'stripe' },
      { from: 7, to: 7 },
    ])
      expect(await request(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
    await api.sql`
      insert into deliveries (id, app_id, provider, received_at, processing_status, signature_valid, secret_id, body_sha256,
                              proof, event_id, completed_at)
      select 'del_1' || lpad(n::text, 25, '0'), d.app_id, d.provider, d.received_at, 'ignored', true, d.secret_id, d.body_sha256,
             d.proof, 'evt_1' || lpad(n::text, 25, '0'), d.completed_at
        from deliveries d, generate_series(1, 10001) n where d.id = ${delivered.deliveryId}`;
    const tooMany = await request(lastDay);
    expect(tooMany).toMatchObject({ status: 400, body: { errors: [{ path: 'from' }] } });
    // An index has the few that failed.
    expect((await request({ ...lastDay, processingStatus: 'failed' })).status).toBe(201);
  });

  // @promise reprocess-api-list
  test('runs are listed latest first, with those of the command line, and a cancelled run stays', async () => {
    const first = await run(lastDay);
    const ofCommandLine = await requestRun(api.sql, app.appId);
    await runReprocess(api.sql, activities, ofCommandLine);
    const { body } = await api.call<{ items: RunBody[] }>('GET', runs(), { key: app.key });
    expect(body.items.map(({ id }) => id)).toEqual([ofCommandLine, first.id]);
    expect(body.items[0]).toMatchObject({ keyId: null, from: null, dryRun: false });
    expect(body.items[1]).toMatchObject({ from: lastDay.from, keyId: expect.stringMatching(/^key_/) });
    const cancelled = await api.call('POST', `${runs()}/${first.id}/cancel`, { key: app.key });
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'finished' } });
  });
});

describe('selection of deliveries', () => {
  // @promise reprocess-selection
  test('a reprocess selects one delivery or a half-open range of receipt times', async () => {
    const delivered = [];
    for (let n = 0; n < 4; n += 1) delivered.push(await acceptAsFailed(purchase(user())));
    const at = (n: number) => Date.now() - (10 - n) * 1000;
    for (const [n, { deliveryId }] of delivered.entries()) {
      await api.sql`update deliveries set received_at = ${instant(at(n))} where id = ${deliveryId}`;
    }
    const rows = await api.sql<{ id: string; at: number }>`
      select id, received_at as at from deliveries where app_id = ${app.appId} order by received_at`;
    const [, second, , fourth] = rows;
    const seen = async (over: Parameters<typeof requestRun>[2]) =>
      (await reprocess({ dryRun: true, ...over })).found.map(({ deliveryId }) => deliveryId);
    expect(await seen({ from: second?.at ?? 0, to: fourth?.at ?? 0 })).toEqual([rows[1]?.id, rows[2]?.id]);
    expect(await seen({ from: (second?.at ?? 0) + 1, to: (fourth?.at ?? 0) + 1 })).toEqual([
      rows[2]?.id,
      rows[3]?.id,
    ]);
    expect(await seen({ deliveryId: delivered[2]?.deliveryId ?? null })).toEqual([delivered[2]?.deliveryId]);
    expect(await seen({})).toHaveLength(4);
  });

  test('a reprocess excludes rejected and unfinished deliveries and those of other apps', async () => {
    await accept(purchase(user()));
    await api.call('POST', `/webhooks/revenuecat/${app.appId}`, {
      body: '{}',
      headers: { authorization: 'wrong' },
    });
    expect(await reprocess()).toMatchObject({ seen: 0, deliveries: 0 });
    const delivered = await acceptAsFailed(purchase(user()));
    const otherApp = await newApp(api);
    await expect(requestRun(api.sql, otherApp.appId, { deliveryId: delivered.deliveryId })).rejects.toThrow(
      'not accepted',
    );
    expect(await runReprocess(api.sql, activities, await requestRun(api.sql, otherApp.appId))).toMatchObject({
      seen: 0,
    });
  });
});

describe('runs of several pages', () => {
  test('a run of several pages appends each of deliveries that were all received in one microsecond', async () => {
    const userId = user();
    await bind(userId);
    for (let n = 0; n < 45; n += 1) await acceptAsFailed(purchase(userId));
    await receivedInOneMicrosecond();
    await reprocess();
    expect(await ledger()).toHaveLength(45);
  });

  // @promise dry-run-many-pages
  test('a dry run of several pages reports the changes of the reprocess', async () => {
    const userId = user();
    await bind(userId);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await acceptAsFailed(
      bodyOf(revenuecatRefund({ userId, usd: 5, transactionId, occurredAt: occurredAt + 1000 })),
    );
    for (let n = 0; n < 45; n += 1) await acceptAsFailed(purchase(user()));
    await acceptAsFailed(purchase(userId, { transactionId, occurredAt }));
    const dry = await reprocess({ dryRun: true });
    expect(await ledger()).toEqual([]);
    expect(centsFound(dry, 'commission')).toBe(100);
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
    expect(await ledger()).toMatchObject([{ amountCents: 200 }, { amountCents: -100 }]);
  });

  // @promise dry-run-many-pages
  test('a dry run includes earlier deliveries that a delivery depends on, many pages back', async () => {
    const userId = user();
    await bind(userId);
    const body = purchase(userId);
    const transactionId = randomUUID();
    const occurredAt = Date.now() - DAY_MS;
    await acceptAsFailed(body);
    await acceptAsFailed(purchase(userId, { transactionId, occurredAt }));
    for (let n = 0; n < 65; n += 1) await acceptAsFailed(purchase(user()));
    const again = await acceptAsFailed(body);
    const refund = await acceptAsFailed(
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

  test('a dry run resumed after a crash reports no effect of later deliveries', async () => {
    const [giver, receiver] = [user(), user()];
    await bind(giver);
    const bought = await acceptAsFailed(purchase(receiver));
    await reprocess({ deliveryId: bought.deliveryId });
    await acceptAsFailed(
      bodyOf(revenuecatTransfer({ from: [giver], to: [receiver], occurredAt: Date.now() })),
    );
    const whole = await reprocess({ dryRun: true });
    for (let completed = 0; completed < 6; completed += 1) {
      const id = await requestRun(api.sql, app.appId, { dryRun: true });
      await runReprocess(api.sql, newActivities({ sql: failingAfter(completed) }), id).catch(() => {});
      const { found } = await runReprocess(api.sql, activities, id);
      expect(found.map(({ changes }) => changes)).toEqual(whole.found.map(({ changes }) => changes));
    }
    expect(changesOf(whole, bought)).toEqual([]);
  });

  // @promise dry-run-many-pages
  test('a dry run includes a chain of two transfers before a purchase', async () => {
    const [first, second, third] = [user(), user(), user()];
    await bind(first);
    for (const [from, to] of [[first, second] as const, [second, third] as const]) {
      await acceptAsFailed(bodyOf(revenuecatTransfer({ from: [from], to: [to], occurredAt: Date.now() })));
      for (let n = 0; n < 21; n += 1) await acceptAsFailed(purchase(user()));
    }
    const bought = await acceptAsFailed(purchase(third));
    const dry = await reprocess({ dryRun: true });
    expect(changesOf(dry, bought)).toContainEqual(
      expect.objectContaining({ what: 'commission', amountCents: 200, affiliateId }),
    );
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
  });

  // @promise dry-run-many-pages
  test('a dry run includes a transfer several pages before a purchase', async () => {
    const [giver, receiver] = [user(), user()];
    await bind(giver);
    await acceptAsFailed(
      bodyOf(revenuecatTransfer({ from: [giver], to: [receiver], occurredAt: Date.now() })),
    );
    for (let n = 0; n < 25; n += 1) await acceptAsFailed(purchase(user()));
    const bought = await acceptAsFailed(purchase(receiver));
    const dry = await reprocess({ dryRun: true });
    expect(changesOf(dry, bought)).toContainEqual(
      expect.objectContaining({ what: 'commission', amountCents: 200, affiliateId }),
    );
    const real = await reprocess();
    expect(real.found.map(({ changes }) => changes)).toEqual(dry.found.map(({ changes }) => changes));
  });

  // @promise reprocess-takes-no-lock
  test('a dry run locks no stored sum of dashboards', async () => {
    const userId = user();
    await bind(userId);
    await acceptAsFailed(purchase(userId));
    const id = await requestRun(api.sql, app.appId);
    let locked: string[] = [];
    const looking = newActivities({
      withRollback: async (work) =>
        await withRollback(api.database.url, async (dryRun) => {
          const result = await work(dryRun);
          locked = (
            await dryRun.sql<{ name: string }>`
              select distinct relation::regclass::text as name from pg_locks
               where pid = pg_backend_pid() and mode = 'RowExclusiveLock' and locktype = 'relation'`
          ).map(({ name }) => name);
          return result;
        }),
    });
    await runReprocess(api.sql, looking, id);
    expect(locked).toContain('commissions');
    expect(locked).toContain('rollup_deltas');
    expect(locked.filter((name) => ['rollups', 'rollup_blocks'].includes(name))).toEqual([]);
  });

  // @promise reprocess-survives-crash
  test('a reprocess killed after any statement is resumed, and appends and reports everything once', async () => {
    for (let completed = 0; ; completed += STATEMENTS) {
      await setUpApp();
      const userId = user();
      await bind(userId);
      const delivered = [
        await acceptAsFailed(purchase(userId)),
        await acceptAsReadBefore(purchase(userId), { userIds: [] }),
      ];
      const eventIds = delivered.map(({ eventId }) => eventId);
      const id = await requestRun(api.sql, app.appId);
      const isKilled = await runReprocess(api.sql, newActivities({ sql: failingAfter(completed) }), id).then(
        () => false,
        () => true,
      );
      const reprocessed = await runReprocess(api.sql, activities, id);
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
      if (isKilled) continue;
      expect(completed).toBeGreaterThan(20);
      return;
    }
  }, 120_000);
});

/** Runs a statement without parameters. */
async function runStatement(statement: string): Promise<void> {
  await api.sql(Object.assign([statement], { raw: [statement] }));
}

/** Returns a database connection whose statements fail after `statements` of them; the next one still takes effect. */
function failingAfter(statements: number): Sql {
  let left = statements;
  const failing =
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
  const transaction: Sql['transaction'] = (work) => sql.transaction(work);
  const failingSql: Sql = Object.assign(failing(sql), {
    one: failing(one),
    maybe: failing(maybe),
    fragment: (strings: TemplateStringsArray, ...values: unknown[]) => sql.fragment(strings, ...values),
    json: (value: unknown) => sql.json(value),
    transaction: failing(transaction),
    forManyRows: () => failingSql,
    share: () => failingSql,
    urgent: () => failingSql,
    actingAs: () => failingSql,
    actor: null,
    isTransaction: sql.isTransaction,
    usage: () => sql.usage(),
    renew: () => sql.renew(),
    recentProblem: () => sql.recentProblem(),
    close: () => sql.close(),
  });
  return failingSql;
}
