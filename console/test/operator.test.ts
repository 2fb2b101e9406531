import { beforeAll, expect, test } from '@jest/globals';
import { createAccountKey } from '../../src/db/account-keys.ts';
import { createOperatorLink } from '../../src/db/operator-sessions.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { bodyOf, stripeInvoicePaid } from '../../test/support/provider-fixtures.ts';
import { setUpApp, setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { runOn } from '../../test/support/postgres-admin.ts';
import { button, checkPage, firstLoadOf, PHONE, row } from './browser.ts';
import type { GuardedPage } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';

const KIB = 1024;
/** What the first load of the operator's page may have, gzip. */
const FIRST_LOAD = 160 * KIB;
const SELLER = 'acct_FakeSeller01';

const settings = { temporalUiUrl: 'https://temporal.example.test' };

describeInBrowserWith({ settings })('reprocessing and the page of the operator in a browser', (suite) => {
  const { service, newPage, signedIn } = suite;
  let founder: Founder;

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
  });

  const linkOf = async () =>
    `${service.url}/console/operator/#token=${await createOperatorLink(service.sql, Date.now())}`;
  const operatorPage = async (options = {}): Promise<GuardedPage> => {
    const guarded = await newPage(options);
    await guarded.page.goto(await linkOf());
    await button(guarded.page, 'Sign in as the operator').click();
    await guarded.page.getByRole('heading', { level: 1, name: 'Installation' }).waitFor();
    await guarded.page.getByRole('heading', { level: 2, name: 'Readiness' }).waitFor();
    return guarded;
  };

  /** Creates an app whose delivery earned nothing when it arrived, and would earn 4.00 dollars now. */
  const appToReprocess = async (): Promise<string> => {
    const own = await setUpApp(founder, { name: 'Again' });
    const { app } = own;
    const userId = await own.customer();
    const event = { ...stripeInvoicePaid({ userId, amount: 2_000 }), account: SELLER };
    await own.stripe(bodyOf(event));
    await own.ok('PATCH', `/apps/${app.id}/settings`, { stripeAccounts: [SELLER] });
    return app.id;
  };

  test('a founder starts a dry run of the filters, sees its money, and adds exactly that', async () => {
    const appId = await appToReprocess();
    // The service writes the commission in the table, and the page the sums above it: alike, whatever the browser's language.
    const { page, problems } = await signedIn(founder.key, { locale: 'de-DE' });
    await page.goto(`${service.url}/console/apps/${appId}/deliveries?source=stripe&status=ignored&range=7d`);
    await row(page, /Stripe Ignored/).waitFor();
    await button(page, /Process again/).click();
    await page.getByText('Deliveries with the outcome “Ignored” of Stripe').waitFor();
    await button(page, 'Cancel').click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await button(page, /Process again/).press('Enter');
    await button(page, 'Start a dry run').press('Enter');
    // The button that was pressed is gone: the keyboard stays in the dialog.
    await page.locator('[role=dialog]:focus').waitFor();
    await page
      .getByText('$4.00 of commissions and $20.00 of revenue would be added.')
      .waitFor({ timeout: 30_000 });
    await row(page, /Would be added.*commission \$4\.00/).waitFor();
    // The run is in the address: a reload shows it again.
    await page.reload();
    await page.getByText('1 of 1 deliveries read, 1 differ.').waitFor();
    expect(
      (await founder.ok<{ totalCents: number }>('GET', `/apps/${appId}/commissions/totals`)).totalCents,
    ).toBe(0);
    await button(page, 'Add what it shows').click();
    await page
      .getByText('$4.00 of commissions and $20.00 of revenue were added.')
      .waitFor({ timeout: 30_000 });
    await row(page, /Stripe Added/).waitFor();
    await button(page, 'Close').waitFor();
    expect(
      (await founder.ok<{ totalCents: number }>('GET', `/apps/${appId}/commissions/totals`)).totalCents,
    ).toBe(400);
    await button(page, 'New dry run').click();
    // What was added is not offered again.
    await button(page, /^Dry run of/).click();
    await row(page, /Stripe Would be added/).waitFor();
    expect(await button(page, 'Add what it shows').count()).toBe(0);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(new URL(page.url()).searchParams.get('run')).toBeNull();
    expect(problems()).toEqual([]);
  });

  test('a dry run without a difference says that nothing would change, and offers nothing to add', async () => {
    const own = await setUpApp(founder, { name: 'Unchanged' });
    await own.purchase(await own.customer(), 9.99);
    const { page, problems } = await signedIn(founder.key);
    for (const [source, text] of [
      ['revenuecat', 'What is stored is what the current version of the service reads'],
      ['paddle', 'There are no such deliveries.'],
    ] as const) {
      await page.goto(`${service.url}/console/apps/${own.app.id}/deliveries?source=${source}&run=new`);
      await button(page, 'Start a dry run').click();
      await page.getByText(`Nothing would change. ${text}`).waitFor({ timeout: 30_000 });
      expect(await page.getByRole('dialog').innerText()).not.toMatch(/\$|\byet\b|would be added/);
      expect(await button(page, 'Add what it shows').count()).toBe(0);
    }
    // A run that was stopped says nothing about the deliveries that it did not read.
    await service.sql`update reprocess_runs set cancelled = true where app_id = ${own.app.id}`;
    await page.reload();
    await page.getByText('The run was stopped. None of the deliveries read by then differs.').waitFor();
    expect(await page.getByText('Nothing would change.').count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('a key without the permission “setup” cannot start a dry run, also by its address', async () => {
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, ['read']);
    const own = await setUpApp(founder, { name: 'Reader' });
    const { page, problems } = await signedIn(key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/deliveries?run=new`);
    await page.getByRole('dialog').getByText('needs the permission “setup”').waitFor();
    expect(await button(page, 'Start a dry run').isDisabled()).toBe(true);
    expect(problems()).toEqual([]);
  });

  test('the sign-in link of the operator works once, and the page says where the next one comes from', async () => {
    const { page, problems } = await newPage();
    await page.goto(`${service.url}/console/operator/`);
    await page.getByText('admin -- console --operator').waitFor();
    await checkPage(page, 'operator-no-session');
    const link = await linkOf();
    await page.goto(link);
    await button(page, 'Sign in as the operator').waitFor();
    expect(page.url()).not.toContain('token');
    await button(page, 'Sign in as the operator').click();
    await page.getByRole('heading', { name: 'Readiness' }).waitFor();
    await button(page, 'Sign out').click();
    await page.getByText('You are not signed in').waitFor();
    await page.goto('about:blank');
    await page.goto(link);
    await button(page, 'Sign in as the operator').click();
    await page.getByText('The link was used before').waitFor();
    await checkPage(page, 'operator-spent-link');
    expect(problems(/status of 401/)).toEqual([]);
  });

  test('a session that has ended says how a new link is made, and a pasted link signs in', async () => {
    const { page, problems } = await operatorPage();
    await service.sql`update operator_sessions set ended_at = now()`;
    await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
    await page.getByText('admin -- console --operator').waitFor();
    const field = page.getByLabel('Sign-in link', { exact: true });
    expect(await button(page, 'Sign in as the operator').isDisabled()).toBe(true);
    await field.fill('console --operator');
    await button(page, 'Sign in as the operator').click();
    await page.getByText('This is no sign-in link.').waitFor();
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    await checkPage(page, 'operator-ended');
    const link = await linkOf();
    await field.fill(`  ${link} `);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Readiness' }).waitFor();
    await button(page, 'Sign out').click();
    await field.fill(link.split('=').at(-1) ?? '');
    await button(page, 'Sign in as the operator').click();
    await page.getByText('The link was used before').waitFor();
    expect(problems(/status of 401/)).toEqual([]);
  });

  test('the headline says in one sentence whether the installation works and what to do first', async () => {
    const { page, problems } = await operatorPage();
    const headline = page.locator('.headline');
    expect(await headline.innerText()).toBe(
      'Well. Everything that the service needs is available, and nothing waits too long.',
    );
    expect(await headline.getAttribute('data-tone')).toBe('good');
    await checkPage(page, 'operator-well');
    const show = async (change: object) => {
      await page.unroute('**/operator/state');
      await page.route('**/operator/state', async (route) => {
        const state = (await (await route.fetch()).json()) as object;
        await route.fulfill({ json: { ...state, ...change } });
      });
      await page.reload();
      await headline.waitFor();
      return [await headline.getAttribute('data-tone'), await headline.innerText()];
    };
    expect(await show(LACKS)).toEqual([
      'wait',
      'Degraded. SECRETS_KEY lacks the key 1f0c2b9e of 3 webhook secrets: restore it, or set those webhook secrets again. 5 other things need you, below.',
    ]);
    const { backlog, rateGaps } = LACKS;
    expect(await show({ rateGaps })).toEqual([
      'wait',
      'Degraded. Payments, refunds and disputes in TRY, ARS wait for an exchange rate: import it with “tributary rates import”.',
    ]);
    const [, refunds] = await show({
      rateGaps: rateGaps.slice(0, 1).map((gap) => ({ ...gap, payments: 0 })),
    });
    expect(refunds).toContain('Degraded. Refunds and disputes in TRY wait');
    const [, waits] = await show({ backlog: { ...backlog, stuckDeliveries: 1, oldestUnfinishedSeconds: 9 } });
    expect(waits).toBe(
      'Degraded. 1 delivery is retried because a step fails: look at the cause under “Stuck deliveries”. One other thing needs you, below.',
    );
    const stopping = { name: 'service', ok: false, detail: 'the service is stopping', optional: false };
    expect(await show({ ...LACKS, readiness: [...LACKS.readiness, stopping] })).toEqual([
      'bad',
      'Down. The service is stopping. 6 other things need you, below.',
    ]);
    await checkPage(page, 'operator-down');
    await page.unroute('**/operator/state');
    await page.route('**/operator/state', async (route) => await route.abort());
    await page.reload();
    await page.getByText('Down. The service does not respond').waitFor();
    expect(problems(/ERR_FAILED/)).toEqual([]);
  });

  test('the page names its version, and says when a newer version has upgraded the database', async () => {
    const { page, problems } = await operatorPage();
    await page.getByText(/^Checked .* Version \d+\.\d+\.\d+\.$/).waitFor();
    expect(await page.getByText('has upgraded the database').count()).toBe(0);
    await runOn(service.database.url, `insert into migrations (name, run_on) values ('9999_later', now())`);
    try {
      await page.reload();
      await page.getByText(/^A newer version than .* has upgraded the database \(9999_later\)/).waitFor();
      await checkPage(page, 'operator-newer');
    } finally {
      await runOn(service.database.url, `delete from migrations where name = '9999_later'`);
    }
    expect(problems()).toEqual([]);
  });

  test('a query that fails says so above what is known, with the time of the last check', async () => {
    const { page, problems } = await operatorPage();
    await page.clock.install();
    await page.reload();
    await page.getByText(/^Checked /).waitFor();
    await row(page, /Database.*Available/).waitFor();
    for (const part of ['state', 'stuck-deliveries'])
      await page.route(`**/operator/${part}`, async (route) => await route.fulfill(FORBIDDEN));
    await page.clock.fastForward(20_000);
    await page.getByText('That did not work').nth(1).waitFor();
    expect(await row(page, /Database.*Available/).count()).toBe(1);
    expect(problems(/status of 403/)).toEqual([]);
  });

  test('the operator makes a link that signs a founder in', async () => {
    const { page, problems } = await operatorPage();
    const { name } = await service.sql.one<{ name: string }>`
      select name from accounts where id = ${founder.accountId}`;
    await button(page, `Create a sign-in link for ${name}`).click();
    const link = await page.getByRole('status').locator('code').innerText();
    const other = await newPage();
    await other.page.goto(link);
    await button(other.page, 'Sign in').click();
    await other.page.getByRole('heading', { level: 1, name: /Set-up/ }).waitFor();
    expect([...problems(), ...other.problems()]).toEqual([]);
  });

  test('the operator checks all apps, and sees the row that breaks a rule, the sum that differs, and what to do', async () => {
    const own = await setUpApp(founder, { name: 'Damaged' });
    const { commissionId } = (await own.purchase(await own.customer(), 10)).body;
    const damage = async (sign: '+' | '-') =>
      await runOn(
        service.database.url,
        `set session_replication_role = replica;
         update commissions set base_cents = base_cents ${sign} 5 where id = '${commissionId}';
         insert into rollups (app_id, scope, scope_id, bucket_at, clicks)
         values ('${own.app.id}', 'app', '${own.app.id}', '-infinity', 1)
         on conflict (app_id, scope, scope_id, bucket_at) do update set clicks = rollups.clicks ${sign} 1`,
      );
    await damage('+');
    const { page, problems } = await operatorPage();
    await button(page, 'Check all apps').click();
    await row(
      page,
      new RegExp(`1 broken.*earnings_fit_their_payment.*${own.app.id}.*${commissionId}`),
    ).waitFor();
    await row(
      page,
      new RegExp(`1 broken.*rollups_equal_facts.*${own.app.id}.*the sums of the app`),
    ).waitFor();
    await page.getByText(`admin -- ledger check --app ${own.app.id}`).waitFor();
    await page.getByText('admin -- rollups repair').waitFor();
    await damage('-');
    await button(page, 'Check again').click();
    await page.getByText(/^All \d+ rules hold\.$/).waitFor();
    // A page that is shown again, here after a link that does not work, shows no result of an earlier run as a new one.
    await page.goto(`${service.url}/console/operator/#token=x`);
    await button(page, 'Sign in as the operator').click();
    await button(page, 'Stay signed in').click();
    await button(page, 'Check all apps').click();
    await page.getByText(/^All \d+ rules hold\.$/).waitFor();
    expect(problems(/status of 401/)).toEqual([]);
  });

  test('a check of all apps shows its progress, waits for another one, and goes on where it was after an error and after a stop', async () => {
    const { page, problems } = await operatorPage();
    await page.clock.install();
    await page.reload();
    const asked: (string | null)[] = [];
    let release = () => {};
    const isReleased = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/operator/ledger-check*', async (route) => {
      const cursor = new URL(route.request().url()).searchParams.get('cursor');
      asked.push(cursor);
      if (asked.length === 1) return await route.fulfill(BUSY);
      if (cursor === 'a' && asked.length === 3) return await route.fulfill(FORBIDDEN);
      if (cursor === 'a') await isReleased;
      const [name, done, nextCursor] = PARTS[cursor ?? ''] ?? ['', 0, null];
      const rule = {
        name,
        description: `The rule ${name}.`,
        apps: 2,
        violations: 0,
        rows: [],
        unfinished: [],
      };
      return await route.fulfill({
        json: { checkedAt: Date.now(), checks: [rule], done, total: 8, nextCursor },
      });
    });
    await button(page, 'Check all apps').click();
    await page.getByText('This page tries again every 10 seconds.').waitFor();
    await page.clock.fastForward(5_000);
    expect(asked).toEqual([null]);
    await page.clock.fastForward(5_000);
    await page.getByText('The test refused it.').waitFor();
    await page.getByText('3 of 8 checks are done').waitFor();
    // Screen readers announce what was found, and not each step.
    const announced = page.getByRole('status').filter({ hasText: 'No rule is broken so far.' });
    expect(await announced.innerText()).toBe('No rule is broken so far.');
    await button(page, 'Try again').click();
    await button(page, 'Stop').click();
    release();
    await page.getByText('6 of 8 checks are done').waitFor();
    await button(page, 'Continue').click();
    await page.getByText('All 2 rules hold.').waitFor();
    expect(asked).toEqual([null, null, 'a', 'a', 'b']);
    expect(problems(/status of (403|503)|^503: .*ledger-check$/)).toEqual([]);
  });

  test('the page of the operator and reprocessing have no violation of WCAG 2.2 AA in any window or state', async () => {
    const { page, problems } = await operatorPage(PHONE);
    await page.getByText('Nothing waits for an exchange rate.').waitFor();
    await page.getByText('No step of a delivery fails.').waitFor();
    await button(page, /^Create a sign-in link/)
      .first()
      .waitFor();
    await checkPage(page, 'operator');
    await button(page, 'Check all apps').click();
    await page.getByText(/^All \d+ rules hold\.$/).waitFor();
    await page.getByText(/^\d+ rules hold$/).click();
    await checkPage(page, 'operator-ledger');
    await button(page, /^Create a sign-in link/)
      .first()
      .click();
    await page.getByText('shown once').waitFor();
    await checkPage(page, 'operator-link');
    // Every list full, without the faults themselves.
    await page.route(
      '**/operator/stuck-deliveries',
      async (route) => await route.fulfill({ json: { deliveries: [STUCK] } }),
    );
    await page.route('**/operator/state', async (route) => {
      const response = await route.fetch();
      const state = (await response.json()) as object;
      await route.fulfill({ json: { ...state, ...LACKS } });
    });
    await page.route('**/operator/ledger-check*', async (route) => await route.fulfill({ json: DAMAGED }));
    await page.reload();
    await button(page, 'Check all apps').click();
    await page.getByText('3 rules are broken. The check of 1 rule is not finished.').waitFor();
    await page.getByText(`Not checked in time: ${APPS[1]}`).waitFor();
    await row(page, /paid_once/)
      .getByText('Only the first 20 of 1,234 are listed.')
      .waitFor();
    expect(await page.getByText('Only the first').count()).toBe(1);
    await row(page, /writeCommission.*Attempt 7.*permission denied/).waitFor();
    await row(page, /TRY.*1,000 or more/).waitFor();
    await row(page, /Encryption keys.*Degraded/).waitFor();
    await checkPage(page, 'operator-full');
    for (const part of ['state', 'accounts*', 'stuck-deliveries', 'reprocess-runs*', 'ledger-check*']) {
      await page.unroute(`**/operator/${part}`);
      await page.route(`**/operator/${part}`, async (route) => await route.fulfill(FORBIDDEN));
    }
    await page.reload();
    await button(page, 'Check all apps').click();
    await page.getByText('That did not work').nth(4).waitFor();
    await checkPage(page, 'operator-errors');
    expect(problems(/status of 403/)).toEqual([]);

    const appId = await appToReprocess();
    const again = await signedIn(founder.key, PHONE);
    await again.page.goto(`${service.url}/console/apps/${appId}/deliveries?run=new`);
    await button(again.page, 'Start a dry run').waitFor();
    await checkPage(again.page, 'reprocess-new');
    await button(again.page, 'Start a dry run').click();
    await button(again.page, 'Add what it shows').waitFor({ timeout: 30_000 });
    await row(again.page, /Would be added/).waitFor();
    await checkPage(again.page, 'reprocess-dry-run');
    expect(again.problems()).toEqual([]);
  });

  test('the first load of the page of the operator stays within its budget', () => {
    const bytes = firstLoadOf('operator', '.js');
    process.stdout.write(`operator: ${(bytes / KIB).toFixed(1)} of ${FIRST_LOAD / KIB} KiB gzip\n`);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(FIRST_LOAD);
  });
});

const FORBIDDEN = {
  status: 403,
  contentType: 'application/problem+json',
  json: {
    status: 403,
    code: 'forbidden',
    title: 'The key lacks a permission',
    detail: 'The test refused it.',
  },
};

const BUSY = {
  status: 503,
  contentType: 'application/problem+json',
  headers: { 'Retry-After': '10' },
  json: {
    status: 503,
    code: 'unavailable',
    title: 'Unavailable',
    detail: 'Another ledger check is running.',
  },
};

const STUCK = {
  id: 'del_01kbf2z4x8e0rvq1n3m5t7w9yc',
  accountId: 'acct_01kbf2z4x8e0rvq1n3m5t7w9yc',
  appId: 'app_01kbf2z4x8e0rvq1n3m5t7w9yc',
  source: 'stripe',
  receivedAt: Date.UTC(2026, 0, 1),
  cause: 'writeCommission: permission denied for table commissions',
  step: 'writeCommission',
  attempt: 7,
  workflowId: 'delivery:del_01kbf2z4x8e0rvq1n3m5t7w9yc',
  workflowUrl:
    'https://temporal.example.test/namespaces/default/workflows/delivery%3Adel_01kbf2z4x8e0rvq1n3m5t7w9yc',
};

/** Parts of a check by their cursors: the rule, the checks that are done, and the next cursor. */
const PARTS: Readonly<Record<string, readonly [string, number, string | null]>> = {
  '': ['only_production_earns', 3, 'a'],
  a: ['paid_once', 6, 'b'],
  b: ['paid_once', 8, null],
};

const ACCOUNT = 'acct_01kbf2z4x8e0rvq1n3m5t7w9yc';
const APPS = ['app_01kbf2z4x8e0rvq1n3m5t7w9yc', 'app_01kbf2z4x8e0rvq1n3m5t7w9yd'] as const;

const DAMAGED = {
  checkedAt: Date.UTC(2026, 0, 1),
  checks: [
    {
      name: 'rollups_equal_facts',
      description: 'Every dashboard sum equals the sum of its facts.',
      apps: 1,
      violations: 3,
      rows: [{ accountId: ACCOUNT, appId: APPS[0], id: APPS[0] }],
      unfinished: [APPS[1]],
    },
    {
      name: 'paid_once',
      description: 'A commission is an item of at most one payout.',
      apps: 2,
      violations: 1_234,
      rows: Array.from({ length: 20 }, (_, index) => ({
        accountId: ACCOUNT,
        appId: APPS[index % 2],
        id: `com_01kbf2z4x8e0rvq1n3m5t7w9${index + 10}`,
      })),
      unfinished: [],
    },
    {
      name: 'earnings_are_rate_of_base',
      description: 'An earning is its base times its rate, rounded once, and is not due before its payment.',
      apps: 2,
      violations: 1,
      rows: [{ accountId: ACCOUNT, appId: APPS[0], id: 'com_01kbf2z4x8e0rvq1n3m5t7w9yc' }],
      unfinished: [],
    },
    {
      name: 'only_production_earns',
      description: 'Sandbox payments have no commissions and no revenue.',
      apps: 2,
      violations: 0,
      rows: [],
      unfinished: [],
    },
  ],
  done: 8,
  total: 8,
  nextCursor: null,
};

const LACKS = {
  readiness: [
    { name: 'database', ok: true, optional: false, detail: null },
    {
      name: 'secrets',
      ok: false,
      optional: true,
      detail:
        'SECRETS_KEY lacks the key 1f0c2b9e of 3 webhook secrets: restore it, or set those webhook secrets again',
    },
    { name: 'temporal', ok: false, optional: true, detail: 'Temporal at 127.0.0.1:7233 does not respond' },
  ],
  backlog: {
    unfinishedDeliveries: 10_000,
    oldestUnfinishedSeconds: 200_000,
    stuckDeliveries: 3,
    overdueCommissions: 12,
    oldestOverdueSeconds: 4_000,
    openPayoutRequests: 1,
    oldestPayoutRequestSeconds: 70,
    unhealedBindings: 4,
    oldestUnhealedSeconds: 5,
    dueWebhooks: 2,
    oldestDueWebhookSeconds: 30,
  },
  rateGaps: [
    {
      currency: 'TRY',
      payments: 1_000,
      refundsAndDisputes: 3,
      firstDay: '2026-05-01',
      lastDay: '2026-06-15',
      latestRateDay: '2026-04-30',
    },
    {
      currency: 'ARS',
      payments: 2,
      refundsAndDisputes: 0,
      firstDay: '2026-06-01',
      lastDay: '2026-06-01',
      latestRateDay: null,
    },
  ],
};
