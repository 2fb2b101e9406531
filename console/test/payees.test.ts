import { expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { eventually } from '../../test/support/eventually.ts';
import { waitForPayees } from '../../test/support/payout-runs.ts';
import { button, checkPage, PHONE, shoot } from './browser.ts';
import { payees } from './payees.ts';
import { describeInBrowser } from './suite.ts';
import type { NewFounder } from './suite.ts';

describeInBrowser('payees in a browser', ({ service, signedIn, post, newFounder }) => {
  const newCreator = async (founder: NewFounder, name = 'Ada') => {
    const path = `/apps/${founder.appId}/affiliates`;
    const { id } = await post<{ id: string }>(path, founder.key, { name });
    return { id, page: `${service.url}/console/apps/${founder.appId}/creators/${id}` };
  };
  const stored = async (founder: NewFounder, affiliateId: string) => {
    const response = await fetch(`${service.url}/apps/${founder.appId}/affiliates/${affiliateId}/payee`, {
      headers: { authorization: `Bearer ${founder.key}` },
    });
    return (await response.json()) as Record<string, unknown>;
  };

  test('a founder sets, shows, changes, removes and erases the payee of a creator, who sees it masked', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder);
    const { page, problems } = await signedIn(founder.key);
    await page.goto(ada.page);
    const dialog = page.getByRole('dialog');
    const section = page.getByRole('region', { name: 'Payee' });
    const inDialog = (name: string) => dialog.getByRole('button', { name });
    await section.getByText('No payee yet').waitFor();

    await button(page, 'Set payee').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await dialog.getByLabel('E-mail address').fill('ada.lovelace@example.com');
    await inDialog('Save').click();
    await dialog.waitFor({ state: 'hidden' });
    await section.getByText(/^PayPal · a•••@example\.com · counts from \w+ \d+, \d{4}/).waitFor();
    await section.getByText(/^Set .* by Ann$/).waitFor();
    expect(await page.getByText('ada.lovelace').count()).toBe(0);

    await button(page, 'Show payee').click();
    await dialog.getByText('ada.lovelace@example.com').waitFor();
    await inDialog('Close').click();
    await dialog.waitFor({ state: 'hidden' });

    await button(page, 'Change payee').click();
    await dialog.getByLabel('Method').selectOption('Wise');
    expect(await inDialog('Save').isDisabled()).toBe(true);
    await dialog.getByLabel('Full name').fill('=Ada');
    await dialog.getByLabel('E-mail address').fill('ada@example.org');
    await dialog.getByLabel('Receiver').selectOption('A company or institution');
    await inDialog('Save').click();
    await dialog.getByText(/Must not begin with =/).waitFor();
    await dialog.getByLabel('Full name').fill('Ada Ltd');
    await inDialog('Save').click();
    await section.getByText(/^Wise · a•••@example\.org/).waitFor();
    expect(await stored(founder, ada.id)).toMatchObject({
      version: 2,
      recipient: { email: 'ada@example.org', name: 'Ada Ltd', receiverType: 'INSTITUTION' },
    });

    await page.goto(`${service.url}/console/creator/as/${founder.appId}/${ada.id}/`);
    const own = page.getByRole('region', { name: 'Where your money goes' });
    await own.getByText(/^Wise · a•••@example\.org · counts from/).waitFor();
    await own.getByText('Tell them at once if it is not right.').waitFor();

    await page.goto(ada.page);
    await button(page, 'Remove payee').click();
    await inDialog('Remove the payee').click();
    await dialog.waitFor({ state: 'hidden' });
    await section.getByText(/^No payee · counts from/).waitFor();
    await button(page, 'Erase …').click();
    await inDialog('Erase all recipients').click();
    await dialog.waitFor({ state: 'hidden' });
    const left = await service.sql`
      select from payees where affiliate_id = ${ada.id} and ciphertext is not null`;
    expect(left).toEqual([]);
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('an erasure names the file of a payout run that nobody has downloaded, and removes it after a download', async () => {
    const { earn, raise } = payees({ service, signedIn, post, newFounder });
    const founder = await newFounder();
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${founder.key}` };
    const id = await earn(founder, 'Ada', 500);
    await fetch(`${service.url}/apps/${founder.appId}/affiliates/${id}/payee`, {
      method: 'PUT',
      headers,
      body: JSON.stringify({ method: 'paypal', recipient: { email: 'ada@example.com' } }),
    });
    await waitForPayees(service.database.url);
    const runs = `/apps/${founder.appId}/payout-runs`;
    const run = await post<{ id: string; totalCents: number }>(runs, founder.key, { minimumCents: 0 });
    await post(`${runs}/${run.id}/approve`, founder.key, { expectedTotalCents: run.totalCents });
    const files = async () =>
      await service.sql<{ id: string; isErased: boolean }>`
        select id, ciphertext is null as is_erased from payout_run_files where run_id = ${run.id}`;
    await eventually('the file is written', async () => (await files()).length === 1);
    const [file] = await files();

    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${founder.appId}/creators/${id}`);
    const dialog = page.getByRole('dialog');
    const erase = dialog.getByRole('button', { name: 'Erase all recipients' });
    await button(page, 'Erase …').click();
    await raise(page, founder, 'Erase all recipients');
    await dialog.getByText(/download these files first/).waitFor();
    await erase.click();
    await dialog.getByText(`${file?.id} of ${run.id}`).waitFor();
    expect(await stored(founder, id)).toMatchObject({ method: 'paypal', recipientProblem: null });

    const download = `${service.url}${runs}/${run.id}/files/${file?.id}/download`;
    const { authorization } = headers;
    const { status } = await fetch(download, { method: 'POST', headers: { authorization } });
    expect(status).toBe(200);
    await erase.click();
    await dialog.waitFor({ state: 'hidden' });
    expect(await files()).toEqual([{ id: file?.id, isErased: true }]);
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('without a mail server the page of the creator says that the founder sets the payee', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder);
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/creator/as/${founder.appId}/${ada.id}/`);
    const own = page.getByRole('region', { name: 'Where your money goes' });
    await own.getByText(/Not set yet/).waitFor();
    await own.getByText(/sets it\. Tell them where to send your money\./).waitFor();
    expect(await own.getByRole('button').count()).toBe(0);
    await page.goto(ada.page);
    await button(page, 'Invite').click();
    await page.getByRole('dialog').getByText('Send it to them yourself.').waitFor();
    expect(await page.getByRole('button', { name: 'Send by mail' }).count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a payee that another tab has changed is not overwritten', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder);
    const { page, problems } = await signedIn(founder.key);
    await page.goto(ada.page);
    await button(page, 'Set payee').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await fetch(`${service.url}/apps/${founder.appId}/affiliates/${ada.id}/payee`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${founder.key}` },
      body: JSON.stringify({ method: 'paypal', recipient: { email: 'first@example.com' } }),
    });
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('E-mail address').fill('second@example.com');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('The latest version is 1.').waitFor();
    expect(await stored(founder, ada.id)).toMatchObject({ version: 1, maskedRecipient: 'f•••@example.com' });
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('the wait of a new payee is a setting that needs a key that may pay', async () => {
    const founder = await newFounder();
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${founder.appId}/settings`);
    const wait = page.getByLabel('Wait of a new payee');
    expect(await wait.inputValue()).toBe('3 days');
    await wait.fill('7');
    await button(page, 'Save').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByText('Saved.').waitFor();
    const [app] = await service.sql`select payee_wait_days as days from apps where id = ${founder.appId}`;
    expect(app).toEqual({ days: 7 });
    // So does who may approve a payout run.
    await page.reload();
    const approval = page.getByLabel('A payout run needs the approval of another key');
    await approval.waitFor({ state: 'attached' });
    await approval.click({ force: true });
    await button(page, 'Save').click();
    await eventually('the setting is saved', async () => {
      const [row] = await service.sql<{ by: string | null }>`
        select payout_approval as by from apps where id = ${founder.appId}`;
      return row?.by === 'another_key';
    });
    await page.getByRole('link', { name: 'Who changed these settings, and when' }).click();
    await page.getByText('Wait of a new payee, days').first().waitFor();
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('a payout schedule and the addresses for notifications are settings, which the audit says in words', async () => {
    const founder = await newFounder();
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${founder.appId}/settings`);
    const schedule = page.getByLabel('Draft a payout run each month');
    await schedule.waitFor({ state: 'attached' });
    await schedule.click({ force: true });
    await page.getByLabel('Day of the month').fill('15');
    await page.getByRole('combobox', { name: 'Time zone' }).fill('Europe/Berlin');
    await page.getByLabel('Minimum payout').fill('50');
    await page.getByLabel('E-mail addresses').fill('ann@lantern.example\nben@lantern.example');
    await button(page, 'Save').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByText('Saved.').waitFor();
    const [app] = await service.sql`
      select payout_schedule as schedule, notification_emails as emails from apps where id = ${founder.appId}`;
    expect(app).toEqual({
      schedule: { day: 15, timezone: 'Europe/Berlin', minimumCents: 5_000, withoutPayee: 'exclude' },
      emails: ['ann@lantern.example', 'ben@lantern.example'],
    });
    await shoot(page, 'settings-schedule');
    await page.getByRole('link', { name: 'Who changed these settings, and when' }).click();
    await page
      .getByText(/day 15 of the month \(Europe\/Berlin\), from \$50\.00 on/)
      .first()
      .waitFor();
    await page.goBack();
    await page.getByLabel('Draft a payout run each month').click({ force: true });
    await button(page, 'Save').click();
    await eventually('the schedule is off', async () => {
      const [row] = await service.sql<{ schedule: object | null }>`
        select payout_schedule as schedule from apps where id = ${founder.appId}`;
      return row?.schedule === null;
    });
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('a key that may only read sees the payee masked', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder);
    await fetch(`${service.url}/apps/${founder.appId}/affiliates/${ada.id}/payee`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${founder.key}` },
      body: JSON.stringify({ method: 'other', recipient: { name: 'Ada Lovelace', reference: 'IBAN 1' } }),
    });
    const { key } = await createAccountKey(service.sql, founder.accountId, ['read']);
    const { page, problems } = await signedIn(key);
    await page.goto(ada.page);
    await page.getByText(/^Another way · A••• · counts from/).waitFor();
    expect(await page.content()).not.toMatch(/Lovelace|IBAN/);
    expect(problems()).toEqual([]);
  });

  test('the payee and its dialog have no violation of WCAG 2.2 AA, and all fits, in any window or state', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder, 'Augusta Ada King, Countess of Lovelace');
    await fetch(`${service.url}/apps/${founder.appId}/affiliates/${ada.id}/payee`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${founder.key}` },
      body: JSON.stringify({
        method: 'paypal',
        recipient: { email: 'augusta@a-very-long-name-of-a-host.with-many.labels.example.com' },
      }),
    });
    const { page, problems } = await signedIn(founder.key, PHONE);
    await page.goto(ada.page);
    await page.getByText(/counts from/).waitFor();
    await checkPage(page, 'payee');
    await button(page, 'Change payee').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByRole('dialog').getByLabel('Method').selectOption('Wise');
    await checkPage(page, 'payee-form');
    await button(page, 'Cancel').click();
    await button(page, 'Show payee').click();
    await page.getByText('augusta@a-very').waitFor();
    await checkPage(page, 'payee-shown');
    await page.goto(`${service.url}/console/creator/as/${founder.appId}/${ada.id}/`);
    await page.getByText(/counts from/).waitFor();
    await checkPage(page, 'payee-of-creator');
    expect(problems()).toEqual([]);
  });
});
