import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { newId } from '../../src/db/new-id.ts';
import { instant } from '../../src/db/sql.ts';
import { eventually } from '../../test/support/eventually.ts';
import { button, checkPage, chooseFilter, PHONE, row } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';
import type { NewFounder } from './suite.ts';

const HOUR_MS = 3_600_000;
const settings = { webhookTargets: 'any', webhookRetryMs: [100] } as const;

describeInBrowserWith({ settings })('alerts in a browser', ({ service, signedIn, newFounder }) => {
  const texts: string[] = [];
  const slack = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      texts.push(Buffer.concat(parts).toString('utf8'));
      response.end('ok');
    });
  });
  const slackUrl = () => `http://127.0.0.1:${(slack.address() as AddressInfo).port}/services/a-token`;
  beforeAll(async () => {
    await new Promise<void>((resolve) => {
      slack.listen(0, '127.0.0.1', resolve);
    });
  });
  afterAll(() => {
    slack.closeAllConnections();
    slack.close();
  });
  beforeEach(() => {
    texts.length = 0;
  });

  /** Inserts an alert that was opened some hours ago. */
  async function insertAlert(
    { appId }: NewFounder,
    { rule, subject = 'stripe', facts = {}, hoursAgo = 1, isClosed = false }: NewAlert,
  ): Promise<void> {
    const at = Date.now() - hoursAgo * HOUR_MS;
    await service.sql`
      insert into alerts (id, app_id, rule, subject, facts, opened_at, closed_at)
      values (${newId('alert')}, ${appId}, ${rule}, ${subject}, ${service.sql.json(facts)}, ${instant(at)},
              ${isClosed ? instant(at + HOUR_MS / 2) : null})`;
  }

  interface NewAlert {
    readonly rule: string;
    readonly subject?: string;
    readonly facts?: object;
    readonly hoursAgo?: number;
    readonly isClosed?: boolean;
  }

  /** An open alert of each rule, and a past one. */
  async function insertAll(founder: NewFounder): Promise<void> {
    const now = Date.now();
    const run = {
      totalCents: 41_200,
      itemCount: 12,
      draftedAt: now,
      approvedAt: now,
      expiresAt: now,
      advancedAt: null,
    };
    const failing = { kind: 'webhook', failingSince: now, deactivatedAt: null, deactivatedReason: null };
    for (const alert of [
      { rule: 'provider_silent', facts: { lastAcceptedAt: now - 9 * HOUR_MS, allowedMs: 8 * HOUR_MS } },
      { rule: 'deliveries_failing', facts: { failing: 7 } },
      { rule: 'webhooks_refused', subject: 'revenuecat', facts: { refused: 3, lastRefusedAt: now } },
      { rule: 'draft_waiting', subject: newId('payoutRun'), facts: run },
      { rule: 'run_stalled', subject: newId('payoutRun'), facts: run },
      { rule: 'endpoint_failing', subject: newId('webhookEndpoint'), facts: failing },
      {
        rule: 'endpoint_failing',
        subject: newId('webhookEndpoint'),
        facts: { ...failing, kind: 'slack', deactivatedAt: now, deactivatedReason: 'failing' },
      },
      { rule: 'webhooks_refused', facts: { refused: 40, lastRefusedAt: now }, hoursAgo: 900, isClosed: true },
    ])
      await insertAlert(founder, alert);
  }

  test('open alerts are counted in the navigation and named on the overview, say what to do, and become past ones', async () => {
    const founder = await newFounder();
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/`);
    const nav = page.getByRole('navigation', { name: 'Pages' });
    await nav.getByRole('link', { name: 'Alerts', exact: true }).click();
    await page.getByText('No alerts yet').waitFor();
    const lastAcceptedAt = Date.now() - 9 * HOUR_MS;
    await insertAlert(founder, {
      rule: 'provider_silent',
      facts: { lastAcceptedAt, allowedMs: 8 * HOUR_MS },
    });
    await insertAlert(founder, { rule: 'deliveries_failing', facts: { failing: 7 } });
    await insertAlert(founder, {
      rule: 'webhooks_refused',
      facts: { refused: 4, lastRefusedAt: 1 },
      isClosed: true,
    });

    await page.goto(`${service.url}/console/apps/${founder.appId}/overview`);
    await nav.getByRole('link', { name: 'Alerts 2 open' }).waitFor();
    const card = page.getByRole('listitem').filter({ hasText: 'Stripe is silent' });
    await card.getByText('one should have come within 8 hours').waitFor();
    await card.getByRole('link', { name: 'See the alerts' }).click();
    await row(
      page,
      /Stripe is silent.*No webhook was accepted since.*dashboard of Stripe.*Open.*not yet/,
    ).waitFor();
    await row(page, /Requests of Stripe are refused.*4 requests had no valid.*Past/).waitFor();
    expect(
      await row(page, /Requests of Stripe are refused/)
        .getByRole('link')
        .count(),
    ).toBe(0);

    await service.sql`update alerts set closed_at = now() where app_id = ${founder.appId} and rule = 'provider_silent'`;
    await row(page, /Stripe is silent.*Past/).waitFor();
    await chooseFilter(page, 'State', 'Open');
    await row(page, /Webhooks of Stripe fail/).waitFor();
    await page.getByText('Stripe is silent').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'See the deliveries: Webhooks of Stripe fail' }).click();
    await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
    expect(page.url()).toContain('source=stripe');
    expect(problems()).toEqual([]);
  });

  test('a founder sets the Slack URL, sends a test, replaces it and removes it; the page never shows it', async () => {
    const founder = await newFounder();
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${founder.appId}/alerts`);
    const section = page.getByRole('region', { name: 'Slack' });
    const dialog = page.getByRole('dialog');
    await section.getByText('No URL is set.').waitFor();
    await button(page, 'Set a URL').click();
    await dialog.getByLabel('URL of an incoming webhook').fill('ftp://hooks.slack.com');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('Must begin with https://').waitFor();
    await dialog.getByLabel('URL of an incoming webhook').fill(slackUrl());
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await section.getByText(new URL(slackUrl()).host).waitFor();
    await button(page, 'Send a test').click();
    await section.getByText('A test message is on its way.').waitFor();
    await eventually('the test message arrives', async () => texts.length === 1);
    expect(texts[0]).toContain('Lantern Notes: This is a test message.');
    await section.getByRole('link', { name: 'See the attempt' }).click();
    await row(page, /^1.*200.*ok/).waitFor();
    expect(await page.content()).not.toContain('a-token');
    await page.goBack();
    await button(page, 'Replace the URL').click();
    expect(await dialog.getByLabel('URL of an incoming webhook').inputValue()).toBe('');
    await dialog.getByLabel('URL of an incoming webhook').fill(`${slackUrl()}-2`);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await button(page, 'Remove').click();
    await button(page, 'Remove the URL').click();
    await section.getByText('No URL is set.').waitFor();
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('a key that may only read sees alerts, and which permission Slack needs', async () => {
    const founder = await newFounder();
    await insertAll(founder);
    const { key } = await createAccountKey(service.sql, founder.accountId, ['read']);
    const { page, problems } = await signedIn(key);
    await page.goto(`${service.url}/console/apps/${founder.appId}/alerts`);
    await row(page, /does not advance.*Tell the operator/).waitFor();
    await page.getByText('needs the permission “setup”').waitFor();
    expect(problems()).toEqual([]);
  });

  test('the page and its dialog have no violation of WCAG 2.2 AA, no error and no sideways scroll in any window, empty or full', async () => {
    const founder = await newFounder();
    const { page, problems } = await signedIn(founder.key, PHONE);
    const look = async (state: string) => await checkPage(page, `alerts-${state}`);
    const open = async (path: string) =>
      await page.goto(`${service.url}/console/apps/${founder.appId}/${path}`);
    await open('alerts');
    await page.getByText('No alerts yet').waitFor();
    await look('empty');
    await insertAll(founder);
    await button(page, 'Set a URL').click();
    await page.getByLabel('URL of an incoming webhook').fill(slackUrl());
    await look('dialog');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('Active').waitFor();
    await page.reload();
    await row(page, /Slack does not accept messages/).waitFor();
    await look('full');
    await open('overview');
    await page.getByText('See the alerts').waitFor();
    await look('overview');
    expect(problems()).toEqual([]);
  });
});
