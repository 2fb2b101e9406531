import { afterAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { startMailServer } from '../../test/support/mail-server.ts';
import { button, checkPage, PHONE, title } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';
import type { NewFounder } from './suite.ts';

const server = await startMailServer();
afterAll(async () => {
  await server.close();
});

const mail = {
  smtpUrl: server.url,
  from: 'Lantern <partners@lantern.example>',
  publicUrl: 'https://lantern.example',
};

describeInBrowserWith({ settings: { mail } })(
  'the end of the session of a creator in a browser',
  ({ service, newPage, post, newFounder }) => {
    /** Creates a creator who can set the own payee. Returns the address of a sign-in link. */
    const newLink = async (founder: NewFounder, name: string): Promise<string> => {
      const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
        name,
        email: `${name.toLowerCase()}@example.com`,
      });
      await service.sql`update affiliates set email_set_at = now() - interval '8 days' where id = ${id}`;
      const { url } = await post<{ url: string }>(
        `/apps/${founder.appId}/affiliates/${id}/sign-in-links`,
        founder.key,
      );
      return `${service.url}/console/creator/#${url.split('#')[1] ?? ''}`;
    };
    const signIn = async (page: Page, link: string) => {
      await page.goto(link);
      await button(page, 'Show my earnings').click();
      await title(page, 'Your earnings');
    };
    const signInAgain = (page: Page) => page.getByRole('dialog', { name: 'Sign in again' });
    const email = (page: Page) => page.getByLabel('E-mail address');

    /** Signs a creator in, enters a payee, and sends it when the session has ended. Returns the calls that have sent it. */
    const enterPayee = async (page: Page, link: string): Promise<string[]> => {
      await signIn(page, link);
      await button(page, 'Set …').click();
      await email(page).fill('money@example.org');
      const sent: string[] = [];
      page.on('request', (request) => {
        if (request.method() === 'POST' && request.url().endsWith('/creator/payee-changes'))
          sent.push(request.postData() ?? '');
      });
      await page.context().clearCookies();
      await button(page, 'Mail me the code').click();
      await signInAgain(page).waitFor();
      return sent;
    };
    const changes = async (founder: NewFounder) =>
      (await service.sql`select 1 from payee_changes where app_id = ${founder.appId}`).length;

    test('a payee that a creator has entered when the session ends is kept under the sign-in, and sent once after a link in another tab', async () => {
      const founder = await newFounder();
      const link = await newLink(founder, 'Ada');
      const { page, problems } = await newPage();
      const sent = await enterPayee(page, link);
      // Escape belongs to the dialog in front, which stays.
      await page.keyboard.press('Escape');
      expect(await signInAgain(page).isVisible()).toBe(true);
      expect(await email(page).inputValue()).toBe('money@example.org');
      expect(await changes(founder)).toBe(0);
      const other = await page.context().newPage();
      await signIn(other, link);
      await page.bringToFront();
      await page.getByText('A code is on its way to').waitFor();
      await signInAgain(page).waitFor({ state: 'hidden' });
      expect(sent).toHaveLength(2);
      expect(sent[1]).toBe(sent[0]);
      expect(await changes(founder)).toBe(1);
      // The code is not entered yet, so the payee is not saved.
      await page.keyboard.press('Escape');
      await page.getByRole('dialog', { name: 'Discard what you entered?' }).waitFor();
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('a link that is opened in the tab itself signs a creator in over what is entered', async () => {
      const founder = await newFounder();
      const link = await newLink(founder, 'Ada');
      const { page, problems } = await newPage(PHONE);
      await signIn(page, link);
      await button(page, 'Set …').click();
      await email(page).fill('money@example.org');
      await page.context().clearCookies();
      // As when the tab is shown again.
      await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
      await signInAgain(page).waitFor();
      await page.evaluate((hash) => (location.hash = hash), link.split('#')[1] ?? '');
      await signInAgain(page).getByRole('button', { name: 'Sign in' }).waitFor();
      await checkPage(page, 'creator-sign-in-again');
      await signInAgain(page).getByRole('button', { name: 'Sign in' }).click();
      await signInAgain(page).waitFor({ state: 'hidden' });
      expect(await email(page).inputValue()).toBe('money@example.org');
      await button(page, 'Mail me the code').click();
      await page.getByText('A code is on its way to').waitFor();
      expect(page.url()).not.toContain('token');
      expect(await changes(founder)).toBe(1);
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('what a creator has entered is never sent in the session of another creator', async () => {
      const founder = await newFounder();
      const [ada, grace] = [await newLink(founder, 'Ada'), await newLink(founder, 'Grace')];
      const { page, problems } = await newPage();
      const sent = await enterPayee(page, ada);
      const other = await page.context().newPage();
      await signIn(other, grace);
      await page.bringToFront();
      await page.getByRole('banner').getByText('Grace').waitFor();
      expect(await page.getByRole('dialog').count()).toBe(0);
      expect(sent).toHaveLength(1);
      expect(await changes(founder)).toBe(0);
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('without anything entered, a session that has ended takes away what the page shows', async () => {
      const founder = await newFounder();
      const link = await newLink(founder, 'Ada');
      const { page, problems } = await newPage();
      await signIn(page, link);
      await button(page, 'Set …').click();
      await email(page).waitFor();
      await page.context().clearCookies();
      await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
      await page.getByText('You are not signed in').waitFor();
      expect(await page.getByText('Where your money goes').count()).toBe(0);
      expect(problems(/status of 401/)).toEqual([]);
    });

    test('signing out of one tab signs the other tabs of a creator out, too', async () => {
      const founder = await newFounder();
      const link = await newLink(founder, 'Ada');
      const { page, problems } = await newPage();
      await signIn(page, link);
      const other = await page.context().newPage();
      await other.goto(`${service.url}/console/creator/`);
      await title(other, 'Your earnings');
      await button(other, 'Sign out').click();
      await other.getByText('You are not signed in').waitFor();
      await page.getByText('You are not signed in').waitFor();
      expect(problems()).toEqual([]);
    });
  },
);
