import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { insertEarning, insertReversal, payOut } from '../../test/support/ledger.ts';
import {
  button,
  checkPage,
  chooseFilter,
  chooseMore,
  moreButton,
  openFilter,
  PHONE,
  shoot,
  title,
} from './browser.ts';
import type { GuardedPage } from './browser.ts';
import { describeInBrowser } from './suite.ts';
import type { NewFounder } from './suite.ts';

const DAY_MS = 86_400_000;

describeInBrowser('creators, links and commissions in a browser', (suite) => {
  const { service, newPage, signedIn, post, newFounder } = suite;

  /** Opens a page of the app, signed in. */
  const openApp = async (
    founder: NewFounder,
    path: string,
    key = founder.key,
    options = {},
  ): Promise<GuardedPage> => {
    const guarded = await signedIn(key, options);
    await guarded.page.goto(`${service.url}/console/apps/${founder.appId}/${path}`);
    return guarded;
  };

  const goTo = async (page: Page, name: string) =>
    await page.getByRole('navigation').getByRole('link', { name }).click();

  /** Adds a creator with an earning that is held, one that is due and one that was paid and refunded in part. */
  const withMoney = async (founder: NewFounder, name: string): Promise<string> => {
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, { name });
    const earn = async (amountCents: number, agoDays: number, dueInDays: number, matured: boolean) =>
      await insertEarning(service, founder, {
        affiliateId: id,
        amountCents,
        occurredAt: Date.now() - agoDays * DAY_MS,
        dueAt: Date.now() + dueInDays * DAY_MS,
        matured,
      });
    const paid = await earn(1000, 90, -60, true);
    await payOut(service, founder, id);
    const reversal = await insertReversal(service, paid, {
      amountCents: 250,
      occurredAt: Date.now() - 20 * DAY_MS,
    });
    await service.sql`update commissions set status = 'matured', matured_at = now() where id = ${reversal}`;
    await earn(800, 40, -10, true);
    await earn(600, 18, 12, false);
    return id;
  };

  test('a founder adds a creator, gives them a link, pauses and removes them, and each dialog says what that means', async () => {
    const founder = await newFounder();
    const { page, problems } = await openApp(founder, 'creators');
    await page.getByText('No creators yet').waitFor();
    await button(page, 'New creator').click();
    await page.getByLabel('Name').fill('Ada Lovelace');
    await page.getByLabel('E-mail address').fill('ada@example.com');
    await button(page, 'Add the creator').click();
    await page.getByText('Ada Lovelace is a creator now.').waitFor();
    await page.getByRole('link', { name: 'Open the creator' }).click();
    await title(page, 'Ada Lovelace');
    await chooseMore(page, 'Edit');
    await page.getByLabel('Own commission').fill('25.5');
    await button(page, 'Save').click();
    await page.getByText('own rate of 25.5 %').waitFor();
    await button(page, 'New link').click();
    await page.getByLabel('Where the link leads').fill('https://example.com/get');
    await page.getByLabel('Link code', { exact: true }).fill('ada-7');
    await button(page, 'Create the link').click();
    await page.getByRole('row', { name: /ada-7.*Active 0 0 \$0\.00/ }).waitFor();
    await page.getByRole('status').getByText('The link ada-7 of Ada Lovelace works.').waitFor();
    for (const [press, meaning, action, state] of [
      ['Pause', 'Payments from now on earn nothing', 'Pause the creator', 'Paused'],
      ['Remove', 'can still sign in to see what is owed', 'Remove the creator', 'Removed'],
      ['Make active', 'Payments that earned nothing meanwhile stay so', 'Make the creator active', 'Active'],
    ] as const) {
      await chooseMore(page, press);
      await page.getByText(meaning).waitFor();
      await button(page, action).click();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await page.locator('.tag', { hasText: state }).first().waitFor();
      const { status } = await service.sql.one<{ status: string }>`
        select status from affiliates where app_id = ${founder.appId}`;
      expect(status).toBe(state.toLowerCase());
    }
    await chooseMore(page, 'Edit');
    await page.getByLabel('Own commission').fill('');
    await button(page, 'Save').click();
    await page.getByText('· no own rate').waitFor();
    await button(page, 'Invite').click();
    await button(page, 'Copy a link').click();
    await page.getByRole('status').getByText('/console/creator/#token=').waitFor();
    expect(problems()).toEqual([]);
  });

  test('an edit sends what was changed: an address that somebody else set is not confirmed by it, and their own commission stays', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada',
      email: 'ada@example.com',
    });
    await service.sql`update affiliates set email = 'new@example.com' where id = ${id}`;
    const stored = async () =>
      await service.sql.one`
        select name, email_confirmed, default_commission_rate_bps from affiliates where id = ${id}`;
    expect(await stored()).toMatchObject({ emailConfirmed: false });
    const { page, problems } = await openApp(founder, `creators/${id}`);
    await title(page, 'Ada');
    // The session may pay, so that a saved address would be confirmed.
    const raised = await page.evaluate(
      async (key) =>
        (
          await fetch('/session/raise', {
            method: 'POST',
            headers: { 'content-type': 'application/json', 'Tributary-Console': '1' },
            body: JSON.stringify({ key }),
          })
        ).status,
      founder.key,
    );
    expect(raised).toBeLessThan(300);
    await chooseMore(page, 'Edit');
    await page.getByLabel('Name').fill('Ada Lovelace');
    await service.sql`update affiliates set default_commission_rate_bps = 3000 where id = ${id}`;
    await button(page, 'Save').click();
    await page.getByText('The changes to Ada Lovelace are saved.').waitFor();
    expect(await stored()).toEqual({
      name: 'Ada Lovelace',
      emailConfirmed: false,
      defaultCommissionRateBps: 3000,
    });
    // A change whose answer was lost, and which is then taken back.
    await page.reload();
    await title(page, 'Ada Lovelace');
    await chooseMore(page, 'Edit');
    await page.getByLabel('Own commission').fill('50');
    await page.route(`**/affiliates/${id}`, async (route) => {
      if (route.request().method() !== 'PATCH') return await route.fallback();
      await route.fetch();
      await route.abort();
    });
    await button(page, 'Save').click();
    await page.getByRole('alert').waitFor();
    await page.unroute(`**/affiliates/${id}`);
    expect(await stored()).toMatchObject({ defaultCommissionRateBps: 5000 });
    await page.getByLabel('Own commission').fill('30');
    await button(page, 'Save').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await stored()).toMatchObject({ defaultCommissionRateBps: 3000 });
    expect(problems(/ERR_FAILED/)).toEqual([]);
  });

  test('an invite is copied with two presses, and its link and QR code stay until “Done”', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada Lovelace',
    });
    const { page, problems } = await openApp(founder, `creators/${id}`, founder.key, {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    await button(page, 'Invite').click();
    const dialog = page.getByRole('dialog', { name: 'Invite' });
    await dialog.getByText('Send it to them yourself.').waitFor();
    // Nothing was created, so a press beside it closes it.
    await page.locator('h1').click();
    await dialog.waitFor({ state: 'hidden' });
    await button(page, 'Invite').click();
    await button(page, 'Copy a link').click();
    await dialog.getByText('It is copied.').waitFor();
    const shown = await dialog.locator('code').innerText();
    expect(shown).toContain('/console/creator/#token=');
    expect(await page.evaluate(async () => await navigator.clipboard.readText())).toBe(shown);
    await dialog.getByRole('img', { name: 'QR code of the link' }).waitFor();
    await checkPage(page, 'creator-invited');
    await page.locator('h1').click();
    await dialog.getByText('It is copied.').waitFor();
    await button(page, 'Done').click();
    await dialog.waitFor({ state: 'hidden' });
    // Opened again, it shows no link of before.
    await button(page, 'Invite').click();
    await button(page, 'Show a QR code').waitFor();
    await checkPage(page, 'creator-invite');
    await button(page, 'Show a QR code').press('Enter');
    await dialog.getByRole('img', { name: 'QR code of the link' }).waitFor();
    expect(await dialog.getByText('It is copied.').count()).toBe(0);
    await page.keyboard.press('Escape');
    await dialog.getByRole('img', { name: 'QR code of the link' }).waitFor();
    await button(page, 'Done').click();
    await dialog.waitFor({ state: 'hidden' });
    const links = await service.sql`select from creator_sign_in_links where affiliate_id = ${id}`;
    expect(links.length).toBe(2);
    expect(problems()).toEqual([]);
  });

  test('the menu of a creator works with the keyboard, each item asks first, and the focus comes back to it', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada Lovelace',
    });
    const { page, problems } = await openApp(founder, `creators/${id}`);
    const items = page.getByRole('menuitem');
    const open = async () => {
      await moreButton(page).press('Enter');
      // The first item has the focus.
      await page.locator('[role=menuitem]:focus', { hasText: 'Edit' }).waitFor();
    };
    await open();
    expect(await items.allInnerTexts()).toEqual([
      'Edit',
      'Pause',
      'Block payouts',
      'Revoke sign-in links',
      'Remove',
    ]);
    await checkPage(page, 'creator-menu');
    await page.keyboard.press('Escape');
    await items.first().waitFor({ state: 'hidden' });
    await page.locator('button:focus', { hasText: 'More' }).waitFor();
    for (const [presses, dialog] of [
      [0, 'Edit Ada Lovelace'],
      [1, 'Pause: Ada Lovelace'],
      [2, 'Block the payouts of Ada Lovelace'],
      [3, 'Revoke the sign-in links of Ada Lovelace'],
      [4, 'Remove: Ada Lovelace'],
    ] as const) {
      await open();
      for (let press = 0; press < presses; press += 1) await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').getByText(dialog, { exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await page.locator('button:focus', { hasText: 'More' }).waitFor();
    }
    expect(await service.sql`select status from affiliates where id = ${id}`).toEqual([{ status: 'active' }]);
    expect(problems()).toEqual([]);
  });

  test('a new creator has a link and an invite at once; a refused code is chosen again for the same creator', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Bea',
    });
    await post(`/apps/${founder.appId}/links`, founder.key, {
      affiliateId: id,
      destinationUrl: 'https://example.com/get',
      slug: 'zoe-angstrom',
    });
    const { page, problems } = await openApp(founder, 'creators');
    await button(page, 'New creator').click();
    const field = (label: string) => page.getByRole('dialog').getByLabel(label, { exact: true });
    expect(await field('Where the link leads').inputValue()).toBe('');
    await field('Name').fill('Zoë Ångström');
    await field('Where the link leads').fill('https://example.com/new');
    expect(await field('Link code').inputValue()).toBe('zoe-angstrom');
    await button(page, 'Add the creator').click();
    await page.getByText('Another link of this app has this code.').waitFor();
    await page.getByText('Zoë Ångström exists already').waitFor();
    await page.getByRole('row', { name: /Zoë Ångström/, includeHidden: true }).waitFor();
    await checkPage(page, 'new-creator-refused');
    await field('Link code').fill('zoe');
    await button(page, 'Add the creator').click();
    await page.getByText('Zoë Ångström is a creator now.').waitFor();
    await page.getByRole('dialog').locator('code', { hasText: 'zoe' }).waitFor();
    await page.getByRole('dialog').getByText('/console/creator/#token=').waitFor();
    await checkPage(page, 'new-creator-done');
    await button(page, 'Done').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    // The next link leads where the last one does that was created in this browser.
    await button(page, 'New creator').click();
    expect(await field('Where the link leads').inputValue()).toBe('https://example.com/new');
    expect(
      await service.sql`select name from affiliates where app_id = ${founder.appId} order by id`,
    ).toEqual([{ name: 'Bea' }, { name: 'Zoë Ångström' }]);
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('a new creator has a purchase code and a group at once; a code of another creator is chosen again', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Bea',
    });
    const group = await post<{ id: string }>(`/apps/${founder.appId}/groups`, founder.key, { name: 'VIPs' });
    await post(`/apps/${founder.appId}/affiliates/${id}/codes`, founder.key, {
      namespace: 'attribute',
      value: 'SPRING20',
    });
    const { page, problems } = await openApp(founder, 'creators');
    await button(page, 'New creator').click();
    const field = (label: string) => page.getByRole('dialog').getByLabel(label, { exact: true });
    await field('Name').fill('Ada');
    await field('Add a purchase code').check();
    expect(await button(page, 'Add the creator').isDisabled()).toBe(true);
    await field('Code').fill('spring20');
    await field('Group').selectOption({ label: 'VIPs' });
    await button(page, 'Add the creator').click();
    await page.getByText('A creator of the app has this code already.').waitFor();
    await page.getByText('Ada exists already').waitFor();
    await field('Code').fill('ADA');
    await checkPage(page, 'new-creator-code');
    await button(page, 'Add the creator').click();
    await page.getByText('Ada is a creator now.').waitFor();
    await page.getByRole('dialog').locator('code', { hasText: 'ADA' }).waitFor();
    await checkPage(page, 'new-creator-code-done');
    expect(
      await service.sql`
        select a.name, c.value, m.group_id from affiliates a
          left join codes c on c.affiliate_id = a.id left join group_memberships m on m.affiliate_id = a.id
         where a.app_id = ${founder.appId} order by a.id`,
    ).toEqual([
      { name: 'Bea', value: 'SPRING20', groupId: null },
      { name: 'Ada', value: 'ADA', groupId: group.id },
    ]);
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('“Revoke sign-in links” ends the access of a creator once it is confirmed', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada',
    });
    const { url } = await post<{ url: string }>(
      `/apps/${founder.appId}/affiliates/${id}/sign-in-links`,
      founder.key,
      {},
    );
    const creator = await newPage();
    await creator.page.goto(url);
    await button(creator.page, 'Show my earnings').click();
    await title(creator.page, 'Your earnings');
    const { page, problems } = await openApp(founder, `creators/${id}`);
    const usable = async () =>
      (
        await service.sql`
          select 1 from creator_sign_in_links where affiliate_id = ${id} and revoked_at is null`
      ).length;
    await chooseMore(page, 'Revoke sign-in links');
    await page.getByText('Every browser of the creator is signed out').waitFor();
    await button(page, 'Cancel').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await usable()).toBe(1);
    await chooseMore(page, 'Revoke sign-in links');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke and sign out' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await usable()).toBe(0);
    await creator.page.reload();
    await creator.page.getByText('You are not signed in').waitFor();
    expect(problems()).toEqual([]);
    expect(creator.problems(/status of 401/)).toEqual([]);
  });

  test('“See as creator” shows what the creator sees in the session of the founder, which stays, and “Close” leads back', async () => {
    const founder = await newFounder();
    const [ada, grace] = [await withMoney(founder, 'Ada'), await withMoney(founder, 'Grace')];
    const { key } = await createAccountKey(service.sql, founder.accountId, ['read']);
    const { page, problems } = await openApp(founder, `creators/${ada}`, key);
    const { url } = await post<{ url: string }>(
      `/apps/${founder.appId}/affiliates/${grace}/sign-in-links`,
      founder.key,
      {},
    );
    // Another creator is signed in to the same browser.
    const other = await page.context().newPage();
    await other.goto(url);
    await button(other, 'Show my earnings').click();
    await other.getByText('Of all time').waitFor();
    const cookies = async () => JSON.stringify(await page.context().cookies());
    const stored = async () =>
      await service.sql`select (select count(*) from creator_sessions) as sessions, (select count(*) from audit_rows) as changes`;
    const before = [await cookies(), await stored()];
    const methods = new Set<string>();
    page.on('request', (request) => methods.add(request.method()));

    await page.getByRole('link', { name: 'See as creator' }).click();
    await title(page, 'Your earnings');
    const banner = page.getByRole('complementary', { name: 'See as creator' });
    await banner.getByText('You see what Ada sees.').waitFor();
    await page.getByText('Of all time').waitFor();
    expect(await page.locator('.tiles').first().innerText()).toMatch(
      /Earned\s+\$21\.50[^]*Held\s+\$6\.00[^]*Due\s+\$5\.50[^]*Booked\s+\$10\.00/,
    );
    const menu = await page.getByRole('navigation').getByRole('link').allInnerTexts();
    expect(menu).toEqual(['Earnings', 'Links', 'Commissions', 'Payouts']);
    expect(await button(page, 'Sign out').count()).toBe(0);
    await goTo(page, 'Commissions');
    await page.getByRole('row', { name: /\$6\.00/ }).waitFor();
    await goTo(page, 'Payouts');
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, /^CSV of/).click()]);
    expect((await readFile(await download.path())).toString()).toContain('total,,10.00,USD');
    await page.getByRole('link', { name: /^Statement of/ }).click();
    await page.reload();
    await page.getByText('in 1 row').waitFor();
    await page.emulateMedia({ media: 'print' });
    expect(await banner.isVisible()).toBe(false);
    await page.emulateMedia({ media: 'screen' });
    await page.goto(`${service.url}/console/creator/as/${founder.appId}/${ada}/sessions`);
    await title(page, 'There is no such page');

    await banner.getByRole('link', { name: 'Close' }).click();
    await title(page, 'Ada');
    expect(page.url()).toBe(`${service.url}/console/apps/${founder.appId}/creators/${ada}`);
    expect([await cookies(), await stored()]).toEqual(before);
    expect([...methods]).toEqual(['GET']);
    await other.reload();
    await title(other, 'Your earnings');
    await other.locator('.brand', { hasText: 'Grace' }).waitFor();
    expect(problems()).toEqual([]);
  });

  test('“See as creator” ends on the open page with the session of the founder', async () => {
    const founder = await newFounder();
    const ada = await withMoney(founder, 'Ada');
    const { page, problems } = await openApp(founder, `creators/${ada}`);
    await page.getByRole('link', { name: 'See as creator' }).click();
    await page.getByText('You see what Ada sees.').waitFor();
    await service.sql`update sessions set ended_at = now() where account_id = ${founder.accountId}`;
    // As when the tab is shown again.
    await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
    await title(page, 'You are not signed in');
    expect(await page.content()).not.toContain('Ada');
    await page.getByRole('link', { name: 'Sign in to the console' }).click();
    await page.getByLabel('Account key').fill(founder.key);
    await button(page, 'Sign in').click();
    await title(page, 'Ada');
    expect(problems(/status of 401/)).toEqual([]);
  });

  test('an invite link needs the permission “setup”, not “write”, and a key without it sees the reason', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada',
    });
    const writer = await createAccountKey(service.sql, founder.accountId, ['read', 'write']);
    const first = await openApp(founder, `creators/${id}`, writer.key);
    await first.page.getByText('Invite links need the permission “setup”, which you do not have.').waitFor();
    expect(await button(first.page, 'Invite').isDisabled()).toBe(true);
    await moreButton(first.page).click();
    const item = (page: Page, name: string) => page.getByRole('menuitem', { name, exact: true });
    expect(await item(first.page, 'Revoke sign-in links').isDisabled()).toBe(true);
    expect(await item(first.page, 'Edit').isDisabled()).toBe(false);
    const installer = await createAccountKey(service.sql, founder.accountId, ['read', 'setup']);
    const second = await openApp(founder, `creators/${id}`, installer.key);
    await second.page.getByText('Changes need the permission “write”').waitFor();
    await moreButton(second.page).click();
    expect(await item(second.page, 'Edit').isDisabled()).toBe(true);
    expect(await item(second.page, 'Revoke sign-in links').isDisabled()).toBe(false);
    await second.page.keyboard.press('Escape');
    await button(second.page, 'Invite').click();
    await button(second.page, 'Copy a link').click();
    await second.page.getByRole('status').getByText('/console/creator/#token=').waitFor();
    expect([...first.problems(), ...second.problems()]).toEqual([]);
  });

  test('a negative balance is stated as the amount that the next payout deducts', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada',
    });
    const at = Date.now() - 90 * DAY_MS;
    const earning = { affiliateId: id, amountCents: 1000, occurredAt: at, dueAt: at, matured: true };
    const paid = await insertEarning(service, founder, earning);
    await payOut(service, founder, id);
    const reversal = await insertReversal(service, paid, { amountCents: 250, occurredAt: at });
    await service.sql`update commissions set status = 'matured', matured_at = now() where id = ${reversal}`;
    const { page, problems } = await openApp(founder, `creators/${id}`);
    await page.getByText('$2.50 are deducted from the next payout').waitFor();
    expect(await page.getByText('-$2.50 are deducted').count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('pasted lines of a spreadsheet become creators, with a result for each line', async () => {
    const founder = await newFounder();
    await post(`/apps/${founder.appId}/affiliates`, founder.key, { name: 'Known', externalId: 'crm-9' });
    const { page, problems } = await openApp(founder, 'creators');
    await button(page, 'Paste CSV').click();
    const lines = [
      'Name;E-mail;External id;Commission',
      'Ada;ada@example.com;crm-1;25,5 %',
      '"Hopper; Grace";not an address;crm-2;',
      'Known again;;crm-9;',
      ';nobody@example.com;;',
      'Too much;;;250',
      'Joan;;;',
    ];
    await page.getByLabel('Lines').fill(lines.join('\n'));
    await button(page, 'Add the creators').click();
    await page.getByText('2 of 6 added').waitFor();
    const results = await page.getByRole('dialog').locator('tbody tr').allInnerTexts();
    expect(results.map((text) => text.replaceAll(/\s+/g, ' ').trim())).toEqual([
      expect.stringMatching(/^2 Added Ada/),
      expect.stringMatching(/^3 Not added Hopper; Grace email:/),
      expect.stringMatching(/^4 Known Known again A creator has this external id/),
      expect.stringMatching(/^5 Not added The name is missing/),
      expect.stringMatching(/^6 Not added The commission must be/),
      expect.stringMatching(/^7 Added Joan/),
    ]);
    await button(page, 'Done').click();
    await page.getByRole('link', { name: 'Joan' }).waitFor();
    const rows = await service.sql<{ name: string; rate: number | null }>`
      select name, default_commission_rate_bps as rate from affiliates where app_id = ${founder.appId} order by created_at`;
    expect(rows).toEqual([
      { name: 'Known', rate: null },
      { name: 'Ada', rate: 2550 },
      { name: 'Joan', rate: null },
    ]);
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('the search finds a creator by a part of the name and stays in the address; a text without a match says so', async () => {
    const founder = await newFounder();
    for (const name of ['Ada Lovelace', 'Grace Hopper'])
      await post(`/apps/${founder.appId}/affiliates`, founder.key, { name });
    const { page, problems } = await openApp(founder, 'creators');
    await page.getByRole('link', { name: 'Grace Hopper' }).waitFor();
    await page.getByLabel('Search').fill('love');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Grace Hopper' }).waitFor({ state: 'hidden' });
    await page.reload();
    await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor();
    expect(await page.getByRole('link', { name: 'Grace Hopper' }).count()).toBe(0);
    await page.getByLabel('Search').fill('nobody');
    await page.keyboard.press('Enter');
    await page.getByText('No creators match these filters').waitFor();
    expect(problems()).toEqual([]);
  });

  test('a link shows both addresses, the spelled code, both QR files and texts; its destinations and state change', async () => {
    const founder = await newFounder();
    const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name: 'Ada',
    });
    const link = await post<{ url: string; directUrl: string }>(`/apps/${founder.appId}/links`, founder.key, {
      affiliateId: id,
      destinationUrl: 'https://example.com/get',
      slug: 'Ada_7',
    });
    const { page, problems } = await openApp(founder, 'links');
    await button(page, 'Open Ada_7').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(link.directUrl, { exact: true }).waitFor();
    expect(await dialog.getByText(link.url, { exact: true }).count()).toBe(1);
    await dialog.getByText('Spelled: a, d, a, underscore, 7.').waitFor();
    await dialog.getByRole('img', { name: `QR code of ${link.url}` }).waitFor();
    const [svg] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByText('Download as SVG').click(),
    ]);
    expect((await readFile(await svg.path())).toString()).toMatch(/^<svg /);
    const [png] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByText('Download as PNG').click(),
    ]);
    expect(png.suggestedFilename()).toBe('Ada_7.png');
    expect((await readFile(await png.path())).subarray(1, 4).toString()).toBe('PNG');
    await dialog.getByLabel('On iOS instead').fill('https://apps.apple.com/app/id1');
    // What a colleague has changed meanwhile stays, and is shown.
    const others = 'https://play.google.com/store/apps/details?id=one';
    await service.sql`update links set android_destination_url = ${others} where app_id = ${founder.appId}`;
    await button(page, 'Save the destinations').click();
    await dialog.getByText('Saved. New clicks go there.').waitFor();
    expect(await dialog.getByLabel('On Android instead').inputValue()).toBe(others);
    expect(await button(page, 'Save the destinations').isDisabled()).toBe(true);
    await dialog.getByRole('button', { name: 'Deactivate', exact: true }).click();
    await dialog.getByRole('button', { name: 'Activate', exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('row', { name: /Ada_7.*Inactive/ }).waitFor();
    const stored = await service.sql
      .one`select ios_destination_url, android_destination_url, active from links where app_id = ${founder.appId}`;
    expect(stored).toEqual({
      iosDestinationUrl: 'https://apps.apple.com/app/id1',
      androidDestinationUrl: others,
      active: false,
    });
    expect(problems()).toEqual([]);
  });

  test('commissions say when they are due and what refunds took back; filters, sum and CSV agree', async () => {
    const founder = await newFounder();
    const ada = await withMoney(founder, 'Ada');
    await withMoney(founder, 'Grace');
    const { page, problems } = await openApp(founder, `commissions?creator=${ada}`);
    await page.getByText('Sum: $21.50').waitFor();
    await page.getByRole('row', { name: /Held.*due in 12 days.*\$6\.00/ }).waitFor();
    await page.getByRole('row', { name: /Reversal.*of \$10\.00 from.*-\$2\.50/ }).waitFor();
    await page.getByRole('row', { name: /Earning.*-\$2\.50 by reversals: \$7\.50 remain.*Booked/ }).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'Save as CSV').click(),
    ]);
    const csv = (await readFile(await download.path())).toString();
    expect(csv.trim().split('\r\n')).toHaveLength(5);
    await chooseFilter(page, 'Kind', 'Reversal');
    await page.getByRole('row', { name: /Reversal 20 % of -\$12\.50/ }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect(new URL(page.url()).searchParams.get('kind')).toBe('reversal');
    await page.getByText('Sum: -$2.50').waitFor();
    await chooseFilter(page, 'Kind', 'Correction');
    await page.getByText('No commissions match these filters').waitFor();
    await page.getByText('Sum: $0.00').waitFor();
    await button(page, 'Clear the filters').first().click();
    await page.locator('tbody tr').nth(7).waitFor();
    // A creator is found by name, and the address has the id.
    await openFilter(page, 'Creator');
    await page.getByRole('combobox', { name: 'Creator' }).fill('gra');
    await page.getByRole('option', { name: 'Grace' }).click();
    await page.waitForURL(/creator=aff_/);
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 4);
    await page.reload();
    await button(page, 'Creator: Grace').waitFor();
    const { payoutId } = await service.sql.one<{ payoutId: string }>`
      select id as payout_id from payouts where affiliate_id = ${ada}`;
    await button(page, 'Clear the filters').first().click();
    await page.waitForURL((url) => url.search === '');
    await page.locator('tbody tr').nth(7).waitFor();
    await openFilter(page, 'Payout');
    await page.getByRole('textbox', { name: 'Payout' }).fill(payoutId);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    expect(new URL(page.url()).search).toBe(`?payout=${payoutId}`);
    // A file that ends before the list says so.
    let parts = 0;
    await page.route('**/commissions?**', async (route) => {
      if (route.request().headers()['accept'] !== 'text/csv') return await route.continue();
      parts += 1;
      return await route.fulfill({
        headers: { 'content-type': 'text/csv', 'x-next-cursor': `c${parts}` },
        body: `id\r\n${parts}\r\n`,
      });
    });
    const [cut] = await Promise.all([page.waitForEvent('download'), button(page, 'Save as CSV').click()]);
    await page.getByText('The file has the first 500,000 rows only').waitFor();
    expect([parts, (await readFile(await cut.path())).toString().trim().split('\r\n').length]).toEqual([
      50, 51,
    ]);
    // A later reversal may be outside of the range, so what remains of the earning is not known.
    const dayOf = (agoDays: number) => new Date(Date.now() - agoDays * DAY_MS).toISOString().slice(0, 10);
    await page.goto(
      `${service.url}/console/apps/${founder.appId}/commissions?creator=${ada}&range=dates&from=${dayOf(100)}&to=${dayOf(10)}`,
    );
    await page.getByRole('row', { name: /Earning.*-\$2\.50 by reversals in this list.*Booked/ }).waitFor();
    expect(await page.getByText('remain').count()).toBe(0);
    await page.goto(`${service.url}/console/apps/${founder.appId}/creators/${ada}`);
    await page.locator('.figures > div').first().waitFor();
    for (const [name, value] of [
      ['Earned', '$21.50'],
      ['Held', '$6.00'],
      // Whatever is due now.
      ['Held', 'next due in 12 days'],
      ['Due', '$5.50'],
      ['Booked', '$10.00'],
    ] as const)
      expect(
        await page
          .locator('.figures > div')
          .filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
          .first()
          .innerText(),
      ).toContain(value);
    await page
      .getByRole('row', { name: /\$10\.00/ })
      .last()
      .waitFor();
    // What the creator brought has a range and a chart, as on the overview.
    const brought = page.getByRole('region', { name: 'What the creator brought' });
    const earned = brought.locator('.measure', { hasText: 'Earned' });
    await brought.getByLabel('Range').selectOption('12m');
    await earned.getByText('$21.50', { exact: true }).waitFor();
    await earned.click();
    await brought.locator('.recharts-bar-rectangle').first().waitFor({ state: 'attached' });
    // What is due is paid where it is seen, with a key that may pay.
    await button(page, 'Pay $5.50 …').click();
    const dialog = page.getByRole('dialog', { name: 'Pay Ada' });
    await dialog.getByLabel('Key that may pay').fill(founder.key);
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByRole('button', { name: 'Pay $5.50', exact: true }).click();
    await dialog.getByText('$5.50 are booked for Ada').waitFor();
    await checkPage(page, 'a creator, paid');
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.locator('.figures > div', { hasText: 'Booked' }).getByText('$15.50').waitFor();
    expect(await button(page, /^Pay \$/).count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('on a phone, the pages that are opened most are one press away, and all others behind More', async () => {
    const founder = await newFounder();
    const { page, problems } = await openApp(founder, 'links', founder.key, PHONE);
    const bar = page.getByRole('navigation', { name: 'Frequent pages' });
    for (const name of ['Creators', 'Payouts', 'Overview']) {
      const link = bar.getByRole('link', { name });
      await link.click();
      await title(page, name);
      expect(await link.getAttribute('aria-current')).toBe('page');
    }
    await button(page, 'More pages').click();
    await page.locator('button:focus[aria-label=Close]').waitFor();
    await page
      .getByRole('navigation', { name: 'Pages', exact: true })
      .getByRole('link', { name: 'Audit' })
      .click();
    await title(page, 'Audit');
    await page.setViewportSize({ width: 1280, height: 900 });
    expect(await bar.count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a note and tags are written about a creator, and a tag leads to the creators that have it', async () => {
    const founder = await newFounder();
    const path = `/apps/${founder.appId}/affiliates`;
    const { id: ada } = await post<{ id: string }>(path, founder.key, { name: 'Ada' });
    await post(path, founder.key, { name: 'Bea', tags: ['Video'] });
    await post(path, founder.key, { name: 'Cleo' });
    const { page, problems } = await openApp(founder, `creators/${ada}`);
    const notes = page.getByRole('region', { name: 'Note and tags' });
    await notes.getByText('None yet.').waitFor();
    await button(page, 'Add a note and tags').click();
    const dialog = page.getByRole('dialog', { name: 'Note and tags of Ada' });
    const tags = dialog.getByLabel('Tags', { exact: true });
    await tags.fill('video');
    await tags.press('Enter');
    await tags.fill('x'.repeat(41));
    await tags.press('Enter');
    await dialog.getByLabel('Note').fill('Calls on Mondays.\nNot in May.');
    await checkPage(page, 'creator-notes');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText(/Tag 2: /).waitFor();
    await tags.press('Backspace');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The note and tags of Ada are saved.').waitFor();
    await notes.getByText('Not in May.').waitFor();
    await checkPage(page, 'creator-with-notes');
    // An edit of the tags leaves the note that somebody else has written meanwhile, also once the page has read it.
    await button(page, 'Edit the note and tags').click();
    const note = 'Calls on Fridays.';
    await service.sql`update affiliates set note = ${note} where id = ${ada}`;
    await page.waitForTimeout(5_200);
    await Promise.all([
      page.waitForResponse((response) => response.url().endsWith(`/affiliates/${ada}`)),
      page.evaluate(() => dispatchEvent(new Event('visibilitychange'))),
    ]);
    await tags.fill('podcast');
    await tags.press('Enter');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await notes.getByText(note).waitFor();
    await notes.getByRole('link', { name: 'video' }).click();
    await title(page, 'Creators');
    await button(page, 'Tag: video').waitFor();
    await page.getByRole('row', { name: /Bea.*Video/ }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(2);
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('a bonus is added once although its answer is lost, is seen with its reason, and is undone; a deduction lowers what is due', async () => {
    const founder = await newFounder();
    const ada = await withMoney(founder, 'Ada');
    const { page, problems } = await openApp(founder, `creators/${ada}`);
    const dialog = page.getByRole('dialog');
    const due = async (text: string) =>
      await page.locator('dl.figures > div', { hasText: 'Due' }).getByText(text, { exact: true }).waitFor();
    await due('$5.50');
    await button(page, 'Add or deduct').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    const add = dialog.getByRole('button', { name: /^(Add|Deduct) \$/ });
    expect(await add.isDisabled()).toBe(true);
    await page.getByLabel('Amount').fill('50');
    await page.getByLabel('For', { exact: true }).selectOption('Fixed fee');
    await page.getByLabel('Reason').fill('Retainer for May');
    let sent = 0;
    await page.route('**/entries', async (route) => {
      if (route.request().method() !== 'POST') return await route.continue();
      sent += 1;
      if (sent === 1) await route.fetch();
      return await (sent === 1 ? route.abort('connectionreset') : route.continue());
    });
    await button(page, 'Add $50.00').click();
    await dialog.getByText('The service did not respond').waitFor();
    // Whatever was changed meanwhile, in a form that was opened again, and although the session may no longer pay: it is not added twice.
    await button(page, 'Cancel').click();
    await dialog.waitFor({ state: 'hidden' });
    await button(page, 'Add or deduct').click();
    expect(await page.getByLabel('Reason').inputValue()).toBe('Retainer for May');
    await page.getByLabel('Reason').fill('Retainer for June');
    await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
    await button(page, 'Add $50.00').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await button(page, 'Add $50.00').click();
    await dialog.getByText('Nothing was added twice').waitFor();
    await button(page, 'Done').click();
    await dialog.waitFor({ state: 'hidden' });
    await due('$55.50');
    await page.getByRole('row', { name: /Retainer for May Fixed fee .* Due .*\$50\.00 Undo/ }).waitFor();
    await page.getByRole('row', { name: /Bonus Fixed fee: Retainer for May .*\$50\.00/ }).waitFor();
    expect(sent).toBe(3);

    // The session may no longer pay: the form asks for the key and keeps what was entered.
    await button(page, 'Add or deduct').click();
    await page.getByLabel('What to do').selectOption('Deduct from what Ada earned');
    // What a deduction is for is not guessed.
    expect(await page.getByLabel('For', { exact: true }).inputValue()).toBe('other');
    await page.getByLabel('Amount').fill('2.5');
    await page.getByLabel('Reason').fill('Upgrade of 3 May');
    await page.getByLabel('Due').fill('2020-01-01');
    await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
    await button(page, 'Deduct $2.50').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await button(page, 'Deduct $2.50').click();
    await dialog.getByText('Must not be in the past').waitFor();
    await page.getByLabel('Due').fill('');
    await button(page, 'Deduct $2.50').click();
    await dialog.waitFor({ state: 'hidden' });
    await due('$53.00');
    // Sooner than the page asks again by itself.
    const inMenu = async (text: string) =>
      await page
        .getByRole('navigation')
        .getByRole('link', { name: `Payouts ${text} due` })
        .waitFor({ timeout: 8_000 });
    await inMenu('$53.00');

    await button(page, /^Undo \$50\.00/).click();
    await dialog.getByText('-$50.00 is added to the ledger').waitFor();
    await page.getByLabel('Reason').fill('A mistake');
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    await due('$3.00');
    await inMenu('$3.00');
    await page.getByRole('row', { name: /A mistake Fixed fee, undone .*-\$50\.00/ }).waitFor();
    await page.getByRole('row', { name: /Retainer for May .*\$50\.00 Undone/ }).waitFor();
    expect(await button(page, /^Undo /).count()).toBe(1);
    await button(page, /^Undo -\$2\.50/).click();
    await page.getByLabel('Reason').fill('It was reported');
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('row', { name: /Undo Other, undone: It was reported .*\$2\.50/ }).waitFor();
    const { entries } = await service.sql.one<{ entries: number }>`
      select count(*)::int as entries from entries where affiliate_id = ${ada}`;
    expect(entries).toBe(4);

    await page.goto(`${service.url}/console/creator/as/${founder.appId}/${ada}/commissions`);
    await page.getByText('Fixed fee: Retainer for May').waitFor();
    await page.getByText('Fixed fee, undone: A mistake').waitFor();
    expect(problems(/ERR_CONNECTION_RESET|status of 40[039]/)).toEqual([]);
  });

  test('payouts are blocked with a reason, which the creator does not see, and are paid once the block is lifted', async () => {
    const founder = await newFounder();
    const ada = await withMoney(founder, 'Ada');
    const { page, problems } = await openApp(founder, `creators/${ada}`);
    const dialog = page.getByRole('dialog');
    await chooseMore(page, 'Block payouts');
    expect(await page.getByText('Blocks of payouts').count()).toBe(0);
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByLabel('Reason').fill('Refunds of May');
    await dialog.getByRole('button', { name: 'Block payouts' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText(/^Since .*: Refunds of May/).waitFor();
    await moreButton(page).click();
    await page.getByRole('menuitem', { name: 'Pause' }).waitFor();
    expect(await page.getByRole('menuitem', { name: 'Block payouts' }).count()).toBe(0);
    await page.keyboard.press('Escape');
    await page.getByRole('region', { name: 'Blocks of payouts' }).waitFor();
    await shoot(page, 'payouts-blocked');

    await page.goto(`${service.url}/console/apps/${founder.appId}/payouts`);
    await page.getByText('You have blocked the payouts of $5.50.').waitFor();
    expect(await button(page, /^Pay/).count()).toBe(0);

    await page.goto(`${service.url}/console/creator/as/${founder.appId}/${ada}/`);
    await page.getByText('Your payouts are under review').waitFor();
    expect(await page.getByText('Refunds of May').count()).toBe(0);

    await page.goto(`${service.url}/console/apps/${founder.appId}/creators/${ada}`);
    await button(page, 'Lift the block …').click();
    await page.getByLabel('Reason').fill('All sales are real');
    await dialog.getByRole('button', { name: 'Lift the block' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await moreButton(page).click();
    await page.getByRole('menuitem', { name: 'Block payouts' }).waitFor();
    await page.keyboard.press('Escape');
    // The reasons stay after the block.
    const history = page.getByRole('region', { name: 'Blocks of payouts' });
    await history.getByRole('row', { name: /Lifted All sales are real Ann$/ }).waitFor();
    await history.getByRole('row', { name: /Blocked Refunds of May Ann$/ }).waitFor();
    expect(await history.getByRole('row').count()).toBe(3);
    await checkPage(page, 'payout-block-history');
    await page.goto(`${service.url}/console/apps/${founder.appId}/payouts`);
    await button(page, /^Pay/).first().waitFor();
    expect(problems()).toEqual([]);
  });

  test('the question for a key keeps what a form holds, also when it is cancelled, and leads to the page of keys in another tab', async () => {
    const founder = await newFounder();
    const ada = await withMoney(founder, 'Ada');
    const { page, problems } = await openApp(founder, `creators/${ada}`);
    const dialog = page.getByRole('dialog');
    const endRaise = async () =>
      await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
    await chooseMore(page, 'Block payouts');
    const [tab] = await Promise.all([
      page.waitForEvent('popup'),
      dialog.getByRole('link', { name: 'Access' }).click(),
    ]);
    await title(tab, 'Access');
    await tab.close();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByLabel('Reason').fill('Refunds of May');
    await endRaise();
    await dialog.getByRole('button', { name: 'Block payouts' }).click();
    await page.getByLabel('Key that may pay').waitFor();
    await button(page, 'Cancel').click();
    expect(await page.getByLabel('Reason').inputValue()).toBe('Refunds of May');
    // Without a key it asks again.
    await dialog.getByRole('button', { name: 'Block payouts' }).click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    expect(await page.getByLabel('Reason').inputValue()).toBe('Refunds of May');
    await button(page, 'Cancel').click();
    await dialog.waitFor({ state: 'hidden' });

    await button(page, 'Add or deduct').click();
    await page.getByLabel('Amount').fill('50');
    await page.getByLabel('Reason').fill('Retainer for May');
    await endRaise();
    await button(page, 'Add $50.00').click();
    await page.getByLabel('Key that may pay').waitFor();
    await button(page, 'Cancel').click();
    expect(await page.getByLabel('Reason').inputValue()).toBe('Retainer for May');
    await button(page, 'Add $50.00').waitFor();
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('a link from the list of links is of a creator who is found by name, and the message about it leads to it', async () => {
    const founder = await newFounder();
    await post(`/apps/${founder.appId}/affiliates`, founder.key, { name: 'Ada Lovelace' });
    const { page, problems } = await openApp(founder, 'links');
    await button(page, 'New link').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Where the link leads').fill('https://example.com/get');
    await dialog.getByLabel('Link code', { exact: true }).fill('ada-8');
    expect(await dialog.getByRole('button', { name: 'Create the link' }).isDisabled()).toBe(true);
    await dialog.getByRole('combobox', { name: 'Creator' }).fill('love');
    await page.getByRole('option', { name: 'Ada Lovelace' }).click();
    await dialog.getByRole('button', { name: 'Create the link' }).click();
    await page.getByRole('status').getByRole('link', { name: 'Open' }).click();
    await page.getByRole('row', { name: /ada-8.*Ada Lovelace/ }).waitFor();
    expect(new URL(page.url()).search).toBe('?q=ada-8');
    // The next one begins with the same address, which is nothing entered.
    await button(page, 'New link').click();
    expect(await dialog.getByLabel('Where the link leads').inputValue()).toBe('https://example.com/get');
    await dialog.getByRole('combobox', { name: 'Creator' }).press('Escape');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(problems()).toEqual([]);
  });

  test('the search that Ctrl K opens finds creators, links, pages and ids, marks what Enter takes, and leads to them by keyboard', async () => {
    const founder = await newFounder();
    const path = `/apps/${founder.appId}/affiliates`;
    const { id: ada } = await post<{ id: string }>(path, founder.key, { name: 'Ada Lovelace' });
    const { page, problems } = await openApp(founder, 'overview');
    await title(page, 'Overview');
    const search = page.getByRole('textbox', { name: 'Search or jump to' });
    const find = async (text: string) => {
      await page.keyboard.press('Control+k');
      await search.fill(text);
    };
    await find('lovel');
    await page.getByRole('dialog').getByText('Ada Lovelace').waitFor();
    const colorOf = async (name: RegExp) =>
      await button(page, name).evaluate((one) => getComputedStyle(one).backgroundColor);
    expect(await colorOf(/^Ada Lovelace/)).not.toBe(await colorOf(/^Events of the user/));
    await checkPage(page, 'palette');
    await search.press('Enter');
    await title(page, 'Ada Lovelace');
    await find('commis');
    await search.press('Enter');
    await title(page, 'Commissions');
    // What another text has found is not what Enter takes.
    await find('l');
    await page.getByRole('dialog').getByText('Ada Lovelace').waitFor();
    await search.fill('links');
    await search.press('Enter');
    await title(page, 'Links');
    await page.goBack();
    await title(page, 'Commissions');
    await find(ada);
    await page.getByRole('dialog').getByText(`Creator ${ada}`).click();
    await title(page, 'Ada Lovelace');
    await find('user 7');
    await page.getByRole('dialog').getByText('Events of the user “user 7”').click();
    await title(page, 'Events');
    expect(new URL(page.url()).search).toBe('?user=user%207');
    // What is created has the sheet of its page, once: a reload shows the list.
    await find('new cre');
    await search.press('Enter');
    const sheet = page.getByRole('dialog', { name: 'New creator' });
    await sheet.getByRole('textbox', { name: 'Name', exact: true }).waitFor();
    await page.reload();
    await title(page, 'Creators');
    await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor();
    await page.waitForTimeout(500);
    expect(await sheet.count()).toBe(0);
    // What was entered is not given up without a question.
    await button(page, 'Paste CSV').click();
    const paste = page.getByRole('dialog').getByRole('textbox').first();
    await paste.fill('name\nBea');
    await find('new cre');
    await search.press('Enter');
    await page.getByText('Discard what you entered?').waitFor();
    await button(page, 'Keep editing').click();
    expect(await paste.inputValue()).toBe('name\nBea');
    await button(page, 'Cancel').click();
    // A code leads to its creator.
    await post(`${path}/${ada}/codes`, founder.key, { namespace: 'app_store', value: 'LOVELACE20' });
    await find('lovelace2');
    await button(page, /^LOVELACE20.*Ada Lovelace, App Store/).click();
    await title(page, 'Ada Lovelace');
    await page.keyboard.press('Control+k');
    await page.keyboard.press('Escape');
    await search.waitFor({ state: 'hidden' });
    expect(problems()).toEqual([]);
  });

  test('keys lead to pages, rows, the filter and what is new, but not while somebody types, nor once they are switched off', async () => {
    const founder = await newFounder();
    for (const name of ['Ada', 'Bea']) await post(`/apps/${founder.appId}/affiliates`, founder.key, { name });
    const { page, problems } = await openApp(founder, 'overview');
    await title(page, 'Overview');
    await page.keyboard.type('gc');
    await title(page, 'Creators');
    await page.getByRole('link', { name: 'Bea' }).waitFor();
    await page.keyboard.press('j');
    await page.locator('a:focus', { hasText: 'Ada' }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('j');
    await page.locator('a:focus', { hasText: 'Bea' }).waitFor();
    await page.keyboard.press('Enter');
    await title(page, 'Bea');
    await page.keyboard.type('gc');
    await title(page, 'Creators');
    await page.keyboard.press('/');
    // In a field, and over a dialog, letters are text.
    await page.keyboard.type('gl?n');
    await page.locator('input:focus').waitFor();
    expect(await page.locator('input:focus').inputValue()).toBe('gl?n');
    await page.locator('h1').click();
    await page.keyboard.press('n');
    await page.getByRole('dialog').getByLabel('Name').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.keyboard.press('?');
    const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
    await list.getByText('Commissions').waitFor();
    await checkPage(page, 'shortcuts');
    await list.getByRole('switch', { name: 'Shortcuts of single letters' }).press('Space');
    await page.keyboard.press('Escape');
    await list.waitFor({ state: 'hidden' });
    await page.keyboard.type('gp?');
    await page.waitForTimeout(300);
    expect(await page.getByRole('dialog').count()).toBe(0);
    await title(page, 'Creators');
    await page.keyboard.press('Control+k');
    await page.getByRole('textbox', { name: 'Search or jump to' }).waitFor();
    expect(problems()).toEqual([]);
  });

  test('figures stay on the page when they cannot be read again, and a search that fails says so', async () => {
    const founder = await newFounder();
    await withMoney(founder, 'Ada');
    const { page, problems } = await openApp(founder, 'overview');
    await page.getByRole('link', { name: 'Pay $5.50 to 1 creator' }).waitFor();
    await page.locator('.measure', { hasText: 'Revenue' }).first().waitFor();
    await page.route('**/apps/*/**', async (route) => {
      const body = { code: 'rate_limited', title: 'No', detail: 'Not now.', status: 429 };
      await route.fulfill({
        status: 429,
        contentType: 'application/problem+json',
        body: JSON.stringify(body),
      });
    });
    const readAgain = async () => {
      // Answers are fresh for five seconds.
      await page.waitForTimeout(5_200);
      await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
      await page.getByText('Not now.').first().waitFor();
    };
    await readAgain();
    await page.getByRole('link', { name: 'Pay $5.50 to 1 creator' }).waitFor();
    await page.locator('.measure', { hasText: 'Revenue' }).first().waitFor();
    await page.getByText('What there is to do could not be read').waitFor();
    await page.unroute('**/apps/*/**');
    await page.goto(`${service.url}/console/apps/${founder.appId}/payouts`);
    await page.getByRole('row', { name: /Ada.*\$5\.50/ }).waitFor();
    await page.route('**/payouts/preview', async (route) => {
      const body = { code: 'rate_limited', title: 'No', detail: 'Not now.', status: 429 };
      await route.fulfill({
        status: 429,
        contentType: 'application/problem+json',
        body: JSON.stringify(body),
      });
    });
    await readAgain();
    await page.getByRole('row', { name: /Ada.*\$5\.50/ }).waitFor();
    await page.route('**/search?*', async (route) => {
      const body = { code: 'rate_limited', title: 'No', detail: 'Search later.', status: 429 };
      await route.fulfill({
        status: 429,
        contentType: 'application/problem+json',
        body: JSON.stringify(body),
      });
    });
    await openFilter(page, 'Creator');
    await page.getByPlaceholder('name or e-mail').fill('Ada');
    await page.getByText('Search later.').first().waitFor();
    expect(await page.getByText('Nothing found').count()).toBe(0);
    expect(problems(/status of 429/)).toEqual([]);
  });

  test('the overview shows a range with the period before it, who led in it, what is due, and what to do', async () => {
    const founder = await newFounder();
    const ada = await withMoney(founder, 'Ada');
    const joan = await withMoney(founder, 'Joan');
    // More is taken back from Joan than is due to her.
    const due = await service.sql.one<{ id: string }>`
      select id from commissions where affiliate_id = ${joan} and status = 'matured' and amount_cents = 800`;
    const reversal = await insertReversal(service, due.id, {
      amountCents: 800,
      occurredAt: Date.now() - 2 * DAY_MS,
    });
    await service.sql`update commissions set status = 'matured', matured_at = now() where id = ${reversal} and status = 'pending'`;
    const { page, problems } = await openApp(founder, 'overview');
    const figure = (name: string) => page.locator('.measure, .owed > div', { hasText: name }).first();
    const figures = async (expected: Readonly<Record<string, string>>) => {
      for (const [name, value] of Object.entries(expected))
        await figure(name).getByText(value, { exact: true }).waitFor();
    };
    // Due is what can be paid, not lowered by the balance of another creator.
    await figures({ Held: '$12.00', Due: '$5.50', 'Negative balances': '-$2.50', Booked: '$20.00' });
    await page.getByRole('link', { name: 'Pay $5.50 to 1 creator' }).waitFor();
    await page.getByText(/Days are those of \S+\./).waitFor();
    await figures({ Installs: '2', Earned: '-$1.00' });
    await figure('Earned').getByText('$16.00 before').waitFor();
    const lengths: number[] = [];
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname.endsWith('/timeseries'))
        lengths.push(Number(searchParams.get('to')) - Number(searchParams.get('from')));
    });
    await page.getByLabel('Range').selectOption('12m');
    await figures({ Installs: '6', Earned: '$35.00' });
    // A period that has not ended is compared with as much of the one before.
    expect(new Set(lengths)).toEqual(new Set([lengths[0]]));
    expect(lengths[0]).toBeGreaterThan(300 * DAY_MS);
    await page.getByText('Earned', { exact: true }).click();
    await page.locator('.recharts-bar-rectangle').first().waitFor({ state: 'attached' });
    // The previous period is an area, and a column of the table for those who do not see it.
    await page.locator('.recharts-area-area').first().waitFor({ state: 'attached' });
    // The bar at the right is this month, which has not ended.
    const chart = await page.locator('.chart').boundingBox();
    await page.locator('.chart').hover({ position: { x: (chart?.width ?? 0) - 20, y: 150 } });
    await page.locator('.chart-values', { hasText: /, so far.*\$/ }).waitFor();
    await page.getByText('As a table').click();
    await page.getByRole('columnheader', { name: 'The 12 months before' }).waitFor();
    await page.getByLabel('Range').selectOption('30d');
    await page.getByRole('columnheader', { name: 'The 30 days before' }).waitFor();
    const labels = page.locator('.recharts-xAxis-tick-labels text');
    await labels.nth(3).waitFor({ state: 'attached' });
    const marks = await labels.evaluateAll((texts) => texts.map((text) => Number(text.getAttribute('x'))));
    const gaps = marks.slice(1).map((at, index) => Math.round(at - (marks[index] ?? 0)));
    expect(new Set(gaps).size).toBe(1);
    // Range and measure are in the address.
    await page.getByLabel('Range').selectOption('12m');
    await page.reload();
    await figures({ Earned: '$35.00' });
    await page.getByRole('row', { name: /^Ada \$21\.50/ }).waitFor();
    await page.getByRole('row', { name: /^Joan \$13\.50/ }).waitFor();
    expect(new URL(page.url()).search).toBe('?range=12m&measure=commissions');
    // The bar of a row is as long as its part of the first one: $13.50 of $21.50.
    const bars = page.getByRole('region', { name: 'Creators: earned' }).locator('td:first-child');
    expect(
      await bars.evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell).backgroundSize)),
    ).toEqual(['100% 100%', '63% 100%']);
    await page.getByRole('link', { name: 'Ada' }).click();
    await title(page, 'Ada');
    expect(page.url()).toContain(ada);
    expect(problems()).toEqual([]);
  });

  test('the overview shows the days between two dates, compared with as many days before or with a year before', async () => {
    const founder = await newFounder();
    await withMoney(founder, 'Ada');
    const { page, problems } = await openApp(founder, 'overview');
    const earned = page.locator('.measure', { hasText: 'Earned' });
    await page.getByText('Earned', { exact: true }).click();
    const dayAgo = async (days: number) =>
      await page.evaluate((ago) => {
        const day = new Date(Date.now() - ago * 86_400_000);
        const two = (number: number) => String(number).padStart(2, '0');
        return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
      }, days);
    await page.getByLabel('Range').selectOption('dates');
    // The fields begin with the days that are shown.
    expect(await page.getByLabel('First day').inputValue()).toBe(await dayAgo(29));
    expect(await page.getByLabel('Last day').inputValue()).toBe(await dayAgo(0));
    await page.getByLabel('First day').fill(await dayAgo(45));
    const end = (url: string) => Number(new URL(url).searchParams.get('to'));
    const asked = page.waitForRequest(
      (sent) => sent.url().includes('/leaders') && end(sent.url()) < Date.now() - 33 * DAY_MS,
    );
    await page.getByLabel('Last day').fill(await dayAgo(35));
    // The sale of 40 days ago, and nothing of the ten days before.
    await earned.getByText('$8.00', { exact: true }).waitFor();
    await earned.getByText('$0.00 before').waitFor();
    await page.getByRole('row', { name: /^Ada/ }).first().waitFor();
    expect(end((await asked).url())).toBeGreaterThan(Date.now() - 36 * DAY_MS);
    await page.getByText(/compared with the 11 days before\. /).waitFor();
    await page.getByLabel('Compare with').selectOption('year');
    await page.getByText(/compared with a year before\. /).waitFor();
    await page.reload();
    await earned.getByText('$8.00', { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe(
      `?measure=commissions&range=dates&from=${await dayAgo(45)}&to=${await dayAgo(35)}&compare=year`,
    );
    // Days that cannot be shown say so at their field, and the figures stay.
    await page.getByLabel('Last day').fill(await dayAgo(46));
    await page.getByText('Choose a day that is not before the first one.').waitFor();
    await earned.getByText('$8.00', { exact: true }).waitFor();
    await checkPage(page, 'overview-dates');
    await page.getByLabel('First day').fill('2020-01-01');
    await page.getByText('Choose at most 400 days.').waitFor();
    await page.getByLabel('Range').selectOption('7d');
    await earned.getByText('$0.00', { exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?measure=commissions&range=7d&compare=year');
    expect(problems()).toEqual([]);
  });

  test('a key without “write” sees everything, and every change is disabled with the reason', async () => {
    const founder = await newFounder();
    const ada = await withMoney(founder, 'Ada');
    const { key } = await createAccountKey(service.sql, founder.accountId, ['read']);
    const { page, problems } = await openApp(founder, 'creators', key);
    await page.getByText('needs the permission “write”').waitFor();
    expect(await button(page, 'New creator').isDisabled()).toBe(true);
    await page.goto(`${service.url}/console/apps/${founder.appId}/creators/${ada}`);
    await page.getByText('Changes need the permission “write”').waitFor();
    const isDisabled = async (role: 'button' | 'menuitem', name: string) =>
      [name, await page.getByRole(role, { name, exact: true }).isDisabled()] as const;
    for (const name of ['New link', 'Invite']) expect(await isDisabled('button', name)).toEqual([name, true]);
    await moreButton(page).click();
    for (const name of ['Edit', 'Pause', 'Remove', 'Revoke sign-in links'])
      expect(await isDisabled('menuitem', name)).toEqual([name, true]);
    expect(problems()).toEqual([]);
  });

  test('the pages have no violation of WCAG 2.2 AA in any window or state', async () => {
    const founder = await newFounder();
    const { page, problems } = await openApp(founder, 'creators', founder.key, PHONE);
    const check = async (state: string) => await checkPage(page, state);
    const go = async (path: string) =>
      await page.goto(`${service.url}/console/apps/${founder.appId}/${path}`);
    await page.getByText('No creators yet').waitFor();
    await check('creators-empty');
    await go('overview');
    await page.getByText('Nothing was counted yet.').waitFor();
    await check('overview-empty');
    await go('links');
    await page.getByText('No links yet').waitFor();
    await go('commissions');
    await page.getByText('No commissions yet').waitFor();
    await check('commissions-empty');
    const ada = await withMoney(founder, 'Ada Lovelace');
    await post(`/apps/${founder.appId}/links`, founder.key, {
      affiliateId: ada,
      destinationUrl: 'https://example.com/get',
      slug: 'ada',
    });
    await go('creators');
    await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor();
    await check('creators');
    await button(page, 'Paste CSV').click();
    await page.getByLabel('Lines').fill('Joan\n,x@example.com');
    await button(page, 'Add the creators').click();
    await page.getByText('1 of 2 added').waitFor();
    await check('creators-pasted');
    await go(`creators/${ada}`);
    await page.getByText('by reversals').waitFor({ state: 'attached' });
    await check('creator');
    await button(page, 'Add or deduct').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByLabel('Amount').fill('50');
    await page.getByLabel('Reason').fill('Retainer for May');
    await check('creator-bonus');
    await button(page, 'Add $50.00').click();
    await button(page, /^Undo \$50/).click();
    await page.getByText('is added to the ledger').waitFor();
    await check('creator-undo');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await check('creator-entries');
    await chooseMore(page, 'Remove');
    await page.getByText('no install is attributed').waitFor();
    await check('creator-remove');
    await page.goto(`${service.url}/console/creator/as/${founder.appId}/${ada}/`);
    await page.getByText('You see what Ada Lovelace sees.').waitFor();
    await page.locator('.recharts-bar-rectangle').first().waitFor({ state: 'attached' });
    await check('see-as-creator');
    await page.goto(`${service.url}/console/creator/as/${founder.appId}/aff_unknown/`);
    await page.getByRole('alert').waitFor();
    await check('see-as-unknown');
    await go('links');
    // The window is that of a phone, where a press on the row does it.
    await page.locator('td.about', { hasText: /^ada$/ }).click();
    await page.getByText('Texts to post').waitFor();
    await check('link');
    await go('commissions');
    await page.getByText('by reversals').waitFor({ state: 'attached' });
    await check('commissions');
    await go('overview?range=12m&measure=commissions');
    await page.locator('.recharts-bar-rectangle').first().waitFor({ state: 'attached' });
    await page.getByRole('link', { name: /^Pay .* to 1 creator$/ }).waitFor();
    await check('overview');
    expect(problems(/status of 404/)).toEqual([]);
  });
});
