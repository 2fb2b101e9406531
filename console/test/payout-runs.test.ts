import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { resumePayouts, stopPayouts } from '../../src/db/payout-stops.ts';
import { expectConsistentLedger } from '../../test/support/consistent-ledger.ts';
import { eventually } from '../../test/support/eventually.ts';
import { button, checkPage, PHONE, row, title } from './browser.ts';
import { payees } from './payees.ts';
import { describeInBrowser } from './suite.ts';
import type { NewFounder } from './suite.ts';

interface Run {
  readonly id: string;
  readonly status: string;
  readonly totalCents: number;
  readonly paidCount: number;
}

describeInBrowser('payout runs in a browser', ({ service, signedIn, post, newFounder }) => {
  const { founderWithKey, earn, hold, signIn, raise } = payees({ service, signedIn, post, newFounder });

  const dialog = (page: Page) => page.getByRole('dialog');
  const region = (page: Page, name: string) => page.getByRole('region', { name });
  const inDialog = (page: Page, name: string | RegExp) => dialog(page).getByRole('button', { name });

  /** Drafts a run on the page that is shown. The page of the run is then shown. */
  const draft = async (page: Page, founder: NewFounder, dollars?: string): Promise<void> => {
    if (dollars === undefined) {
      await page.getByRole('button', { name: 'Draft a payout run', exact: true }).click();
      await page
        .getByLabel('Key that may pay')
        .or(page.locator('h1', { hasText: 'Payout run of' }))
        .waitFor();
      if ((await dialog(page).count()) > 0) {
        await page.getByLabel('Key that may pay').fill(founder.key);
        await inDialog(page, 'Continue').click();
      }
    } else {
      await button(page, 'Choose terms …').click();
      await raise(page, founder, 'Draft it');
      await page.getByLabel('Leave out creators to whom less than this is due').fill(dollars);
      await inDialog(page, 'Draft it').click();
    }
    await title(page, /^Payout run of/);
    await dialog(page).waitFor({ state: 'hidden' });
  };

  const openApproval = async (page: Page, founder: NewFounder, action: string): Promise<void> => {
    await button(page, 'Approve …').click();
    await raise(page, founder, action);
  };

  const draftByApi = async ({ appId, key }: NewFounder, minimumCents = 0) =>
    await post<Run>(`/apps/${appId}/payout-runs`, key, { minimumCents, withoutPayee: 'include' });

  /** Reads the latest run. */
  const readRun = async ({ appId, key }: NewFounder) => {
    const response = await fetch(`${service.url}/apps/${appId}/payout-runs`, {
      headers: { authorization: `Bearer ${key}` },
    });
    return ((await response.json()) as { readonly items: readonly Run[] }).items[0];
  };

  const pathOf = ({ appId }: NewFounder, run: Run) =>
    `${service.url}/console/apps/${appId}/payouts/runs/${run.id}`;

  const payoutsOf = async ({ appId }: NewFounder) =>
    await service.sql<{ id: string; totalCents: number; affiliateName: string }>`
      select id, total_cents, affiliate_name from payouts where app_id = ${appId} order by total_cents desc`;

  const runsOf = async ({ appId }: NewFounder) =>
    await service.sql<Run>`select id, status, total_cents, paid_count from payout_runs where app_id = ${appId} order by created_at`;

  const deduct = async ({ appId, key }: NewFounder, affiliateId: string, cents: number) =>
    await post(`/apps/${appId}/affiliates/${affiliateId}/entries`, key, {
      amountCents: -cents,
      category: 'other',
      reason: 'A test',
      externalId: randomUUID(),
    });

  test('a founder drafts a run, looks at it, approves it by its total, and opens the payouts that it made', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 30_000, 1_234);
    await earn(founder, 'Grace', 500);
    const { page, problems } = await signIn(founder);
    await draft(page, founder);
    await page.getByText(/It pays nothing until you approve it. It can be approved until/).waitFor();
    await page.getByText(/2 creators, \$317\.34\./).waitFor();
    await row(page, /Ada.*\$312\.34/).waitFor();
    await row(page, /Grace.*\$5\.00/).waitFor();
    await page.getByText('Nobody is left out').waitFor();
    expect(await payoutsOf(founder)).toEqual([]);
    await openApproval(page, founder, 'Pay 2 creators $317.34');
    expect(await dialog(page).innerText()).toMatch(
      /Creators\s+2\s+Total\s+\$317\.34[^]*This cannot be undone/,
    );
    const [approval] = await Promise.all([
      page.waitForRequest((request) => request.url().endsWith('/approve')),
      inDialog(page, 'Pay 2 creators $317.34').click(),
    ]);
    expect(approval.postDataJSON()).toEqual({ expectedTotalCents: 31_734 });
    await page.getByText('$317.34 are booked for 2 creators').waitFor();
    await page.getByText(/It paid 2 creators, \$317\.34 on /).waitFor();
    await row(page, /Ada.*\$312\.34.*Booked/).waitFor();
    const paid = await payoutsOf(founder);
    expect(paid.map(({ totalCents }) => totalCents)).toEqual([31_234, 500]);
    // The file of creators without a payee: each payout is a row, and the download is counted.
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'CSV for Another way').click(),
    ]);
    const rows = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
    expect(rows.map((line) => line.split(',').slice(2))).toEqual([
      ['affiliate_name', 'name', 'reference', 'amount_usd', 'currency'],
      ['Ada', '', '', '312.34', 'USD'],
      ['Grace', '', '', '5.00', 'USD'],
    ]);
    await page.getByText('Downloaded 1 time. If you upload it again, creators may be paid twice.').waitFor();
    // Its CSV, and its page.
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'CSV of the payout to Grace').click(),
    ]);
    expect(download.suggestedFilename()).toBe(`${paid[1]?.id}.csv`);
    await page.getByRole('link', { name: 'Open the payout to Ada' }).click();
    await title(page, 'Payout to Ada');
    await page.getByText('Ann').first().waitFor();
    await expectConsistentLedger(service.sql, [
      'paid_once',
      'payouts_are_the_sum_of_their_items',
      'payout_runs_pay_what_was_approved',
    ]);
    expect(problems()).toEqual([]);
  });

  test('the parts of the payouts show a draft that waits, the run in the list, and nothing due after it', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const { page, problems } = await signIn(founder);
    await page.getByRole('link', { name: 'Runs' }).click();
    await page.getByText('No payout runs yet').waitFor();
    await draft(page, founder);
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await row(page, /Draft 1 \$10\.00 \$0\.00 Drafted by Ann/).waitFor();
    await page.getByRole('link', { name: 'Due', exact: true }).click();
    await page.getByText(/A draft of .* waits for an approval: 1 creator, \$10\.00\./).waitFor();
    await page.getByRole('link', { name: 'Open the draft' }).click();
    await openApproval(page, founder, 'Pay 1 creator $10.00');
    await inDialog(page, 'Pay 1 creator $10.00').click();
    await page.getByText('$10.00 are booked for 1 creator').waitFor();
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await row(page, /Settled 1 \$10\.00 \$10\.00 Approved by Ann/).waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'Save as CSV').click(),
    ]);
    const csv = await readFile(await download.path(), 'utf8');
    expect([download.suggestedFilename(), csv.split('\n')[1]]).toEqual([
      'payout-runs.csv',
      expect.stringContaining('settled'),
    ]);
    await page.getByRole('link', { name: 'Due', exact: true }).click();
    await page.getByText('Nothing is due').waitFor();
    expect(await page.getByText('waits for an approval').count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a draft names each creator whom it leaves out, with the reason in words and what is held', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 10_000);
    await earn(founder, 'Bea', 1_200);
    const blocked = await earn(founder, 'Cleo', 7_000);
    await post(`/apps/${founder.appId}/affiliates/${blocked}/payout-blocks`, founder.key, {
      state: 'blocked',
      reason: 'Refunds',
    });
    await hold(founder, await earn(founder, 'Dora'), 300);
    await deduct(founder, await earn(founder, 'Eve', 500), 750);
    await deduct(founder, await earn(founder, 'Fay', 500), 500);
    const { page, problems } = await signIn(founder);
    await draft(page, founder, '50');
    const leftOut = region(page, 'Left out');
    const line = async (text: RegExp) => await leftOut.getByRole('row', { name: text }).waitFor();
    await line(/Bea \$12\.00 is due, less than the minimum of \$50\.00\. \$0\.00 \$12\.00/);
    await line(/Cleo You have blocked the payouts of \$70\.00\./);
    await line(/Dora Not due yet: all is in the hold period\. \$3\.00 \$0\.00/);
    await line(/Eve .* took back \$2\.50 more than is due/);
    await line(/Fay Refunds and deductions take back exactly what is due/);
    expect(await leftOut.getByRole('row').count()).toBe(6);
    expect(await region(page, 'Who is paid').getByRole('row').count()).toBe(2);
    await region(page, 'About this run').getByText('$50.00').waitFor();
    expect(problems()).toEqual([]);
  });

  test('a creator with a deduction after the draft is not paid, which the run says, and is in the next draft', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const grace = await earn(founder, 'Grace', 700);
    const { page, problems } = await signIn(founder);
    await draft(page, founder);
    await deduct(founder, grace, 100);
    await openApproval(page, founder, 'Pay 2 creators $17.00');
    await inDialog(page, 'Pay 2 creators $17.00').click();
    await page.getByText('$10.00 are booked for 1 creator').waitFor();
    await page.getByText('1 creator was not paid').waitFor();
    await region(page, 'Not paid')
      .getByRole('row', { name: /Grace A refund, a deduction or another.*\$7\.00/ })
      .waitFor();
    await region(page, 'Creators')
      .getByRole('row', { name: /Grace \$7\.00 Not paid/ })
      .waitFor();
    await page.getByText(/It paid 1 of 2 creators, \$10\.00 of \$17\.00 on /).waitFor();
    expect((await payoutsOf(founder)).map(({ affiliateName }) => affiliateName)).toEqual(['Ada']);
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await row(page, /Settled 1 not paid 2 \$17\.00 \$10\.00/).waitFor();
    await draft(page, founder);
    await region(page, 'Who is paid')
      .getByRole('row', { name: /Grace \$6\.00/ })
      .waitFor();
    expect(problems()).toEqual([]);
  });

  test('a draft that is cancelled pays nobody, and a later draft takes the place of one that waits', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const { page, problems } = await signIn(founder);
    await draft(page, founder);
    await button(page, 'Cancel the draft …').click();
    await dialog(page).getByText('It has paid nobody').waitFor();
    await inDialog(page, 'Keep the draft').click();
    await dialog(page).waitFor({ state: 'hidden' });
    expect((await runsOf(founder)).map(({ status }) => status)).toEqual(['draft']);
    await button(page, 'Cancel the draft …').click();
    await inDialog(page, 'Cancel the draft').click();
    await page.getByText(/By hand or by a later draft.*It paid nobody\./).waitFor();
    expect(await button(page, 'Approve …').count()).toBe(0);
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await draft(page, founder);
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await button(page, 'Draft a payout run …').click();
    await dialog(page)
      .getByText(/It takes the place of the draft of/)
      .waitFor();
    await inDialog(page, 'Draft it').click();
    await title(page, /^Payout run of/);
    expect((await runsOf(founder)).map(({ status }) => status)).toEqual(['cancelled', 'cancelled', 'draft']);
    expect(await payoutsOf(founder)).toEqual([]);
    expect(problems()).toEqual([]);
  });

  test('a session that may not pay is asked for a key, and a session without a key changes nothing', async () => {
    const founder = await founderWithKey(['read']);
    await earn(founder, 'Ada', 1_000);
    const { page, problems } = await signIn(founder);
    await button(page, 'Draft a payout run').click();
    await page.getByLabel('Key that may pay').fill(founder.ownKey);
    await inDialog(page, 'Continue').click();
    await page.getByText('This is no valid key of this account with the permission "payout".').waitFor();
    await inDialog(page, 'Cancel').click();
    await dialog(page).waitFor({ state: 'hidden' });
    expect(await runsOf(founder)).toEqual([]);
    await draft(page, founder);
    // The time to pay ends while the confirmation is open.
    await openApproval(page, founder, 'Pay 1 creator $10.00');
    await service.sql`update sessions set raised_key_id = null, raised_until = null where account_id = ${founder.accountId}`;
    await inDialog(page, 'Pay 1 creator $10.00').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    expect(await payoutsOf(founder)).toEqual([]);
    await inDialog(page, 'Continue').click();
    await inDialog(page, 'Pay 1 creator $10.00').click();
    await page.getByText('$10.00 are booked for 1 creator').waitFor();
    expect(await payoutsOf(founder)).toHaveLength(1);
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('a run shows how far it is while it is being paid, and can pay nobody further', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    await earn(founder, 'Grace', 700);
    const run = await draftByApi(founder);
    const { page, problems } = await signIn(founder);
    await page.goto(pathOf(founder, run));
    // The answers of the service while it pays the second creator.
    let settled = 0;
    const shown = `**/payout-runs/${run.id}`;
    await page.route(shown, async (route) => {
      const now = { status: 'approved', settledCount: settled, paidCount: settled, approvedAt: Date.now() };
      await route.fulfill({ json: { ...run, ...now } });
    });
    await page.reload();
    await page.getByText('0 of 2 creators are settled').waitFor();
    expect(await page.getByRole('progressbar').getAttribute('aria-valuenow')).toBe('0');
    settled = 1;
    await page.getByText('1 of 2 creators are settled').waitFor();
    expect(await page.getByRole('progressbar').getAttribute('aria-valuenow')).toBe('50');
    expect(await button(page, 'Approve …').count()).toBe(0);
    await button(page, 'Pay nobody further …').click();
    await raise(page, founder, 'Pay nobody further');
    await dialog(page)
      .getByText(/1 of 2 creators are settled\. Payouts that were made stay/)
      .waitFor();
    // A run that sends money again goes on once all of it is in new files.
    await page.route(`${shown}/cancel`, async (route) => {
      await route.fulfill({ json: { ...run, kind: 'resend', status: 'approved', stoppedAt: null } });
    });
    await inDialog(page, 'Pay nobody further').click();
    await dialog(page).getByText('Too late: the money is in new files already.').waitFor();
    expect(await inDialog(page, 'Pay nobody further').count()).toBe(0);
    await inDialog(page, 'Close').last().click();
    await page.unroute(`${shown}/cancel`);
    await button(page, 'Pay nobody further …').click();
    await page.unroute(shown);
    await inDialog(page, 'Pay nobody further').click();
    await page.getByText(/By hand or by a later draft.*It paid nobody\./).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a run that pays nobody further says who was not paid, and a draft meanwhile leads to the run', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const run = await draftByApi(founder);
    const { page, problems } = await signIn(founder);
    await button(page, 'Draft a payout run …').click();
    await raise(page, founder, 'Draft it');
    // Approved elsewhere, and no worker pays it: payouts are stopped, and the relay does not take it.
    await service.sql`
      update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour'
       where id = ${run.id}`;
    await stopPayouts(service.sql);
    try {
      await inDialog(page, 'Draft it').click();
      await dialog(page)
        .getByText('Nothing was drafted: another draft is being made, or a run is being paid')
        .waitFor();
      await dialog(page).getByText('choose “Pay nobody further”').waitFor();
      await dialog(page).getByRole('link', { name: 'All payout runs' }).click();
      await row(page, /Being paid 0 of 1 creator is settled/).waitFor();
      expect(await button(page, 'Draft a payout run …').count()).toBe(0);
      await page.goto(pathOf(founder, run));
      await button(page, 'Pay nobody further …').click();
      await inDialog(page, 'Pay nobody further').click();
      await page.getByText('nobody further is paid').waitFor();
      expect(await button(page, 'Pay nobody further …').count()).toBe(0);
    } finally {
      await resumePayouts(service.sql);
    }
    await service.sql`update payout_runs set status = 'settled', ended_at = now(), paid_count = 0, paid_cents = 0 where id = ${run.id}`;
    await page.getByText('Nobody was paid', { exact: true }).waitFor();
    await region(page, 'Not paid')
      .getByRole('row', { name: /Ada The run was cancelled before\. \$10\.00/ })
      .waitFor();
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('a draft by one press says what refused it, also when the run that did has taken the button away', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const { page, problems } = await signIn(founder);
    const atOnce = page.getByRole('button', { name: 'Draft a payout run', exact: true });
    await atOnce.waitFor();
    await stopPayouts(service.sql);
    try {
      const run = await draftByApi(founder);
      await service.sql`
        update payout_runs set status = 'approved', approved_at = now(), approved_by = key_id, relayed_at = now() + interval '1 hour'
         where id = ${run.id}`;
      await atOnce.click();
      await page.getByLabel('Key that may pay').fill(founder.key);
      await inDialog(page, 'Continue').click();
      await dialog(page)
        .getByText('Nothing was drafted: another draft is being made, or a run is being paid')
        .waitFor();
      await atOnce.waitFor({ state: 'hidden' });
      await inDialog(page, 'Cancel').click();
      await dialog(page).waitFor({ state: 'hidden' });
      await page.getByRole('link', { name: 'Open the run' }).waitFor();
    } finally {
      await resumePayouts(service.sql);
    }
    expect(problems(/status of 409/)).toEqual([]);
  });

  test('an approval that is refused says that nothing was paid and what to do next', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const run = await draftByApi(founder);
    const { page, problems } = await signIn(founder);
    await page.goto(pathOf(founder, run));
    await openApproval(page, founder, 'Pay 1 creator $10.00');
    await stopPayouts(service.sql);
    await inDialog(page, 'Pay 1 creator $10.00').click();
    await dialog(page).getByText('Nothing was paid: payouts are stopped').waitFor();
    await resumePayouts(service.sql);
    await page.route('**/approve', async (route) => {
      await route.fulfill({
        status: 409,
        contentType: 'application/problem+json',
        body: JSON.stringify({ code: 'total_changed', title: 'No', detail: 'Not now.', status: 409 }),
      });
    });
    await inDialog(page, 'Pay 1 creator $10.00').click();
    await dialog(page).getByText('Nothing was paid: the draft has another total').waitFor();
    await page.unroute('**/approve');
    // A colleague drafts anew meanwhile.
    await draftByApi(founder);
    await inDialog(page, 'Pay 1 creator $10.00').click();
    await dialog(page).getByText('Nothing was paid: this run cannot be approved any more').waitFor();
    await dialog(page).getByText('or draft a new one').waitFor();
    await inDialog(page, 'Close').click();
    await page.getByText(/or by a later draft.*It paid nobody/).waitFor();
    expect(await payoutsOf(founder)).toEqual([]);
    expect(problems(/status of (409|503)|503: /)).toEqual([]);
  });

  test('an approval whose answer is lost pays once, and the page goes on with what came of it', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const run = await draftByApi(founder);
    const { page, problems } = await signIn(founder);
    await page.goto(pathOf(founder, run));
    await openApproval(page, founder, 'Pay 1 creator $10.00');
    await page.route('**/approve', async (route) => {
      await route.fetch();
      await route.abort('connectionreset');
    });
    await inDialog(page, 'Pay 1 creator $10.00').click();
    await page.getByText('$10.00 are booked for 1 creator').waitFor();
    await dialog(page).waitFor({ state: 'hidden' });
    expect(await payoutsOf(founder)).toHaveLength(1);
    expect(problems(/ERR_CONNECTION_RESET/)).toEqual([]);
  });

  test('a draft that nobody approved in time has expired, pays nobody and shows whom it would have paid', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const run = await draftByApi(founder);
    await service.sql`alter table payout_runs disable trigger payout_runs_transition`;
    await service.sql`update payout_runs set created_at = created_at - interval '8 days', expires_at = expires_at - interval '8 days' where id = ${run.id}`;
    await service.sql`alter table payout_runs enable trigger payout_runs_transition`;
    const { page, problems } = await signIn(founder);
    await page.goto(pathOf(founder, run));
    await page.getByText(/Nobody approved it until .* Draft a new one\./).waitFor();
    await row(page, /Ada \$10\.00/).waitFor();
    expect(await button(page, /Approve|Cancel the draft/).count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('the lists of a run are read page by page, and are saved whole', async () => {
    const founder = await founderWithKey();
    for (let n = 0; n < 27; n += 1) await earn(founder, `Creator ${n}`, 1_000 + n);
    for (let n = 0; n < 27; n += 1) await earn(founder, `Small ${n}`, 1 + n);
    const run = await draftByApi(founder, 1_000);
    const { page, problems } = await signIn(founder);
    await page.goto(pathOf(founder, run));
    for (const [name, heading] of [
      ['Who is paid', 'creators'],
      ['Left out', 'left-out'],
    ] as const) {
      const part = region(page, name);
      await part.getByRole('button', { name: 'Show more' }).click();
      await eventually(`${name} has all rows`, async () => (await part.getByRole('row').count()) === 28);
      expect(await part.getByRole('button', { name: 'Show more' }).count()).toBe(0);
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        part.getByRole('button', { name: 'Save as CSV' }).click(),
      ]);
      const csv = await readFile(await download.path(), 'utf8');
      expect([download.suggestedFilename(), csv.trim().split('\n').length]).toEqual([
        `${run.id}-${heading}.csv`,
        28,
      ]);
    }
    expect(problems()).toEqual([]);
  });

  test('the audit names what was done to a run, and leads to its page', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const run = await draftByApi(founder);
    await post(`/apps/${founder.appId}/payout-runs/${run.id}/cancel`, founder.key);
    const { page, problems } = await signIn(founder);
    await page.goto(`${service.url}/console/audit`);
    await row(page, /Payout run cancelled/).waitFor();
    await row(page, /Payout run drafted.*Creators 1.*Total \$10\.00/)
      .getByRole('link', { name: 'Payout run drafted' })
      .click();
    await title(page, /^Payout run of/);
    expect(page.url()).toBe(pathOf(founder, run));
    expect(problems()).toEqual([]);
  });

  test('the pages of runs have no violation of WCAG 2.2 AA in any window or state', async () => {
    const founder = await founderWithKey();
    const { page, problems } = await signIn(founder, PHONE);
    const check = async (state: string) => await checkPage(page, state);
    await page.getByRole('link', { name: 'Runs' }).click();
    await page.getByText('No payout runs yet').waitFor();
    await check('runs-empty');
    await earn(founder, 'Ada Lovelace', 123_456, 9_900);
    const grace = await earn(
      founder,
      'Grace Hopper, who has a long name of a studio with many people',
      7_500,
    );
    await earn(founder, 'Bea', 1_200);
    await hold(founder, await earn(founder, 'Dora'), 300);
    await button(page, 'Choose terms …').click();
    await raise(page, founder, 'Draft it');
    await page.getByLabel('Leave out creators to whom less than this is due').fill('50');
    await check('run-draft-dialog');
    await inDialog(page, 'Draft it').click();
    await page.getByText('less than the minimum').waitFor();
    await dialog(page).waitFor({ state: 'hidden' });
    await check('run-draft');
    await openApproval(page, founder, 'Pay 2 creators $1,408.56');
    await check('run-approve-dialog');
    await deduct(founder, grace, 100);
    await inDialog(page, 'Pay 2 creators $1,408.56').click();
    await page.getByText('are booked for 1 creator').waitFor();
    await region(page, 'Not paid').waitFor();
    await region(page, 'Creators').getByText('A refund, a deduction').waitFor();
    await check('run-settled');
    const run = await readRun(founder);
    await page.route('**/payout-runs/run_*', async (route) => {
      await route.fulfill({ json: { ...run, status: 'approved', itemCount: 30, settledCount: 12 } });
    });
    await page.reload();
    await page.getByText('12 of 30 creators are settled').waitFor();
    await check('run-being-paid');
    await page.getByRole('link', { name: 'All payout runs' }).click();
    await row(page, /Approved by Ann/).waitFor();
    await draftByApi(founder);
    await page.reload();
    await row(page, /Drafted by Ann/).waitFor();
    await check('runs');
    await page.getByRole('link', { name: 'Due', exact: true }).click();
    await page.getByText('waits for an approval').waitFor();
    await check('payouts-with-draft');
    expect(problems()).toEqual([]);
  });
});
