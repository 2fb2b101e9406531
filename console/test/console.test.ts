import { existsSync, readFileSync } from 'node:fs';
import { createServer, request as send } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { projectRoot } from '../../src/config/project-root.ts';
import { createAccountKey, generateAccountKey } from '../../src/db/account-keys.ts';
import { createAccount } from '../../src/db/accounts.ts';
import { createSignInLink } from '../../src/db/sessions.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import type { Permission } from '../../src/domain/keys.ts';
import { runBlocks } from '../../test/support/runnable-page.ts';
import type { TestService } from '../../test/support/service.ts';
import { button, checkPage, firstLoadOf, PHONE, row, title, violationsOf } from './browser.ts';
import { describeInBrowser } from './suite.ts';

const MINUTE_MS = 60_000;
const KIB = 1024;
/** What the first load may have, gzip. */
const BUDGET = { '.js': 190 * KIB, '.css': 40 * KIB };

describeInBrowser('the console in a browser', ({ service, newPage }) => {
  const linkOf = async (accountId: AccountId | null, isNew = accountId === null): Promise<string> => {
    const token = await createSignInLink(service.sql, accountId, {
      now: Date.now(),
      validMs: 15 * MINUTE_MS,
    });
    return `${service.url}/console/#token=${token}${isNew ? '&new=1' : ''}`;
  };

  /** Creates the first app of the account that has just signed in. */
  const createApp = async (page: Page): Promise<string> => {
    await title(page, 'Create your first app');
    await page.getByLabel('Name', { exact: true }).fill('Lantern Notes');
    await page.getByLabel('Hold period').fill('0');
    await button(page, 'Create the app').click();
    await title(page, 'Set-up');
    return /apps\/(app_\w+)\/setup/.exec(page.url())?.[1] ?? '';
  };

  /** Signs in to a new account with a link, and creates its first app in the browser. */
  const begin = async (page: Page, company: string): Promise<{ accountId: AccountId; appId: string }> => {
    const { id: accountId } = await createAccount(service.sql, company);
    await page.goto(await linkOf(accountId));
    await button(page, 'Sign in').click();
    return { accountId, appId: await createApp(page) };
  };

  const signInWith = async (page: Page, key: string): Promise<void> => {
    await page.goto(`${service.url}/console/`);
    await page.getByLabel('Account key').fill(key);
    await button(page, 'Sign in').click();
  };

  test('the sign-in page of an installation without an account names the command', async () => {
    const { page, problems } = await newPage();
    await page.goto(`${service.url}/console/`);
    await title(page, 'No account yet');
    expect(await page.getByText('npm run -s admin -- console').count()).toBe(1);
    expect(await page.getByLabel('Account key').count()).toBe(0);
    expect(await violationsOf(page)).toEqual([]);
    expect(problems()).toEqual([]);
  });

  test('the set-up page alone leads from the first link to the first attributed purchase', async () => {
    const { page, problems } = await newPage();
    await page.goto(await linkOf(null));
    await page.getByLabel('Company name').fill('Lantern Ltd');
    await button(page, 'Create the account').click();
    const appId = await createApp(page);
    await button(page, /^Lantern Ltd/).waitFor();
    // The token is neither in the address bar nor in the history.
    expect(page.url()).not.toContain('token');

    await page.getByText('Create the secret below.').waitFor();
    await button(page, 'Create a secret').click();
    const secret = await page.getByRole('status').locator('code').innerText();
    await page.getByText('Ready to receive. RevenueCat has not sent anything yet.').waitFor();
    // Each step opens when the one before is done, and the secret is still shown.
    await button(page, 'Run the self-test').click();
    await page.getByText('Sales can be counted.').waitFor({ timeout: 60_000 });
    await row(page, /^Passed Repeat recognized/).waitFor();
    await page.getByText('2 of 6 done').waitFor();
    await row(page, /^Check Address for providers/).waitFor();
    await row(page, /Real deliveries RevenueCat .* cannot reach .* the last step of Set-up/).waitFor();
    // A page that is opened later knows what is done. Its steps open as before.
    const later = await page.context().newPage();
    await later.goto(page.url());
    await later.getByText('2 of 6 done').waitFor();
    await later.getByLabel('Name of the creator').waitFor();
    await later.close();
    // What a later step asks for is not a finding of the self-test.
    expect(await page.getByText('There is no active link.').count()).toBe(0);

    await page.getByText('For a trial, https://example.com is enough.').waitFor();
    await page.getByLabel('Name of the creator').fill('Ada');
    await page.getByLabel('Where the link leads').fill('https://example.com');
    await page.getByLabel('Link code', { exact: true }).fill('ada');
    await button(page, 'Create the creator and the link').click();
    const link = await page.locator('code', { hasText: '/l/' }).innerText();
    await page.getByText('Open the link in this browser').waitFor();
    expect(await page.getByRole('img', { name: `QR code of ${link}` }).count()).toBe(0);
    expect(await page.getByText(secret).count()).toBe(1);

    // What a browser does with the link. The destination is another host, so it is not loaded, and a headless browser counts as a bot.
    const headers = {
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
    };
    const redirect = await page.request.get(link, { maxRedirects: 0, headers });
    const token = new URL(redirect.headers()['location'] ?? '').searchParams.get('claim_token') ?? '';
    await button(
      page,
      /^Add your first creator, with a link or a purchase code \(Done\) *1 click in 30 days/,
    ).waitFor();

    await page.getByRole('tab', { name: 'HTTP' }).click();
    const sdkCommands = await page
      .locator('pre', { hasText: /"claimToken": [^]*"affiliateCode"/ })
      .innerText();
    await runPage(sdkCommands, { PASTE_THE_TOKEN: token });
    await page.getByText('Waiting for billing to report a user').waitFor({ timeout: 30_000 });
    // Only the purchase of the last step finishes this one, so both are open.
    await page.getByText('Billing providers cannot reach this address.').waitFor();
    const purchase = await page.locator('pre', { hasText: '/webhooks/' }).innerText();
    expect(purchase).toContain(appId);
    await runPage(purchase, { PASTE_THE_SECRET: secret });
    const complete = page.getByText('The set-up is complete.');
    await complete.getByRole('link', { name: 'Commissions' }).waitFor();
    await complete.getByRole('link', { name: 'Payouts' }).waitFor();
    await page.getByText('1 user id is on both sides.').waitFor();
    await page.getByText('They match').waitFor();
    await page.getByText('6 of 6 done').waitFor();
    // Anybody can post what is refused, and it undoes nothing.
    await page.request.post(`${service.url}/webhooks/revenuecat/${appId}`, { data: {} });
    await page.reload();
    await page.getByText('6 of 6 done').waitFor();
    await button(page, /^Receive the first/).click();
    await page.getByText('A request in the name of RevenueCat was refused').waitFor();
    // For another purchase, such as one of another user.
    expect(await page.locator('pre', { hasText: '/webhooks/' }).innerText()).toBe(purchase);
    // From then on, the console opens with the overview.
    await page.goto(`${service.url}/console/`);
    await title(page, 'Overview');
    expect(problems()).toEqual([]);
  });

  test('a founder requires signatures of RevenueCat beside the token, and ends that', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'Signing Ltd');
    const label = 'Signing secret of RevenueCat';
    expect(await page.getByLabel(label).count()).toBe(0);
    await button(page, 'Create a secret').click();
    await page.getByLabel(label).fill('short');
    await button(page, 'Require a signature').click();
    await page.getByRole('alert').filter({ hasText: 'too short' }).waitFor();
    await page.getByLabel(label).fill('rc_signing_plainly_fake_1d7');
    await checkPage(page, 'set-up, signing secret');
    await button(page, 'Require a signature').click();
    await page.getByText('Webhooks need the token and a signature.').waitFor();
    expect(await page.getByLabel(label).inputValue()).toBe('');
    // The token is the one that was created before.
    expect(await page.getByRole('status').locator('code').count()).toBe(1);
    await checkPage(page, 'set-up, signing secret stored');
    await button(page, 'Accept the token alone').click();
    await button(page, 'Require a signature').waitFor();
    // The short one.
    expect(problems()).toEqual([expect.stringContaining('400')]);
  });

  test('the command for Stripe on the set-up page is a signed purchase that the service accepts', async () => {
    const { page, problems } = await newPage();
    const { appId } = await begin(page, 'Stripe Ltd');
    const secret = 'whsec_plainly_fake';
    const promise = page.getByText('the last step has a command that sends a purchase');
    await promise.waitFor();
    // There is no command for this provider.
    await page.getByRole('tab', { name: 'Paddle' }).click();
    await page.getByText('use RevenueCat or Stripe in an app of its own').waitFor();
    expect(await promise.count()).toBe(0);
    await page.getByRole('tab', { name: 'Stripe' }).click();
    await promise.waitFor();
    await page.getByText(`make one up, such as ${secret}.`).waitFor();
    await page.getByLabel('Signing secret of Stripe').fill(secret);
    await button(page, 'Store the secret').click();
    await button(page, /^Receive the first purchase/).click();
    const purchase = await page.locator('pre', { hasText: '/webhooks/stripe/' }).innerText();
    await runPage(purchase, { PASTE_THE_SECRET: secret });
    await page.getByText(/^A webhook of Stripe arrived /).waitFor();
    const events = await service.sql`
      select kind, environment, customer_user_id, amount_cents from events where app_id = ${appId}`;
    expect(events).toMatchObject([
      { kind: 'purchase', environment: 'production', customerUserId: 'user-1', amountCents: 999 },
    ]);
    expect(problems()).toEqual([]);
  });

  test('a spent link and a wrong key say what to do; the link page spends nothing by itself', async () => {
    const first = await newPage();
    const { accountId } = await begin(first.page, 'Spent');
    const link = await linkOf(accountId);
    const { page, problems } = await newPage();
    await page.goto(link);
    await title(page, 'Sign in');
    await page.reload();
    await page.goto('about:blank');
    await page.goto(link);
    await button(page, 'Sign in').click();
    await title(page, 'Set-up');
    const late = await newPage();
    // A first link promises no account where there is one: it was probably used.
    await late.page.goto(await linkOf(null));
    await late.page.getByText('the link was probably used').waitFor();
    await title(late.page, 'Sign in');
    await late.page.getByLabel('Account key').waitFor();
    expect(await late.page.getByLabel('Company name').count()).toBe(0);
    await late.page.goto('about:blank');
    await late.page.goto(link);
    await button(late.page, 'Sign in').click();
    await late.page.getByText('A member gets another one with').waitFor();
    expect(await late.page.getByRole('alert').locator('code').allInnerTexts()).toEqual([
      'npm run -s admin -- console',
      '--account ID',
    ]);
    await button(late.page, 'Sign in with a key instead').click();
    await late.page.getByLabel('Account key').fill('tri_sk_live_wrong');
    await button(late.page, 'Sign in').click();
    await late.page.getByText('This is no valid account key.').waitFor();
    const { key } = await createAccountKey(service.sql, accountId, ['read', 'setup']);
    await late.page.getByLabel('Account key').fill(key);
    await button(late.page, 'Sign in').click();
    await title(late.page, 'Set-up');
    expect(problems()).toEqual([]);
    expect(late.problems(/status of 401/)).toEqual([]);
  });

  test('a link that is pasted into the tab with the sign-in page is taken, and leaves the address bar', async () => {
    const first = await newPage();
    const { accountId } = await begin(first.page, 'Pasted');
    const { page, problems } = await newPage();
    await page.goto(`${service.url}/console/`);
    await page.getByLabel('Account key').waitFor();
    // The same document, as in a browser, since only the fragment differs.
    for (const link of [await linkOf(accountId), await linkOf(accountId)]) {
      await page.goto(link);
      await page.getByText('It works once.').waitFor();
      expect(page.url()).toBe(`${service.url}/console/`);
    }
    await button(page, 'Sign in').click();
    await title(page, 'Set-up');
    expect(problems()).toEqual([]);
  });

  test('a session of another account in the same page shows nothing of the first one', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'First Ltd');
    await button(page, /^Put the SDK/).click();
    await page.getByText('The code contains your SDK key').waitFor();
    const other = await newPage();
    const second = await begin(other.page, 'Second Ltd');
    await service.sql`update apps set name = 'Second Notes' where id = ${second.appId}`;
    const { key } = await createAccountKey(service.sql, second.accountId, ['read', 'setup']);
    // The session ends elsewhere, so the next poll of the set-up asks for a new one.
    await page.context().clearCookies();
    await page.getByLabel('Account key').fill(key);
    await button(page, 'Sign in').click();
    await page.getByRole('option', { name: 'Second Notes' }).waitFor({ state: 'attached' });
    await page.waitForURL((url) => url.pathname.includes(second.appId));
    expect(await page.getByText('Lantern Notes').count()).toBe(0);
    expect(other.problems()).toEqual([]);
    expect(problems(/status of 401/)).toEqual([]);
  });

  test('a link that signs in to another account shows nothing of the session before it', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'Before Ltd');
    const other = await newPage();
    const second = await begin(other.page, 'After Ltd');
    await service.sql`update apps set name = 'After Notes' where id = ${second.appId}`;
    await page.goto(await linkOf(second.accountId));
    await button(page, 'Sign in').click();
    await page.getByRole('option', { name: 'After Notes' }).waitFor({ state: 'attached' });
    expect(await page.getByRole('option', { name: 'Lantern Notes' }).count()).toBe(0);
    await page.waitForURL((url) => url.pathname.includes(second.appId));
    expect([problems(), other.problems()]).toEqual([[], []]);
  });

  test('what was asked for while the program was loading is not shown after a sign-in to another account', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'Early Ltd');
    const other = await newPage();
    const second = await begin(other.page, 'Later Ltd');
    await service.sql`update apps set name = 'Later Notes' where id = ${second.appId}`;
    const { hash } = new URL(await linkOf(second.accountId));
    // The program waits until the link to the other account is opened in the tab.
    let load = () => {};
    const isOpened = new Promise<void>((resolve) => (load = resolve));
    await page.route('**/assets/index-*.js', async (route) => {
      await isOpened;
      await route.continue();
    });
    const isAnswered = page.waitForResponse((response) => response.url().endsWith('/apps'));
    await page.goto(`${service.url}/console/`, { waitUntil: 'commit' });
    await isAnswered;
    await page.evaluate((fragment) => {
      location.hash = fragment;
    }, hash);
    load();
    await button(page, 'Sign in').click();
    await page.getByRole('option', { name: 'Later Notes' }).waitFor({ state: 'attached' });
    expect(await page.getByRole('option', { name: 'Lantern Notes' }).count()).toBe(0);
    expect([problems(), other.problems()]).toEqual([[], []]);
  });

  test('an app is not created while a number is empty, which is not 0', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'Careful');
    await page.goto(`${service.url}/console/apps/new`);
    await page.getByLabel('Name', { exact: true }).fill('Second');
    for (const [label, before] of [
      ['Commission', '20'],
      ['Hold period', '30'],
    ] as const) {
      await page.getByLabel(label).fill('');
      expect({ label, isDisabled: await button(page, 'Create the app').isDisabled() }).toEqual({
        label,
        isDisabled: true,
      });
      await page.getByLabel(label).fill(before);
      expect(await button(page, 'Create the app').isDisabled()).toBe(false);
    }
    expect(problems()).toEqual([]);
  });

  test('a second attempt after a refused link creates no second creator', async () => {
    const { page, problems } = await newPage();
    const { appId } = await begin(page, 'Second attempt');
    await button(page, /^Add your first creator/).click();
    await page.getByLabel('Name of the creator').fill('Adda');
    await page.getByLabel('Where the link leads').fill('https://example.com/get');
    await page.getByLabel('Link code', { exact: true }).fill('not a code');
    await button(page, 'Create the creator and the link').click();
    await page.getByText('Must be 2 to 64 characters').waitFor();
    await page.getByLabel('Name of the creator').fill('Ada');
    await page.getByLabel('Link code', { exact: true }).fill('ada-lovelace');
    await button(page, 'Create the creator and the link').click();
    await page.getByText('The link of Ada leads to').waitFor();
    const creators = await service.sql`select name from affiliates where app_id = ${appId}`;
    expect(creators).toEqual([{ name: 'Ada' }]);
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('a refused link leaves the present session as it is', async () => {
    const { page, problems } = await newPage();
    const { accountId } = await begin(page, 'Staying');
    const link = await linkOf(accountId);
    const other = await newPage();
    await other.page.goto(link);
    await button(other.page, 'Sign in').click();
    await title(other.page, 'Set-up');
    await page.goto(link);
    await button(page, 'Sign in').click();
    await button(page, 'Stay signed in').click();
    await title(page, 'Set-up');
    // A first link is refused without a question, since there is an account.
    await page.goto('about:blank');
    await page.goto(await linkOf(null));
    await title(page, 'Set-up');
    expect(page.url()).not.toContain('token');
    expect(other.problems()).toEqual([]);
    expect(problems(/status of 401/)).toEqual([]);
  });

  test('a key that may pay, created long after the sign-in, asks for one first and keeps what was entered', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'Team');
    await page.getByRole('link', { name: 'Access' }).click();
    await title(page, 'Access');
    await service.sql`update sessions set created_at = created_at - interval '20 minutes'`;
    await button(page, 'New key').click();
    await page.getByLabel('Who uses it').fill('Payroll');
    await page.getByLabel('payout').check();
    await button(page, 'Create the key').click();
    await page.getByLabel('Key that may pay').waitFor();
    await page.getByText('npm run -s admin -- console').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    expect(await page.getByLabel('Who uses it').inputValue()).toBe('Payroll');
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('a key of the Access page signs a colleague in with fewer rights, until it is revoked', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'Team');
    await page.getByRole('link', { name: 'Access' }).click();
    await title(page, 'Access');
    await button(page, 'New key').click();
    await page.getByLabel('Who uses it').fill('Ann');
    await page.getByLabel('write').uncheck();
    await button(page, 'Create the key').click();
    await page.getByText('With it, “Ann” can sign in here or call the API.').waitFor();
    const key = await page.getByRole('status').locator('code').innerText();
    await button(page, 'Done').click();

    const ann = await newPage();
    await signInWith(ann.page, key);
    await title(ann.page, 'Set-up');
    await ann.page.getByText('You cannot see the set-up').waitFor();
    await ann.page.getByRole('link', { name: 'Access' }).click();
    await ann.page.getByText('Creating, rotating and revoking keys needs').waitFor();
    expect(await button(ann.page, 'New key').isDisabled()).toBe(true);
    expect(await violationsOf(ann.page)).toEqual([]);

    await page.reload();
    await page.getByRole('row', { name: /Chrome on Linux.*Ann/ }).waitFor();
    await button(page, 'Revoke Ann').click();
    await button(page, 'Revoke the key').click();
    await page.getByText('Show 1 that has ended').waitFor();
    await ann.page.reload();
    await title(ann.page, 'Sign in');
    expect([problems(), ann.problems(/status of 401/)]).toEqual([[], []]);
  });

  test('“End all others” signs every other browser out once it is confirmed, and not before', async () => {
    const { page, problems } = await newPage();
    const { accountId } = await begin(page, 'Sessions');
    const { key } = await createAccountKey(service.sql, accountId, ['read', 'setup']);
    const other = await newPage();
    await signInWith(other.page, key);
    await title(other.page, 'Set-up');
    await page.goto(`${service.url}/console/access`);
    await button(page, 'End all others …').click();
    await page.getByText('Every other browser that is signed in to this account is signed out').waitFor();
    await button(page, 'Cancel').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await other.page.reload();
    await title(other.page, 'Set-up');
    await button(page, 'End all others …').click();
    await page.getByRole('dialog').getByRole('button', { name: 'End all others' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.getByText('this one').waitFor();
    expect(await button(page, /^End /).count()).toBe(0);
    await other.page.reload();
    await title(other.page, 'Sign in');
    expect([problems(), other.problems()]).toEqual([[], []]);
  });

  test('“End” signs one other browser out once it is confirmed, and not before', async () => {
    const { page, problems } = await newPage();
    const { accountId } = await begin(page, 'One session');
    const [other, third] = [await newPage(), await newPage()];
    for (const [guarded, name] of [
      [other, 'Ann'],
      [third, 'Grace'],
    ] as const) {
      const made = await generateAccountKey(service.sql, accountId, ['read', 'setup'], name);
      await signInWith(guarded.page, made?.key ?? '');
      await title(guarded.page, 'Set-up');
    }
    await page.goto(`${service.url}/console/access`);
    // The present session is ended by “Sign out”, not here.
    await page.getByText('this one').waitFor();
    expect(await button(page, /^End the session of/).count()).toBe(2);
    const end = page.getByRole('row', { name: /Ann/ }).getByRole('button', { name: /^End the session of/ });
    await end.click();
    await page.getByText(/signed in with the key “Ann” since .*, is signed out at once/).waitFor();
    await button(page, 'Cancel').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await other.page.reload();
    await title(other.page, 'Set-up');
    await end.click();
    await page.getByRole('dialog').getByRole('button', { name: 'End the session' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await end.waitFor({ state: 'detached' });
    await other.page.reload();
    await title(other.page, 'Sign in');
    await third.page.reload();
    await title(third.page, 'Set-up');
    expect([problems(), third.problems(), other.problems(/status of 401/)]).toEqual([[], [], []]);
  });

  test('dates are in English like the sentences and numbers around them, in the time zone of the browser', async () => {
    const first = await newPage();
    const { accountId } = await begin(first.page, 'Dates');
    // Its set-up would go on asking, which uses the session.
    await first.page.goto('about:blank');
    await service.sql`
      update sessions set created_at = '2026-03-01 20:30Z', last_used_at = now() - interval '3 days'
       where account_id = ${accountId}`;
    const { page, problems } = await newPage({ locale: 'de-DE', timezoneId: 'Asia/Tokyo' });
    await page.goto(await linkOf(accountId));
    await button(page, 'Sign in').click();
    await title(page, 'Set-up');
    await page.goto(`${service.url}/console/access`);
    await row(page, /Since Mar 2, 2026, 5:30\sAM .* 3 days ago/).waitFor();
    await page.getByText('Times are in Asia/Tokyo.').waitFor();
    expect(problems()).toEqual([]);
  });

  test('a deep link works after a reload, and behind a proxy that strips a prefix', async () => {
    const { page, problems } = await newPage();
    const { accountId, appId } = await begin(page, 'Prefix');
    await page.reload();
    await title(page, 'Set-up');
    expect(problems()).toEqual([]);
    const proxy = await startProxy(service.url, '/tools/tributary');
    const behind = await newPage({}, proxy.url);
    await behind.page.goto(`${proxy.url}/tools/tributary/console/${new URL(await linkOf(accountId)).hash}`);
    await button(behind.page, 'Sign in').click();
    await title(behind.page, 'Set-up');
    await behind.page.goto(`${proxy.url}/tools/tributary/console/apps/${appId}/setup`);
    await behind.page.getByText('Webhook URL').waitFor();
    expect(behind.page.url()).toContain('/tools/tributary/console/apps/');
    expect(behind.problems()).toEqual([]);
    proxy.server.close();
    proxy.server.closeAllConnections();
  });

  test('a page on another port of the same host gets a 403 with the cookie of the session', async () => {
    const { page } = await newPage();
    await begin(page, 'Attacked');
    const before = await countApps(service);
    const evil = createServer((_, response) => response.end('<!doctype html><title>x</title>'));
    const url = await listen(evil);
    const tab = await page.context().newPage();
    await tab.goto(url);
    const statuses: number[] = [];
    tab.on('response', (response) => statuses.push(response.status()));
    await tab.evaluate(async (at) => {
      await fetch(`${at}/apps`, { credentials: 'include', mode: 'no-cors' }).catch(() => {});
      await fetch(`${at}/session/end`, { method: 'POST', credentials: 'include', mode: 'no-cors' }).catch(
        () => {},
      );
      await fetch(`${at}/apps`, {
        method: 'POST',
        credentials: 'include',
        mode: 'no-cors',
        headers: { 'content-type': 'text/plain' },
        body: '{"name":"evil"}',
      }).catch(() => {});
    }, service.url);
    // Without the cookie, which SameSite did not keep back, they would be 401.
    expect(statuses).toEqual([403, 403, 403]);
    expect(await countApps(service)).toBe(before);
    await page.reload();
    await title(page, 'Set-up');
    evil.close();
    evil.closeAllConnections();
  });

  test('the menu changes the colours and signs out; the session is gone', async () => {
    const { page, problems } = await newPage();
    const { appId } = await begin(page, 'Menu Ltd');
    const cookies = await page.context().cookies();
    expect(cookies).toMatchObject([{ name: 'tributary', httpOnly: true, sameSite: 'Strict' }]);
    await button(page, /^Menu Ltd/).click();
    await page.getByRole('menuitem', { name: 'Dark' }).click();
    await page.waitForFunction(() => document.documentElement.dataset['mantineColorScheme'] === 'dark');
    await button(page, /^Menu Ltd/).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('Account key').waitFor();
    await page.goto(`${service.url}/console/apps/${appId}/setup`);
    await page.getByLabel('Account key').waitFor();
    expect(await page.context().cookies()).toEqual([]);
    expect(problems()).toEqual([]);
  });

  test('no page has a violation of WCAG 2.2 AA, an error or a sideways scroll in any window or state', async () => {
    const { page, problems } = await newPage(PHONE);
    const check = async (state: string) => await checkPage(page, state.replaceAll(/\W+/g, '-'));
    // The first link of an installation, before and after its account was created.
    await page.route('**/session', async (route) => {
      await route.fulfill({ json: { session: null, hasAccounts: false } });
    });
    await page.goto(await linkOf(null));
    await page.getByLabel('Company name').waitFor();
    await check('welcome');
    await page.unroute('**/session');
    await createAccount(service.sql, 'Before');
    await page.goto('about:blank');
    await page.goto(await linkOf(null));
    await page.getByText('the link was probably used').waitFor();
    await check('first link, used');
    const { accountId, appId } = await begin(page, 'Axe');
    await check('set-up, empty');
    for (const provider of ['Stripe', 'Paddle']) {
      await page.getByRole('tab', { name: provider }).click();
      await check(`set-up, ${provider}`);
    }
    await page.getByLabel('Signing secret of Paddle').fill('sk_wrong');
    await button(page, 'Store the secret').click();
    await page.getByRole('alert').waitFor();
    await check('set-up, error');
    await page.getByRole('tab', { name: 'RevenueCat' }).click();
    await button(page, 'Create a secret').click();
    await page.getByText('shown once').waitFor();
    await check('set-up, secret');
    await button(page, 'Run the self-test').waitFor();
    for (const step of [
      /^Add your first creator/,
      /^Put the SDK/,
      /^Check that user ids/,
      /^Receive the first/,
    ]) {
      await button(page, step).click();
    }
    await button(page, 'Run the self-test').click();
    await page.getByText('Sales can be counted.').waitFor({ timeout: 60_000 });
    await check('set-up, every step');
    await page.goto(`${service.url}/console/access`);
    await page.getByText('Chrome on Linux').first().waitFor();
    await check('access');
    await button(page, 'New key').click();
    await page.getByLabel('Who uses it').waitFor();
    await check('access, new key');
    await page.keyboard.press('Escape');
    await page.goto(`${service.url}/console/nowhere`);
    await title(page, 'There is no such page');
    await check('no such page');
    // An error of the service, with a way to try again.
    await page.route('**/setup', async (route) => {
      const isApi = route.request().resourceType() === 'fetch';
      await (isApi
        ? route.fulfill({
            status: 400,
            contentType: 'application/problem+json',
            body: '{"title":"Broken","code":"x"}',
          })
        : route.continue());
    });
    await page.goto(`${service.url}/console/apps/${appId}/setup`);
    await button(page, 'Try again').waitFor();
    await check('set-up, error of the service');
    await page.unroute('**/setup');
    const permissions: Permission[] = ['read'];
    const { key } = await createAccountKey(service.sql, accountId, permissions);
    await page.context().clearCookies();
    await signInWith(page, key);
    await page.getByText('You cannot see the set-up').waitFor();
    await check('set-up, no permission');
    await page.context().clearCookies();
    await page.goto(`${service.url}/console/`);
    await page.getByLabel('Account key').waitFor();
    await check('sign-in');
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('the set-up is operable by keyboard: a step opens, and a dialog returns the focus', async () => {
    const { page, problems } = await newPage();
    await begin(page, 'Keyboard');
    await button(page, /^Put the SDK/).focus();
    await page.keyboard.press('Enter');
    await page.locator('pre').waitFor();
    await page.goto(`${service.url}/console/access`);
    await button(page, 'New key').focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Who uses it').waitFor();
    await page.waitForFunction(() => document.activeElement?.tagName === 'INPUT');
    await page.keyboard.type('By keyboard');
    await page.keyboard.press('Enter');
    await page.getByText('shown once').waitFor();
    // Nobody can see it again, so neither Escape nor a press beside it takes it away.
    await page.keyboard.press('Escape');
    await page.mouse.click(5, 400);
    await page.getByText('shown once').waitFor();
    await button(page, 'Done').press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.locator('button:focus', { hasText: /^New key$/ }).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a link to another page moves the focus to the title of that page, and a page that is loaded begins at its top', async () => {
    const { page, problems } = await newPage();
    const { appId } = await begin(page, 'Focus');
    const hasFocus = async (heading: string) => {
      await page.locator('h1:focus', { hasText: heading }).waitFor();
    };
    // The form that had the focus is gone.
    await hasFocus('Set-up');
    await page.getByRole('link', { name: 'Settings', exact: true }).press('Enter');
    await hasFocus('Settings');
    await page.getByRole('link', { name: 'Who changed these settings, and when' }).press('Enter');
    await hasFocus('Audit');
    await page.goBack();
    await hasFocus('Settings');
    await button(page, /^Focus/).press('Enter');
    await page.getByRole('menuitem', { name: 'Keys and sessions' }).press('Enter');
    await hasFocus('Access');
    // The title is not hidden behind the header.
    await page.setViewportSize({ width: 1280, height: 300 });
    await page.goto(`${service.url}/console/apps/${appId}/settings`);
    await title(page, 'Settings');
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('BODY');
    await page.getByRole('link', { name: 'Who changed these settings, and when' }).press('Enter');
    await hasFocus('Audit');
    const top = (await page.locator('h1').boundingBox())?.y ?? 0;
    expect(top).toBeGreaterThan(56);
    expect(problems()).toEqual([]);
  });

  test('the document names the files of every page that is loaded later, and the page asks for each of them once', async () => {
    const read = (file: string) => readFileSync(path.join(projectRoot, file), 'utf8');
    const [, text = ''] = /id="page-files">([^<]*)</.exec(read('dist/console/index.html')) ?? [];
    const files = JSON.parse(text) as Record<string, string[]>;
    const later = [...read('console/src/pages.tsx').matchAll(/path: '([^']+)',\s+\.\.\.lazyPage/g)];
    expect(Object.keys(files)).toEqual(later.map(([, at = '']) => at.replaceAll(/:\w+/g, ':')));
    for (const name of Object.values(files).flat())
      expect(existsSync(path.join(projectRoot, 'dist/console/assets', name))).toBe(true);
    const { page, problems } = await newPage();
    const { appId } = await begin(page, 'Files');
    const asked: string[] = [];
    page.on('request', (request) => void asked.push(new URL(request.url()).pathname.split('/').at(-1) ?? ''));
    await page.goto(`${service.url}/console/apps/${appId}/payouts/runs`);
    await title(page, 'Payout runs');
    const ofPage = files['payouts/runs'] ?? [];
    expect(ofPage.length).toBeGreaterThan(1);
    expect(asked.filter((name) => ofPage.includes(name)).toSorted()).toEqual(ofPage.toSorted());
    expect(problems()).toEqual([]);
  });

  test('the first load stays within its budget', () => {
    for (const [end, most] of Object.entries(BUDGET)) {
      const bytes = firstLoadOf('index', end);
      process.stdout.write(`console${end}: ${(bytes / KIB).toFixed(1)} of ${most / KIB} KiB gzip\n`);
      expect(bytes).toBeGreaterThan(0);
      expect(bytes).toBeLessThan(most);
    }
  });
});

/** Runs commands that a page shows in a shell, with its placeholders replaced. */
async function runPage(commands: string, values: Readonly<Record<string, string>>): Promise<void> {
  const script = Object.entries(values).reduce(
    (text, [name, value]) => text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), value),
    commands,
  );
  const { status, stderr } = await runBlocks([{ line: 1, script, printed: null }], {});
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
}

async function countApps({ sql }: TestService): Promise<number> {
  const { apps } = await sql.one<{ apps: number }>`select count(*)::int as apps from apps`;
  return apps;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a proxy that passes on what is under a prefix, without the prefix and with its own host. */
async function startProxy(target: string, prefix: string): Promise<{ server: Server; url: string }> {
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const at = (incoming.url ?? '').startsWith(prefix)
      ? (incoming.url ?? '').slice(prefix.length)
      : '/nothing-here';
    const passed = send(
      { hostname, port, path: at, method: incoming.method, headers: incoming.headers },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      },
    );
    incoming.pipe(passed);
  });
  return { server, url: await listen(server) };
}
