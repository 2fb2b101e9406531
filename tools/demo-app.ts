import { randomBytes } from 'node:crypto';
import { createAccountKey } from '../src/db/account-keys.ts';
import { createAccount } from '../src/db/accounts.ts';
import { createSignInLink } from '../src/db/sessions.ts';
import type { Sql } from '../src/db/sql.ts';
import type { AccountId } from '../src/domain/ids.ts';
import { FIRST_LINK_MS, signInUrl } from '../src/domain/sessions.ts';
import type { Service } from '../src/service.ts';

type Json = Record<string, unknown>;

interface RequestOptions {
  readonly key?: string;
  readonly body?: Json;
  /** A body that is sent byte by byte, because its signature covers the bytes. */
  readonly raw?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request to the API. Throws for any status that is not 2xx. */
async function sendTo(base: string, method: string, route: string, options: RequestOptions = {}) {
  const { key, body, raw, headers } = options;
  const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(base + route, {
    method,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(content === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(content === undefined ? {} : { body: content as never }),
  });
  if (!response.ok) {
    throw new Error(`${method} ${route} returned ${response.status}: ${await response.text()}`);
  }
  return response;
}

/** Returns the API of a service, called as a founder, an app or a billing provider. */
export function createClient(base: string) {
  const send = async (method: string, route: string, options?: RequestOptions) =>
    await sendTo(base, method, route, options);
  const call = async (...args: Parameters<typeof send>) => (await (await send(...args)).json()) as Json;
  return { send, call };
}
export type Client = ReturnType<typeof createClient>;

export interface DemoAccount {
  readonly accountId: AccountId;
  /** A key that may do everything. */
  readonly key: string;
}

/** The demo's app with its keys and webhook secrets. */
export interface DemoApp extends DemoAccount {
  readonly sdkKey: string;
  readonly appId: string;
  readonly revenuecatToken: string;
  readonly stripeSecret: string;
}

/** Creates the account of the demo and a key, as the operator does on the command line. */
export async function createDemoAccount(sql: Sql): Promise<DemoAccount> {
  const account = await createAccount(sql, 'Lantern Notes (demo)');
  const { key } = await createAccountKey(sql, account.id, ['read', 'write', 'setup', 'payout']);
  return { accountId: account.id, key };
}

/** Creates the app of the demo, and returns it with the addresses of its webhooks. */
export async function createDemoApp(
  { call }: Client,
  account: DemoAccount,
): Promise<{
  readonly app: DemoApp;
  readonly urls: { readonly revenuecat: string; readonly stripe: string };
}> {
  const { key } = account;
  const created = await call('POST', '/apps', {
    key,
    body: { name: 'Lantern Notes', commissionRateBps: 2_000, holdPeriodDays: 30 },
  });
  const appId = String(created['id']);
  const stripeSecret = `whsec_demo_${randomBytes(12).toString('hex')}`;
  const revenuecat = await call('PUT', `/apps/${appId}/webhooks/revenuecat/secret`, { key, body: {} });
  const stripe = await call('PUT', `/apps/${appId}/webhooks/stripe/secret`, {
    key,
    body: { secret: stripeSecret },
  });
  const revenuecatToken = String(revenuecat['secret']);
  return {
    app: { ...account, sdkKey: String(created['sdkKey']), appId, revenuecatToken, stripeSecret },
    urls: { revenuecat: String(revenuecat['url']), stripe: String(stripe['url']) },
  };
}

/** Creates a link that opens the console of an account, for 30 minutes. */
export async function createDemoLink(
  { sql, url }: Pick<Service, 'sql' | 'url'>,
  accountId: AccountId,
): Promise<string> {
  const token = await createSignInLink(sql, accountId, { now: Date.now(), validMs: FIRST_LINK_MS });
  return signInUrl(url ?? '', token, { isNew: false });
}
