import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { connect } from '../../src/db/sql.ts';
import type { Sql } from '../../src/db/sql.ts';
import { Admission } from '../../src/http/admission.ts';
import { createIntake } from '../../src/http/intake.ts';
import { newAffiliate, newApp, newLink, startTestApi } from '../support/api.ts';
import type { TestApi, TestApp } from '../support/api.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import type { ApiResponse } from '../support/http-client.ts';
import { eventually } from '../support/eventually.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../support/provider-fixtures.ts';
import { shortestTime } from '../support/shortest-time.ts';
import { untilWaiting } from '../support/waiting.ts';
import { IDLE_WORKFLOWS } from '../support/idle-workflows.ts';

const SECRET = `whsec_test_${'x'.repeat(24)}`;
/** How long a delivery of the flood takes, ms. */
const DELIVERY_MS = 600;
/** A statement that waits for a lock of these tests takes as long, ms: until the test ends the lock. */
const STATEMENT_MS = 20_000;

let database: TestDatabase;
let sql: Sql;
let api: TestApi;
let app: TestApp;
let slug: string;
let inProgress = 0;
let mostInProgress = 0;
/** What each delivery waits for. */
let deliver = async (): Promise<unknown> => await sleep(DELIVERY_MS);
/** The end of the deliveries that are answered as pending; null while deliveries are answered at their end. */
let pendingUntil: Promise<void> | null = null;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = connect({ url: database.url, max: 4, statementTimeoutMs: STATEMENT_MS });
  api = await startTestApi({
    sql,
    intake: createIntake(sql.share(2), { webhooks: 3, openCalls: 20 }),
    workflows: {
      ...IDLE_WORKFLOWS,
      awaitDelivery: async (_delivery, _waitMs, holdSlot) => {
        if (pendingUntil !== null) {
          holdSlot?.(pendingUntil);
          return null;
        }
        inProgress += 1;
        mostInProgress = Math.max(mostInProgress, inProgress);
        await deliver();
        inProgress -= 1;
        return null;
      },
    },
    readiness: async () => {
      await sql`select 1`;
      return [];
    },
  });
  app = await newApp({ ...api, sql });
  ({ slug } = await newLink(api, app, await newAffiliate(api, app)));
  await api.call('PUT', `/apps/${app.appId}/webhooks/stripe/secret`, {
    key: app.key,
    body: { secret: SECRET },
  });
});
afterAll(async () => {
  await api.close();
  await sql.close();
  await database.drop();
});

const webhook = async (secret = SECRET, to: Pick<TestApi, 'call'> = api): Promise<ApiResponse> => {
  const body = bodyOf(stripeInvoicePaid({ userId: 'user', amount: 1_000 }));
  const signature = signStripe(body, secret, Math.floor(api.clock.now / 1000));
  return await to.call('POST', `/webhooks/stripe/${app.appId}`, {
    body,
    headers: { 'stripe-signature': signature },
  });
};
const click = async (): Promise<ApiResponse> =>
  await api.call('POST', '/clicks', { body: { customerAppId: app.appId, slug, claimToken: randomUUID() } });
const statuses = (responses: readonly ApiResponse[], status: number) =>
  responses.filter((response) => response.status === status);

describe('a flood of webhooks', () => {
  // @promise overload-503
  test('webhooks beyond those that are worked on and wait get 503 with Retry-After, and refused ones take no place', async () => {
    const flood = Promise.all(Array.from({ length: 40 }, () => webhook()));
    const forged = await Promise.all(
      Array.from({ length: 10 }, () => webhook('whsec_of_somebody_else_xxxxxxxxxx')),
    );
    const responses = await flood;
    expect(forged.map(({ status }) => status)).toEqual(forged.map(() => 401));
    expect(mostInProgress).toBe(3);
    const refused = statuses(responses, 503);
    expect(statuses(responses, 200).length + refused.length).toBe(40);
    expect(statuses(responses, 200).length).toBeGreaterThanOrEqual(3);
    // Three are worked on and four times as many wait; most of those give up after a second.
    expect(refused.length).toBeGreaterThanOrEqual(25);
    expect(refused.map(({ headers }) => headers.get('retry-after'))).toEqual(refused.map(() => '5'));
    // The slots are free again.
    expect((await webhook()).status).toBe(200);
  });
});

describe('webhooks that are answered as pending', () => {
  // @promise overload-later
  test('are stored while as many workflows as fit are awaited, and theirs are started in turn', async () => {
    const started: string[] = [];
    const ends: (() => void)[] = [];
    const other = await startTestApi({
      sql,
      intake: { ...createIntake(sql.share(2), { webhooks: 3, openCalls: 20 }), deliveries: new Admission(1) },
      workflows: {
        ...IDLE_WORKFLOWS,
        awaitDelivery: async ({ deliveryId, eventId }) => {
          started.push(deliveryId);
          await new Promise<void>((resolve) => ends.push(resolve));
          return { status: 'done', eventId, commissionId: null };
        },
      },
    });
    const answers = await Promise.all([webhook(SECRET, other), webhook(SECRET, other)]);
    expect(answers).toMatchObject([
      { status: 200, body: { pending: true, commissionId: null } },
      { status: 200, body: { pending: true, commissionId: null } },
    ]);
    expect(started).toHaveLength(1);
    ends[0]?.();
    await eventually('the other one is started', async () => await Promise.resolve(started.length === 2));
    const stored = await sql<{ id: string }>`
      select id from deliveries where event_id = any(${answers.map(({ body }) => (body as { eventId: string }).eventId)}::text[])`;
    expect(started.toSorted()).toEqual(stored.map(({ id }) => id).toSorted());
    ends[1]?.();
    await other.close();
  });

  test('hold their slots also where the delivery says so only when the response is due', async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const other = await startTestApi({
      sql,
      intake: createIntake(sql.share(2), { webhooks: 1, openCalls: 20 }),
      workflows: {
        ...IDLE_WORKFLOWS,
        awaitDelivery: async (_delivery, waitMs, holdSlot) => {
          // A timer of the same length that was started a moment later.
          await sleep(waitMs + 20);
          holdSlot?.(ended);
          return null;
        },
      },
    });
    expect(await webhook(SECRET, other)).toMatchObject({ status: 200, body: { pending: true } });
    expect((await webhook(SECRET, other)).status).toBe(503);
    end();
    await other.close();
  });

  // @promise overload-pending
  test('hold their slots until their deliveries have ended, and at most half of all slots', async () => {
    let endAll = () => {};
    pendingUntil = new Promise((resolve) => {
      endAll = resolve;
    });
    const pending = await Promise.all([webhook(), webhook(), webhook()]);
    expect(pending.map(({ status, body }) => [status, body])).toEqual(
      pending.map(() => [200, expect.objectContaining({ pending: true })]),
    );
    pendingUntil = null;
    // Two of the three slots are held, so these are worked on one after the other: the second one while the first one has the slot
    // is refused after a second.
    [inProgress, mostInProgress] = [0, 0];
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    deliver = async () => {
      if (inProgress === 1) await ended;
    };
    const first = webhook();
    await eventually('the first one is worked on', async () => await Promise.resolve(inProgress === 1));
    expect((await webhook()).status).toBe(503);
    end();
    expect([(await first).status, (await webhook()).status]).toEqual([200, 200]);
    expect(mostInProgress).toBe(1);
    endAll();
    // Each waits for the other one.
    deliver = async () =>
      await eventually('both are worked on', async () => await Promise.resolve(mostInProgress === 2));
    expect(statuses(await Promise.all([webhook(), webhook()]), 200)).toHaveLength(2);
    expect(mostInProgress).toBe(2);
    deliver = async () => await sleep(DELIVERY_MS);
  });
});

describe('a flood while the database is slow', () => {
  // @promise overload-reads
  test('reads, health and new links respond at once while webhooks and clicks use up their share of the connections', async () => {
    const client = new pg.Client(database.url);
    await client.connect();
    await client.query('begin');
    // Every click and every accepted delivery now waits for a lock.
    await client.query('lock table clicks, deliveries in exclusive mode');
    const flood = Promise.all([
      ...Array.from({ length: 30 }, click),
      ...Array.from({ length: 30 }, () => webhook()),
    ]);
    // The share of calls from outside.
    await untilWaiting(sql, 2);
    let reads: { readonly status: number }[] = [];
    const took = await shortestTime(2_900, async () => {
      reads = await Promise.all([
        api.call('GET', '/readyz'),
        api.call('GET', `/apps/${app.appId}/overview`, { key: app.key }),
        api.call('GET', `/apps/${app.appId}/payouts/preview`, { key: app.key }),
        newAffiliate(api, app).then(() => ({ status: 201 })),
      ]);
    });
    await client.query('rollback');
    await client.end();
    expect(reads.map(({ status }) => status)).toEqual([200, 200, 200, 201]);
    // Less than any statement that waits for the lock takes.
    expect(took).toBeLessThan(2_900);
    const responses = await flood;
    expect(statuses(responses, 200).length + statuses(responses, 503).length).toBe(60);
    expect(statuses(responses, 200).length).toBeGreaterThan(3);
  });
});

describe('an endpoint whose waiting messages fail with it', () => {
  test('changes of it and of its messages leave connections for other calls while they wait for it', async () => {
    const path = `/apps/${app.appId}/webhook-endpoints`;
    const call = async (method: string, at: string, body?: unknown) =>
      await api.call<{ id: string }>(method, at, { key: app.key, body });
    const url = 'https://example.com/hook';
    const { id } = (await call('POST', path, { url, eventTypes: ['payout.created'] })).body;
    const message = (await call('POST', `${path}/${id}/test`)).body.id;
    await sql`update webhook_endpoints set failing_since = now() where id = ${id}`;
    const client = new pg.Client(database.url);
    await client.connect();
    await client.query('begin');
    await client.query('select from webhook_endpoints where id = $1 for no key update', [id]);
    const waiting = Promise.all(
      Array.from({ length: 4 }, () => [
        call('PATCH', `${path}/${id}`, { description: 'CRM' }),
        call('POST', `${path}/${id}/rotate-secret`, {}),
        call('POST', `${path}/${id}/test`),
        call('POST', `/apps/${app.appId}/webhook-messages/${message}/send-again`),
        call('DELETE', `${path}/${id}`),
      ]).flat(),
    );
    await untilWaiting(sql, 2);
    const took = await shortestTime(2_000, async () => expect((await call('GET', path)).status).toBe(200));
    expect(took).toBeLessThan(2_000);
    await client.query('rollback');
    await client.end();
    // Those that follow the deletion find no endpoint.
    expect((await waiting).map(({ status }) => status).filter((status) => status >= 500)).toEqual([]);
  });
});
