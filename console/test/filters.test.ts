import { beforeAll, expect, test } from '@jest/globals';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import {
  button,
  checkPage,
  chip,
  chooseFilter,
  openFilter,
  overflowOf,
  PHONE,
  row,
  title,
} from './browser.ts';
import { describeInBrowser } from './suite.ts';

describeInBrowser('the filters of the console in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
    const user = await founder.customer();
    await founder.purchase(user, 9.99, { transactionId: 'filters-1' });
    await founder.refund(user, 4.99, 'filters-1');
    await founder.purchase('a stranger', 20);
  });

  const open = async (path: string, options = {}) => {
    const guarded = await signedIn(founder.key, options);
    await guarded.page.goto(`${service.url}/console/apps/${founder.app.id}/${path}`);
    return guarded;
  };

  test.each([
    ['a wide window', {}],
    ['a phone', PHONE],
  ])(
    'a filter that is set is a chip with its name and value, which opens its control and goes away with one press, in %s',
    async (_, options) => {
      const { page, problems } = await open('events', options);
      await row(page, /The app never reported the user/).waitFor();
      expect(await page.locator('.chip').count()).toBe(0);
      await chooseFilter(page, 'Kind', 'Refund');
      await row(page, /The app never reported the user/).waitFor({ state: 'detached' });
      await page.waitForURL(/\?kind=refund$/);
      await chooseFilter(page, 'Kind', 'Purchase');
      await page.waitForURL(/\?kind=purchase$/);
      await row(page, /The app never reported the user/).waitFor();
      await chooseFilter(page, 'Outcome', 'Nothing');
      await page.waitForURL(/\?kind=purchase&outcome=nothing$/);
      expect(await page.locator('.chip-text').allInnerTexts()).toEqual([
        'Outcome: Nothing',
        'Kind: Purchase',
      ]);
      // What is in use is not offered a second time.
      await button(page, 'Add a filter').click();
      await page.getByRole('menuitem').first().waitFor();
      expect(await page.getByRole('menuitem').allInnerTexts()).toEqual([
        'Provider',
        'Environment',
        'Creator',
        'Received',
      ]);
      await page.keyboard.press('Escape');
      await button(page, 'Remove the filter Kind').click();
      await page.waitForURL(/\?outcome=nothing$/);
      await button(page, 'Clear the filters').click();
      await page.waitForURL(/\/events$/);
      await page.locator('.chip').first().waitFor({ state: 'detached' });
      expect(await overflowOf(page)).toBe(0);
      expect(problems()).toEqual([]);
    },
  );

  test('the keyboard adds a filter by its first letters, changes it, leaves it without a value and takes it away', async () => {
    const { page, problems } = await open('commissions');
    await row(page, /Earning/).waitFor();
    /** Waits until the list that is open takes the keys. */
    const takesKeys = async (role: 'menuitem' | 'menuitemradio') =>
      await page.locator(`.filter-control [role=${role}]:focus`).waitFor();
    const focused = (name: string | RegExp) => page.locator(':focus').and(button(page, name));
    // Without a text field in the bar, the key of the filter leads to what adds one.
    await page.keyboard.press('/');
    await focused('Add a filter').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitem', { name: 'Kind' }).waitFor();
    await takesKeys('menuitem');
    await page.keyboard.type('ki');
    await page.locator('[role=menuitem]:focus', { hasText: 'Kind' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitemradio', { name: 'Reversal' }).waitFor();
    await takesKeys('menuitemradio');
    await page.keyboard.type('re');
    await page.locator('[role=menuitemradio]:focus', { hasText: 'Reversal' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\?kind=reversal$/);
    await focused('Kind: Reversal').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('menuitemradio', { name: 'Reversal', checked: true }).waitFor();
    await takesKeys('menuitemradio');
    await page.keyboard.press('Escape');
    await focused('Kind: Reversal').waitFor();
    await page.keyboard.press('Tab');
    await focused('Remove the filter Kind').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/commissions$/);
    await focused('Add a filter').waitFor();
    await openFilter(page, 'Payout');
    await page.getByRole('textbox', { name: 'Payout' }).waitFor();
    await page.keyboard.press('Escape');
    await focused('Add a filter').waitFor();
    expect(await page.locator('.chip').count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('an address that somebody saved shows its filters in words, also values that do not exist', async () => {
    const { page, problems } = await open(
      'events?kind=refund&source=revenuecat&environment=production&outcome=reversed&range=30d',
    );
    await row(page, /Refund/).waitFor();
    const chips = async () => await page.locator('.chip-text').allInnerTexts();
    expect(await chips()).toEqual([
      'Outcome: Taken back',
      'Kind: Refund',
      'Provider: RevenueCat',
      'Environment: Production',
      'Received: Last 30 days',
    ]);
    await page.goto(
      `${service.url}/console/apps/${founder.app.id}/events?kind=nonsense&creator=${founder.affiliateId}&range=dates&from=2026-01-02&to=2026-01-03`,
    );
    await chip(page, 'Creator').filter({ hasText: 'Test creator' }).waitFor();
    expect(await chips()).toEqual([
      'Kind: nonsense',
      'Creator: Test creator',
      'Received: Jan 2, 2026 – Jan 3, 2026',
    ]);
    await button(page, 'Remove the filter Received').click();
    await page.waitForURL((url) => !/range|from|to=/.test(url.search));
    await button(page, 'Remove the filter Kind').click();
    await row(page, /Refund/).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a text filter applies while it is typed, two dates are reached from a span, and each control closes by a press elsewhere', async () => {
    const { page, problems } = await open('commissions');
    await row(page, /Earning/).waitFor();
    await openFilter(page, 'Payout');
    await page.getByRole('textbox', { name: 'Payout' }).pressSequentially('pay_none', { delay: 20 });
    // Without Enter, and without leaving the field.
    await page.waitForURL(/\?payout=pay_none$/);
    await page.getByText('No commissions match these filters').waitFor();
    await page.locator('h1').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await button(page, 'Remove the filter Payout').click();
    await row(page, /Earning/).waitFor();
    await chooseFilter(page, 'Dated', 'Last 7 days');
    await openFilter(page, 'Dated');
    await page.getByRole('menuitemradio', { name: 'From … to …' }).click();
    await page.locator('input[type=date]:focus').waitFor();
    await page.getByLabel('First day').fill('2020-01-01');
    await page.getByLabel('Last day').fill('2020-01-31');
    await page.waitForURL(/range=dates&from=2020-01-01&to=2020-01-31$/);
    await page.keyboard.press('Escape');
    await button(page, 'Dated: Jan 1, 2020 – Jan 31, 2020').waitFor();
    await page.getByText('No commissions match these filters').waitFor();
    // Also a control that shows a list closes when another one is opened.
    await openFilter(page, 'Kind');
    await page.getByRole('menuitemradio', { name: 'Reversal' }).waitFor();
    await chip(page, 'Dated').click();
    await page.getByLabel('First day').waitFor();
    await page.getByRole('menuitemradio').first().waitFor({ state: 'hidden' });
    await chip(page, 'Kind').waitFor({ state: 'detached' });
    expect(problems()).toEqual([]);
  });

  test('no bar of filters has a violation of WCAG 2.2 AA or a sideways scroll in any window, with its controls open', async () => {
    const { page, problems } = await open('events?kind=refund&range=90d&user=user-4711', PHONE);
    await title(page, 'Events');
    await page.getByText('No events match these filters').waitFor();
    await checkPage(page, 'filters-set');
    await button(page, 'Add a filter').click();
    await page.getByRole('menuitem', { name: 'Creator' }).waitFor();
    await checkPage(page, 'filters-add');
    await page.keyboard.press('Escape');
    await chip(page, 'Kind').click();
    await page.getByRole('menuitemradio', { name: 'Refund', exact: true }).waitFor();
    await checkPage(page, 'filters-choice');
    await page.keyboard.press('Escape');
    await openFilter(page, 'Creator');
    await page.getByRole('combobox', { name: 'Creator' }).fill('Test');
    await page.getByRole('option', { name: 'Test creator' }).waitFor();
    await checkPage(page, 'filters-creator');
    await page.keyboard.press('Escape');
    await openFilter(page, 'Received');
    await page.getByRole('menuitemradio', { name: 'From … to …' }).click();
    await page.getByLabel('First day').waitFor();
    await checkPage(page, 'filters-dates');
    expect(problems()).toEqual([]);
  });
});
