import { beforeEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createAccountKey } from '../../src/db/account-keys.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { assignPolicy, moveToGroup, publishPolicy } from '../../test/support/policies.ts';
import { button, checkPage, chooseMore, PHONE, row, title } from './browser.ts';
import type { GuardedPage } from './browser.ts';
import { describeInBrowser } from './suite.ts';

const YEAR_THEN_LESS = {
  base: 'proceeds',
  rules: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps: 5_000 }, { percentBps: 2_000 }],
} as const;
/** Its sentences. */
const YEAR = '50 % of the proceeds in the first 12 months of a customer.';
const AFTER = 'Otherwise 20 % of the proceeds.';

/** The next 1 January, as a field has it and as a page shows it. */
const NEXT_YEAR = new Date().getFullYear() + 1;

describeInBrowser('policies and groups in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeEach(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
  });

  /** Opens a page of the app, signed in. */
  const openApp = async (path: string, options = {}): Promise<GuardedPage> => {
    const guarded = await signedIn(founder.key, options);
    await guarded.page.goto(`${service.url}/console/apps/${founder.app.id}/${path}`);
    return guarded;
  };

  const app = () => `/apps/${founder.app.id}`;
  const newGroup = async (name: string) =>
    (await founder.ok<{ id: string }>('POST', `${app()}/groups`, { name })).id;
  const example = (page: Page, number: number) =>
    page.getByRole('listitem', { name: `Example ${number}` }).getByRole('status');
  const rule = (page: Page, number: number) => page.getByRole('listitem', { name: `Rule ${number}` });
  const dialog = (page: Page) => page.getByRole('dialog');
  const assignments = async () =>
    await service.sql<{ policy: string | null; group: string | null; isApp: boolean; day: string }>`
      select p.name as policy, g.name as "group", a.group_id is null and a.affiliate_id is null as is_app,
             to_char(a.effective_from at time zone 'UTC', 'YYYY-MM-DD') as day
        from policy_assignments a left join policies p on p.id = a.policy_id left join affiliate_groups g on g.id = a.group_id
       where a.app_id = ${founder.app.id} order by a.created_at`;

  test('a founder defines 50 % of proceeds in the first year, then 20 %, and 60 % for VIPs from 1 January, and sees what example payments earn', async () => {
    const { page, problems } = await openApp('policies', { timezoneId: 'UTC' });
    await page.getByText('No policies yet').waitFor();
    await page.getByRole('link', { name: 'New policy' }).click();
    await title(page, 'New policy');
    await page.getByLabel('Name', { exact: true }).fill('Standard');
    await button(page, 'More in the first year').click();
    await page.getByText(YEAR).waitFor();
    await page.getByText(AFTER).waitFor();
    // 9.99 less the assumed fee of 3.00 is 6.99.
    await example(page, 1).getByText('$3.50').waitFor();
    await example(page, 1).getByText('Rule 1: 50 % of $6.99 proceeds (estimated)').waitFor();
    await example(page, 2).getByText('$1.40').waitFor();
    await example(page, 2).getByText('Rule 2: 20 %').waitFor();
    await example(page, 3).getByText('of $9.99 proceeds').waitFor();
    await page.getByLabel('Price of example 2').fill('100');
    await example(page, 2).getByText('$14.00').waitFor();
    await page.getByLabel('Assign to').selectOption({ label: 'All creators of the app' });
    await button(page, 'Create and assign').click();
    await title(page, 'Standard');
    await page.getByRole('region', { name: 'Takes effect next' }).getByText(YEAR).waitFor();
    await row(page, /All creators of the app Scheduled/).waitFor();

    await page.getByRole('link', { name: 'Policies and groups' }).click();
    await button(page, 'New group').click();
    await page.getByLabel('Name', { exact: true }).fill('VIPs');
    await button(page, 'Create the group').click();
    await title(page, 'VIPs');
    await button(page, 'Add a creator').click();
    await page.getByRole('combobox', { name: 'Creator' }).fill('Test');
    await page.getByRole('option', { name: 'Test creator' }).click();
    await button(page, 'Move').click();
    await row(page, /Test creator from/).waitFor();

    await page.getByRole('navigation').getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('link', { name: 'New policy' }).click();
    await page.getByLabel('Name', { exact: true }).fill('VIP');
    await rule(page, 1).getByLabel('Percentage').fill('60');
    await page.getByText('60 % of the price for each payment.').waitFor();
    await example(page, 1).getByText('$5.99').waitFor();
    await page.getByLabel('Assign to').selectOption({ label: 'The group VIPs' });
    await page.getByLabel('Takes effect').selectOption('at');
    await page.getByLabel('Date').fill(`${NEXT_YEAR}-01-01`);
    await button(page, 'Create and assign').click();
    await title(page, 'VIP');
    await page.getByRole('link', { name: 'Policies and groups' }).click();
    await page.getByText(`Assigned to the group VIPs from Jan 1, ${NEXT_YEAR}`).waitFor();
    const made = await assignments();
    expect(made.map(({ policy, group, isApp }) => [policy, group, isApp])).toEqual([
      ['Standard', null, true],
      ['VIP', 'VIPs', false],
    ]);
    expect(made[1]?.day).toBe(`${NEXT_YEAR}-01-01`);
    const { items } = await founder.ok<{ items: { name: string; next: { terms: object } }[] }>(
      'GET',
      `${app()}/policies`,
    );
    expect(items.map(({ name, next }) => [name, next.terms])).toEqual([
      [
        'Standard',
        {
          ...YEAR_THEN_LESS,
          assumed: {
            taxBps: 0,
            feeBps: { app_store: 3_000, mac_app_store: 3_000, play_store: 3_000, stripe: 0, paddle: 0 },
          },
        },
      ],
      ['VIP', { base: 'gross', rules: [{ percentBps: 6_000 }] }],
    ]);
    expect(problems()).toEqual([]);
  });

  test('the form sends every condition and amount of its rules, and a new version begins with them', async () => {
    const { page, problems } = await openApp('policies/new');
    await page.getByLabel('Name', { exact: true }).fill('Many rules');
    await page.getByLabel('A percentage applies to').selectOption('proceeds');
    await page.getByText('If the provider does not state tax').click();
    await page.getByLabel('Tax', { exact: true }).fill('19');
    await page.getByLabel('Fee of App Store').fill('15');
    await rule(page, 1).getByLabel('Percentage').fill('12.5');
    for (const condition of ['Months', 'Payment number', 'Products', 'Stores'])
      await rule(page, 1).getByRole('button', { name: condition, exact: false }).first().click();
    await rule(page, 1).getByLabel('First month').fill('2');
    await rule(page, 1).getByLabel('Last month').fill('6');
    await rule(page, 1).getByLabel('First payment').fill('2');
    await rule(page, 1).getByLabel('Last payment').fill('');
    await page.getByText('Rule 1: enter a product.').first().waitFor();
    await rule(page, 1).getByLabel('Products', { exact: true }).fill('pro_monthly, pro_yearly');
    await page.getByText('Rule 1: choose a store.').first().waitFor();
    await rule(page, 1).getByLabel('Google Play').check();
    await button(page, 'Add a rule').click();
    await rule(page, 2).getByLabel('Earns').selectOption('fixed');
    await rule(page, 2).getByLabel('Amount in US dollars').fill('7.5');
    await button(page, 'Add a rule').click();
    await rule(page, 3).getByLabel('Percentage').fill('30');
    await page.getByText('Rule 3 never applies, because rule 2 applies to each payment.').waitFor();
    await button(page, 'Move up rule 3').click();
    await page.getByText('Rule 3 never applies').waitFor();
    await button(page, 'Remove rule 2').click();
    await page.getByLabel('Product of example 1').fill('pro_yearly');
    await button(page, 'Create the policy').click();
    await title(page, 'Many rules');
    const terms = {
      base: 'proceeds',
      assumed: {
        taxBps: 1_900,
        feeBps: { app_store: 1_500, mac_app_store: 3_000, play_store: 3_000, stripe: 0, paddle: 0 },
      },
      rules: [
        {
          when: {
            monthsSinceFirst: { from: 1, below: 6 },
            paymentNumber: { from: 2 },
            productIds: ['pro_monthly', 'pro_yearly'],
            stores: ['play_store'],
          },
          percentBps: 1_250,
        },
        { flatCents: 750 },
      ],
    };
    const versions = async () =>
      await service.sql<{ terms: object }>`
        select terms from policy_versions where app_id = ${founder.app.id} order by version`;
    expect((await versions()).map((version) => version.terms)).toEqual([terms]);

    await page.getByRole('link', { name: 'Publish a version' }).click();
    await title(page, 'New version of Many rules');
    await rule(page, 2).getByLabel('In full, even if').check();
    await button(page, 'Publish the version').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await title(page, 'Many rules');
    await row(page, /Version 2 .*Scheduled/).waitFor();
    expect((await versions()).map((version) => version.terms)).toEqual([
      terms,
      { ...terms, rules: [terms.rules[0], { flatCents: 750, aboveBase: true }] },
    ]);
    expect(problems()).toEqual([]);
  });

  test('who may not pay yet is asked for a key over the form where a change needs it, and the form keeps what was entered', async () => {
    const { id } = await founder.ok<{ id: string }>('POST', `${app()}/policies`, { name: 'In full' });
    await founder.ok('POST', `${app()}/policies/${id}/versions`, {
      base: 'gross',
      rules: [{ flatCents: 500, aboveBase: true }],
    });
    await founder.ok('PUT', `${app()}/policy-assignment`, { policyId: id });
    const creator = `${app()}/affiliates/${founder.affiliateId}`;
    await founder.ok('PATCH', creator, { defaultCommissionRateBps: 1_000 });
    const { page, problems } = await openApp(`creators/${founder.affiliateId}`);
    const stored = async () =>
      await founder.ok<{ name: string; defaultCommissionRateBps: number | null }>('GET', creator);
    await chooseMore(page, 'Edit');
    await page.getByLabel('Name').fill('Without a key');
    await button(page, 'Save').click();
    await title(page, 'Without a key');
    await chooseMore(page, 'Edit');
    await page.getByLabel('Name').fill('With a key');
    await page.getByLabel('Own commission').fill('');
    await button(page, 'Save').click();
    const asked = page.getByRole('dialog', { name: 'Change the own rate' });
    await asked.getByRole('button', { name: 'Cancel' }).click();
    await asked.waitFor({ state: 'hidden' });
    expect(await page.getByLabel('Name').inputValue()).toBe('With a key');
    expect(await stored()).toMatchObject({ name: 'Without a key', defaultCommissionRateBps: 1_000 });
    await button(page, 'Save').click();
    await asked.getByLabel('Key that may pay').fill(founder.key);
    await asked.getByRole('button', { name: 'Continue' }).click();
    await title(page, 'With a key');
    expect(await stored()).toMatchObject({ name: 'With a key', defaultCommissionRateBps: null });
    expect(problems(/403/)).toEqual([]);
  });

  test('a policy that nobody earns by is archived and brought back; one that is assigned is not', async () => {
    const { id } = await founder.ok<{ id: string }>('POST', `${app()}/policies`, { name: 'Standard' });
    const { page, problems } = await openApp(`policies/${id}`);
    await title(page, 'Standard');
    await founder.ok('PUT', `${app()}/policy-assignment`, { policyId: id });
    await button(page, 'Archive').click();
    await page.getByText('The policy is in effect for the app, a group or an affiliate').waitFor();
    const old = await founder.ok<{ id: string }>('POST', `${app()}/policies`, { name: 'Old' });
    await page.goto(`${service.url}/console${app()}/policies/${old.id}`);
    await title(page, 'Old');
    await button(page, 'Archive').click();
    await page.getByText('Archived since').waitFor();
    expect(await button(page, 'Assign').isDisabled()).toBe(true);
    await page.getByRole('link', { name: 'Policies and groups' }).click();
    await title(page, 'Policies');
    await page.getByRole('heading', { name: 'Standard' }).waitFor();
    expect(await page.getByRole('heading', { name: 'Old' }).count()).toBe(0);
    await page.getByLabel('Archived policies').click();
    await page.getByRole('heading', { name: 'Old' }).waitFor();
    await checkPage(page, 'policies-archived');
    await page.getByRole('link', { name: 'Old', exact: true }).click();
    await button(page, 'Bring back').click();
    await button(page, 'Archive').waitFor();
    expect(problems(/409/)).toEqual([]);
  });

  test('a template takes the place of entered rules only after a question, and of untouched ones at once', async () => {
    const { page, problems } = await openApp('policies/new');
    const question = page.getByRole('dialog', { name: 'Replace your rules?' });
    const percentage = rule(page, 1).getByLabel('Percentage');
    await page.getByLabel('Name', { exact: true }).fill('Standard');
    await button(page, 'More in the first year').click();
    await rule(page, 2).waitFor();
    await percentage.fill('45');
    await button(page, 'One rate').click();
    await question.getByText('“One rate” takes the place of the rules that you entered.').waitFor();
    await checkPage(page, 'policy-template');
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'hidden' });
    await page.locator('button:focus', { hasText: 'One rate' }).waitFor();
    expect(await percentage.inputValue()).toBe('45 %');
    expect(await button(page, 'More in the first year').getAttribute('aria-pressed')).toBe('true');
    // What was entered and taken back is not entered.
    await percentage.fill('50');
    await percentage.blur();
    await button(page, 'One rate').click();
    await rule(page, 2).waitFor({ state: 'detached' });
    expect(await percentage.inputValue()).toBe('20 %');
    await button(page, 'Add a rule').click();
    await button(page, 'More in the first year').click();
    await question.getByRole('button', { name: 'Replace the rules' }).click();
    await question.waitFor({ state: 'hidden' });
    expect(await percentage.inputValue()).toBe('50 %');
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Standard');
    expect(problems()).toEqual([]);
  });

  test('a policy that is created again after a failed publication leaves no second policy', async () => {
    const { page, problems } = await openApp('policies/new');
    await page.getByLabel('Name', { exact: true }).fill('Standard');
    let failures = 1;
    await page.route('**/policies/*/versions', async (route) => {
      failures -= 1;
      if (failures < 0) await route.continue();
      else await route.abort();
    });
    await button(page, 'Create the policy').click();
    await page.getByText('The service did not respond').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('Basic');
    await button(page, 'Create the policy').click();
    await title(page, 'Basic');
    const { items } = await founder.ok<{ items: { name: string }[] }>('GET', `${app()}/policies`);
    expect(items.map(({ name }) => name)).toEqual(['Basic']);
    expect(problems(/ERR_FAILED/)).toEqual([]);
  });

  test('a form keeps what was entered while what it begins with cannot be read again', async () => {
    const { id } = await founder.ok<{ id: string }>('POST', `${app()}/policies`, { name: 'Standard' });
    const terms = { base: 'gross', rules: [{ percentBps: 1_000 }] };
    await founder.ok('POST', `${app()}/policies/${id}/versions`, terms);
    const { page, problems } = await openApp(`policies/${id}/new-version`);
    const percentage = rule(page, 1).getByLabel('Percentage');
    await percentage.fill('35');
    await page.route(`**/policies/${id}/versions?*`, async (route) => {
      const body = { code: 'rate_limited', title: 'No', detail: 'Not now.', status: 429 };
      await route.fulfill({
        status: 429,
        contentType: 'application/problem+json',
        body: JSON.stringify(body),
      });
    });
    // Answers are fresh for five seconds.
    await page.waitForTimeout(5_200);
    await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
    await page.getByText('Not now.').first().waitFor();
    expect(await percentage.inputValue()).toBe('35');
    await page.unroute(`**/policies/${id}/versions?*`);
    await button(page, 'Try again').click();
    await page.getByText('Not now.').first().waitFor({ state: 'hidden' });
    expect(await percentage.inputValue()).toBe('35 %');
    expect(problems(/status of 429/)).toEqual([]);
  });

  test('assigning a policy to the app names the creators whose own rate goes before it, and removing it is offered', async () => {
    const { page, problems } = await openApp('policies');
    await publishPolicy(founder, service.sql, YEAR_THEN_LESS);
    const { affiliateId } = await founder.newAffiliate('Grace');
    await founder.ok('PATCH', `${app()}/affiliates/${affiliateId}`, { defaultCommissionRateBps: 3_250 });
    await page.reload();
    await page.getByRole('listitem', { name: 'Test policy' }).getByText('Not assigned').first().waitFor();
    await button(page, 'Assign Test policy').click();
    await page.getByText('It counts for every creator without an own rate').waitFor();
    await dialog(page).getByRole('button', { name: 'Assign' }).click();
    await page.getByText('Creators with an own rate keep it').waitFor();
    await page.getByText('Grace 32.5 %.').waitFor();
    await button(page, 'Done').click();
    await row(page, /All creators of the app Test policy Scheduled/).waitFor();
    await button(page, 'Change the policy of all creators of the app').click();
    await dialog(page).getByText(YEAR).waitFor();
    await dialog(page).getByLabel('Policy').selectOption({ label: 'No policy of its own' });
    await button(page, 'Remove the policy').click();
    await row(page, /All creators of the app No policy of its own Scheduled/).waitFor();
    expect((await assignments()).map(({ policy }) => policy)).toEqual(['Test policy', null]);
    expect(problems()).toEqual([]);
  });

  test('what is planned for a date is changed at that date, undone, and named where it still takes effect', async () => {
    const { page, problems } = await openApp('policies', { timezoneId: 'UTC' });
    const groupId = await newGroup('VIPs');
    const first = await publishPolicy(founder, service.sql, YEAR_THEN_LESS);
    await assignPolicy(founder, service.sql, first, { groupId });
    const { id: vip } = await founder.ok<{ id: string }>('POST', `${app()}/policies`, { name: 'VIP' });
    const effectiveFrom = Date.UTC(NEXT_YEAR, 0, 1);
    const terms = { base: 'gross', rules: [{ percentBps: 6_000 }] };
    await founder.ok('POST', `${app()}/policies/${vip}/versions`, { ...terms, effectiveFrom });
    const assign = async (policyId: string, at?: number) =>
      await founder.ok('PUT', `${app()}/groups/${groupId}/policy-assignment`, {
        policyId,
        effectiveFrom: at,
      });
    await assign(vip, effectiveFrom);
    const planned = `Jan 1, ${NEXT_YEAR}, 12:00 AM`;
    const change = async (which: RegExp) =>
      await row(page, which).getByRole('button', { name: 'Change the policy of' }).click();

    await page.reload();
    await change(/VIPs VIP Scheduled/);
    const field = (name: string) => dialog(page).getByLabel(name, { exact: true });
    await dialog(page).getByText('The policy has no version in effect before').waitFor();
    expect(await field('Policy').locator('option:checked').textContent()).toBe('VIP');
    expect(await field('Takes effect').locator('option:checked').textContent()).toBe(
      `As planned, ${planned}`,
    );
    await field('Takes effect').selectOption('soon');
    await dialog(page).getByText(`VIP still takes effect at ${planned}.`).waitFor();
    await field('Takes effect').selectOption('planned');
    await button(page, 'Undo this change').click();
    await row(page, /VIPs VIP Scheduled/).waitFor({ state: 'hidden' });
    await row(page, /VIPs Test policy In effect/).waitFor();
    expect((await assignments()).map(({ policy, day }) => [policy, day]).slice(1)).toEqual([
      ['VIP', `${NEXT_YEAR}-01-01`],
      ['Test policy', `${NEXT_YEAR}-01-01`],
    ]);

    await page.goto(`${service.url}/console/apps/${founder.app.id}/policies/${vip}/new-version`);
    await rule(page, 1).getByLabel('Percentage').fill('65');
    await page.getByLabel('Takes effect').selectOption('soon');
    await page.getByText(`Version 1 still takes effect at ${planned}, and then counts instead`).waitFor();
    await page.getByLabel('Takes effect').selectOption('planned');
    await button(page, 'Publish the version').click();
    await title(page, 'VIP');
    await row(page, /Version 2 .*Scheduled/).waitFor();
    const versions = await service.sql`
      select version, epoch_ms(effective_from) as at from policy_versions where policy_id = ${vip} order by version`;
    expect(versions).toEqual([
      { version: 1, at: effectiveFrom },
      { version: 2, at: effectiveFrom },
    ]);
    expect(problems()).toEqual([]);
  });

  test('the page of a creator shows how they earn now and later, and assigns a policy and moves them to a group', async () => {
    const { affiliateId } = founder;
    const { page, problems } = await openApp(`creators/${affiliateId}`);
    const terms = page.getByRole('region', { name: 'How this creator earns' });
    await terms.getByText('20 % of the price for each payment.').waitFor();
    await terms.getByText('The commission of the settings.').waitFor();
    await button(page, 'Assign a policy').click();
    expect(
      await dialog(page).getByRole('link', { name: 'Create a new policy' }).getAttribute('href'),
    ).toMatch(/\/policies\/new$/);
    const policyId = await publishPolicy(founder, service.sql, YEAR_THEN_LESS);
    const groupId = await newGroup('VIPs');
    await assignPolicy(founder, service.sql, policyId, { groupId });
    await moveToGroup(founder, service.sql, affiliateId, groupId);
    await page.reload();
    await terms.getByText(YEAR).waitFor();
    await terms.getByText('The policy Test policy, version 1, of the group.').waitFor();
    await terms.getByText('In the group VIPs since').waitFor();
    await founder.ok('PATCH', `${app()}/affiliates/${affiliateId}`, { defaultCommissionRateBps: 3_250 });
    await page.reload();
    await terms.getByText('32.5 % of the price for each payment.').waitFor();
    await terms.getByText('The creator’s own rate.').waitFor();
    await button(page, 'Assign a policy').click();
    await page.getByLabel('Takes effect').selectOption('at');
    await page.getByLabel('Date').fill('2020-01-01');
    await page.getByText('Choose a time at least two minutes ahead.').waitFor();
    expect(await dialog(page).getByRole('button', { name: 'Assign' }).isDisabled()).toBe(true);
    await page.getByLabel('Date').fill(`${NEXT_YEAR}-01-01`);
    await dialog(page).getByRole('button', { name: 'Assign' }).click();
    await terms.getByText(`From Jan 1, ${NEXT_YEAR}, 12:00 AM`).waitFor();
    await terms.getByText('The policy Test policy, version 1, of this creator.').waitFor();
    await button(page, 'Move to a group').click();
    await dialog(page).getByLabel('Group').selectOption({ label: 'No group' });
    await dialog(page).getByRole('button', { name: 'Move' }).click();
    await dialog(page).waitFor({ state: 'hidden' });
    await page.getByText(/ changes the group at \w+ \d+, \d{4}/).waitFor();
    expect(
      await service.sql`
        select group_id from group_memberships where affiliate_id = ${affiliateId} order by position`,
    ).toEqual([{ groupId }, { groupId: null }]);
    expect(problems()).toEqual([]);
  });

  test('a key without “write” sees policies and groups, and every change is disabled with the reason', async () => {
    const policyId = await publishPolicy(founder, service.sql, YEAR_THEN_LESS);
    const groupId = await newGroup('VIPs');
    await assignPolicy(founder, service.sql, policyId, { groupId });
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, ['read']);
    const { page, problems } = await signedIn(key);
    const expectDisabled = async (path: string, ...names: readonly string[]) => {
      await page.goto(`${service.url}/console${app()}/${path}`);
      for (const name of names) {
        const found = page.getByRole('main').getByRole('button', { name });
        await found.waitFor();
        expect([name, await found.isDisabled()]).toEqual([name, true]);
      }
      await page.getByText('the permission “write”, which you do not have').first().waitFor();
    };
    await expectDisabled('policies', 'Assign Test policy', 'Change the policy of', 'New group');
    expect(await page.getByRole('link', { name: /New policy|Publish a version/ }).count()).toBe(0);
    await expectDisabled(`policies/${policyId}`, 'Rename', 'Change the policy of');
    await expectDisabled(`policies/groups/${groupId}`, 'Assign a policy', 'Rename', 'Add a creator');
    await expectDisabled(`policies/${policyId}/new-version`, 'Publish the version');
    await expectDisabled(`creators/${founder.affiliateId}`, 'Assign a policy', 'Move to a group');
    expect(problems()).toEqual([]);
  });

  test('the pages of policies and groups have no violation of WCAG 2.2 AA in any window or state', async () => {
    const { page, problems } = await openApp('policies', PHONE);
    const check = async (state: string) => await checkPage(page, state);
    const go = async (path: string) => await page.goto(`${service.url}/console${app()}/${path}`);
    await page.getByText('No policies yet').waitFor();
    await check('policies-empty');
    const policyId = await publishPolicy(founder, service.sql, YEAR_THEN_LESS, {
      from: Date.now() - 90 * DAY_MS,
    });
    await founder.ok('PATCH', `${app()}/policies/${policyId}`, { name: 'Standard' });
    await assignPolicy(founder, service.sql, policyId, null, Date.now() - 90 * DAY_MS);
    const groupId = await newGroup('VIPs');
    await moveToGroup(founder, service.sql, founder.affiliateId, groupId, Date.now() - 30 * DAY_MS);
    const { affiliateId } = await founder.newAffiliate('Grace Hopper');
    await founder.ok('PATCH', `${app()}/affiliates/${affiliateId}`, { defaultCommissionRateBps: 3_250 });
    const vip = await founder.ok<{ id: string }>('POST', `${app()}/policies`, { name: 'VIP' });
    const effectiveFrom = Date.UTC(NEXT_YEAR, 0, 1);
    await founder.ok('POST', `${app()}/policies/${vip.id}/versions`, {
      base: 'proceeds',
      rules: [{ percentBps: 6_000 }],
      effectiveFrom,
    });
    await founder.ok('POST', `${app()}/policies/${policyId}/versions`, {
      ...YEAR_THEN_LESS,
      rules: [{ when: { stores: ['stripe', 'paddle'] }, percentBps: 5_500 }, ...YEAR_THEN_LESS.rules],
      effectiveFrom,
    });
    await founder.ok('PUT', `${app()}/groups/${groupId}/policy-assignment`, {
      policyId: vip.id,
      effectiveFrom,
    });
    await founder.purchase(await founder.customer(), 9.99);
    await go('policies');
    await page.getByText('Assigned to the group VIPs').waitFor();
    await check('policies');
    await button(page, 'Assign Standard').click();
    await dialog(page).getByLabel('Assign to').waitFor();
    await dialog(page).getByLabel('Takes effect').selectOption('at');
    await dialog(page).getByLabel('Date').fill(`${NEXT_YEAR}-01-01`);
    await check('policies-assign');
    await dialog(page).getByRole('button', { name: 'Assign' }).click();
    await page.getByText('Creators with an own rate keep it').waitFor();
    await check('policies-own-rates');
    await go('policies/new');
    await button(page, 'More in the first year').click();
    await example(page, 1).getByText('$3.50').waitFor();
    await check('policy-new');
    await page.getByText('If the provider does not state tax').click();
    await button(page, 'Add a rule').click();
    await rule(page, 3).getByLabel('Earns').selectOption('fixed');
    await button(page, 'Move up rule 3').click();
    for (const condition of ['Months', 'Payment number', 'Products', 'Stores'])
      await rule(page, 2).getByRole('button', { name: condition, exact: false }).first().click();
    await page.getByText('Rule 2: enter an amount').first().waitFor();
    await check('policy-new-rules');
    await go(`policies/${policyId}`);
    await row(page, /Version 2/).waitFor();
    await check('policy');
    await go(`policies/groups/${groupId}`);
    await row(page, /Test creator/).waitFor();
    await check('group');
    await button(page, 'Move Test creator').click();
    await dialog(page).getByLabel('Group').waitFor();
    await check('group-move');
    await go(`creators/${founder.affiliateId}`);
    await page.getByText('of the group.').waitFor();
    await check('creator-terms');
    await go('commissions');
    // A phone leaves it out of the rows.
    await page.getByText('proceeds (estimated)').waitFor({ state: 'attached' });
    await check('commissions-policy');
    await page
      .getByRole('row', { name: /Earning/ })
      .getByRole('link')
      .first()
      .click();
    await page.getByLabel('Details: The body was read').click();
    await page.getByText('$1.50, estimated by the provider').first().waitFor();
    await check('event-policy');
    await page.goto(`${service.url}/console/creator/as/${founder.app.id}/${founder.affiliateId}/`);
    await page.getByText(YEAR).waitFor();
    await check('creator-rules');
    expect(problems()).toEqual([]);
  });
});
