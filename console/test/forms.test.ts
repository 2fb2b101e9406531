import { beforeAll, expect, test } from '@jest/globals';
import type { Page, Request, Route } from 'playwright-core';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createSignInLink } from '../../src/db/sessions.ts';
import { PERMISSIONS } from '../../src/domain/keys.ts';
import { button, checkPage, PHONE, title } from './browser.ts';
import { describeInBrowser } from './suite.ts';
import type { NewFounder } from './suite.ts';

/** Collects the changes that a page sends to a path. */
function changesTo(page: Page, end: string): Request[] {
  const sent: Request[] = [];
  page.on('request', (request) => {
    if (request.method() !== 'GET' && new URL(request.url()).pathname.endsWith(end)) sent.push(request);
  });
  return sent;
}

const keyOf = (request: Request) => request.headers()['idempotency-key'];

describeInBrowser(
  'the forms of the console in a browser',
  ({ service, newPage, signedIn, post, newFounder }) => {
    let founder: NewFounder;

    beforeAll(async () => {
      founder = await newFounder();
    });

    const open = async (at: string) => {
      const guarded = await signedIn(founder.key);
      await guarded.page.goto(`${service.url}/console/apps/${founder.appId}/${at}`);
      return guarded;
    };
    const signInAgain = (page: Page) => page.getByRole('dialog', { name: 'Sign in again' });
    const question = (page: Page) => page.getByRole('dialog', { name: 'Discard what you entered?' });

    /** Opens the form of an endpoint, and fills it. */
    const fillEndpoint = async (page: Page, description: string) => {
      await button(page, 'New endpoint').click();
      await page.getByLabel('URL').fill('https://example.com/hook');
      await page.getByLabel('What it is for').fill(description);
    };
    const countOf = async (description: string) =>
      (await service.sql`select 1 from webhook_endpoints where description = ${description}`).length;

    test('a window and a menu whose program cannot be loaded say so, open once it can, and give the focus back', async () => {
      const { page, problems } = await signedIn(founder.key);
      let isGone = true;
      await page.route(/\/(modal-window|account-menu)-[^/]*\.js/, async (route) => {
        if (isGone) await route.fulfill({ status: 404 });
        else await route.continue();
      });
      const notice = page.getByRole('alert').getByText('could not be loaded');
      for (const opens of [button(page, 'New creator'), page.locator('header button[aria-haspopup=menu]')]) {
        isGone = true;
        await page.goto(`${service.url}/console/apps/${founder.appId}/creators`);
        await opens.click();
        await notice.waitFor();
        await page.keyboard.press('Escape');
        await notice.waitFor({ state: 'hidden' });
        await opens.click();
        await notice.waitFor();
        isGone = false;
        await notice.waitFor({ state: 'hidden' });
        const opened = page.getByRole('dialog', { name: 'New creator' }).or(page.getByRole('menu'));
        await opened.waitFor();
        await page.keyboard.press('Escape');
        await opened.waitFor({ state: 'hidden' });
        await opens.and(page.locator(':focus')).waitFor();
      }
      expect(problems(/status of 404|dynamically imported/)).toEqual([]);
    });

    test('a form whose session has ended asks to sign in over the page, and then sends what was entered exactly once', async () => {
      const { page, problems } = await open('webhooks');
      await page.getByText('No endpoints yet').waitFor();
      await fillEndpoint(page, 'After a pause');
      const sent = changesTo(page, '/webhook-endpoints');
      await page.context().clearCookies();
      // Also if a read was refused first, whose dialog is in front.
      await button(page, 'Create the endpoint').dispatchEvent('click');
      await signInAgain(page).waitFor();
      expect(await page.getByLabel('What it is for').inputValue()).toBe('After a pause');
      // Escape belongs to the dialog in front, which stays.
      await page.keyboard.press('Escape');
      await signInAgain(page).getByLabel('Account key').fill('tri_sk_live_wrong');
      await signInAgain(page).getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('This is no valid account key.').waitFor();
      expect(sent).toHaveLength(1);
      await signInAgain(page).getByLabel('Account key').fill(founder.key);
      await signInAgain(page).getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('Copy the signing secret now').waitFor();
      await signInAgain(page).waitFor({ state: 'hidden' });
      expect(sent.map(keyOf)).toEqual([expect.stringMatching(/^console-/), keyOf(sent[0] as Request)]);
      expect(await countOf('After a pause')).toBe(1);
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('a link that is opened in another tab signs the waiting form in, and a page keeps what is edited', async () => {
      const { page, problems } = await open('settings');
      await page.getByLabel('Name', { exact: true }).fill('Lantern Renamed');
      const sent = changesTo(page, '/settings');
      await page.context().clearCookies();
      await button(page, 'Save').click();
      await signInAgain(page).waitFor();
      const other = await page.context().newPage();
      const token = await createSignInLink(service.sql, founder.accountId, {
        now: Date.now(),
        validMs: 60_000,
      });
      await other.goto(`${service.url}/console/#token=${token}`);
      await button(other, 'Sign in').click();
      await title(other, 'Set-up');
      await page.bringToFront();
      await page.getByText('Saved.', { exact: true }).waitFor();
      await signInAgain(page).waitFor({ state: 'hidden' });
      expect(sent).toHaveLength(2);
      expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Lantern Renamed');
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('a page that only reads asks to sign in over what it shows, and then reads again', async () => {
      const { page, problems } = await open('settings');
      await page.getByLabel('Name', { exact: true }).waitFor();
      await page.context().clearCookies();
      await page.getByRole('link', { name: 'Creators' }).click();
      await signInAgain(page).getByLabel('Account key').fill(founder.key);
      await page.keyboard.press('Enter');
      await page.getByText('No creators yet').waitFor();
      await signInAgain(page).waitFor({ state: 'hidden' });
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('after a sign-in to another account nothing that was entered is sent, and the page begins anew', async () => {
      const second = await newFounder();
      const { page, problems } = await signedIn(founder.key);
      await page.goto(`${service.url}/console/apps/new`);
      await page.getByLabel('Name', { exact: true }).fill('Secret of the first');
      const sent = changesTo(page, '/apps');
      await page.context().clearCookies();
      await button(page, 'Create the app').click();
      await signInAgain(page).getByLabel('Account key').fill(second.key);
      await page.keyboard.press('Enter');
      await page.waitForURL((url) => url.pathname.includes(second.appId));
      await title(page, 'Set-up');
      expect(sent).toHaveLength(1);
      expect(await service.sql`select 1 from apps where name = 'Secret of the first'`).toEqual([]);
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('an app whose answer was lost is created once, whatever the service answers meanwhile', async () => {
      const { page, problems } = await signedIn(founder.key);
      await page.goto(`${service.url}/console/apps/new`);
      await page.getByLabel('Name', { exact: true }).fill('Once');
      const answers = [
        async (route: Route) => {
          await route.fetch();
          await route.abort();
        },
        async (route: Route) =>
          await route.fulfill({
            status: 409,
            contentType: 'application/problem+json',
            json: {
              status: 409,
              code: 'idempotency_key_in_use',
              detail: 'The first request is in progress.',
            },
          }),
      ];
      await page.route('**/apps', async (route) => {
        const answer = route.request().method() === 'POST' ? answers.shift() : undefined;
        await (answer ?? ((one: Route) => one.fallback()))(route);
      });
      await button(page, 'Create the app').click();
      await page.getByText('The service did not respond.').waitFor();
      await button(page, 'Create the app').click();
      await page.getByText('The first request is in progress.').waitFor();
      await button(page, 'Create the app').click();
      await title(page, 'Set-up');
      expect(await service.sql`select 1 from apps where name = 'Once'`).toHaveLength(1);
      expect(problems(/ERR_FAILED|409/)).toEqual([]);
    });

    test('a session of another account that begins elsewhere sends nothing that waits here', async () => {
      const second = await newFounder();
      const { page, problems } = await signedIn(founder.key);
      await page.goto(`${service.url}/console/apps/new`);
      await page.getByLabel('Name', { exact: true }).fill('Secret of the first');
      const sent = changesTo(page, '/apps');
      await page.context().clearCookies();
      await button(page, 'Create the app').click();
      await signInAgain(page).waitFor();
      const other = await page.context().newPage();
      await other.goto(`${service.url}/console/`);
      await other.getByLabel('Account key').fill(second.key);
      await button(other, 'Sign in').click();
      await title(other, 'Set-up');
      await page.bringToFront();
      await page.waitForURL((url) => url.pathname.includes(second.appId));
      expect(sent).toHaveLength(1);
      expect(await service.sql`select 1 from apps where name = 'Secret of the first'`).toEqual([]);
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('every call is made in a browser that does not know the body of a request, as Firefox does not', async () => {
      const { key, appId } = await newFounder();
      const { page, problems } = await newPage();
      await page.addInitScript(() =>
        Object.defineProperty(Request.prototype, 'body', { get: () => undefined }),
      );
      await page.goto(`${service.url}/console/`);
      await page.getByLabel('Account key').fill(key);
      await button(page, 'Sign in').click();
      await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Sign in' }).waitFor();
      await page.goto(`${service.url}/console/apps/${appId}/creators`);
      await button(page, 'New creator').click();
      await page.getByLabel('Name').fill('Ada');
      await button(page, 'Add the creator').click();
      // A call without a body made the invite.
      await page.getByRole('dialog').getByText('/console/creator/#token=').waitFor();
      expect(problems()).toEqual([]);
    });

    test('signing out in one tab leaves the others, too', async () => {
      const { key, appId } = await newFounder();
      const { page, problems } = await signedIn(key);
      await page.goto(`${service.url}/console/apps/${appId}/creators`);
      await page.getByText('No creators yet').waitFor();
      const other = await page.context().newPage();
      await other.goto(`${service.url}/console/apps/${appId}/links`);
      await button(other, 'Lantern Ltd').click();
      await other.getByRole('menuitem', { name: 'Sign out' }).click();
      await other.getByLabel('Account key').waitFor();
      await page.getByLabel('Account key').waitFor();
      expect(await page.getByText('No creators yet').count()).toBe(0);
      expect(problems()).toEqual([]);
    });

    test('a form sends nothing once another tab has signed in to another account', async () => {
      const second = await newFounder();
      const { page, problems } = await signedIn(founder.key);
      await page.goto(`${service.url}/console/apps/new`);
      await page.getByLabel('Name', { exact: true }).fill('Secret of the first');
      const other = await page.context().newPage();
      const token = await createSignInLink(service.sql, second.accountId, {
        now: Date.now(),
        validMs: 60_000,
      });
      await other.goto(`${service.url}/console/#token=${token}`);
      await button(other, 'Sign in').click();
      await page.waitForURL((url) => url.pathname.includes(second.appId));
      expect(await service.sql`select 1 from apps where name = 'Secret of the first'`).toEqual([]);
      expect(problems()).toEqual([]);
    });

    test('settings that were edited ask before a link, the back button, the search and the tab lose them', async () => {
      const { page, problems } = await open('creators');
      await page.getByRole('link', { name: 'Settings' }).click();
      const name = page.getByLabel('Name', { exact: true });
      const edited = 'Edited and not saved';
      await name.fill(edited);
      const stay = async () => {
        await question(page).getByRole('button', { name: 'Keep editing' }).click();
        await question(page).waitFor({ state: 'hidden' });
        expect(new URL(page.url()).pathname).toMatch(/\/settings$/);
        expect(await name.inputValue()).toBe(edited);
      };
      await page.getByRole('link', { name: 'Links' }).click();
      await stay();
      await page.goBack();
      await stay();
      await page.keyboard.press('Control+k');
      await page.getByRole('textbox', { name: 'Search or jump to' }).fill('commis');
      await page.keyboard.press('Enter');
      await stay();
      const asked: string[] = [];
      page.once('dialog', (dialog) => {
        asked.push(dialog.type());
        void dialog.dismiss();
      });
      await page.reload({ timeout: 2_000 }).catch(() => {});
      expect(asked).toEqual(['beforeunload']);
      await page.goBack();
      await question(page).getByRole('button', { name: 'Discard' }).click();
      await title(page, 'Creators');
      // Nothing is asked without an edit, or once it is undone or saved.
      await page.goForward();
      await name.fill('Saved now');
      await button(page, 'Save').click();
      await page.getByText('Saved.', { exact: true }).waitFor();
      await page.getByRole('link', { name: 'Links' }).click();
      await title(page, 'Links');
      expect(problems()).toEqual([]);
    });

    test('a new app and a new policy ask before they are lost, and not once they are created', async () => {
      const { page, problems } = await open('policies/new');
      await page.getByLabel('Name', { exact: true }).fill('Standard');
      await page.getByRole('link', { name: 'Links' }).click();
      await question(page).getByRole('button', { name: 'Keep editing' }).click();
      await button(page, 'Create the policy').click();
      await title(page, 'Standard');
      await page.goto(`${service.url}/console/apps/new`);
      await page.getByLabel('Name', { exact: true }).fill('Second app');
      await page.getByRole('link', { name: 'Access' }).click();
      await question(page).getByRole('button', { name: 'Keep editing' }).click();
      await button(page, 'Create the app').click();
      await title(page, 'Set-up');
      expect(problems()).toEqual([]);
    });

    test('Escape and a click outside ask before a dialog discards what was entered, and close an empty one at once', async () => {
      const { page, problems } = await open('creators');
      await button(page, 'Paste CSV').click();
      const paste = page.getByRole('dialog', { name: 'Add creators from CSV' });
      await paste.waitFor();
      await page.keyboard.press('Escape');
      await paste.waitFor({ state: 'hidden' });
      await button(page, 'Paste CSV').click();
      const lines = page.getByLabel('Lines');
      await lines.fill('Ada,ada@example.com');
      for (const close of [
        async () => await page.keyboard.press('Escape'),
        async () => await page.mouse.click(5, 5),
      ]) {
        await close();
        await question(page).waitFor();
        // A second Escape answers the question, with what loses nothing.
        await page.keyboard.press('Escape');
        await question(page).waitFor({ state: 'hidden' });
        expect(await lines.inputValue()).toBe('Ada,ada@example.com');
      }
      await page.keyboard.press('Escape');
      await question(page).getByRole('button', { name: 'Discard' }).click();
      await paste.waitFor({ state: 'hidden' });
      // “Cancel” says itself what it does.
      await button(page, 'Paste CSV').click();
      await lines.fill('Grace');
      await button(page, 'Cancel').click();
      await paste.waitFor({ state: 'hidden' });
      expect(problems()).toEqual([]);
    });

    test('an invalid field is marked where it is, has the focus, and is named as on the page', async () => {
      const { page, problems } = await open('webhooks');
      await button(page, 'New endpoint').click();
      const url = page.getByLabel('URL');
      await url.fill('ftp://example.com');
      await button(page, 'Create the endpoint').click();
      const message = page.getByText('Must begin with https://.', { exact: true });
      await message.waitFor();
      await page.waitForFunction(() => document.activeElement?.getAttribute('aria-invalid') === 'true');
      expect(await url.evaluate((field) => field === document.activeElement)).toBe(true);
      expect((await url.getAttribute('aria-describedby'))?.split(' ')).toContain(
        await message.getAttribute('id'),
      );
      expect(await page.getByText('url:').count()).toBe(0);
      // What is changed is not called wrong any more.
      await url.fill('https://example.com/hook');
      await message.waitFor({ state: 'hidden' });
      expect(problems(/status of 400/)).toEqual([]);
    });

    test('a percentage above 100 stays as it was entered, is refused at its field, and is not sent', async () => {
      const { page, problems } = await open('policies/new');
      await page.getByLabel('Name', { exact: true }).fill('Too much');
      const percentage = page.getByLabel('Percentage', { exact: true });
      // A click selects what is there, so that the next keys do not add to it.
      await percentage.click();
      await page.waitForFunction(() => getSelection()?.toString() === '20 %');
      await percentage.pressSequentially('25');
      await percentage.blur();
      expect(await percentage.inputValue()).toBe('25 %');
      await percentage.fill('5025');
      await percentage.blur();
      const atMost = page.getByText('At most 100 %', { exact: true });
      await atMost.waitFor();
      expect(await percentage.inputValue()).toBe('5025 %');
      expect(await percentage.getAttribute('aria-invalid')).toBe('true');
      const sentPolicies = changesTo(page, '/policies');
      await button(page, 'Create the policy').click();
      await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Percentage');
      await atMost.waitFor();
      expect(sentPolicies).toEqual([]);
      await percentage.fill('2,5');
      await atMost.waitFor({ state: 'hidden' });
      await button(page, 'Cancel').click();

      await page.getByRole('link', { name: 'Settings', exact: true }).click();
      const sent = changesTo(page, '/settings');
      const commission = page.getByLabel('Commission', { exact: true });
      await commission.fill('150');
      await page.getByLabel('Hold period').fill('1000');
      await page.getByText('At most 365 days', { exact: true }).waitFor();
      await button(page, 'Save').click();
      await atMost.waitFor();
      expect(await commission.inputValue()).toBe('150 %');
      expect(await commission.evaluate((field) => field === document.activeElement)).toBe(true);
      await page.getByLabel('Hold period').fill('14');
      await commission.fill('15,5');
      await button(page, 'Save').click();
      await button(page, 'Save').and(page.locator('[disabled]')).waitFor();
      expect(sent.map((request) => request.postDataJSON() as object)).toEqual([
        { commissionRateBps: 1_550, holdPeriodDays: 14 },
      ]);
      expect(problems()).toEqual([]);
    });

    test('an amount that comes in one piece is read with either decimal sign, and one that could mean two amounts is refused', async () => {
      const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
        name: 'Grace',
      });
      const { page, problems } = await open(`creators/${id}`);
      await button(page, 'Add or deduct').click();
      await page.getByLabel('Key that may pay').fill(founder.key);
      await button(page, 'Continue').click();
      const amount = page.getByLabel('Amount', { exact: true });
      await page.getByLabel('Reason').fill('Retainer for May');
      // As a dictation, the suggestions of a telephone, or the clipboard insert it.
      const insert = async (text: string) => {
        await amount.fill('');
        await amount.focus();
        await page.keyboard.insertText(text);
      };
      for (const [text, shown] of [
        ['2,50', '$2.50'],
        ['2.50', '$2.50'],
        ['$2,5', '$2.50'],
        ['1.234,56', '$1,234.56'],
        ['1,234.56', '$1,234.56'],
        ['1 234,56', '$1,234.56'],
        ['1.234.567', '$1,234,567.00'],
      ] as const) {
        await insert(text);
        await button(page, `Add ${shown}`).waitFor({ timeout: 5_000 });
        await amount.blur();
        expect(await amount.inputValue()).toBe(shown.replaceAll(',', ''));
      }
      for (const [text, error] of [
        ['1,234', 'Write 1234 or 1.23'],
        ['1.234', 'Write 1234 or 1.23'],
        ['2.5055', 'At most 2 decimals'],
        ['2,50 €', 'Write a number, such as 12.50'],
        ['-5', 'Write it without a minus'],
      ] as const) {
        await insert(text);
        await page.getByText(error, { exact: true }).waitFor({ timeout: 5_000 });
        expect(await amount.inputValue()).toBe(text);
        expect(await button(page, /^Add\s*$/).isDisabled()).toBe(true);
      }
      await insert('2,50');
      await button(page, 'Add $2.50').click();
      await page.getByRole('row', { name: /Retainer for May .*\$2\.50 Undo/ }).waitFor();
      expect(problems()).toEqual([]);
    });

    test('a code that another link has, and settings that are refused, are said at their fields', async () => {
      const { id: affiliateId } = await post<{ id: string }>(
        `/apps/${founder.appId}/affiliates`,
        founder.key,
        {
          name: 'Ada',
        },
      );
      const taken = { affiliateId, destinationUrl: 'https://example.com', slug: 'taken' };
      await post(`/apps/${founder.appId}/links`, founder.key, taken);
      const { page, problems } = await open(`creators/${affiliateId}`);
      await button(page, 'New link').click();
      const code = page.getByLabel('Link code');
      await page.getByLabel('Where the link leads').fill('javascript:alert(1)');
      await code.fill('a');
      await button(page, 'Create the link').click();
      await page.getByText('Must be 2 to 64 characters').waitFor();
      const isInvalid = async (name: string) =>
        (await page.getByRole('textbox', { name }).getAttribute('aria-invalid')) === 'true';
      const hasFocus = async (name: string) =>
        await page.getByRole('textbox', { name }).evaluate((field) => field === document.activeElement);
      expect([await isInvalid('Where the link leads'), await isInvalid('Link code')]).toEqual([true, true]);
      expect(await hasFocus('Where the link leads')).toBe(true);
      await page.getByLabel('Where the link leads').fill('https://example.com');
      await code.fill('taken');
      await button(page, 'Create the link').click();
      await page.getByText('Another link of this app has this code').waitFor();
      expect(await hasFocus('Link code')).toBe(true);
      expect(await page.getByText(/slug/i).count()).toBe(0);
      await button(page, 'Cancel').click();
      await page.getByRole('link', { name: 'Settings', exact: true }).click();
      await page.getByLabel('iOS apps').fill('nonsense');
      await page.getByLabel('Subdomain').fill('No subdomain!');
      await button(page, 'Save').click();
      await page.getByText('Line 1: ').waitFor();
      expect([
        await isInvalid('Subdomain'),
        await isInvalid('iOS apps'),
        await hasFocus('Subdomain'),
      ]).toEqual([true, true, true]);
      expect(await page.getByText(/linkSubdomain|iosAppIds/).count()).toBe(0);
      await button(page, 'Undo').click();
      expect(problems(/status of 4(00|09)/)).toEqual([]);
    });

    test('the sign-in over a page, the question and a marked field are accessible in any window', async () => {
      const { key } = await createAccountKey(service.sql, founder.accountId, PERMISSIONS);
      const { page, problems } = await signedIn(key, PHONE);
      await page.goto(`${service.url}/console/apps/${founder.appId}/webhooks`);
      await button(page, 'New endpoint').click();
      await page.getByLabel('URL').fill('ftp://example.com');
      await button(page, 'Create the endpoint').click();
      await page.getByText('Must begin with https://.').waitFor();
      await checkPage(page, 'field-error');
      await page.keyboard.press('Escape');
      await question(page).waitFor();
      await checkPage(page, 'discard');
      await question(page).getByRole('button', { name: 'Keep editing' }).click();
      await page.context().clearCookies();
      // As when the tab is shown again.
      await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
      await signInAgain(page).waitFor();
      await checkPage(page, 'sign-in-again');
      expect(problems(/status of 40[01]/)).toEqual([]);
    });
  },
);
