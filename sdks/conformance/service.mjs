// Starts the real service with temporary servers, for the tests that must not trust the scripted one. Needs the service's
// own packages: `npm ci && npm run build` at the root of the repository.
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const ROOT = new URL('../../', import.meta.url);

/** Returns a free loopback port. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts the service. `request` sends JSON and returns `{ status, headers, body, text }`. */
export async function startService(environment = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'tributary-sdk-'));
  const url = `http://127.0.0.1:${await freePort()}`;
  const env = {
    ...process.env,
    LOG_LEVEL: 'error',
    DATA_DIR: dataDir,
    PORT: new URL(url).port,
    RATES_URL: 'off',
    ...environment,
  };
  const run = { cwd: ROOT, env };
  const child = spawn(process.execPath, ['dist/src/main.js'], {
    ...run,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = new Promise((resolve) => child.on('exit', resolve));

  const request = async (method, path, { key, body, raw, headers } = {}) => {
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(content === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: content,
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    };
  };

  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(dataDir, { recursive: true, force: true });
  };

  try {
    for (let tries = 0; ; tries += 1) {
      const ready = await request('GET', '/readyz').catch(() => undefined);
      if (ready?.status === 200) break;
      if (tries === 600 || child.exitCode !== null) throw new Error('The service did not become ready.');
      await delay(100);
    }
    const admin = async (...arguments_) => {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['dist/src/cli/main.js', ...arguments_, '--json'],
        run,
      );
      return JSON.parse(stdout);
    };
    const account = await admin('accounts', 'create', '--name', 'SDK tests');
    const { key } = await admin(
      'keys',
      'create',
      '--account',
      account.id,
      '--permissions',
      'read,write,setup,payout',
    );
    return { url, key, request, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns the body of a request that must succeed. */
async function ok({ request, key }, method, path, body) {
  const response = await request(method, path, { key, body });
  if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
  return response.body;
}

/** Creates an app with one creator. */
export async function createApp(service, settings = {}) {
  const app = await ok(service, 'POST', '/apps', { name: 'SDK tests', holdPeriodDays: 0, ...settings });
  const affiliate = await ok(service, 'POST', `/apps/${app.id}/affiliates`, { name: 'Creator' });
  return { ...app, affiliateId: affiliate.id };
}

/** Creates a link. Returns its public path. */
export async function createLink(service, app, slug, destinationUrl, affiliateId = app.affiliateId) {
  await ok(service, 'POST', `/apps/${app.id}/links`, { affiliateId, slug, destinationUrl });
  return `/l/${app.linkSubdomain}/${slug}`;
}

/** Follows a link like a visitor. Returns the address that it leads to. */
export async function follow(service, path) {
  const { headers } = await service.request('GET', path, {
    headers: { 'user-agent': 'Mozilla/5.0 Firefox/140.0' },
  });
  return headers.get('location');
}

/** Posts a signed purchase of 100 USD by a user. Returns its commission. */
export async function purchase(service, app, userId) {
  const { bodyOf, signStripe, stripeInvoicePaid } = await import(
    new URL('dist/tools/provider-payloads.js', ROOT)
  );
  const secret = `whsec_${randomUUID()}`;
  await ok(service, 'PUT', `/apps/${app.id}/webhooks/stripe/secret`, { secret });
  const raw = bodyOf(stripeInvoicePaid({ userId, amount: 10_000, occurredAt: Date.now() }));
  const signature = signStripe(raw, secret, Math.floor(Date.now() / 1000));
  const { body } = await service.request('POST', `/webhooks/stripe/${app.id}`, {
    raw,
    headers: { 'stripe-signature': signature },
  });
  for (let tries = 0; tries < 100; tries += 1) {
    const { items } = await ok(service, 'GET', `/apps/${app.id}/commissions`);
    const commission = items.find(({ eventId }) => eventId === body.eventId);
    if (commission) return commission;
    await delay(100);
  }
  throw new Error(`The purchase created no commission: ${JSON.stringify(body)}`);
}
