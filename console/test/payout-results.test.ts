import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { expectConsistentLedger } from '../../test/support/consistent-ledger.ts';
import { eventually } from '../../test/support/eventually.ts';
import { waitForPayees } from '../../test/support/payout-runs.ts';
import { button, checkPage, PHONE, row, title } from './browser.ts';
import { payees } from './payees.ts';
import { describeInBrowser } from './suite.ts';
import type { NewFounder } from './suite.ts';

interface Run {
  readonly id: string;
  readonly status: string;
  readonly totalCents: number;
}

describeInBrowser('what became of the money of a payout run', ({ service, signedIn, post, newFounder }) => {
  const { founderWithKey, earn, signIn, raise } = payees({ service, signedIn, post, newFounder });

  const dialog = (page: Page) => page.getByRole('dialog');
  const region = (page: Page, name: string) => page.getByRole('region', { name });
  const inDialog = (page: Page, name: string | RegExp) => dialog(page).getByRole('button', { name });

  const pathOf = ({ appId }: NewFounder, id: string) =>
    `${service.url}/console/apps/${appId}/payouts/runs/${id}`;

  /** Pays everybody by a run. Returns it with the ids of its items, the largest first. */
  const payAll = async ({ appId, key }: NewFounder) => {
    const base = `/apps/${appId}/payout-runs`;
    const run = await post<Run>(base, key, { withoutPayee: 'include' });
    await post(`${base}/${run.id}/approve`, key, { expectedTotalCents: run.totalCents });
    await eventually('the run is settled', async () => {
      const { status } = await service.sql.one<Run>`select status from payout_runs where id = ${run.id}`;
      return status === 'settled';
    });
    return { ...run, items: await itemsOf(run.id) };
  };

  const itemsOf = async (runId: string) =>
    (
      await service.sql<{
        id: string;
      }>`select id from payout_run_items where run_id = ${runId} order by position`
    ).map(({ id }) => id);

  const reportOf = (items: readonly string[], statuses: readonly string[], column = 'Status') =>
    [
      `Transaction ID,${column},Unique ID`,
      ...statuses.map((status, n) => `T${n},${status},${items[n]}`),
    ].join('\n');

  /** Opens a dialog of the part about transfers. The session may pay afterwards. */
  const open = async (page: Page, founder: NewFounder, name: string): Promise<void> => {
    await region(page, 'Transfers').getByRole('button', { name }).click();
    const form = page.getByLabel('Key that may pay');
    const next = dialog(page).getByText(/You uploaded the files|Choose the CSV/);
    await form.or(next).first().waitFor();
    if ((await form.count()) === 0) return;
    await form.fill(founder.key);
    await inDialog(page, 'Continue').click();
    await next.waitFor();
  };

  const choose = async (page: Page, csv: string): Promise<void> =>
    await page
      .getByLabel('Report', { exact: true })
      .setInputFiles({ name: 'report.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });

  /** Downloads the file of creators without a payee. Returns its rows. */
  const fileOf = async (page: Page): Promise<string[]> => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'CSV for Another way').click(),
    ]);
    return (await readFile(await file.path(), 'utf8')).trim().split('\r\n').slice(1);
  };

  test.each([1280, 390])(
    'at %d px a founder goes from what is due to the money that came back and is sent again, in the console alone',
    async (width) => {
      const founder = await founderWithKey();
      for (const [name, cents] of [
        ['Ada', 9_000],
        ['Bea', 5_000],
        ['Cleo', 700],
      ] as const)
        await earn(founder, name, cents);
      const { page, problems } = await signIn(founder);
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`${service.url}/console/apps/${founder.appId}/payouts`);
      await row(page, /Ada.*\$90\.00/).waitFor();
      await button(page, 'Choose terms …').click();
      await raise(page, founder, 'Draft it');
      await inDialog(page, 'Draft it').click();
      await page.getByText(/3 creators, \$147\.00\./).waitFor();
      await dialog(page).waitFor({ state: 'hidden' });
      await button(page, 'Approve …').click();
      await raise(page, founder, 'Pay 3 creators $147.00');
      await inDialog(page, 'Pay 3 creators $147.00').click();
      await page.getByText('$147.00 are booked for 3 creators').waitFor();
      await row(region(page, 'Creators'), /Ada.*Booked/).waitFor();
      const runId = page.url().split('/').at(-1) ?? '';
      const items = await itemsOf(runId);
      // The file that was never downloaded is what to do next.
      const look = async () => await button(page, 'CSV for Another way').getAttribute('data-variant');
      expect(await look()).toBe('filled');
      expect(await fileOf(page)).toHaveLength(3);
      await page.getByText('Downloaded 1 time.').waitFor();
      expect(await look()).toBe('default');

      await open(page, founder, 'Import a report …');
      await choose(page, reportOf(items, ['Completed', 'Returned', 'Unclaimed']));
      await row(dialog(page), /Bea.*Returned.*Came back.*\$50\.00/).waitFor();
      await row(dialog(page), /Cleo.*Unclaimed.*Neither yet.*\$7\.00/).waitFor();
      // The 15 minutes are over. “Cancel” leads back to the report, and a key goes on with it.
      await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
      await inDialog(page, 'Mark 1 as sent and 1 as returned').click();
      await page.getByLabel('Key that may pay').waitFor();
      await inDialog(page, 'Cancel').click();
      await dialog(page).getByText('report.csv').waitFor();
      expect(await page.getByLabel('Key that may pay').count()).toBe(0);
      await choose(page, reportOf(items, ['Completed', 'Returned', 'Unclaimed']));
      await page.getByLabel('Key that may pay').fill(founder.key);
      await inDialog(page, 'Continue').click();
      await inDialog(page, 'Mark 1 as sent and 1 as returned').click();
      await page.getByText('The report is imported: 1 as sent and 1 as returned.').waitFor();
      await row(region(page, 'Creators'), /Ada.*Booked.*Sent/).waitFor();
      await row(region(page, 'Creators'), /Bea.*Booked.*Came back/).waitFor();
      // The same report states nothing more.
      await open(page, founder, 'Import a report …');
      await choose(page, reportOf(items, ['Completed', 'Returned', 'Unclaimed']));
      await dialog(page).getByText('Known before').waitFor();
      expect(await inDialog(page, /^Mark/).count()).toBe(0);
      await inDialog(page, 'Close').last().click();
      // Runs says that money came back.
      await page.getByRole('link', { name: 'All payout runs' }).click();
      await page.getByText('The money of 1 payout came back: $50.00').waitFor();
      await button(page, 'Send it again …').click();
      await inDialog(page, 'Draft it').waitFor();
      await inDialog(page, 'Draft it').click();
      await page.getByText(/1 payout, \$50\.00\. It sends nothing until you approve it/).waitFor();
      await button(page, 'Approve …').click();
      await inDialog(page, 'Send 1 payout again, $50.00').click();
      await page.getByText('$50.00 are in new files, for 1 payout').waitFor();
      await row(region(page, 'Creators'), /Bea.*\$50\.00.*In new files/).waitFor();
      const again = page.url().split('/').at(-1) ?? '';
      const [line] = await fileOf(page);
      expect(line).toBe(`${(await itemsOf(again))[0]},${line?.split(',')[1]},Bea,,,50.00,USD`);
      await open(page, founder, 'Mark all as sent …');
      await page.getByLabel('Reference').fill('Batch 2');
      await inDialog(page, 'Mark as sent').click();
      await page.getByText('1 payout is marked as sent.').waitFor();
      await row(region(page, 'Creators'), /Bea.*In new files.*Sent/).waitFor();
      await page.getByRole('link', { name: 'All payout runs' }).click();
      await row(page, /Settled.*Sends returned money again/).waitFor();
      expect(await page.getByText('came back').count()).toBe(0);
      await expectConsistentLedger(service.sql, ['payout_runs_pay_what_was_approved']);
      expect(problems(/status of 403/)).toEqual([]);
    },
  );

  test('a founder who uploaded one of the files marks its payouts alone', async () => {
    const founder = await founderWithKey();
    const ada = await earn(founder, 'Ada', 9_000);
    await earn(founder, 'Bea', 5_000);
    const set = await fetch(`${service.url}/apps/${founder.appId}/affiliates/${ada}/payee`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${founder.key}` },
      body: JSON.stringify({ method: 'paypal', recipient: { email: 'ada@example.com' } }),
    });
    expect(set.status).toBe(200);
    await waitForPayees(service.database.url);
    const paid = await payAll(founder);
    const { page, problems } = await signIn(founder, PHONE);
    await page.goto(pathOf(founder, paid.id));
    await open(page, founder, 'Mark all as sent …');
    await inDialog(page, 'Cancel').click();
    await fileOf(page);
    await page.getByText('Downloaded 1 time.').waitFor();
    await open(page, founder, 'Mark all as sent …');
    const payouts = dialog(page).getByLabel('Payouts');
    expect(await payouts.inputValue()).toBe('other');
    expect(await payouts.locator('option').allInnerTexts()).toEqual([
      'All: 2 payouts, $140.00',
      'Another way: 1 payout, $50.00',
      'PayPal: 1 payout, $90.00',
    ]);
    await payouts.selectOption('paypal');
    await dialog(page).getByText('A file with some of these was never downloaded.').waitFor();
    await checkPage(page, 'run-mark-some');
    await payouts.selectOption('other');
    await inDialog(page, 'Mark as sent').click();
    await page.getByText('1 payout is marked as sent.').waitFor();
    await row(region(page, 'Creators'), /Bea.*Booked.*Sent/).waitFor();
    expect(await page.getByRole('row', { name: /Ada.*Sent/ }).count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a founder sees what a report contradicts, and what to do, and sends nothing again until that is decided', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 9_000);
    const paid = await payAll(founder);
    const { page, problems } = await signIn(founder);
    await page.goto(pathOf(founder, paid.id));
    const reportOn = (status: string, transfer: string) =>
      `Transaction ID,Status,Unique ID\n${transfer},${status},${paid.items[0]}`;
    await open(page, founder, 'Import a report …');
    await choose(page, reportOn('Failed', 'A1'));
    await inDialog(page, 'Mark 1 as returned').click();
    await page.getByText('The report is imported: 1 as returned.').waitFor();
    await open(page, founder, 'Import a report …');
    await choose(page, reportOn('Completed', 'B1'));
    await dialog(page).getByText('1 payout in conflict: look at it before you send money again').waitFor();
    await row(dialog(page), /Ada.*Completed.*In conflict.*\$90\.00/).waitFor();
    await checkPage(page, 'run-report-conflict');
    await inDialog(page, 'Mark 1 as in conflict').click();
    await page.getByText('The report is imported: 1 as in conflict.').waitFor();
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await page.getByText('The money of 1 payout may have arrived after all: $90.00').waitFor();
    expect(await button(page, 'Send it again …').count()).toBe(0);
    await page.getByRole('link', { name: 'Ada, $90.00' }).click();
    await title(page, /^Payout/);
    expect(problems()).toEqual([]);
  });

  test('a report in another language is read when the founder says what its column and words mean', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 9_000);
    const paid = await payAll(founder);
    const { page, problems } = await signIn(founder);
    await page.goto(pathOf(founder, paid.id));
    await open(page, founder, 'Import a report …');
    await choose(page, reportOf(paid.items, ['Ausgeführt'], 'Zustand'));
    await dialog(page).getByLabel('Column that says what became of a payment').click();
    await page.getByRole('option', { name: 'Zustand' }).click();
    await dialog(page).getByLabel('“Ausgeführt” means').click();
    await page.getByRole('option', { name: 'The money arrived' }).click();
    await inDialog(page, 'Mark 1 as sent').click();
    await page.getByText('The report is imported: 1 as sent.').waitFor();
    expect(problems().filter((problem) => !problem.includes('400'))).toEqual([]);
  });

  test('a file that is no report says what is wrong, and nothing is marked', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 9_000);
    const paid = await payAll(founder);
    const { page } = await signIn(founder);
    await page.goto(pathOf(founder, paid.id));
    await open(page, founder, 'Import a report …');
    await choose(page, 'Status\n"open');
    await dialog(page)
      .getByText(/Is no CSV/)
      .waitFor();
    await choose(page, `x${'y'.repeat(1_000_001)}`);
    await dialog(page)
      .getByText(/at most|too (large|big|long)/i)
      .first()
      .waitFor();
    const { marks } = await service.sql.one<{ marks: number }>`
      select count(*)::int as marks from payout_transfers where app_id = ${founder.appId}`;
    expect(marks).toBe(0);
  });

  test('the parts about transfers have no violation of WCAG 2.2 AA in any window or state', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada Lovelace', 123_456);
    await earn(founder, 'Grace Hopper, who has a long name of a studio with many people', 7_500);
    await earn(founder, 'Bea', 1_200);
    const paid = await payAll(founder);
    const { page, problems } = await signIn(founder, PHONE);
    const check = async (state: string) => await checkPage(page, state);
    await page.goto(pathOf(founder, paid.id));
    await region(page, 'Transfers').waitFor();
    await check('run-transfers');
    await open(page, founder, 'Mark all as sent …');
    await check('run-mark-all');
    await inDialog(page, 'Cancel').click();
    await open(page, founder, 'Import a report …');
    await check('run-report');
    await choose(page, reportOf(paid.items, ['Completed', 'Returned', 'Odd']));
    await row(dialog(page), /Grace.*Came back/).waitFor();
    await check('run-report-read');
    await inDialog(page, 'Mark 1 as sent and 1 as returned').click();
    await page.getByText('The report is imported').waitFor();
    await check('run-report-imported');
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await page.getByText('came back: $75.00').waitFor();
    await check('runs-returned');
    await button(page, 'Send it again …').click();
    await inDialog(page, 'Draft it').waitFor();
    await check('runs-resend');
    await inDialog(page, 'Draft it').click();
    await title(page, /^Payout run of/);
    await dialog(page).waitFor({ state: 'hidden' });
    await check('run-resend-draft');
    await button(page, 'Approve …').click();
    await inDialog(page, /^Send 1 payout again/).click();
    await page.getByText('are in new files').waitFor();
    await check('run-resend-settled');
    await open(page, founder, 'Mark all as sent …');
    await page.getByLabel('Reference').fill('Batch 2');
    await inDialog(page, 'Mark as sent').click();
    await row(region(page, 'Creators'), /Grace.*In new files.*Sent/).waitFor();
    await check('run-resend-sent');
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await row(page, /Settled.*Sends returned money again/).waitFor();
    await check('runs-resent');
    expect(problems()).toEqual([]);
  });
});
