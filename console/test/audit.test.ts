import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createAccountKey } from '../../src/db/account-keys.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { setUpApp, setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { button, checkPage, chooseFilter, PHONE, row, title } from './browser.ts';
import { describeInBrowser } from './suite.ts';

describeInBrowser('audit, settings and ledger in a browser', ({ service, signedIn }) => {
  let founder: Founder;
  let readKey: string;

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
    const { sql } = service.database;
    readKey = (await createAccountKey(sql, founder.accountId as AccountId, ['read'])).key;
  });

  const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });

  test('settings that are saved apply from now on, and the audit says who changed what', async () => {
    const own = await setUpApp(founder, { name: 'Before' });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/settings`);
    expect(await page.locator('code').first().innerText()).toBe(own.app.id);
    await button(page, 'Copy the id of the app').waitFor();
    await field(page, 'Commission').fill('25');
    await field(page, 'Name').fill('After');
    await field(page, 'iOS apps').fill('ABCDE12345.com.example.app');
    await page.getByText('Not saved yet.').waitFor();
    // Wherever the page is, what saves it is in the window.
    for (const end of ['Home', 'End']) {
      await page.evaluate((at) => scrollTo(0, at === 'Home' ? 0 : document.body.scrollHeight), end);
      const { y = -1, height = 0 } = (await button(page, 'Save').boundingBox()) ?? {};
      expect(y).toBeGreaterThan(0);
      expect(y + height).toBeLessThanOrEqual(page.viewportSize()?.height ?? 0);
    }
    await button(page, 'Save').click();
    await page.getByText('Saved.').waitFor();
    await page.reload();
    expect(await field(page, 'Commission').inputValue()).toBe('25 %');
    expect(await field(page, 'Name').inputValue()).toBe('After');

    await page.getByRole('link', { name: 'Who changed these settings, and when' }).click();
    await row(page, /In the console.*App changed: After.*Commission.*20 %.*25 %/).waitFor();
    await row(page, /App created: Before/).waitFor();
    expect(await page.getByRole('row').count()).toBe(3);
    await chooseFilter(page, 'Done', 'Created');
    await row(page, /App changed: After/).waitFor({ state: 'detached' });
    await page.reload();
    await row(page, /App created: Before/).waitFor();
    expect(new URL(page.url()).searchParams.get('action')).toBe('created');
    await page.getByRole('link', { name: 'Before' }).click();
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    expect(problems()).toEqual([]);
  });

  test('choosing an app on a page of the account leads to its overview, or to its set-up before the first sale, and keeps the focus in a wide window', async () => {
    const own = await setUpApp(founder, { name: 'Sells' });
    const selling = own.app.id;
    await own.purchase(await own.customer(), 9.99);
    const other = (await setUpApp(founder, { name: 'Sells nothing' })).app.id;
    const { page, problems } = await signedIn(founder.key);
    const choose = async (appId: string, heading: string) => {
      const before = await page.locator('h1').elementHandle();
      await field(page, 'App').focus();
      await field(page, 'App').selectOption(appId);
      await before?.waitForElementState('hidden');
      await title(page, heading);
      expect(await page.locator('select:focus').getAttribute('aria-label')).toBe('App');
      expect(page.url()).toContain(appId);
    };
    for (const [appId, heading] of [
      [selling, 'Overview'],
      [other, 'Set-up'],
    ] as const) {
      await page.goto(`${service.url}/console/access`);
      await title(page, 'Access');
      await choose(appId, heading);
    }
    // From a page of an app, the choice leads to the same page of the other one.
    await page.goto(`${service.url}/console/apps/${selling}/links`);
    await title(page, 'Links');
    await choose(other, 'Links');
    // In a narrow window the choice is behind the button More, with the other pages, which closes.
    await page.setViewportSize({ width: 360, height: 900 });
    await button(page, 'More pages').click();
    await field(page, 'App').focus();
    await field(page, 'App').selectOption(selling);
    await page.waitForURL(`**/apps/${selling}/links`);
    await page.locator('h1:focus', { hasText: 'Links' }).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a new version of a policy is worded as on its page, beside the version before it', async () => {
    const own = await setUpApp(founder, { name: 'Versions' });
    const at = `/apps/${own.app.id}/policies`;
    const { id } = await own.ok<{ id: string }>('POST', at, { name: 'Standard' });
    for (const percentBps of [2_000, 3_000])
      await own.ok('POST', `${at}/${id}/versions`, {
        base: 'proceeds',
        assumed: { taxBps: 0, feeBps: { app_store: 1_500 } },
        rules: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps }, { percentBps: 1_000 }],
      });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/audit?app=${own.app.id}&kind=policy_version`);
    const second = row(page, /Version 2/);
    await second.locator('del', { hasText: '20 % of the proceeds' }).waitFor();
    await second.locator('ins', { hasText: '30 % of the proceeds' }).waitFor();
    await second.locator('ins', { hasText: 'App Store 15 %' }).waitFor();
    await row(page, /Version 1/)
      .locator('ins', { hasText: 'Otherwise 10 % of the proceeds.' })
      .waitFor();
    expect(await page.getByText('{"').count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a setting that the service refuses is explained, and nothing is lost or saved', async () => {
    const own = await setUpApp(founder, { name: 'Refused' });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/settings`);
    await page.getByLabel('Accept only user ids that your server signed').check();
    await button(page, 'Save').click();
    await page.getByRole('alert').filter({ hasText: 'The app has no identity secret' }).waitFor();
    await button(page, 'Undo').click();
    expect(await page.getByLabel('Accept only user ids that your server signed').isChecked()).toBe(false);
    expect(await button(page, 'Save').isDisabled()).toBe(true);
    expect(problems(/409/)).toEqual([]);
  });

  test('the changes of one key are shown together, and all changes are saved as CSV', async () => {
    const own = await setUpApp(founder, { name: 'Changes' });
    // A name that every object of the program has.
    await own.ok('POST', `/apps/${own.app.id}/affiliates`, { name: '__proto__' });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/audit?app=${own.app.id}`);
    await row(page, /By the API.*Creator created: Test creator/).waitFor();
    await row(page, /Creator created: __proto__.*Name __proto__/).waitFor();
    await row(page, /By the API.*Creator created: Test creator/)
      .getByRole('button', { name: /Show only changes by tri_sk_live_/ })
      .click();
    await page.getByText(/^Only changes by tri_sk_live_\S+ and sessions with that key\.$/).waitFor();
    const download = page.waitForEvent('download');
    await button(page, 'Save as CSV').click();
    expect((await download).suggestedFilename()).toBe('audit.csv');
    await row(page, /Creator created: Test creator/)
      .first()
      .getByRole('link', { name: 'Test creator' })
      .click();
    await page.getByRole('heading', { level: 1, name: 'Test creator' }).waitFor();
    // What a change has only the id of is shown with its name.
    await page.goto(`${service.url}/console/audit?app=${own.app.id}&kind=link`);
    await row(page, new RegExp(`Link created: ${own.slug}.* Creator Test creator ${own.affiliateId}`))
      .getByRole('link', { name: 'Test creator' })
      .click();
    await page.getByRole('heading', { level: 1, name: 'Test creator' }).waitFor();
    await page.goto(`${service.url}/console/audit?app=${own.app.id}&kind=erasure`);
    await page.getByText('No changes match these filters').waitFor();
    expect(problems()).toEqual([]);
  });

  test('the audit names the kind of each thing, so that a creator, a code, a bonus and a block of one name differ', async () => {
    const own = await setUpApp(founder, { name: 'Kinds' });
    const at = `/apps/${own.app.id}/affiliates/${own.affiliateId}`;
    await own.ok('POST', `${at}/codes`, { namespace: 'attribute', value: 'SPRING20' });
    await own.ok('POST', `${at}/entries`, {
      amountCents: 500,
      category: 'bonus',
      reason: 'Prize',
      externalId: 'e1',
    });
    await own.ok('POST', `${at}/payout-blocks`, { state: 'blocked', reason: 'Refunds' });
    await own.ok('POST', `${at}/payout-blocks`, { state: 'lifted', reason: 'All is well' });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/audit?app=${own.app.id}`);
    for (const heading of [
      'Creator created: Test creator',
      'Code created: SPRING20',
      'Bonus or deduction created: Test creator',
      'Block of payouts created: Test creator',
      'Block of payouts lifted: Test creator',
    ])
      await row(page, new RegExp(heading)).waitFor();
    expect(problems()).toEqual([]);
  });

  test('the page of the ledger names each rule and says whether it holds', async () => {
    const own = await setUpApp(founder, { name: 'Ledger' });
    await own.purchase(await own.customer(), 9.99);
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/ledger`);
    await page.getByText(/^All \d+ rules hold\.$/).waitFor();
    await row(page, /Holds A commission is an item of at most one payout/).waitFor();
    await button(page, 'Check again').click();
    await page.getByText(/^All \d+ rules hold\.$/).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a key that may only read sees the settings and cannot change them', async () => {
    const own = await setUpApp(founder, { name: 'Read only' });
    const { page, problems } = await signedIn(readKey);
    await page.goto(`${service.url}/console/apps/${own.app.id}/settings`);
    await page.getByText('needs the permission “write”').waitFor();
    expect(await field(page, 'Commission').isDisabled()).toBe(true);
    expect(await button(page, 'Save').isDisabled()).toBe(true);
    expect(problems()).toEqual([]);
  });

  test('no page has a violation of WCAG 2.2 AA, an error or a sideways scroll in any window, empty or full', async () => {
    const own = await setUpApp(founder, { name: 'Axe' });
    await own.purchase(await own.customer(), 9.99);
    await own.ok('PATCH', `/apps/${own.app.id}/settings`, {
      commissionRateBps: 2500,
      iosAppIds: ['ABCDE12345.com.example'],
    });
    const { page, problems } = await signedIn(founder.key, PHONE);
    const pages: readonly (readonly [name: string, path: string, ready: string])[] = [
      ['audit-full', 'audit', 'Creator created: '],
      ['audit-empty', 'audit?kind=erasure', 'No changes match these filters'],
      ['settings', `apps/${own.app.id}/settings`, 'Changes apply from now on'],
      ['ledger', `apps/${own.app.id}/ledger`, 'rules hold'],
    ];
    for (const [name, path, ready] of pages) {
      await page.goto(`${service.url}/console/${path}`);
      await page.getByText(ready).first().waitFor();
      if (name === 'settings') await field(page, 'Commission').waitFor();
      await checkPage(page, name);
    }
    // A time and the name of the product stay in one line, also beside a long name of the account.
    await service.sql`update accounts set name = 'An account with a name that is long' where id = ${founder.accountId}`;
    await page.goto(`${service.url}/console/audit`);
    for (const text of [page.locator('td p').first(), page.locator('.brand:visible').first()]) {
      await text.waitFor();
      expect((await text.boundingBox())?.height).toBeLessThan(30);
    }
    expect(problems()).toEqual([]);
  });
});
