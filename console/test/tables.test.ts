import { readFile } from 'node:fs/promises';
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { AccountId, AppId } from '../../src/domain/ids.ts';
import { eventually } from '../../test/support/eventually.ts';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { insertEarning, insertReversal, payOut } from '../../test/support/ledger.ts';
import { assignPolicy, publishPolicy } from '../../test/support/policies.ts';
import { atRest, button, checkPage, chooseFilter, overflowOf, row, shoot, title } from './browser.ts';
import { describeInBrowser } from './suite.ts';

const DAY_MS = 86_400_000;

/** The widths of phones, tablets and desktops, px. */
const WIDTHS = [360, 390, 768, 820, 1024, 1280, 1440, 1920];

/** The longest names, one of a single word and one of many, and one that is written from right to left. */
const NAMES = ['W'.repeat(200), `${'Ada '.repeat(49)}Love`, 'עדה לאבלייס (היוצרת)'];

/** All pages with lists of an app. */
const LISTS = [
  'overview',
  'creators',
  'links',
  'commissions',
  'payouts',
  'payouts/runs',
  'events',
  'deliveries',
  'unattributed?range=90d',
  'unattributed/manual',
  'alerts',
  'policies',
  'webhooks',
  'ledger',
];

describeInBrowser('the lists of the console in a browser', (suite) => {
  const { service, signedIn, post } = suite;
  let founder: Founder;
  let appId: string;
  let creators: string[] = [];

  /** Opens a page of the app, signed in. */
  const open = async (path: string, options = {}) => {
    const guarded = await signedIn(founder.key, options);
    await guarded.page.goto(`${service.url}/console/apps/${appId}/${path}`);
    return guarded;
  };

  const creatorOf = async (fields: object): Promise<string> =>
    (await post<{ id: string }>(`/apps/${appId}/affiliates`, founder.key, fields)).id;
  const linkOf = async (affiliateId: string, slug: string) =>
    await post(`/apps/${appId}/links`, founder.key, {
      affiliateId,
      slug,
      destinationUrl: 'https://example.com/get',
    });

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
    appId = founder.app.id;
    const user = await founder.customer();
    await founder.purchase(user, 9.99, { transactionId: 'tables-1' });
    await founder.refund(user, 4.99, 'tables-1');
    await founder.purchase(`stranger-${'x'.repeat(150)}`, 20);
    await founder.revenuecat('{"event": 7}');
    await founder.call('POST', `/webhooks/stripe/${appId}`, { key: null, body: {} });
    creators = [];
    for (const [nth, name] of NAMES.entries())
      creators.push(
        await creatorOf({ name, email: `${'long'.repeat(15)}-${nth}@example.com`, tags: ['Video'] }),
      );
    for (const [nth, affiliateId] of creators.entries()) {
      await linkOf(affiliateId, `${'slug-'.repeat(12)}${nth}`);
      const at = Date.now() - 60 * DAY_MS;
      const earn = async (amountCents: number) =>
        await insertEarning(
          service,
          { appId },
          { affiliateId, amountCents, occurredAt: at, dueAt: at, matured: true },
        );
      const paid = await earn(1_000 + nth);
      await payOut(
        service,
        { accountId: founder.accountId as AccountId, appId: appId as AppId },
        affiliateId,
      );
      const reversal = await insertReversal(service, paid, { amountCents: 200, occurredAt: at + DAY_MS });
      await service.sql`update commissions set status = 'matured', matured_at = now() where id = ${reversal}`;
      await earn(123_456_789);
    }
  });

  /** Returns what is wrong with the tables of a page: rows that are higher than a line, and cells that end outside. */
  const faultsOf = async (page: Page): Promise<string[]> =>
    await page.evaluate(() =>
      [...document.querySelectorAll<HTMLTableElement>('table')].flatMap((table) => {
        const { right } = table.getBoundingClientRect();
        const rows =
          table.matches('.data') && innerWidth > 640
            ? [...table.tBodies].flatMap((body) => [...body.rows])
            : [];
        return [
          ...rows
            .filter((one) => one.querySelector('.wrapped') === null && one.offsetHeight > 44)
            .map((one) => `${one.offsetHeight} px high: ${one.innerText.slice(0, 60)}`),
          ...[...table.querySelectorAll('td, th')]
            .filter(
              (cell) => cell.getBoundingClientRect().right > right + 1 && cell.closest('thead') === null,
            )
            .map((cell) => `outside: ${(cell as HTMLElement).innerText.slice(0, 60)}`),
          // A word that goes on in another line is not read as one.
          ...[...table.querySelectorAll<HTMLElement>('.tag')]
            .filter((tag) => tag.getClientRects().length > 1)
            .map((tag) => `broken: ${tag.innerText}`),
        ];
      }),
    );

  test('no list scrolls sideways in a window from 360 to 1920 px, with the longest names and names from right to left', async () => {
    const { page, problems } = await open('overview');
    const faults: string[] = [];
    for (const path of [...LISTS, `creators/${creators[0] ?? ''}`, `creators/${creators[2] ?? ''}`]) {
      await page.goto(`${service.url}/console/apps/${appId}/${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('main table, main .surface').first().waitFor();
      await page
        .getByText(/^Loading /)
        .first()
        .waitFor({ state: 'hidden' });
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        // The navigation moves out of the window first.
        await atRest(page, true);
        const overflow = await overflowOf(page);
        await shoot(page, `list-${path.replaceAll(/\W+/g, '-').slice(0, 30)}-${width}`);
        const found = [...(overflow > 0 ? [`${overflow} px sideways`] : []), ...(await faultsOf(page))];
        faults.push(...found.map((fault) => `${path} at ${width}: ${fault}`));
      }
    }
    expect(faults).toEqual([]);
    expect(problems()).toEqual([]);
  }, 120_000);

  test('what a commission comes from is read whole in a window of 1280 px', async () => {
    const own = await setUpFounder(service, { name: 'By policy' });
    const policyId = await publishPolicy(own, service.sql, {
      base: 'proceeds',
      rules: [{ percentBps: 2_000 }],
    });
    await assignPolicy(own, service.sql, policyId);
    const user = await own.customer();
    await own.purchase(user, 1_234.56, { transactionId: 'from-1' });
    await own.purchase(user, 9.99, { transactionId: 'from-2' });
    await own.refund(user, 4.99, 'from-2');
    const { page, problems } = await signedIn(own.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/commissions`);
    await row(page, /Earning .*proceeds \(estimated\) Test policy, version 1/).waitFor();
    await row(page, /Earning .* by reversals: .* remain Test policy, version 1/).waitFor();
    const heads = await page.locator('thead th').allInnerTexts();
    const cells = page.locator(`tbody td:nth-child(${heads.indexOf('From') + 1})`);
    const cut = await cells.evaluateAll((all) =>
      all
        .filter((cell) =>
          [cell, ...cell.querySelectorAll('.two-lines')].some(
            (one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight + 1,
          ),
        )
        .map((cell) => (cell as HTMLElement).innerText),
    );
    expect([await cells.count(), cut]).toEqual([3, []]);
    await shoot(page, 'commissions-from-1280');
    expect(problems()).toEqual([]);
  });

  test('a row is a line whose cut texts are whole where the pointer is, and leads to its page from everywhere', async () => {
    const { page, problems } = await open('creators');
    const longest = row(page, /^Select W{200} W{200}/);
    const cell = longest.locator('td.about');
    await cell.hover();
    expect(await cell.getAttribute('title')).toBe(NAMES[0]);
    expect(
      await row(page, /^Select Test creator/)
        .locator('td.about')
        .getAttribute('title'),
    ).toBeNull();
    // Columns that matter less go away before a row would have to scroll.
    const heads = async () => await page.getByRole('columnheader').allInnerTexts();
    expect(await heads()).toEqual(['Creator', 'E-mail', 'Tags', 'Status', 'Clicks', 'Installs', 'Earned']);
    await page.setViewportSize({ width: 820, height: 900 });
    expect(await heads()).toEqual(['Creator', 'Status', 'Earned']);
    await page.setViewportSize({ width: 1280, height: 900 });
    await checkPage(page, 'creators-table');
    // No link is underlined before the pointer is on its row.
    const link = longest.getByRole('link');
    const lineOf = async () => await link.evaluate((one) => getComputedStyle(one).textDecorationLine);
    await page.mouse.move(0, 0);
    expect(await lineOf()).toBe('none');
    await longest.locator('td').last().click();
    await title(page, /^W{200}/);
    await page.goBack();
    await page.getByRole('link', { name: NAMES[2] ?? '' }).press('Enter');
    await title(page, NAMES[2] ?? '');
    await page.goto(`${service.url}/console/apps/${appId}/links`);
    await row(page, /slug-2/)
      .locator('.number')
      .last()
      .click();
    await page.getByRole('dialog').getByText('To share').waitFor();
    // The head stays while the rows are scrolled.
    await page.goto(`${service.url}/console/apps/${appId}/events`);
    await row(page, /Refund/).waitFor();
    await page.setViewportSize({ width: 1280, height: 260 });
    await page.mouse.move(700, 200);
    await page.mouse.wheel(0, 4_000);
    await page.waitForFunction(() => scrollY > 100);
    const { top } = await page
      .getByRole('columnheader')
      .first()
      .evaluate((one) => one.getBoundingClientRect());
    expect(Math.round(top)).toBe(56);
    expect(problems()).toEqual([]);
  });

  test('a search of creators applies while it is typed, with each status, order and CSV, and the order by earnings goes on', async () => {
    const own = await post<{ id: string }>('/apps', founder.key, { name: 'Many' });
    const add = async (rows: readonly object[]) =>
      await post<{ created: { id: string }[] }>(`/apps/${own.id}/affiliates/bulk`, founder.key, { rows });
    await add(Array.from({ length: 70 }, (_, nth) => ({ name: `Maker ${nth}` })));
    const { created } = await add([{ name: 'Ada Lovelace' }, { name: 'Glover' }, { name: 'Love' }]);
    const [, glover, love] = created.map(({ id }) => id);
    await service.sql`update affiliates set status = 'paused' where id in (${glover ?? ''}, ${love ?? ''})`;
    await insertEarning(
      service,
      { appId: own.id },
      {
        affiliateId: love ?? '',
        amountCents: 500,
        occurredAt: Date.now(),
        dueAt: Date.now() + DAY_MS,
      },
    );
    const { page, problems } = await signedIn(founder.key);
    const go = async (path: string) => await page.goto(`${service.url}/console/apps/${own.id}/${path}`);
    const names = async () => await page.locator('tbody tr td.about').allInnerTexts();
    const shows = async (...expected: readonly string[]) =>
      await eventually(
        `the list is ${expected.join(', ')}`,
        async () => (await names()).join() === expected.join(),
      );
    await go('creators');
    await page.getByText('1 to 50 of 73').waitFor();
    await button(page, 'Show more').click();
    await page.getByText('1 to 73 of 73').waitFor();
    const search = page.getByLabel('Search');
    await search.pressSequentially('lov', { delay: 20 });
    await shows('Ada Lovelace', 'Glover', 'Love');
    expect(await search.evaluate((one) => one === document.activeElement)).toBe(true);
    await search.pressSequentially('e');
    await page.waitForURL(/q=love/);
    await chooseFilter(page, 'Status', 'Paused');
    await shows('Glover', 'Love');
    // Either by the select, or by the head.
    const earned = page.getByRole('columnheader', { name: 'Earned' });
    expect(await earned.getAttribute('aria-sort')).toBe('none');
    await earned.getByRole('button').press('Enter');
    await shows('Love', 'Glover');
    expect(await earned.getAttribute('aria-sort')).toBe('descending');
    expect(await page.getByLabel('Order').inputValue()).toBe('earnings');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'Save as CSV').click(),
    ]);
    const lines = (await readFile(await download.path())).toString().trim().split('\r\n');
    expect(lines.map((line) => line.split(',')[1])).toEqual(['name', 'Love', 'Glover']);
    await page.getByRole('columnheader', { name: 'Creator' }).getByRole('button').click();
    await shows('Glover', 'Love');
    await button(page, 'Clear the filters').first().click();
    await page.getByText('1 to 73 of 73').waitFor();
    expect(await search.inputValue()).toBe('');
    await go('creators?sort=earnings');
    await page.getByText('1 to 50 of 73').waitFor();
    expect((await names())[0]).toBe('Love');
    await button(page, 'Show more').click();
    await page.getByText('1 to 73 of 73').waitFor();
    expect(new Set(await names()).size).toBe(73);
    expect(problems()).toEqual([]);
  });

  test('a link of a creator who is paused or removed says so, and its search goes together with the state', async () => {
    const own = await post<{ id: string }>('/apps', founder.key, { name: 'Links' });
    for (const status of ['active', 'paused', 'removed']) {
      const { id } = await post<{ id: string }>(`/apps/${own.id}/affiliates`, founder.key, { name: status });
      await post(`/apps/${own.id}/links`, founder.key, {
        affiliateId: id,
        slug: `of-${status}`,
        destinationUrl: 'https://example.com/get',
      });
      await service.sql`update affiliates set status = ${status} where id = ${id}`;
    }
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.id}/links`);
    await row(page, /^of-active active .* Active 0/).waitFor();
    await row(page, /^of-paused paused .* Creator paused 0/).waitFor();
    await row(page, /^of-removed removed .* Creator removed 0/).waitFor();
    await page.getByLabel('Search').fill('REMOVED');
    await row(page, /^of-paused/).waitFor({ state: 'hidden' });
    await chooseFilter(page, 'State', 'Inactive');
    await page.getByText('No links match these filters').waitFor();
    expect(problems()).toEqual([]);
  });

  test('a reversal alone says what it takes back, and no label asks for what is not there', async () => {
    const { page, problems } = await open('commissions?kind=reversal');
    await row(page, /Reversal/)
      .first()
      .waitFor();
    expect(await page.getByText('not in this list').count()).toBe(0);
    expect(await row(page, /Reversal .*% of -\$/).count()).toBeGreaterThan(2);
    const own = await post<{ id: string }>('/apps', founder.key, { name: 'Nothing due' });
    const health = (provider: string, name: string, counts: object) => ({
      provider,
      title: name,
      configured: true,
      failed: 0,
      refused: 0,
      accepted: 0,
      unfinished: 0,
      oldestUnfinishedAt: null,
      lastAcceptedAt: null,
      lastRefusedAt: null,
      lowerBounds: [],
      ...counts,
    });
    await page.route('**/diagnostics/webhooks/summary', async (route) => {
      const providers = [
        health('revenuecat', 'RevenueCat', { failed: 2 }),
        health('stripe', 'Stripe', { refused: 3 }),
      ];
      await route.fulfill({ json: { providers } });
    });
    await page.goto(`${service.url}/console/apps/${own.id}/overview`);
    await page
      .getByRole('listitem')
      .filter({
        hasText: 'RevenueCat: 2 failed in the last 24 hours. Stripe: 3 refused in the last 24 hours.',
      })
      .waitFor();
    await page.locator('.owed').getByText('nothing to pay now').waitFor();
    expect(await page.getByRole('link', { name: /^Pay / }).count()).toBe(0);
    expect(problems()).toEqual([]);
  });
});
