import { afterAll, expect, test } from '@jest/globals';
import { createSignInLink } from '../../src/db/sessions.ts';
import { eventually } from '../../test/support/eventually.ts';
import { startMailServer } from '../../test/support/mail-server.ts';
import { button, checkPage, row, title } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';

const server = await startMailServer();
afterAll(async () => {
  await server.close();
});

const mail = {
  smtpUrl: server.url,
  from: 'Lantern <team@lantern.example>',
  publicUrl: 'https://lantern.example',
};

describeInBrowserWith({ settings: { mail, relay: { overdueMs: 30_000, pauseMs: 100 } } })(
  'a team in a browser',
  ({ service, newPage, signedIn, post, newFounder }) => {
    /** Returns the token of the link in a mail, the first of which is number 0. */
    const tokenOf = async (number: number): Promise<string> => {
      await eventually('the mail arrives', async () => server.received.length > number);
      const [, token = ''] = /#token=([\w-]{43})/.exec(server.received[number]?.text ?? '') ?? [];
      return token;
    };

    test('an owner invites a finance member, who signs in by mail, sees one app, and pays after another mail', async () => {
      const founder = await newFounder();
      const hidden = await post<{ id: string }>('/apps', founder.key, { name: 'Lantern Secret' });
      const creator = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
        name: 'Ada',
      });
      await post(`/apps/${founder.appId}/affiliates/${creator.id}/entries`, founder.key, {
        amountCents: 1_200,
        category: 'bonus',
        reason: 'For the launch',
        externalId: 'launch',
      });

      // The operator's link makes the first owner.
      const options = { now: Date.now(), validMs: 60_000 };
      const token = await createSignInLink(service.sql, founder.accountId, options);
      const owner = await newPage();
      await owner.page.goto(`${service.url}/console/#token=${token}`);
      await button(owner.page, 'Sign in').click();
      await owner.page.getByRole('link', { name: 'Team' }).click();
      await title(owner.page, 'Team');
      await owner.page.getByText('No members yet').waitFor();
      await button(owner.page, 'Invite').click();
      const invite = owner.page.getByRole('dialog');
      await invite.getByLabel('E-mail address').fill('olga@example.com');
      await invite.getByLabel('Name').fill('Olga');
      await invite.getByLabel('Role').selectOption('owner');
      await invite.getByRole('button', { name: 'Invite' }).click();
      await invite.getByText('A mail with a link is on its way to olga@example.com.').waitFor();
      await invite.getByRole('button', { name: 'Done' }).click();
      await owner.page.goto(`${service.url}/console/#token=${await tokenOf(0)}`);
      await owner.page.getByText('It works once.').waitFor();
      await button(owner.page, 'Sign in').click();
      await button(owner.page, 'Lantern Ltd').waitFor();

      // As an owner, without the operator.
      await owner.page.getByRole('link', { name: 'Team' }).click();
      await row(owner.page, /Olga.*you/).waitFor();
      await button(owner.page, 'Invite').click();
      await invite.getByLabel('E-mail address').fill('fin@example.com');
      await invite.getByLabel('Name').fill('Fin');
      await invite.getByLabel('Role').selectOption('finance');
      await invite.getByLabel('Only some apps').check();
      await invite.getByLabel('Lantern Notes').check();
      await checkPage(owner.page, 'team-invite');
      await invite.getByRole('button', { name: 'Invite' }).click();
      // Who may not pay gives nobody the right to pay. The invitation goes out once the session may.
      const raise = owner.page.getByRole('dialog', { name: 'Give a member the right to pay' });
      await raise.getByRole('button', { name: 'Mail me a link' }).click();
      const raised = await owner.page.context().newPage();
      await raised.goto(`${service.url}/console/#token=${await tokenOf(1)}`);
      await button(raised, 'Sign in').click();
      await button(raised, 'Lantern Ltd').waitFor();
      await raised.close();
      await invite.getByText('A mail with a link is on its way to fin@example.com.').waitFor();
      await invite.getByRole('button', { name: 'Done' }).click();

      const member = await newPage();
      const { page } = member;
      await page.goto(`${service.url}/console/#token=${await tokenOf(2)}`);
      await button(page, 'Sign in').click();
      await button(page, 'Lantern Ltd').waitFor();
      const names = page.getByRole('combobox', { name: 'App' }).locator('option');
      await names.first().waitFor({ state: 'attached' });
      expect(await names.allTextContents()).toEqual(['Lantern Notes']);
      expect(await page.getByRole('link', { name: 'Team' }).count()).toBe(0);
      await page.goto(`${service.url}/console/apps/${hidden.id}/overview`);
      await page.getByText('There is no such app in your account.').waitFor();
      expect(await page.getByText('Lantern Secret').count()).toBe(0);

      await page.goto(`${service.url}/console/apps/${founder.appId}/payouts`);
      await button(page, /^Pay /).first().click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(/Paying needs a new link, mailed to fin@example\.com/).waitFor();
      await checkPage(page, 'team-step-up');
      await dialog.getByRole('button', { name: 'Mail me a link' }).click();
      await dialog.getByText('A link is on its way to f•••@example.com.').waitFor();
      const other = await page.context().newPage();
      await other.goto(`${service.url}/console/#token=${await tokenOf(3)}`);
      await button(other, 'Sign in').click();
      await button(other, 'Lantern Ltd').waitFor();
      await other.close();
      await dialog.getByRole('button', { name: /^Pay/ }).click();
      await eventually('the payout is booked', async () => {
        const rows = await service.sql`select 1 from payouts where app_id = ${founder.appId}`;
        return rows.length === 1;
      });
      const [booked] = await service.sql`
        select r.actor_label from audit_rows r where r.object_kind = 'payout' and r.app_id = ${founder.appId}`;
      expect(booked).toEqual({ actorLabel: 'Fin' });

      await owner.page.reload();
      await row(owner.page, /Fin.*Finance.*Lantern Notes/).waitFor();
      await checkPage(owner.page, 'team');
      await button(owner.page, 'Remove Fin').click();
      await button(owner.page, 'Remove the member').click();
      await row(owner.page, /Fin/).waitFor({ state: 'hidden' });
      await page.reload();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      expect(owner.problems(/status of 403/)).toEqual([]);
      expect(member.problems(/status of 40[134]/)).toEqual([]);
    });

    test('the sign-in page mails a link to a member, says the same to anybody, and a copied link signs in, too', async () => {
      const founder = await newFounder();
      const first = server.received.length;
      const options = { now: Date.now(), validMs: 60_000 };
      const token = await createSignInLink(service.sql, founder.accountId, options);
      const owner = await newPage();
      await owner.page.goto(`${service.url}/console/#token=${token}`);
      await button(owner.page, 'Sign in').click();
      await button(owner.page, 'Lantern Ltd').waitFor();
      await owner.page.goto(`${service.url}/console/team`);
      await button(owner.page, 'Invite').click();
      const dialog = owner.page.getByRole('dialog');
      await dialog.getByLabel('E-mail address').fill('Ana@example.com');
      await dialog.getByLabel('Name').fill('Ana');
      await dialog.getByRole('button', { name: 'Invite' }).click();
      await dialog.getByRole('button', { name: 'Done' }).click();
      await dialog.waitFor({ state: 'hidden' });
      await button(owner.page, 'Link for Ana').click();
      await dialog.getByRole('button', { name: 'Create the link' }).click();
      const copied = await dialog.getByText(/#token=/).textContent();
      await dialog.getByRole('button', { name: 'Done' }).click();

      const { page, problems } = await newPage();
      await page.goto(`${service.url}/console/`);
      const field = page.getByLabel('E-mail address');
      await field.waitFor();
      await checkPage(page, 'sign-in-mail');
      for (const address of ['nobody@example.com', 'ana@example.com']) {
        await field.fill(address);
        await button(page, 'Mail me a link').click();
        await page.getByText(`If ${address} is the address of a member, a link is on its way.`).waitFor();
      }
      await page.goto(`${service.url}/console/#token=${await tokenOf(first + 1)}`);
      await button(page, 'Sign in').click();
      await button(page, 'Lantern Ltd').click();
      await page.getByText('Ana@example.com, analyst').waitFor();
      expect(server.received[first + 1]?.recipients).toEqual(['Ana@example.com']);
      expect(server.received).toHaveLength(first + 2);

      const other = await newPage();
      await other.page.goto(`${service.url}/console/${new URL(copied ?? '').hash}`);
      await button(other.page, 'Sign in').click();
      await button(other.page, 'Lantern Ltd').waitFor();
      expect(problems()).toEqual([]);
      expect(other.problems()).toEqual([]);
    });

    test('a session of a key sees who manages the team, and no member', async () => {
      const founder = await newFounder();
      const { page, problems } = await signedIn(founder.key);
      await page.goto(`${service.url}/console/`);
      await page.getByRole('link', { name: 'Team' }).click();
      await page.getByText('Owners manage the team').waitFor();
      expect(problems()).toEqual([]);
    });
  },
);
