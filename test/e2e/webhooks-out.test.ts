import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import pino from 'pino';
import { newId } from '../../src/db/new-id.ts';
import { WEBHOOK_TYPES } from '../../src/domain/outgoing-webhooks.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { SEND_NOW } from '../../src/domain/signals.ts';
import { createWorkflowStarter } from '../../temporal/workflow-starter.ts';
import { createAuthority, createCertificate } from '../support/certificates.ts';
import { startChildService } from '../support/child-service.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { runOn } from '../support/postgres-admin.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { runAdminIn } from '../support/run-admin.ts';
import { textOf } from '../support/text-of.ts';
import { startReceiver } from '../support/webhook-receiver.ts';
import type { ReceivedMessage, WebhookReceiver } from '../support/webhook-receiver.ts';

/** The waits between attempts in this test, ms. The last one is long. */
const RETRIES = [100, DAY_MS];

let service: TestService;
let founder: Founder;
let receiver: WebhookReceiver;

beforeAll(async () => {
  service = await startTestService({
    settings: { webhookTargets: 'any', webhookRetryMs: RETRIES, relay: { overdueMs: 30_000, pauseMs: 100 } },
  });
});
afterAll(async () => {
  await service.close();
});
beforeEach(async () => {
  founder = await setUpFounder(service);
  receiver = await startReceiver();
});
afterEach(async () => {
  await receiver.close();
});

interface Endpoint {
  readonly id: string;
  readonly secret: string;
  readonly active: boolean;
  readonly deactivatedReason: string | null;
  readonly failingSince: number | null;
}
interface Message {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly attempts: number;
  readonly nextAttemptAt: number | null;
  readonly lastProblem: string | null;
}

/** Creates an endpoint of the receiver. */
async function newEndpoint(eventTypes: readonly string[], to = receiver): Promise<string> {
  const body = { url: to.url, eventTypes };
  const endpoint = await founder.ok<Endpoint>('POST', `/apps/${founder.app.id}/webhook-endpoints`, body);
  to.secret = endpoint.secret;
  return `/apps/${founder.app.id}/webhook-endpoints/${endpoint.id}`;
}

const messages = async () =>
  (await founder.ok<{ items: Message[] }>('GET', `/apps/${founder.app.id}/webhook-messages`)).items;
const messagePath = (id: string) => `/apps/${founder.app.id}/webhook-messages/${id}`;
const attemptsOf = async (id: string) =>
  (
    await founder.ok<{ items: { number: number; statusCode: number | null; response: string | null }[] }>(
      'GET',
      `${messagePath(id)}/attempts`,
    )
  ).items;

async function eventuallyStatus(id: string, status: string): Promise<Message> {
  await eventually(`the message is ${status}`, async () => {
    return (await founder.ok<Message>('GET', messagePath(id))).status === status;
  });
  return await founder.ok<Message>('GET', messagePath(id));
}

/** The fields of the data of a message, as the example on the page has them. Messages about commissions have the same. */
function fieldsOnPage(type: string): string[] {
  const examples = [...textOf('docs/webhooks-out.md').matchAll(/```json\n(.*?)```/gs)].map(
    ([, json = '']) => JSON.parse(json) as Pick<ReceivedMessage, 'type' | 'data'>,
  );
  const subject = type.split('.')[0];
  return Object.keys(examples.find((one) => one.type.split('.')[0] === subject)?.data ?? {}).toSorted();
}

/** Lets the next attempt at a message begin that waits for it. */
async function makeDue(id: string): Promise<void> {
  await service.sql`
    with endpoint as (update webhook_endpoints set next_probe_at = now() where app_id = ${founder.app.id})
    update webhook_messages set next_attempt_at = now() where id = ${id}`;
  await service.temporal.workflow.getHandle(`webhook:${id}`).signal(SEND_NOW);
}

const eventuallyReceived = async (count: number, to = receiver) =>
  await eventually(`${count} requests arrive`, async () => to.received.length >= count);

describe('outgoing webhooks', () => {
  // @promise webhooks-out-sent, webhooks-out-signed
  test('a commission is announced to the endpoint, signed with its secret, without the id of the user', async () => {
    await newEndpoint(['commission.created']);
    const user = await founder.customer();
    await founder.purchase(user, 19.99);
    await eventuallyReceived(1);
    const [message] = receiver.received;
    // The response to the provider names the commission only if it was written within its time.
    const commission = await service.sql.one<{ id: string; eventId: string }>`
      select id, event_id from commissions where app_id = ${founder.app.id}`;
    expect(message).toMatchObject({
      type: 'commission.created',
      isSigned: true,
      signatures: 1,
      data: {
        commissionId: commission.id,
        eventId: commission.eventId,
        affiliateId: founder.affiliateId,
        kind: 'earning',
        amount: '4.00',
        amountCents: 400,
        currency: 'USD',
      },
    });
    expect(JSON.stringify(message)).not.toContain(user);
    const stored = await eventuallyStatus(message?.id ?? '', 'delivered');
    expect(stored).toMatchObject({ attempts: 1, nextAttemptAt: null, lastProblem: null });
    expect(await attemptsOf(stored.id)).toMatchObject([{ number: 1, statusCode: 204 }]);
  });

  // @promise webhooks-out-sent, webhooks-out-stuck, webhooks-out-signed, webhooks-out-tls
  test('each fact is announced once to a receiver with TLS, whose library accepts it, with the fields of the page', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'tributary-test-'));
    const authority = await createAuthority(folder, 'authority');
    const { certificate, key } = await createCertificate(folder, authority, {
      name: 'receiver',
      hosts: 'DNS:localhost',
    });
    const secure = await startReceiver({ cert: await readFile(certificate), key: await readFile(key) });
    // Node reads the authorities that a process trusts when it starts.
    const database = await createTestDatabase();
    const child = await startChildService(database.url, {
      WEBHOOK_TARGETS: 'any',
      NODE_EXTRA_CA_CERTS: authority.certificate,
    });
    try {
      founder = await setUpFounder({ sql: database.sql, url: child.url });
      await newEndpoint(WEBHOOK_TYPES, secure);
      const user = await founder.customer();
      await founder.purchase(user, 50);
      await founder.purchase(user, 10, { transactionId: 'refunded' });
      await founder.refund(user, 10, 'refunded');
      await eventually('all commissions are written', async () => {
        return (await database.sql`select from commissions`).length === 3;
      });
      expect((await founder.exportCsv()).status).toBe(200);
      // The next delivery arrived half a minute ago, and its commission cannot be written.
      await runOn(
        database.url,
        `create function test_earlier() returns trigger language plpgsql as $$
           begin
             new.received_at := new.received_at - interval '31 seconds';
             new.accepted_at := new.accepted_at - interval '31 seconds';
             return new;
           end $$;
         create function test_breaks() returns trigger language plpgsql as $$ begin raise exception 'the test broke this step'; end $$;
         create trigger test_earlier before insert on deliveries for each row execute function test_earlier();
         create trigger test_breaks before insert on commissions for each row execute function test_breaks();`,
      );
      await founder.purchase(user, 5);
      const expected = [
        'commission.created',
        'commission.created',
        'commission.matured',
        'commission.matured',
        'commission.matured',
        'commission.reversed',
        'delivery.stuck',
        'payout.created',
      ];
      await eventuallyReceived(expected.length, secure);
      expect(secure.received.map(({ type }) => type).toSorted()).toEqual(expected);
      for (const { type, isSigned, data } of secure.received) {
        expect({ type, isSigned, fields: Object.keys(data).toSorted() }).toEqual({
          type,
          isSigned: true,
          fields: fieldsOnPage(type),
        });
      }
      const dataOf = (type: string) => secure.received.find((one) => one.type === type)?.data;
      expect(dataOf('commission.reversed')).toMatchObject({
        kind: 'reversal',
        amount: '-2.00',
        amountCents: -200,
      });
      expect(dataOf('payout.created')).toMatchObject({
        affiliateId: founder.affiliateId,
        total: '10.00',
        totalCents: 1_000,
        itemCount: 3,
      });
      expect(dataOf('delivery.stuck')).toMatchObject({
        provider: 'revenuecat',
        problem: 'writeCommission: PostgresError P0001',
      });
    } finally {
      await child.kill();
      await secure.close();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    }
  });

  // @promise webhooks-out-retries, webhooks-out-send-again
  test('a failed attempt is repeated with the same id and body, and a person ends the wait for the next one', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    receiver.status = 503;
    const { id } = await founder.ok<Message>('POST', `${endpoint}/test`);
    await eventuallyReceived(2);
    await eventually('the next attempt is a day away', async () => {
      const { nextAttemptAt } = await founder.ok<Message>('GET', messagePath(id));
      return nextAttemptAt !== null && nextAttemptAt > Date.now() + DAY_MS / 2;
    });
    const message = await founder.ok<Message>('GET', messagePath(id));
    expect(message).toMatchObject({
      status: 'pending',
      attempts: 2,
      lastProblem: 'The endpoint responded with 503.',
    });
    expect(
      new Set(receiver.received.map((one) => JSON.stringify([one.id, one.type, one.timestamp, one.data])))
        .size,
    ).toBe(1);
    expect((await founder.ok<Endpoint>('GET', endpoint)).failingSince).not.toBeNull();

    receiver.status = 200;
    await founder.ok('POST', `${messagePath(id)}/send-again`);
    await eventuallyStatus(id, 'delivered');
    expect((await attemptsOf(id)).map(({ number, statusCode }) => [number, statusCode])).toEqual([
      [3, 200],
      [2, 503],
      [1, 503],
    ]);
    expect((await founder.ok<Endpoint>('GET', endpoint)).failingSince).toBeNull();

    // A message that was delivered is sent again, too.
    await founder.ok('POST', `${messagePath(id)}/send-again`);
    await eventuallyReceived(4);
    expect(receiver.received[3]?.id).toBe(id);
    await eventuallyStatus(id, 'delivered');
  });

  // @promise webhooks-out-other-url
  test('a message whose workflow waits for an attempt tomorrow is sent at once when its endpoint gets another URL', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    receiver.status = 503;
    const { id } = await founder.ok<Message>('POST', `${endpoint}/test`);
    await eventually('the second attempt is stored', async () => (await attemptsOf(id)).length === 2);
    const repaired = await startReceiver();
    repaired.secret = receiver.secret;
    try {
      await founder.ok('PATCH', endpoint, { url: repaired.url });
      await eventuallyStatus(id, 'delivered');
      expect(repaired.received).toMatchObject([{ id, isSigned: true }]);
    } finally {
      await repaired.close();
    }
  });

  // @promise webhooks-out-other-url
  test('a message that became due is sent by a later claim when the end of the wait of its workflow was lost', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    receiver.status = 503;
    const { id } = await founder.ok<Message>('POST', `${endpoint}/test`);
    await eventually('its workflow waits for the third attempt', async () => {
      if ((await attemptsOf(id)).length < 2) return false;
      const { raw } = await service.temporal.workflow.getHandle(`webhook:${id}`).describe();
      return raw.pendingWorkflowTask == null && (raw.pendingActivities ?? []).length === 0;
    });
    receiver.status = 200;
    // As a claim leaves it whose process ends before the signal.
    await service.sql`
      with endpoint as (update webhook_endpoints set next_probe_at = now() where app_id = ${founder.app.id})
      update webhook_messages set next_attempt_at = now() - interval '30 seconds', relay_at = now() where id = ${id}`;
    await eventuallyStatus(id, 'delivered');
  });

  // @promise webhooks-out-other-url
  test('claims of a due message add no signals to its workflow while workers are unavailable', async () => {
    const starter = createWorkflowStarter({
      client: () => service.temporal,
      taskQueue: 'workers-are-away',
      hasWorker: false,
      logger: pino({ level: 'silent' }),
    });
    const message = { messageId: newId('webhookMessage'), appId: newId('app') };
    expect(await starter.runWebhook({ ...message, due: 'now' })).toBe('started');
    const handle = service.temporal.workflow.getHandle(`webhook:${message.messageId}`);
    try {
      for (const due of ['now', 'earlier', 'earlier', 'earlier'] as const) {
        expect(await starter.runWebhook({ ...message, due })).toBe('running');
      }
      const { events } = await handle.fetchHistory();
      const signals = events?.filter(({ workflowExecutionSignaledEventAttributes: one }) => one != null);
      expect(signals).toHaveLength(1);
    } finally {
      await handle.terminate('ended by the test');
    }
  });

  // @promise webhooks-out-tls
  test('a receiver whose certificate no trusted authority has signed gets nothing, and the message says why', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'tributary-test-'));
    const { certificate, key } = await createAuthority(folder, 'receiver');
    const secure = await startReceiver({ cert: await readFile(certificate), key: await readFile(key) });
    try {
      const endpoint = await newEndpoint(['commission.created'], secure);
      const { id } = await founder.ok<Message>('POST', `${endpoint}/test`);
      await eventually('an attempt is stored', async () => (await attemptsOf(id)).length > 0);
      expect(await founder.ok<Message>('GET', messagePath(id))).toMatchObject({
        status: 'pending',
        lastProblem: 'The certificate of the host is not issued by a trusted authority.',
      });
      expect(secure.received).toEqual([]);
    } finally {
      await secure.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  // @promise webhooks-out-deactivated
  test('an endpoint of which the last attempt at a message fails is deactivated with a reason, and nothing more is sent', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    receiver.status = 500;
    const { id } = await founder.ok<Message>('POST', `${endpoint}/test`);
    await eventuallyReceived(2);
    await eventually('the second attempt is stored', async () => (await attemptsOf(id)).length === 2);
    // A person who tries again has all attempts of a new message: none of hers is the last one.
    await founder.ok('POST', `${messagePath(id)}/send-again`);
    for (const count of [3, 4]) {
      await eventually(`${count} attempts are stored`, async () => (await attemptsOf(id)).length === count);
      expect(await founder.ok<Message>('GET', messagePath(id))).toMatchObject({ status: 'pending' });
      expect(await founder.ok<Endpoint>('GET', endpoint)).toMatchObject({ active: true });
      await makeDue(id);
    }
    await eventuallyStatus(id, 'failed');
    expect(await founder.ok<Endpoint>('GET', endpoint)).toMatchObject({
      active: false,
      deactivatedReason: 'failing',
    });
    await founder.purchase(await founder.customer(), 10);
    await eventually('the commission is written', async () => {
      const commissions = await service.sql`select from commissions where app_id = ${founder.app.id}`;
      return commissions.length === 1;
    });
    expect(await messages()).toHaveLength(1);

    receiver.status = 200;
    expect(await founder.ok('PATCH', endpoint, { active: true })).toMatchObject({
      active: true,
      deactivatedReason: null,
      failingSince: null,
    });
    await founder.ok('POST', `${messagePath(id)}/send-again`);
    await eventuallyStatus(id, 'delivered');
  });

  // @promise webhooks-out-deactivated
  test('an endpoint that responds with 410 is deactivated at once', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    receiver.status = 410;
    const { id } = await founder.ok<Message>('POST', `${endpoint}/test`);
    expect(await eventuallyStatus(id, 'failed')).toMatchObject({ attempts: 1 });
    expect(await founder.ok<Endpoint>('GET', endpoint)).toMatchObject({
      active: false,
      deactivatedReason: 'gone',
    });
  });

  // @promise webhooks-out-rotation
  test('messages are signed with both secrets during a rotation, and with the new one alone afterwards', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    const previous = receiver.secret;
    const { secret } = await founder.ok<Endpoint>('POST', `${endpoint}/rotate-secret`, {
      graceSeconds: 3_600,
    });
    expect(secret).not.toBe(previous);
    await founder.ok('POST', `${endpoint}/test`);
    await eventuallyReceived(1);
    expect(receiver.received[0]).toMatchObject({ isSigned: true, signatures: 2 });
    receiver.secret = secret;
    await founder.ok('POST', `${endpoint}/test`);
    await eventuallyReceived(2);
    expect(receiver.received[1]).toMatchObject({ isSigned: true, signatures: 2 });
    const after = await founder.ok<Endpoint>('POST', `${endpoint}/rotate-secret`, { graceSeconds: 0 });
    receiver.secret = after.secret;
    await founder.ok('POST', `${endpoint}/test`);
    await eventuallyReceived(3);
    expect(receiver.received[2]).toMatchObject({ isSigned: true, signatures: 1 });
  });

  // @promise webhooks-out-isolated
  test('an endpoint that never responds delays neither another endpoint nor an export', async () => {
    const silent = await startReceiver();
    silent.status = null;
    try {
      const endpoint = await newEndpoint(['payout.created'], silent);
      for (let n = 0; n < 20; n += 1) await founder.ok('POST', `${endpoint}/test`);
      await eventuallyReceived(1, silent);
      await newEndpoint(['commission.created']);
      const before = Date.now();
      await founder.purchase(await founder.customer(), 50);
      expect((await founder.exportCsv()).status).toBe(200);
      await eventuallyReceived(1);
      // The silent endpoint takes 15 s for each attempt.
      expect(Date.now() - before).toBeLessThan(12_000);
      expect(silent.received.length).toBeLessThanOrEqual(8);
    } finally {
      await silent.close();
    }
  });

  // @promise webhooks-out-recovered
  test('a message whose workflow the server has lost is sent by the relay, and by tributary recover at once', async () => {
    const endpoint = await newEndpoint(['commission.created']);
    receiver.status = 503;
    const { id } = await founder.ok<Message>('POST', `${endpoint}/test`);
    await eventually('the second attempt is stored', async () => (await attemptsOf(id)).length === 2);
    await service.temporal.workflow.getHandle(`webhook:${id}`).terminate('lost by the test');
    receiver.status = 200;
    // The attempt is due now, but the relay looks at it a minute later.
    await service.sql`
      with endpoint as (update webhook_endpoints set next_probe_at = now() where app_id = ${founder.app.id})
      update webhook_messages set next_attempt_at = now() where id = ${id}`;
    const { status, out } = await runAdminIn({ DATABASE_URL: service.database.url }, 'recover', '--json');
    expect({ status, ...(JSON.parse(out) as object) }).toMatchObject({ status: 0, left: { messages: 0 } });
    await eventuallyStatus(id, 'delivered');
    expect(await attemptsOf(id)).toHaveLength(3);
  });
});
