import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { readConfig } from '../src/config/config.ts';
import { projectRoot } from '../src/config/project-root.ts';
import { createAccountKey } from '../src/db/account-keys.ts';
import { createAccount } from '../src/db/accounts.ts';
import { createSignInLink } from '../src/db/sessions.ts';
import { FIRST_LINK_MS, signInUrl } from '../src/domain/sessions.ts';
import { runServer } from '../src/server.ts';
import { addHistory, HISTORY_SETTINGS } from './demo-history.ts';
import { openBrowser } from './open-browser.ts';

/*
 * `npm run console:shots [-- FOLDER]`: takes screenshots of the console in Chromium, from a real run with ninety days of data.
 * Without a folder it takes those of the README, docs/start.md and docs/founders.md. With a folder it takes every page, wide and
 * narrow, light and dark, for people to look at.
 */

/** The founder's pages, by the name of their file; paths after the app. */
const FOUNDER_PAGES: Readonly<Record<string, string>> = {
  'set-up': 'setup',
  overview: 'overview',
  alerts: 'alerts',
  creators: 'creators',
  links: 'links',
  policies: 'policies',
  'policies-new': 'policies/new',
  commissions: 'commissions',
  payouts: 'payouts',
  'payout-runs': 'payouts/runs',
  events: 'events',
  unattributed: 'unattributed',
  deliveries: 'deliveries',
  ledger: 'ledger',
  webhooks: 'webhooks',
  settings: 'settings',
};
/** The pages of the account, in the same way; paths after `/console/`. */
const ACCOUNT_PAGES = ['team', 'access', 'audit'] as const;
/** The pages whose screenshots the docs show. */
const IN_DOCS = ['overview', 'unattributed', 'payouts'] as const;
const WIDE = { width: 1_280, height: 860 };
const NARROW = { width: 360, height: 780 };
const STRIPE_SECRET = 'whsec_console_shots_0123456789';

const say = (line: string) => void process.stderr.write(`${line}\n`);
const folder = process.argv[2];

const dataDir = await mkdtemp(path.join(tmpdir(), 'tributary-shots-'));
const server = await runServer(
  readConfig({
    DATA_DIR: dataDir,
    PORT: '0',
    RATES_URL: 'off',
    LOG_LEVEL: 'fatal',
    ...HISTORY_SETTINGS,
  }),
);
const { service } = server;
const base = service.url ?? '';
const account = await createAccount(service.sql, 'Lantern Notes');
const { key } = await createAccountKey(service.sql, account.id, ['read', 'write', 'setup', 'payout']);

async function call(method: string, route: string, body: object): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const response = await fetch(base + route, { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${route}: ${await response.text()}`);
  return (await response.json()) as Record<string, string>;
}

/** Reads the first rows of a list. */
async function list<T>(route: string): Promise<readonly T[]> {
  const response = await fetch(base + route, { headers: { authorization: `Bearer ${key}` } });
  if (!response.ok) throw new Error(`${route}: ${await response.text()}`);
  return ((await response.json()) as { items: readonly T[] }).items;
}

/** Creates the app with its data. Returns its id. */
async function createApp(): Promise<string> {
  await service.whenReady(60_000);
  const app = { name: 'Lantern Notes', commissionRateBps: 2_000, holdPeriodDays: 30 };
  const { id: appId = '', sdkKey = '' } = await call('POST', '/apps', app);
  const revenuecat = await call('PUT', `/apps/${appId}/webhooks/revenuecat/secret`, {});
  await call('PUT', `/apps/${appId}/webhooks/stripe/secret`, { secret: STRIPE_SECRET });
  const secrets = { revenuecatToken: revenuecat['secret'] ?? '', stripeSecret: STRIPE_SECRET };
  await addHistory({ base, key, sdkKey, appId, ...secrets }, (line) => say(`${line} …`));
  return appId;
}

/** Signs a new page in. */
async function openConsole(browser: Browser, scheme: 'light' | 'dark', viewport: typeof WIDE): Promise<Page> {
  const context = await browser.newContext({ viewport, colorScheme: scheme });
  const page = await context.newPage();
  const now = Date.now();
  const token = await createSignInLink(service.sql, account.id, { now, validMs: FIRST_LINK_MS });
  await page.goto(signInUrl(base, token, { isNew: false }));
  await page.getByRole('button', { name: 'Sign in' }).click();
  // The page of the link has no navigation.
  await page.getByRole('navigation').first().waitFor();
  return page;
}

async function shoot(page: Page, file: string, fullPage: boolean): Promise<void> {
  await page.waitForLoadState('networkidle');
  await page.screenshot({ path: file, fullPage });
  say(file);
}

/** Returns the paths of all pages after `/console/`, by the names of their files: those above, one creator and one event. */
async function pathsOfAll(appId: string): Promise<Readonly<Record<string, string>>> {
  const [creator] = await list<{ id: string }>(`/apps/${appId}/affiliates?limit=1`);
  const [event] = await list<{ eventId: string }>(`/apps/${appId}/events?limit=1`);
  return {
    ...Object.fromEntries(Object.entries(FOUNDER_PAGES).map(([name, at]) => [name, `apps/${appId}/${at}`])),
    ...Object.fromEntries(ACCOUNT_PAGES.map((name) => [name, name])),
    ...(creator === undefined
      ? {}
      : {
          creator: `apps/${appId}/creators/${creator.id}`,
          'creator-sees': `creator/as/${appId}/${creator.id}/`,
          'creator-sees-payouts': `creator/as/${appId}/${creator.id}/payouts`,
        }),
    ...(event === undefined ? {} : { event: `apps/${appId}/events/${event.eventId}` }),
  };
}

async function takeShots(browser: Browser, appId: string): Promise<void> {
  const paths = await pathsOfAll(appId);
  const images = folder ?? path.join(projectRoot, 'docs/images');
  await mkdir(images, { recursive: true });
  const names = folder === undefined ? IN_DOCS : Object.keys(paths);
  const looks =
    folder === undefined
      ? [{ scheme: 'light', viewport: WIDE, suffix: '' } as const]
      : ([
          { scheme: 'light', viewport: WIDE, suffix: '' },
          { scheme: 'dark', viewport: WIDE, suffix: '-dark' },
          { scheme: 'light', viewport: NARROW, suffix: '-narrow' },
          { scheme: 'dark', viewport: NARROW, suffix: '-narrow-dark' },
        ] as const);
  for (const { scheme, viewport, suffix } of looks) {
    const page = await openConsole(browser, scheme, viewport);
    for (const name of names) {
      await page.goto(`${base}/console/${paths[name]}`);
      await shoot(page, path.join(images, `console-${name}${suffix}.png`), folder !== undefined);
    }
    await page.context().close();
  }
}

const browser = await openBrowser();
try {
  await takeShots(browser, await createApp());
} finally {
  await browser.close();
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
}
process.exit(0);
