import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readConfig } from '../src/config/config.ts';
import { DAY_MS } from '../src/domain/time.ts';
import { exitWith, runServer, stopOnSignal } from '../src/server.ts';
import type { RunningServer } from '../src/server.ts';
import { createClient, createDemoAccount, createDemoApp, createDemoLink } from './demo-app.ts';
import type { Client, DemoAccount, DemoApp } from './demo-app.ts';
import { addHistory, HISTORY_SETTINGS } from './demo-history.ts';
import {
  bodyOf,
  revenuecatEvent,
  revenuecatRefund,
  signStripe,
  stripeInvoicePaid,
} from './provider-payloads.ts';

const print = (line = '') => process.stdout.write(`${line}\n`);
let step = 0;
const title = (text: string) => {
  step += 1;
  print();
  print(`${step}. ${text}`);
};
const fact = (name: string, value: unknown) => print(`   ${name.padEnd(14)} ${String(value)}`);

async function setUpApp(client: Client, account: DemoAccount): Promise<DemoApp> {
  title('The founder sets up the app and the webhooks of two billing providers');
  const { app, urls } = await createDemoApp(client, account);
  fact('app', `${app.appId} (20 % commission, 30 days hold)`);
  fact('RevenueCat', urls.revenuecat);
  fact('Stripe', urls.stripe);
  return app;
}

/** Adds a creator with the link `spring-video`. Returns the affiliate's id. */
async function addCreator({ call }: Client, { key, appId }: DemoApp): Promise<string> {
  title('The founder adds a creator with a link');
  const affiliate = await call('POST', `/apps/${appId}/affiliates`, { key, body: { name: 'Demo creator' } });
  const link = await call('POST', `/apps/${appId}/links`, {
    key,
    body: {
      affiliateId: affiliate['id'],
      slug: 'spring-video',
      destinationUrl: 'https://example.com/get-the-app',
    },
  });
  fact('affiliate', affiliate['id']);
  fact('link', `${String(link['url'])} → ${String(link['destinationUrl'])}`);
  return String(affiliate['id']);
}

/** Brings a user to the app through the link. Returns the user's id in the app. */
async function attributeUser({ call }: Client, { sdkKey, appId }: DemoApp): Promise<string> {
  title('Sixty days ago: a visitor clicks the link, installs the app and signs in');
  const sixtyDaysAgo = Date.now() - 60 * DAY_MS;
  const claimToken = randomUUID();
  const customerUserId = 'demo-user-1';
  const click = await call('POST', '/clicks', {
    body: { customerAppId: appId, slug: 'spring-video', claimToken, clickedAt: sixtyDaysAgo },
  });
  const install = await call('POST', '/sdk/install', {
    key: sdkKey,
    body: { deviceId: 'demo-phone-1', claimToken, firstOpenAt: sixtyDaysAgo + 90_000 },
  });
  await call('POST', '/sdk/identify', {
    key: sdkKey,
    body: { deviceId: 'demo-phone-1', customerUserId, identifiedAt: sixtyDaysAgo + 120_000 },
  });
  fact('click', click['clickId']);
  fact('install', `${String(install['attributionId'])} is attributed to ${String(install['affiliateId'])}`);
  fact('user', `${customerUserId} is bound to the install`);
  return customerUserId;
}

async function postPurchases({ call }: Client, app: DemoApp, userId: string): Promise<void> {
  title(
    'The providers post signed purchases; a workflow processes each, and the response has the commission',
  );
  const revenuecat = async (raw: Buffer) =>
    await call('POST', `/webhooks/revenuecat/${app.appId}`, {
      raw,
      headers: { authorization: app.revenuecatToken },
    });
  const stripe = async (raw: Buffer) =>
    await call('POST', `/webhooks/stripe/${app.appId}`, {
      raw,
      headers: { 'stripe-signature': signStripe(raw, app.stripeSecret, Math.floor(Date.now() / 1000)) },
    });
  const purchase = { userId, transactionId: '180000000000001' };
  const bought = await revenuecat(
    bodyOf(revenuecatEvent({ ...purchase, usd: 49.99, occurredAt: Date.now() - 45 * DAY_MS })),
  );
  fact('RevenueCat', `$49.99 → ${String(bought['commissionId'])}`);
  const invoice = bodyOf(stripeInvoicePaid({ userId, amount: 12_000, occurredAt: Date.now() - 40 * DAY_MS }));
  const paid = await stripe(invoice);
  fact('Stripe', `$120.00 → ${String(paid['commissionId'])}`);
  fact('Stripe again', JSON.stringify(await stripe(invoice)));
  const refund = await revenuecat(
    bodyOf(revenuecatRefund({ ...purchase, usd: 20, occurredAt: Date.now() - 35 * DAY_MS })),
  );
  fact('refund', `$20.00 of the first purchase → ${String(refund['commissionId'])}`);
}

interface Commission {
  readonly id: string;
  readonly status: string;
  readonly amountCents: number;
  readonly kind: string;
  readonly dueAt: number;
}

async function listCommissions({ call }: Client, { key, appId }: DemoApp): Promise<readonly Commission[]> {
  return (await call('GET', `/apps/${appId}/commissions`, { key }))['items'] as Commission[];
}

async function showDueCommissions(client: Client, app: DemoApp): Promise<void> {
  title('The hold periods are over: the commissions are due');
  for (const { kind, id, amountCents, dueAt } of await listCommissions(client, app)) {
    const since = new Date(dueAt).toISOString().slice(0, 10);
    fact(kind, `${id}  ${String(amountCents).padStart(6)} cents  due since ${since}`);
  }
}

async function pay(client: Client, app: DemoApp, affiliateId: string): Promise<void> {
  const { key, appId } = app;
  title('The founder previews the payout');
  const preview = await client.call('GET', `/apps/${appId}/payouts/preview`, { key });
  fact('preview', `${String(preview['totalCents'])} cents`);

  const exportCsv = async () => {
    const route = `/apps/${appId}/affiliates/${affiliateId}/payouts/export`;
    const lines = (await (await client.send('POST', route, { key })).text()).trimEnd().split('\r\n');
    print();
    for (const line of lines) print(`   ${line}`);
    return lines.length - 1;
  };
  title('The export pays each commission once and returns a CSV file');
  const paidRows = await exportCsv();
  title('The same export again pays nothing');
  const repeatedRows = await exportCsv();
  print();
  if (paidRows !== 3 || repeatedRows !== 0) {
    throw new Error('expected three paid rows in the first export and none in the second');
  }
  if ((await listCommissions(client, app)).some(({ status }) => status !== 'paid')) {
    throw new Error('expected every commission to be marked as paid');
  }
}

/** Adds ninety days of data, and prints a link that opens the console. */
async function addNinetyDays({ service }: RunningServer, app: DemoApp): Promise<void> {
  title('Ninety days of data for the console');
  const base = service.url ?? '';
  const history = await addHistory({ base, ...app }, (line) => print(`   ${line} …`));
  for (const [name, count] of Object.entries(history)) fact(name, count);
  print();
  print('To open the console, within 30 minutes:');
  print(`   ${await createDemoLink(service, app.accountId)}`);
  print();
}

/** Runs the whole flow over HTTP, as a founder, an app and two billing providers do. */
async function runStory({ service }: RunningServer): Promise<DemoApp> {
  const client = createClient(service.url ?? '');
  title('The operator creates an account and a key on the command line');
  const account = await createDemoAccount(service.sql);
  fact('account', account.accountId);
  fact('key', `${account.key.slice(0, 15)}…`);

  const app = await setUpApp(client, account);
  const affiliateId = await addCreator(client, app);
  const userId = await attributeUser(client, app);
  await postPurchases(client, app, userId);
  await showDueCommissions(client, app);
  await pay(client, app, affiliateId);
  return app;
}

const stay = process.argv.includes('--stay');
if (process.argv.includes('--help')) {
  print(
    'Usage: npm run demo [-- --stay]\nRuns a click, an install, purchases and a payout on temporary servers. --stay adds ninety days of data for the console and keeps the servers running.',
  );
  process.exit(0);
}
const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-demo-'));
let starting: Promise<RunningServer> | undefined;
const stop = async () => {
  // A failed start has already stopped its servers.
  const server = await starting?.catch(() => undefined);
  await server?.stop();
  await rm(dataDir, { recursive: true, force: true });
};
const signal = stopOnSignal(stop, "Stopped and removed the demo's data.");
try {
  print('Starting Postgres and Temporal for the demo …');
  const env = {
    LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'silent',
    DATA_DIR: dataDir,
    PORT: process.env['PORT'] ?? '0',
    RATES_URL: 'off',
    ...HISTORY_SETTINGS,
  };
  starting = runServer(readConfig(env), signal);
  const server = await starting;
  await server.service.whenReady(60_000);
  const app = await runStory(server);
  if (stay) {
    const { key, sdkKey, appId } = app;
    await addNinetyDays(server, app);
    print('The servers run until you press Ctrl-C.');
    fact('API', server.service.url);
    fact('API docs', `${server.service.url}/docs`);
    fact('Temporal UI', server.backends.temporalUiUrl);
    fact('account key', key);
    fact('SDK key', sdkKey);
    fact('app', appId);
    print();
    print(
      'To run the commands of docs/founders.md, docs/tasks.md and docs/providers, first enter in another terminal:',
    );
    print(`   export API=${server.service.url} KEY=${key} APP=${appId} DATA_DIR=${dataDir}`);
    print();
    print('To try an SDK (sdks/*/README.md), first enter:');
    print(
      `   export TRIBUTARY_API_BASE_URL=${server.service.url} TRIBUTARY_SDK_KEY=${sdkKey} KEY=${key} APP=${appId}`,
    );
  } else if (!signal.aborted) {
    await stop();
    print('Done. `npm run demo -- --stay` keeps the servers running; `npm start` starts the service itself.');
  }
} catch (error) {
  // After a signal, its handler ends the process.
  if (!signal.aborted) {
    await stop();
    exitWith(error);
  }
}
