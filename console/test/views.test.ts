import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { eventually } from '../../test/support/eventually.ts';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { button, checkPage, chip, chooseFilter, PHONE, row, title } from './browser.ts';
import { describeInBrowser } from './suite.ts';

describeInBrowser('saved views and columns of the console in a browser', ({ service, signedIn }) => {
  let founder: Founder;
  let other: string;

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
    const user = await founder.customer();
    await founder.purchase(user, 9.99, { transactionId: 'views-1' });
    await founder.refund(user, 4.99, 'views-1');
    const app = await founder.ok<{ id: string }>('POST', '/apps', { name: 'Other' });
    other = app.id;
  });

  const goTo = async (page: Page, path: string, appId: string = founder.app.id) =>
    await page.goto(`${service.url}/console/apps/${appId}/${path}`);
  const views = (page: Page) => page.getByRole('dialog');
  const save = async (page: Page, name: string) => {
    await button(page, 'Views').click();
    await views(page).getByLabel('Name of the view').fill(name);
    await views(page).getByRole('button', { name: 'Save view' }).click();
    await views(page).waitFor({ state: 'hidden' });
  };
  /** What the browser keeps of saved views. */
  const stored = async (page: Page) =>
    await page.evaluate(() =>
      Object.entries(localStorage).filter(([name]) => name.startsWith('tributary-views:')),
    );

  test('a view keeps filters and order under a name for its list and app, is opened and replaced by its name, and goes when it is removed', async () => {
    const { page, problems } = await signedIn(founder.key);
    await goTo(page, 'creators?q=test&sort=earnings');
    await row(page, /Test creator/).waitFor();
    await save(page, 'The best');
    // Its name stands where the list of them opens, while it is shown.
    await button(page, 'The best').waitFor();
    await button(page, 'Clear the filters').click();
    await page.waitForURL(/\/creators$/);
    await button(page, 'Views').click();
    await views(page).getByText('Set filters or an order.').waitFor();
    await views(page).getByRole('button', { name: 'The best', exact: true }).click();
    await page.waitForURL(/\?q=test&sort=earnings$/);
    await eventually(
      'the search has the text of the view',
      async () => (await page.getByLabel('Search').inputValue()) === 'test',
    );
    await chooseFilter(page, 'Status', 'Paused');
    await save(page, 'The best');
    await page.reload();
    await button(page, 'The best').click();
    await views(page).getByRole('listitem').first().waitFor();
    expect(await views(page).getByRole('listitem').count()).toBe(1);
    await page.keyboard.press('Escape');
    await views(page).waitFor({ state: 'hidden' });
    // Another list, another app.
    for (const [path, appId] of [
      ['events?kind=refund', founder.app.id],
      ['creators?q=test', other],
    ] as const) {
      await goTo(page, path, appId);
      await button(page, 'Views').click();
      await views(page).getByLabel('Name of the view').waitFor();
      expect(await views(page).getByRole('listitem').count()).toBe(0);
    }
    await goTo(page, 'creators');
    await button(page, 'Views').click();
    await button(page, 'Remove the view The best').click();
    await views(page).getByRole('listitem').waitFor({ state: 'detached' });
    expect((await stored(page)).map(([, text]) => text)).toEqual(['[]']);
    expect(problems()).toEqual([]);
  });

  test('signing out removes the saved views of a browser, and they hold nothing but the name and the filters that were entered', async () => {
    const { page, problems } = await signedIn(founder.key);
    await goTo(page, 'events?user=user-4711&kind=refund');
    await save(page, 'Refunds');
    const found = await stored(page);
    expect(found.map(([, text]) => JSON.parse(text) as unknown)).toEqual([
      [{ name: 'Refunds', query: 'kind=refund&user=user-4711' }],
    ]);
    await button(page, 'Test account').click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('Account key').waitFor();
    expect(await stored(page)).toEqual([]);
    expect(problems()).toEqual([]);
  });

  test('what somebody else has written into the storage of the browser breaks no list', async () => {
    const { page, problems } = await signedIn(founder.key);
    await goTo(page, 'events?kind=refund');
    await save(page, 'Refunds');
    for (const text of [
      '{',
      'null',
      '{"a":1}',
      '[1,{"name":"x"},{"name":"Kept","query":"kind=refund&apps=evil"}]',
    ]) {
      await page.evaluate((value) => {
        for (const name of Object.keys(localStorage))
          if (name.startsWith('tributary-views:')) localStorage.setItem(name, value);
        localStorage.setItem('tributary-columns:events', value);
        localStorage.setItem('tributary-density', value);
      }, text);
      await page.reload();
      await row(page, /Refund/).waitFor();
    }
    // A name that is no filter of the list does nothing.
    await button(page, 'Clear the filters').click();
    await button(page, 'Views').click();
    await views(page).getByRole('button', { name: 'Kept', exact: true }).click();
    await page.waitForURL(/events\?kind=refund$/);
    await chip(page, 'Kind').waitFor();
    expect(problems()).toEqual([]);
  });

  test('hidden columns and compact rows are remembered by the browser, and what a row is about stays', async () => {
    const { page, problems } = await signedIn(founder.key);
    await goTo(page, 'events');
    await row(page, /Refund/).waitFor();
    const heads = async () => await page.getByRole('columnheader').allInnerTexts();
    const heightOf = async (name: RegExp) =>
      Math.floor(await row(page, name).evaluate((one) => one.getBoundingClientRect().height));
    const height = async () => await heightOf(/Refund/);
    const before = await heads();
    expect([before, await height()]).toEqual([
      ['Received', 'Provider', 'Event', 'User', 'Amount', 'Outcome', 'For or why'],
      40,
    ]);
    await button(page, 'Columns').click();
    const items = page.getByRole('menuitemcheckbox');
    await items.first().waitFor();
    expect(await items.allInnerTexts()).toEqual(before.filter((name) => name !== 'Event'));
    await items.filter({ hasText: 'User' }).click();
    await items.filter({ hasText: 'Provider' }).click();
    await page.getByRole('menuitemradio', { name: 'Compact rows' }).click();
    await page.keyboard.press('Escape');
    const without = before.filter((name) => !['User', 'Provider'].includes(name));
    expect([await heads(), await height()]).toEqual([without, 32]);
    await page.reload();
    await row(page, /Refund/).waitFor();
    expect([await heads(), await height()]).toEqual([without, 32]);
    // The height is that of all tables; the columns are those of one.
    await goTo(page, 'creators');
    await row(page, /Test creator/).waitFor();
    // Nobody has an e-mail address or a tag.
    expect(await heads()).toEqual(['Creator', 'Status', 'Clicks', 'Installs', 'Earned']);
    expect(await heightOf(/Test creator/)).toBe(32);
    await goTo(page, 'events');
    await button(page, 'Columns').click();
    await items.filter({ hasText: 'User' }).click();
    await page.keyboard.press('Escape');
    expect(await heads()).toContain('User');
    expect(problems()).toEqual([]);
  });

  test('no menu of views or columns has a violation of WCAG 2.2 AA or a sideways scroll in any window', async () => {
    const { page, problems } = await signedIn(founder.key, PHONE);
    await goTo(page, 'events?kind=refund');
    await title(page, 'Events');
    await save(page, 'The refunds of a whole quarter, with a name as long as a name may be');
    await button(page, /^The refunds/).click();
    await views(page).getByRole('listitem').waitFor();
    await checkPage(page, 'views');
    await page.keyboard.press('Escape');
    await chooseFilter(page, 'Kind', 'Purchase');
    await button(page, 'Views').click();
    await views(page).getByLabel('Name of the view').waitFor();
    await checkPage(page, 'views-save');
    await page.keyboard.press('Escape');
    await page.setViewportSize({ width: 1280, height: 900 });
    await button(page, 'Columns').click();
    await page.getByRole('menuitemcheckbox').first().waitFor();
    await checkPage(page, 'columns');
    expect(problems()).toEqual([]);
  });
});
