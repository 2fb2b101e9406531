import { afterAll, expect, test } from '@jest/globals';
import { eventually } from '../../test/support/eventually.ts';
import { startMailServer } from '../../test/support/mail-server.ts';
import { button, checkPage } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';

const server = await startMailServer();
afterAll(async () => {
  await server.close();
});

const mail = {
  smtpUrl: server.url,
  from: 'Lantern <partners@lantern.example>',
  publicUrl: 'https://lantern.example',
};

describeInBrowserWith({ settings: { mail, relay: { overdueMs: 30_000, pauseMs: 100 } } })(
  'mails in a browser',
  ({ service, newPage, signedIn, post, newFounder }) => {
    /** Returns the text of a mail, the first of which is number 0. */
    const textOf = async (number: number): Promise<string> => {
      await eventually('the mail arrives', async () => server.received.length > number);
      return server.received[number]?.text ?? '';
    };

    test('a founder mails the link, and the creator sets the own payee with a mailed code', async () => {
      const founder = await newFounder();
      const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
        name: 'Ada Lovelace',
        email: 'ada@example.com',
      });
      const { page, problems } = await signedIn(founder.key);
      const creatorPage = `${service.url}/console/apps/${founder.appId}/creators/${id}`;
      await page.goto(creatorPage);
      await button(page, 'Invite').click();
      await page.getByRole('dialog').getByText('It can be sent to ada@example.com.').waitFor();
      await button(page, 'Send by mail').click();
      await page.getByRole('dialog').getByText('A link is on its way to a•••@example.com.').waitFor();
      const [, token = ''] = /#token=([\w-]{43})/.exec(await textOf(0)) ?? [];

      const own = await newPage();
      await own.page.goto(`${service.url}/console/creator/#token=${token}`);
      await button(own.page, 'Show my earnings').click();
      const section = own.page.getByRole('region', { name: 'Where your money goes' });
      await section
        .getByText(/From .* on you can set it yourself, since your address a•••@example\.com is new here/)
        .waitFor();
      expect(await section.getByRole('button').count()).toBe(0);

      await service.sql`update affiliates set email_set_at = now() - interval '8 days' where id = ${id}`;
      await own.page.reload();
      await section.getByRole('button', { name: 'Set …' }).click();
      const dialog = own.page.getByRole('dialog');
      await dialog.getByLabel('E-mail address').fill('money@example.org');
      await dialog.getByRole('button', { name: 'Mail me the code' }).click();
      await dialog.getByText('A code is on its way to a•••@example.com.').waitFor();
      await checkPage(own.page, 'creator-code');
      await dialog.getByLabel('Code').fill('AAAA-AAAA');
      await dialog.getByRole('button', { name: 'Set the payee' }).click();
      await dialog.getByText('4 more attempts with this code.').waitFor();
      const [, code = ''] = /^ {4}([A-Z2-9]{4}-[A-Z2-9]{4})$/m.exec(await textOf(1)) ?? [];
      await dialog.getByLabel('Code').fill(code.toLowerCase());
      await dialog.getByRole('button', { name: 'Set the payee' }).click();
      await dialog.waitFor({ state: 'hidden' });
      await section.getByText(/^PayPal · m•••@example\.org · counts from/).waitFor();
      expect(await textOf(2)).toContain('You have set where your payouts go:');

      await page.goto(creatorPage);
      await page
        .getByRole('region', { name: 'Payee' })
        .getByText(/^Set .* by the creator$/)
        .waitFor();
      expect(problems()).toEqual([]);
      expect(own.problems(/status of 409/)).toEqual([]);
    });

    test('a changed address gets codes when somebody who may pay has confirmed it', async () => {
      const founder = await newFounder();
      const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
        name: 'Ada',
        email: 'ada@example.com',
      });
      await service.sql`update affiliates set email = 'new@example.com' where id = ${id}`;
      const { page, problems } = await signedIn(founder.key);
      await page.goto(`${service.url}/console/apps/${founder.appId}/creators/${id}`);
      const section = page.getByRole('region', { name: 'Payee' });
      await section.getByText(/address was changed by somebody who may not pay/).waitFor();
      await button(page, 'Confirm the address …').click();
      const dialog = page.getByRole('dialog');
      await page.getByLabel('Key that may pay').fill(founder.key);
      await button(page, 'Continue').click();
      await dialog.getByText(/Ask the creator whether new@example\.com is theirs/).waitFor();
      await dialog.getByRole('button', { name: 'Confirm the address' }).click();
      await dialog.waitFor({ state: 'hidden' });
      await section.getByText(/address was changed/).waitFor({ state: 'hidden' });
      expect(problems()).toEqual([]);
    });
  },
);
