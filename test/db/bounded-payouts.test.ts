import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { pino } from 'pino';
import { createDeliveryActivities } from '../../activities/delivery.ts';
import type { DeliveryActivities } from '../../activities/delivery.ts';
import { createSecretBox } from '../../src/config/secret-box.ts';
import { closePayoutRequest, openPayoutRequest, settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { newId } from '../../src/db/new-id.ts';
import { connect } from '../../src/db/sql.ts';
import { previewPayouts } from '../../src/db/payout-lists.ts';
import type { AffiliateId, AppId, KeyId, PayoutRequestId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { dueCents, insertDueCommissions } from '../../tools/bench/due-commissions.ts';
import { NO_CALLBACKS } from '../../tools/no-callbacks.ts';
import { newAffiliate, newApp, startTestApi, TEST_KEY } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import type { WebhookResponse } from '../support/founder.ts';
import { bodyOf, fakeSecret, PROOFS, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { insertEarning, insertReversal } from '../support/ledger.ts';
import { expectConsistentLedger } from '../support/consistent-ledger.ts';
import { untilWaiting } from '../support/waiting.ts';
import { IDLE_WORKFLOWS } from '../support/idle-workflows.ts';

/** Earnings per payout, instead of 50,000. */
const LIMIT = 3;
let limit = LIMIT;

let api: TestApi;
let app: TestApp;
let delivery: DeliveryActivities;
let affiliateId: AffiliateId;

beforeAll(async () => {
  api = await startTestApi({
    workflows: {
      ...IDLE_WORKFLOWS,
      awaitDelivery: async ({ deliveryId }) => await delivery.processDelivery(deliveryId),
      settlePayout: async ({ id }) => await settlePayoutRequest(api.sql, id, limit),
    },
  });
  delivery = createDeliveryActivities({
    sql: api.sql,
    secretBox: createSecretBox([TEST_KEY]),
    logger: pino({ level: 'silent' }),
    ...NO_CALLBACKS,
  });
  app = await newApp(api);
});
beforeEach(async () => {
  limit = LIMIT;
  affiliateId = (await newAffiliate(api, app)) as AffiliateId;
});
afterAll(async () => {
  await api.close();
});

const START = Date.now() - 100 * DAY_MS;

/** Inserts due earnings of these amounts, the oldest first. Returns their ids. */
async function earn(...amounts: number[]): Promise<string[]> {
  const ids: string[] = [];
  for (const [day, amountCents] of amounts.entries()) {
    const occurredAt = START + day * DAY_MS;
    ids.push(
      await insertEarning(api, app, { affiliateId, amountCents, occurredAt, dueAt: occurredAt + DAY_MS }),
    );
  }
  return ids;
}

/** Exports, and returns what the payout contains and whether the response says that more is due. */
async function exportOnce(body: object = {}) {
  const path = `/apps/${app.appId}/affiliates/${affiliateId}/payouts/export`;
  const answer = await api.call('POST', path, { key: app.key, body });
  const lines = answer.text.trimEnd().split('\r\n').slice(1);
  return {
    status: answer.status,
    amounts: lines.map((line) => Number(line.split(',')[4])),
    ids: lines.map((line) => line.split(',')[3] ?? ''),
    moreDue: answer.headers.get('x-payout-more-due'),
    totalCents: answer.headers.get('x-payout-total-cents'),
  };
}

/** Returns what opens a payout request of the affiliate. */
async function newRequest(expectedTotalCents: number | null = null) {
  const { keyId } = await api.sql.one<{ keyId: KeyId }>`
    select id as key_id from account_keys where account_id = ${app.accountId} limit 1`;
  const id = newId('payoutRequest');
  const { accountId } = app;
  const appId = app.appId as AppId;
  const request = { id, appId, affiliateId, accountId, keyId, idempotencyKey: null, expectedTotalCents };
  return { ...request, validForMs: 60_000 };
}

/** Opens a payout request of the affiliate. */
async function openRequest(expectedTotalCents: number | null): Promise<PayoutRequestId> {
  const request = await newRequest(expectedTotalCents);
  await openPayoutRequest(api.sql, request);
  return request.id;
}

/** Runs `work` while `start`s settlement has decided and waits to insert its payout. Then both end. */
async function whilePayoutIsHeld(
  start: () => Promise<void>,
  work: () => Promise<{ readonly also: Promise<void> } | void>,
): Promise<void> {
  const holder = new pg.Client(api.database.url);
  await holder.connect();
  await holder.query(`
    create function hold_payout() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(1);
      return new;
    end $$;
    create trigger payouts_hold before insert on payouts for each row execute function hold_payout();
    select pg_advisory_lock(1)`);
  try {
    const settling = start();
    await untilWaiting(api.sql);
    const ended = await work();
    await holder.query('select pg_advisory_unlock(1)');
    await settling;
    await ended?.also;
  } finally {
    await holder.query('select pg_advisory_unlock_all()');
    await holder.query('drop trigger payouts_hold on payouts; drop function hold_payout');
    await holder.end();
  }
}

describe('a payout is bounded', () => {
  // @promise payout-bounded
  test('it contains the oldest due earnings, and repeated exports pay each commission once', async () => {
    const ids = await earn(1, 2, 3, 4, 5, 6, 7);
    const exports = [await exportOnce(), await exportOnce(), await exportOnce(), await exportOnce()];
    expect(exports.map(({ amounts }) => amounts)).toEqual([[1, 2, 3], [4, 5, 6], [7], []]);
    expect(exports.map(({ moreDue }) => moreDue)).toEqual(['true', 'true', 'false', 'false']);
    expect(exports.flatMap((one) => one.ids)).toEqual(ids);
  });

  // @promise payout-bounded
  test('it contains all due reversals, so that no export pays more than is owed', async () => {
    const ids = await earn(100, 100, 100, 100, 100, 100);
    // One reversal more than a payout has earnings.
    for (const id of ids.slice(2)) {
      await insertReversal(api, id ?? '', { amountCents: 60, occurredAt: Date.now() - DAY_MS });
    }
    const first = await exportOnce();
    expect(first.amounts.toSorted((a, b) => a - b)).toEqual([-60, -60, -60, -60, 100, 100, 100]);
    expect(first.moreDue).toBe('true');
    expect(await exportOnce()).toMatchObject({ amounts: [100, 100, 100], moreDue: 'false' });
  });

  // @promise payout-bounded
  test('it contains more earnings when the reversals outweigh the bound, so that a creator can always be paid', async () => {
    const ids = await earn(1, 1, 1, 100, 100, 100);
    for (const id of ids.slice(3, 5)) {
      await insertReversal(api, id ?? '', { amountCents: 80, occurredAt: Date.now() - DAY_MS });
    }
    const first = await exportOnce();
    expect(first.amounts.reduce((sum, cents) => sum + cents, 0)).toBe(43);
    expect(first.moreDue).toBe('true');
    expect(await exportOnce()).toMatchObject({ amounts: [100], moreDue: 'false' });
  });

  // @promise payout-bounded
  test('a total of zero or less is carried forward, whatever the bound', async () => {
    const ids = await earn(1, 1, 1, 100);
    await exportOnce();
    await exportOnce();
    for (const id of ids) await insertReversal(api, id, { amountCents: 1, occurredAt: Date.now() - DAY_MS });
    await earn(1, 1, 1, 1);
    expect(await exportOnce()).toMatchObject({ amounts: [], moreDue: 'false' });
  });

  // @promise payout-bounded, expected-total
  test('an expected total is compared with everything that is due, as in the preview', async () => {
    await earn(1, 2, 3, 4, 5);
    const row = async () =>
      (await previewPayouts(api.sql, app.appId as AppId, Date.now(), null, LIMIT)).find(
        (found) => found.affiliateId === affiliateId,
      );
    expect(await row()).toMatchObject({ count: 5, totalCents: 15, moreRemains: true });
    expect((await exportOnce({ expectedTotalCents: 6 })).status).toBe(409);
    expect(await exportOnce({ expectedTotalCents: 15 })).toMatchObject({
      amounts: [1, 2, 3],
      moreDue: 'true',
      // What was paid, not what was expected.
      totalCents: '6',
    });
    expect(await row()).toMatchObject({ count: 2, totalCents: 9, moreRemains: false });
    expect(await exportOnce({ expectedTotalCents: 9 })).toMatchObject({ amounts: [4, 5], moreDue: 'false' });
    expect(await exportOnce()).toMatchObject({ amounts: [], totalCents: '0' });
  });

  // @promise payout-bounded, expected-total
  test('of two concurrent exports with the same expected total one pays, and the other finds a changed total', async () => {
    await earn(1, 2, 3, 4, 5, 6, 7, 8);
    const [first, second] = [await openRequest(36), await openRequest(36)];
    await whilePayoutIsHeld(
      async () => await settlePayoutRequest(api.sql, first, LIMIT),
      async () => {
        const settling = settlePayoutRequest(api.sql, second, LIMIT);
        // For the first settlement of the creator, which waits itself.
        await untilWaiting(api.sql, 2);
        return { also: settling };
      },
    );
    const results = await api.sql<{ id: string; status: string; netCents: number }>`
      select id, status, net_cents from payout_requests where id = any(${[first, second]}::text[])`;
    expect(results.find(({ id }) => id === first)).toMatchObject({ status: 'paid', netCents: 6 });
    expect(results.find(({ id }) => id === second)).toMatchObject({ status: 'total_changed', netCents: 30 });
  });

  // @promise payout-bounded
  test('a refund does not wait for a payout of the same creator, which decides again with the reversal', async () => {
    const [id] = await earn(100, 100);
    const requestId = await openRequest(null);
    await whilePayoutIsHeld(
      async () => await settlePayoutRequest(api.sql, requestId),
      async () => {
        const reversing = insertReversal(api, id ?? '', { amountCents: 10, occurredAt: Date.now() - DAY_MS });
        const first = await Promise.race([
          reversing,
          sleep(10_000, 'it waits for the payout', { ref: false }),
        ]);
        expect(first).toMatch(/^com_/);
      },
    );
    const { total } = await api.sql.one<{ total: number }>`
      select total_cents as total from payouts where affiliate_id = ${affiliateId}`;
    expect(total).toBe(190);
  });
});

// @promise payout-bounded
test('repeated exports pay hundreds of commissions once each while webhooks of the same creator are answered', async () => {
  limit = 70;
  api.clock.now = Date.now();
  const [secret, userId] = [fakeSecret('stripe') ?? '', `user-${randomUUID()}`];
  const webhook = { environment: 'production', secret };
  await api.call('PUT', `/apps/${app.appId}/webhooks/stripe/secret`, { key: app.key, body: webhook });
  const install = { deviceId: userId, affiliateCode: affiliateId, firstOpenAt: Date.now() - DAY_MS };
  await api.call('POST', '/sdk/install', { key: app.sdkKey, body: install });
  const identify = { deviceId: userId, customerUserId: userId, identifiedAt: Date.now() };
  await api.call('POST', '/sdk/identify', { key: app.sdkKey, body: identify });
  await insertDueCommissions(api.sql, { appId: app.appId, customerUserId: userId, status: 'pending' }, 300);

  const progress = { isPaid: false };
  const answers: string[] = [];
  const sendWebhooks = async () => {
    while (!progress.isPaid) {
      const body = bodyOf(stripeInvoicePaid({ userId, amount: 1_000, occurredAt: Date.now() }));
      const headers = PROOFS.stripe(body, secret);
      const path = `/webhooks/stripe/${app.appId}`;
      const answer = await api.call<WebhookResponse>('POST', path, { body: body.toString(), headers });
      answers.push(`${answer.status} ${answer.body.commissionId?.slice(0, 4)}`);
    }
  };
  const sending = sendWebhooks();
  const exports = [];
  do exports.push(await exportOnce());
  while (exports.at(-1)?.moreDue === 'true' && exports.length < 10);
  progress.isPaid = true;
  await sending;

  expect(exports.map(({ ids }) => ids.length)).toEqual([70, 70, 70, 70, 20]);
  expect(new Set(exports.flatMap(({ ids }) => ids)).size).toBe(300);
  const due = Array.from({ length: 300 }, (_, n) => dueCents(n + 1));
  const sum = (cents: readonly number[]) => cents.reduce((total, one) => total + one, 0);
  expect(sum(exports.flatMap(({ amounts }) => amounts))).toBe(sum(due));
  expect(answers.length).toBeGreaterThan(0);
  expect(answers.filter((answer) => answer !== '200 com_')).toEqual([]);
});

test('the sums of payouts are those of their items after all of this', async () => {
  const checks = [
    'payouts_are_the_sum_of_their_items',
    'paid_once',
    'paid_means_in_a_payout',
    'payouts_have_their_request',
  ];
  await expectConsistentLedger(api.sql, checks);
});

describe('sums beyond 2^53 cents', () => {
  // @promise sums-beyond-2-53
  test('two huge earnings fail no dashboard and are paid by two exports', async () => {
    const huge = 6_000_000_000_000_000;
    await earn(huge, huge);
    api.clock.now = Date.now();
    const get = async <T>(path: string) => {
      const { status, body } = await api.call<T>('GET', `/apps/${app.appId}${path}`, { key: app.key });
      expect({ path, status }).toEqual({ path, status: 200 });
      return body;
    };
    const { commissions } = await get<{ commissions: { lifetime: number } }>('/overview');
    expect(commissions.lifetime).toBeGreaterThanOrEqual(2 * huge);
    const creator = await get<{ earnings: { lifetime: number } }>(`/affiliates/${affiliateId}/overview`);
    expect(creator.earnings.lifetime).toBe(2 * huge);
    const { points } = await get<{ points: { commissionCents: number }[] }>(
      `/timeseries?from=${START - DAY_MS}&to=${START + 20 * DAY_MS}&interval=month`,
    );
    expect(points.reduce((sum, point) => sum + point.commissionCents, 0)).toBeGreaterThanOrEqual(2 * huge);
    const { rows } = await get<{ rows: { affiliateId: string; totalCents: number }[] }>('/payouts/preview');
    expect(rows.find((row) => row.affiliateId === affiliateId)?.totalCents).toBe(2 * huge);
    await get('/affiliates?sort=earnings');
    expect(await exportOnce()).toMatchObject({ amounts: [huge], moreDue: 'true' });
    expect(await exportOnce()).toMatchObject({ amounts: [huge], moreDue: 'false' });
  });
});

describe('an idempotency key of payout requests', () => {
  // @promise export-key-freed
  test('a call gets a request of its own when another call closes the request of its key in between', async () => {
    const idempotencyKey = randomUUID();
    const [first, second] = [await newRequest(), await newRequest()];
    await openPayoutRequest(api.sql, { ...first, idempotencyKey });
    let isClosed = false;
    /** Closes the first request after the second one was refused because of it. */
    const closeInBetween = async () => {
      const { found } = await api.sql.one<{ found: number }>`
        select count(*)::int as found from payout_requests where id in (${first.id}, ${second.id})`;
      expect(found).toBe(1);
      isClosed = await closePayoutRequest(api.sql, first.id);
    };
    const { sql } = api;
    const interrupted = async (strings: TemplateStringsArray, ...values: readonly unknown[]) => {
      const rows = await sql(strings, ...values);
      if (!isClosed && strings[0]?.includes('insert into payout_requests') === true) await closeInBetween();
      return rows;
    };
    const opened = await openPayoutRequest(Object.assign(interrupted, sql), {
      ...second,
      idempotencyKey,
    });
    expect(isClosed).toBe(true);
    expect(opened).toMatchObject({ id: second.id, status: 'open' });
  });

  // @promise export-paid-or-not
  test('closing a request waits for a settlement that takes longer than other statements may', async () => {
    const { id } = await newRequest();
    await openPayoutRequest(api.sql, { ...(await newRequest()), id, idempotencyKey: null });
    const impatient = connect({ url: api.database.url, max: 1, statementTimeoutMs: 200, patienceMs: 200 });
    const settling = new pg.Client({ connectionString: api.database.url });
    await settling.connect();
    try {
      await settling.query('begin');
      await settling.query('select from payout_requests where id = $1 for update', [id]);
      const closing = closePayoutRequest(impatient, id);
      await sleep(1_000);
      await settling.query('commit');
      expect(await closing).toBe(true);
    } finally {
      await settling.end();
      await impatient.close();
    }
  });

  test('a payout request for an affiliate of another app is not opened', async () => {
    const other = await newApp(api);
    for (const idempotencyKey of [null, randomUUID()]) {
      const request = { ...(await newRequest()), appId: other.appId as AppId, idempotencyKey };
      expect(await openPayoutRequest(api.sql, request)).toBeUndefined();
    }
  });
});
