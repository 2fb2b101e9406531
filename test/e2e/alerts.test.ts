import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { startReceiver } from '../support/webhook-receiver.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';

let service: TestService;
let founder: Founder;
let receiver: WebhookReceiver;

beforeAll(async () => {
  service = await startTestService({
    settings: {
      webhookTargets: 'any',
      webhookRetryMs: [100, 100],
      publicUrl: 'https://tributary.example.com',
      relay: { overdueMs: 30_000, pauseMs: 100 },
    },
  });
  founder = await setUpFounder({ sql: service.sql, url: service.ownUrl ?? '' });
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver.close();
  await service.close();
});

/** A server that accepts text as Slack does, and repeats the path of what it refuses. */
async function startSlack() {
  const texts: string[] = [];
  const headers: object[] = [];
  let status = 200;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      texts.push(Buffer.concat(parts).toString('utf8'));
      headers.push(request.headers);
      response.writeHead(status).end(status === 200 ? 'ok' : `Cannot POST ${request.url}`);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/services/a-secret-token`,
    texts,
    headers,
    refuse: () => {
      status = 404;
    },
    accept: () => {
      status = 200;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

interface Alert {
  readonly id: string;
  readonly rule: string;
  readonly subject: string;
  readonly closedAt: number | null;
}

const path = (rest: string) => `/apps/${founder.app.id}${rest}`;
const alerts = async () => (await founder.ok<{ items: Alert[] }>('GET', path('/alerts'))).items;

/** Runs the workflow of the Schedule. */
const evaluate = async () =>
  (await service.temporal.workflow.execute('alerts', {
    workflowId: `alerts:${randomUUID()}`,
    taskQueue: service.taskQueue,
  })) as { opened: number; closed: number };

// @promise alert-silence, alert-once, alert-messages, alert-slack, test-slack-url
test('a provider that goes silent opens one alert, and its next webhook closes it; an endpoint and Slack hear of both once', async () => {
  const slack = await startSlack();
  try {
    const endpoint = await founder.ok<{ secret: string }>('POST', path('/webhook-endpoints'), {
      url: receiver.url,
      eventTypes: ['alert.opened', 'alert.closed'],
    });
    receiver.secret = endpoint.secret;
    await founder.ok('PUT', path('/slack-url'), { url: slack.url });
    await founder.ok('POST', path('/slack-url/test'));
    await eventually('the test message arrives', async () => slack.texts.length === 1);
    expect(JSON.parse(slack.texts[0] ?? '')).toEqual({
      text: expect.stringMatching(
        /This is a test message.* https:\/\/tributary\.example\.com\/console\/apps\/app_\w+\/alerts$/,
      ),
    });
    expect(Object.keys(slack.headers[0] ?? {})).not.toContain('webhook-signature');

    const user = await founder.customer();
    for (let n = 0; n < 20; n += 1) await founder.purchase(user, 1);
    expect(await evaluate()).toEqual({ opened: 0, closed: 0 });
    // Nothing came since a day ago.
    await service.sql`
      update deliveries set received_at = received_at - interval '1 day' where app_id = ${founder.app.id} and signature_valid`;
    const evaluated = await Promise.all([evaluate(), evaluate(), evaluate()]);
    expect(evaluated.reduce((sum, { opened }) => sum + opened, 0)).toBe(1);
    const [opened, ...others] = await alerts();
    expect(others).toEqual([]);
    expect(opened).toMatchObject({ rule: 'provider_silent', subject: 'revenuecat', closedAt: null });
    await eventually(
      'both hear that it is open',
      async () => receiver.received.length === 1 && slack.texts.length === 2,
    );
    expect(receiver.received[0]).toMatchObject({
      type: 'alert.opened',
      isSigned: true,
      data: { alertId: opened?.id, rule: 'provider_silent', subject: 'revenuecat', closedAt: null },
    });
    expect(slack.texts[1]).toContain('No webhook of RevenueCat was accepted for 24 hours.');

    await founder.purchase(user, 2);
    expect(await evaluate()).toEqual({ opened: 0, closed: 1 });
    expect(await evaluate()).toEqual({ opened: 0, closed: 0 });
    expect(await alerts()).toMatchObject([{ id: opened?.id, closedAt: expect.any(Number) }]);
    await eventually(
      'both hear that it is closed',
      async () => receiver.received.length === 2 && slack.texts.length === 3,
    );
    expect(receiver.received[1]).toMatchObject({ type: 'alert.closed', data: { alertId: opened?.id } });
    expect(slack.texts[2]).toContain('Resolved: RevenueCat sends webhooks again');
  } finally {
    await slack.close();
  }
});

// @promise slack-url-secret
test('the Slack URL is in no attempt, message, log of the database or history, also when the host repeats it', async () => {
  const slack = await startSlack();
  slack.refuse();
  try {
    await founder.ok('PUT', path('/slack-url'), { url: slack.url });
    const { id } = await founder.ok<{ id: string }>('POST', path('/slack-url/test'));
    await eventually('all attempts failed', async () => {
      const message = await founder.ok<{ status: string }>('GET', path(`/webhook-messages/${id}`));
      return message.status === 'failed';
    });
    const attempts = await founder.ok<{ items: object[] }>('GET', path(`/webhook-messages/${id}/attempts`));
    expect(attempts.items[0]).toMatchObject({
      statusCode: 404,
      problem: 'The endpoint responded with 404.',
      response: null,
    });
    const history = await service.temporal.workflow.getHandle(`webhook:${id}`).fetchHistory();
    const rows = await service.sql<{ line: string }>`
      select t::text as line from webhook_endpoints t union all select t::text from webhook_messages t
      union all select t::text from webhook_attempts t union all select t::text from audit_rows t`;
    for (const text of [JSON.stringify(history), ...rows.map(({ line }) => line)])
      expect(text).not.toContain('a-secret-token');
    slack.accept();
    // A new URL begins without failures.
    await founder.ok('PUT', path('/slack-url'), { url: slack.url });
    const again = await founder.ok<{ id: string }>('POST', path('/slack-url/test'));
    await eventually('the test message arrives', async () => {
      const message = await founder.ok<{ status: string }>('GET', path(`/webhook-messages/${again.id}`));
      return message.status === 'delivered';
    });
    const delivered = await founder.ok<{ items: object[] }>(
      'GET',
      path(`/webhook-messages/${again.id}/attempts`),
    );
    expect(delivered.items).toMatchObject([{ statusCode: 200, response: 'ok' }]);
  } finally {
    await slack.close();
  }
});
