import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readConfig } from '../../src/config/config.ts';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { runServer } from '../../src/server.ts';
import type { RunningServer } from '../../src/server.ts';
import { bodyOf, signStripe, stripeInvoicePaid } from '../provider-payloads.ts';
import { WITHOUT_LIMITS } from '../without-limits.ts';

/** Returns the value below which `share` of the sorted values lie. NaN without values. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Returns the median of values in any order. NaN without values. */
export function median(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}

export interface BenchServer extends Pick<RunningServer, 'service' | 'backends'> {
  /** The address of the API. */
  readonly base: string;
  /** An account key with every permission. */
  readonly key: string;
  /** Stops the servers and removes their data. */
  readonly stop: () => Promise<void>;
}

/** Starts the service with servers of its own, in a temporary folder and without limits of requests. */
export async function startBenchServer(): Promise<BenchServer> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-bench-'));
  const { service, backends, stop } = await runServer(
    readConfig({
      LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'fatal',
      DATA_DIR: dataDir,
      PORT: '0',
      RATES_URL: 'off',
      ...WITHOUT_LIMITS,
    }),
  );
  const account = await createAccount(service.sql, 'Bench');
  const { key } = await createAccountKey(service.sql, account.id, ['read', 'write', 'setup', 'payout']);
  return {
    service,
    backends,
    base: service.url ?? '',
    key,
    stop: async () => {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export interface BenchApp {
  readonly appId: string;
  /** The public key of the SDKs. */
  readonly sdkKey: string;
  readonly stripeSecret: string;
  /** The slug of each creator's link. */
  readonly slugs: readonly string[];
  /** User ids, each bound to an install of a creator, in turn. */
  readonly users: readonly string[];
}

/** Creates an app with a Stripe secret, and users who are attributed to its creators in turn. */
export async function createBenchApp(
  base: string,
  key: string,
  { creators, users: userCount }: { readonly creators: number; readonly users: number },
): Promise<BenchApp> {
  const call = async (method: string, route: string, body: object, bearer = key) => {
    const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' };
    const response = await fetch(base + route, { method, headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${route}: ${await response.text()}`);
    return (await response.json()) as Record<string, string>;
  };
  const { id: appId = '', sdkKey = '' } = await call('POST', '/apps', { name: 'Bench' });
  const stripeSecret = `whsec_bench_${randomBytes(8).toString('hex')}`;
  await call('PUT', `/apps/${appId}/webhooks/stripe/secret`, { secret: stripeSecret });
  const slugs = Array.from({ length: creators }, (_, n) => `bench-${n}`);
  for (const slug of slugs) {
    const { id: affiliateId } = await call('POST', `/apps/${appId}/affiliates`, { name: `Creator ${slug}` });
    await call('POST', `/apps/${appId}/links`, { affiliateId, slug, destinationUrl: 'https://example.com' });
  }
  const users = Array.from({ length: userCount }, (_, n) => `user-${n}`);
  for (const [n, customerUserId] of users.entries()) {
    const [slug, deviceId, claimToken] = [slugs[n % creators], `device-${n}`, randomUUID()];
    await call('POST', '/clicks', { customerAppId: appId, slug, claimToken });
    await call('POST', '/sdk/install', { deviceId, claimToken, firstOpenAt: Date.now() }, sdkKey);
    await call('POST', '/sdk/identify', { deviceId, customerUserId, identifiedAt: Date.now() }, sdkKey);
  }
  return { appId, sdkKey, stripeSecret, slugs, users };
}

/** Posts a new signed purchase. Returns the status and the body of the response. */
export async function postPurchase(
  url: string,
  secret: string,
  userId: string,
): Promise<{
  readonly status: number;
  readonly body: { readonly commissionId?: string; readonly pending?: true };
}> {
  const body = bodyOf(stripeInvoicePaid({ userId, amount: 1_999, occurredAt: Date.now() }));
  const headers = {
    'content-type': 'application/json',
    'stripe-signature': signStripe(body, secret, Math.floor(Date.now() / 1000)),
  };
  const response = await fetch(url, { method: 'POST', body: body as never, headers });
  return { status: response.status, body: (await response.json()) as { commissionId?: string } };
}
