import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { expectConsistentLedger } from '../../test/support/consistent-ledger.ts';
import { insertReversal } from '../../test/support/ledger.ts';
import { button, checkPage, PHONE, row } from './browser.ts';
import { DAY_MS, payees } from './payees.ts';
import { describeInBrowser } from './suite.ts';
import type { NewFounder } from './suite.ts';

describeInBrowser('payouts in a browser', ({ service, signedIn, post, newFounder }) => {
  const { founderWithKey, earn, earnMore, hold, signIn } = payees({ service, signedIn, post, newFounder });

  const dialog = (page: Page) => page.getByRole('dialog');

  /** Opens the confirmation of the payment to a creator, and enters the key that may pay if the page asks for it. */
  const confirm = async (page: Page, founder: NewFounder, name: string): Promise<void> => {
    await button(page, new RegExp(`^(Pay|Finish the payment to) ${name}`)).click();
    const form = page.getByLabel('Key that may pay');
    await form.or(page.getByText('This cannot be undone.')).waitFor();
    if ((await form.count()) === 0) return;
    await form.fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByText('This cannot be undone.').waitFor();
  };

  const payoutsOf = async ({ appId }: NewFounder) =>
    await service.sql<{ id: string; totalCents: number; itemCount: number }>`
      select id, total_cents, item_count from payouts where app_id = ${appId} order by created_at`;

  /** The service books payments and the browser never learns it. Resolves once the first answer is lost. */
  const loseAnswers = async (page: Page): Promise<void> => {
    const lost = page.waitForEvent('requestfailed');
    await page.route('**/payouts/export', async (route) => {
      await route.fetch();
      await route.abort('connectionreset');
    });
    await lost;
  };

  /** The idempotency keys that the browser remembers. */
  const remembered = async (page: Page) =>
    await page.evaluate(() => Object.keys(localStorage).filter((name) => name.includes('payout')).length);

  test('a payment says where its money goes, and that the payee is new', async () => {
    const founder = await founderWithKey();
    const graceId = await earn(founder, 'Grace', 500);
    await earn(founder, 'Ada', 1_000);
    const set = await fetch(`${service.url}/apps/${founder.appId}/affiliates/${graceId}/payee`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${founder.key}` },
      body: JSON.stringify({ method: 'paypal', recipient: { email: 'grace@example.com' } }),
    });
    expect(set.status).toBe(200);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Grace');
    await dialog(page).getByText('PayPal · g•••@example.com').waitFor();
    await dialog(page)
      .getByText(/so no payout run pays it before/)
      .waitFor();
    await checkPage(page, 'pay-new-payee');
    await button(page, 'Cancel').click();
    await confirm(page, founder, 'Ada');
    await dialog(page).getByText('No payee is noted').waitFor();
    expect(problems()).toEqual([]);
  });

  test('a founder sees what is due, pays a creator with a key of the permission, and gets the CSV', async () => {
    const founder = await founderWithKey(['read']);
    await earn(founder, 'Ada', 1234, 1);
    await earn(founder, 'Grace', 500);
    const { page, problems } = await signIn(founder);
    await page.getByRole('row', { name: /All creators.*\$17\.35/ }).waitFor();
    await confirm(page, founder, 'Ada');
    expect(await dialog(page).innerText()).toMatch(
      /Ada[^]*2 rows of the ledger[^]*\$12\.35[^]*This cannot be undone/,
    );
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().endsWith('/payouts/export')),
      button(page, 'Pay $12.35').click(),
    ]);
    expect(answer.request().postDataJSON()).toEqual({ expectedTotalCents: 1235 });
    await page.getByText('$12.35 are booked for Ada').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByText('Download the CSV').click(),
    ]);
    const [payout] = await payoutsOf(founder);
    expect(payout).toMatchObject({ totalCents: 1235, itemCount: 2 });
    expect(download.suggestedFilename()).toBe(`${payout?.id}.csv`);
    const file = await download.path();
    const csv = await readFile(file);
    expect(createHash('sha256').update(csv).digest('hex')).toBe(answer.headers()['x-payout-sha256']);
    await button(page, 'Done').click();
    // Booked on the key that was entered, not on that of the session.
    await page.getByRole('row', { name: /Ann.*2.*\$12\.35/ }).waitFor();
    expect(await page.getByRole('button', { name: /^Pay Ada/ }).count()).toBe(0);
    expect(await remembered(page)).toBe(0);

    // The history leads to the payout, whose hash recognises the file and refuses another one.
    await page.getByRole('row', { name: /Ann/ }).getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Payout to Ada' }).waitFor();
    await page.getByLabel('File to check').setInputFiles(file);
    await page.getByText('It is the CSV of this payout').waitFor();
    await page.getByLabel('File to check').setInputFiles({
      name: 'changed.csv',
      mimeType: 'text/csv',
      buffer: Buffer.concat([csv, Buffer.from(' ')]),
    });
    await page.getByText('It is not the CSV of this payout').waitFor();
    const [again] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'Download the CSV').click(),
    ]);
    expect((await readFile(await again.path())).equals(csv)).toBe(true);
    expect(problems()).toEqual([]);
  });

  test('a double press pays once', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    let sent = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/payouts/export')) sent += 1;
    });
    // Both presses come before the page is drawn again.
    await button(page, /^Pay \$/).evaluate((element: HTMLElement) => {
      element.click();
      element.click();
    });
    await page.getByText('are booked for Ada').waitFor();
    expect(sent).toBe(1);
    expect(await payoutsOf(founder)).toHaveLength(1);
    expect(problems()).toEqual([]);
  });

  test('an answer that is cut, and one that never comes, are asked for again and pay once', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    const keys: string[] = [];
    // The service books the payout, and the browser does not learn it.
    await page.route('**/payouts/export', async (route) => {
      keys.push((await route.request().allHeaders())['idempotency-key'] ?? '');
      if (keys.length <= 2) await route.fetch();
      await (keys.length <= 2 ? route.abort('connectionreset') : route.continue());
    });
    await button(page, 'Pay $10.00').click();
    await page.getByText('It is not known yet whether this was paid').waitFor();
    expect(await payoutsOf(founder)).toHaveLength(1);
    await button(page, 'Send it again').click();
    await page.waitForFunction(() => document.querySelectorAll('[data-loading]').length === 0);
    await page.getByText('It is not known yet whether this was paid').waitFor();
    await button(page, 'Send it again').click();
    await page.getByText('are booked for Ada').waitFor();
    const paid = await payoutsOf(founder);
    expect(paid).toHaveLength(1);
    expect(await page.getByRole('link', { name: 'Open the payout' }).getAttribute('href')).toContain(
      paid[0]?.id ?? '',
    );
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(3);
    expect(await remembered(page)).toBe(0);
    expect(problems(/ERR_CONNECTION_RESET/)).toEqual([]);
  });

  test('a reload while the payment runs finishes the same payment, even when more is due by then', async () => {
    const founder = await founderWithKey();
    const ada = await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    let isCut = true;
    const booked = new Promise<void>((resolve) => {
      void page.route('**/payouts/export', async (route) => {
        if (!isCut) return await route.continue();
        // The service books the payout, and no answer ever comes.
        await route.fetch();
        return resolve();
      });
    });
    await button(page, 'Pay $10.00').click();
    await booked;
    isCut = false;
    await earnMore(founder, ada, 1000);
    await page.reload();
    await page.getByText('Payments without an answer').waitFor();
    // What is due now has the same total: only the key tells the two payments apart.
    await page
      .getByRole('row', { name: /Ada.*\$10\.00/ })
      .first()
      .waitFor();
    await button(page, 'Finish the payment to Ada').click();
    await button(page, 'Send it again').click();
    await page.getByText('are booked for Ada').waitFor();
    expect(await payoutsOf(founder)).toHaveLength(1);
    expect(await remembered(page)).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('two tabs that pay the same creator pay once, at the same moment and one after the other', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1000);
    await earn(founder, 'Grace', 700);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    const second = await page.context().newPage();
    await second.goto(page.url());
    await confirm(second, founder, 'Ada');
    await Promise.all([button(page, 'Pay $10.00').click(), button(second, 'Pay $10.00').click()]);
    const known = (tab: Page) =>
      tab.getByText('are booked for Ada').or(tab.getByText('Nothing was paid')).first();
    await Promise.all([known(page).waitFor(), known(second).waitFor()]);
    expect(await payoutsOf(founder)).toHaveLength(1);
    await Promise.all([page.reload(), second.reload()]);
    await confirm(page, founder, 'Grace');
    await confirm(second, founder, 'Grace');
    await button(page, 'Pay $7.00').click();
    await page.getByText('are booked for Grace').waitFor();
    await button(second, 'Pay $7.00').click();
    await second.getByText('The net is now 0 cents. Nothing was paid.').waitFor();
    expect(await payoutsOf(founder)).toHaveLength(2);
    expect(await remembered(page)).toBe(0);
    await expectConsistentLedger(service.sql, [
      'paid_once',
      'paid_means_in_a_payout',
      'payouts_are_the_sum_of_their_items',
      'payouts_have_their_request',
    ]);
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('a payment without an answer that is sent again from the row of what is due names its own total', async () => {
    const founder = await founderWithKey();
    const ada = await earn(founder, 'Ada', 5000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    const booked = loseAnswers(page);
    await button(page, 'Pay $50.00').click();
    await booked;
    await button(page, 'Cancel').click();
    await page.unroute('**/payouts/export');
    await earnMore(founder, ada, 2000);
    await page.reload();
    await button(page, 'Pay Ada $20.00').click();
    await button(page, 'Send it again').click();
    await page.getByText('$50.00 are booked for Ada').waitFor();
    await button(page, 'Done').click();
    await button(page, 'Pay Ada $20.00').click();
    await button(page, /^Pay \$20\.00$/).click();
    await page.getByText('$20.00 are booked for Ada').waitFor();
    expect((await payoutsOf(founder)).map(({ totalCents }) => totalCents)).toEqual([5000, 2000]);
    expect(problems(/ERR_CONNECTION_RESET/)).toEqual([]);
  });

  test('a payment that another tab sent with another total is shown before it is sent again', async () => {
    const founder = await founderWithKey();
    const ada = await earn(founder, 'Ada', 7000);
    const { page, problems } = await signIn(founder);
    // This tab draws nothing again when the other one stores its payment, as in the moment before it learns of it.
    await page.addInitScript(() => {
      addEventListener('storage', (event) => event.stopImmediatePropagation());
    });
    await page.reload();
    await confirm(page, founder, 'Ada');
    const { id } = await service.sql.one<{
      id: string;
    }>`select id from commissions where affiliate_id = ${ada}`;
    await insertReversal(service, id, { amountCents: 2000, occurredAt: Date.now() - DAY_MS });
    const other = await page.context().newPage();
    await other.goto(page.url());
    await confirm(other, founder, 'Ada');
    const booked = loseAnswers(other);
    await button(other, 'Pay $50.00').click();
    await booked;
    let sent = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/payouts/export')) sent += 1;
    });
    await button(page, 'Pay $70.00').click();
    await page.getByText('Nothing was sent now. $50.00 to Ada').waitFor();
    expect(sent).toBe(0);
    expect(await dialog(page).locator('dl').innerText()).toContain('$50.00');
    await button(page, 'Send it again').click();
    await page.getByText('$50.00 are booked for Ada').waitFor();
    expect((await payoutsOf(founder)).map(({ totalCents }) => totalCents)).toEqual([5000]);
    expect(await remembered(page)).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a total that changed after the preview pays nothing and shows the new one', async () => {
    const founder = await founderWithKey();
    const ada = await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    const { id } = await service.sql.one<{
      id: string;
    }>`select id from commissions where affiliate_id = ${ada}`;
    await insertReversal(service, id, { amountCents: 400, occurredAt: Date.now() - DAY_MS });
    await button(page, 'Pay $10.00').click();
    await page.getByText('The net is now 600 cents. Nothing was paid.').waitFor();
    expect(await payoutsOf(founder)).toEqual([]);
    await button(page, 'Close').click();
    await confirm(page, founder, 'Ada');
    await button(page, 'Pay $6.00').click();
    await page.getByText('$6.00 are booked for Ada').waitFor();
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('a session whose time to pay is over asks for the key again, and a wrong key pays nothing', async () => {
    const founder = await founderWithKey(['read']);
    await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    await dialog(page).getByText('1 row of the ledger', { exact: true }).waitFor();
    await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
    await button(page, 'Pay $10.00').click();
    await page.getByLabel('Key that may pay').fill(founder.ownKey);
    const access = dialog(page).getByRole('link', { name: 'Access' });
    expect(await access.getAttribute('href')).toBe('/console/access');
    await button(page, 'Continue').click();
    await page.getByText('This is no valid key of this account with the permission "payout".').waitFor();
    expect(await payoutsOf(founder)).toEqual([]);
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await button(page, 'Pay $10.00').click();
    await page.getByText('are booked for Ada').waitFor();
    expect(await payoutsOf(founder)).toHaveLength(1);
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('creators who are not due are listed with the reason and what is held', async () => {
    const founder = await founderWithKey();
    const mary = await earn(founder, 'Mary');
    await hold(founder, mary, 300);
    const { page, problems } = await signIn(founder);
    await row(page, /Mary Not due yet.*in 26 days.*\$3\.00/).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a payment that books only a part says how much it paid, and that more is due', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    // A payout with room for $4.00 of what is due.
    await page.route('**/payouts/export', async (route) => {
      const answer = await route.fetch();
      const part = { 'x-payout-more-due': 'true', 'x-payout-total-cents': '400' };
      await route.fulfill({ response: answer, headers: { ...answer.headers(), ...part } });
    });
    await button(page, 'Pay $10.00').click();
    await page.getByText('$4.00, a first part, are booked for Ada').waitFor();
    await page.getByText('pay again until nothing remains').waitFor();
    expect(problems()).toEqual([]);
  });

  test.each([
    ['over the rate limit', 429, 'rate_limited'],
    ['that could not be settled', 503, 'payout_not_settled'],
    ['without the permission', 403, 'forbidden'],
  ] as const)(
    'a payment %s says that it paid nothing, and the next press pays once',
    async (_what, status, code) => {
      const founder = await founderWithKey();
      await earn(founder, 'Ada', 1000);
      const { page, problems } = await signIn(founder);
      await confirm(page, founder, 'Ada');
      let sent = 0;
      await page.route('**/payouts/export', async (route) => {
        sent += 1;
        if (sent > 1) return await route.continue();
        return await route.fulfill({
          status,
          contentType: 'application/problem+json',
          body: JSON.stringify({ code, title: 'No', detail: 'Not now.', status }),
        });
      });
      await button(page, 'Pay $10.00').click();
      await dialog(page).getByText('Not now.').waitFor();
      expect([sent, await remembered(page)]).toEqual([1, 0]);
      await button(page, 'Pay $10.00').click();
      await page.getByText('are booked for Ada').waitFor();
      expect((await payoutsOf(founder)).map(({ totalCents }) => totalCents)).toEqual([1000]);
      expect(problems(new RegExp(`${status}`))).toEqual([]);
    },
  );

  test('a mark whose session may no longer pay asks for the key again and keeps what was entered', async () => {
    const founder = await founderWithKey(['read']);
    await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    await button(page, 'Pay $10.00').click();
    await page.getByRole('link', { name: 'Open the payout' }).click();
    await button(page, 'Mark as sent …').click();
    await page.getByLabel('Reference').fill('2026-06/17');
    await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
    await button(page, 'Mark as sent').last().click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    expect(await page.getByLabel('Reference').inputValue()).toBe('2026-06/17');
    await button(page, 'Mark as sent').last().click();
    await page.getByRole('row', { name: /Sent 2026-06\/17.*Ann/ }).waitFor();
    // A return that was marked by mistake is withdrawn, and the money counts as sent again.
    await button(page, 'Mark as returned …').click();
    await dialog(page).getByRole('button', { name: 'Mark as returned' }).click();
    await button(page, 'Withdraw the return …').click();
    await dialog(page).getByRole('button', { name: 'Withdraw the return' }).click();
    await page.getByRole('row', { name: /Return withdrawn/ }).waitFor();
    await button(page, 'Mark as returned …').waitFor();
    expect(await button(page, 'Mark as sent …').count()).toBe(0);
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('marks about the money of a payout are appended, and one whose answer is lost is stored once', async () => {
    const founder = await founderWithKey(['read']);
    await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await confirm(page, founder, 'Ada');
    await button(page, 'Pay $10.00').click();
    await page.getByRole('link', { name: 'Open the payout' }).click();
    await page.getByText('Nobody has marked the money as sent').waitFor();
    await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
    await page.reload();
    await button(page, 'Mark as sent …').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByLabel('Method').fill('bank transfer');
    await page.getByLabel('Reference').fill('2026-06/17');
    const keys: string[] = [];
    await page.route('**/transfers', async (route) => {
      keys.push((await route.request().allHeaders())['idempotency-key'] ?? '');
      if (keys.length === 1) await route.fetch();
      await (keys.length === 1 ? route.abort('connectionreset') : route.continue());
    });
    await button(page, 'Mark as sent').last().click();
    await dialog(page).getByText('The service did not respond').waitFor();
    await button(page, 'Mark as sent').last().click();
    await page.getByRole('row', { name: /Sent bank transfer, 2026-06\/17.*Ann/ }).waitFor();
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
    expect(await button(page, 'Mark as sent …').count()).toBe(0);
    await button(page, 'Mark as returned …').click();
    await page.getByLabel('Note').fill('Account closed');
    await button(page, 'Mark as returned').last().click();
    await page.getByRole('row', { name: /Came back.*Account closed.*Ann/ }).waitFor();
    await button(page, 'Mark as sent …').waitFor();
    const rows = await service.sql<{ state: string }>`
      select state from payout_transfers t join payouts p on p.id = t.payout_id where p.app_id = ${founder.appId} order by position`;
    expect(rows.map(({ state }) => state)).toEqual(['sent', 'returned']);
    expect(problems(/ERR_CONNECTION_RESET/)).toEqual([]);
  });

  test('a payment is operable by keyboard alone', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1000);
    const { page, problems } = await signIn(founder);
    await button(page, /^Pay Ada/).focus();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.tagName === 'INPUT');
    await page.keyboard.type(founder.key);
    await page.keyboard.press('Enter');
    await page.getByText('This cannot be undone.').waitFor();
    await page.locator('[role=dialog]:focus').waitFor();
    // The link to note a payee, the button that changes nothing, and the one that pays.
    for (let part = 0; part < 3; part += 1) await page.keyboard.press('Tab');
    expect(await button(page, 'Pay $10.00').evaluate((it) => it === document.activeElement)).toBe(true);
    await page.keyboard.press('Enter');
    await page.getByText('are booked for Ada').waitFor();
    await page.locator('[role=status]:focus').waitFor();
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'hidden' });
    // The button that opened the dialog is gone with its row.
    await page.locator('main:focus').waitFor();
    expect(problems()).toEqual([]);
  });

  test('the pages have no violation of WCAG 2.2 AA in any window or state', async () => {
    const founder = await founderWithKey();
    const { page, problems } = await signIn(founder, PHONE);
    const check = async (state: string) => await checkPage(page, state);
    await page.getByText('No payouts yet').waitFor();
    await check('payouts-empty');
    await earn(founder, 'Ada Lovelace', 123_456, 9_900);
    await earn(founder, 'Grace Hopper, who has a long name of a studio with many people', 500);
    await page.reload();
    await confirm(page, founder, 'Ada');
    await check('payouts-confirm');
    await button(page, 'Pay $1,333.56').click();
    await page.getByText('are booked for Ada').waitFor();
    await check('payouts-paid');
    await button(page, 'Done').click();
    await page.getByRole('row', { name: /Ann/ }).waitFor();
    await check('payouts-full');
    await page.getByRole('row', { name: /Ann/ }).getByRole('link').first().click();
    await page.getByRole('heading', { name: 'Commissions in it' }).waitFor();
    await page.getByText('earning').first().waitFor();
    await page
      .getByLabel('File to check')
      .setInputFiles({ name: 'other.csv', mimeType: 'text/csv', buffer: Buffer.from('x') });
    await page.getByText('It is not the CSV').waitFor();
    await check('payout');
    await button(page, 'Mark as sent …').click();
    await page.getByLabel('Method').fill('bank transfer');
    await check('payout-mark');
    await button(page, 'Mark as sent').last().click();
    await page.getByRole('row', { name: /Sent bank transfer/ }).waitFor();
    await check('payout-marked');
    expect(problems()).toEqual([]);
  });
});
