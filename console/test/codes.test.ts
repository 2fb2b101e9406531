import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createAccountKey } from '../../src/db/account-keys.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { HOUR_MS } from '../../src/domain/time.ts';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { bodyOf, revenuecatEvent } from '../../test/support/provider-fixtures.ts';
import { button, checkPage, PHONE, row, title } from './browser.ts';
import type { GuardedPage } from './browser.ts';
import { takeCodesFromTheBeginning } from '../../test/support/codes.ts';
import { describeInBrowser } from './suite.ts';

describeInBrowser('purchase codes in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeEach(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
  });

  const app = () => `/apps/${founder.app.id}`;
  const dialog = (page: Page) => page.getByRole('dialog');
  const codesOf = (page: Page) => page.getByRole('region', { name: 'Purchase codes' });

  /** Opens a page of the app, signed in. */
  const openApp = async (path: string, options = {}): Promise<GuardedPage> => {
    const guarded = await signedIn(founder.key, options);
    await guarded.page.goto(`${service.url}/console${app()}/${path}`);
    return guarded;
  };
  const addCode = async (affiliateId: string, body: object) =>
    await founder.ok<{ id: string }>('POST', `${app()}/affiliates/${affiliateId}/codes`, body);
  const setting = async () =>
    (await founder.ok<{ purchaseCodes?: string }>('GET', `${app()}/settings`)).purchaseCodes;
  const turnOn = async () => {
    await founder.ok('PATCH', `${app()}/settings`, { purchaseCodes: 'when_unattributed' });
    await takeCodesFromTheBeginning(service.sql, founder.app.id);
  };

  /** Registers a code of the App Store, as if that was a day ago. */
  const addOldCode = async (affiliateId: string, value: string) => {
    const { id } = await addCode(affiliateId, { namespace: 'app_store', value });
    await service.sql.transaction(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update codes set created_at = created_at - interval '1 day' where id = ${id}`;
    });
  };
  /** Delivers a purchase of $10 with codes: an offer code, and one that the app has set. */
  const buy = async (userId: string, offerCode: string, attribute?: string) =>
    await founder.revenuecat(
      bodyOf(
        revenuecatEvent({
          userId,
          usd: 10,
          occurredAt: Date.now() - HOUR_MS,
          extra: {
            offer_code: offerCode,
            ...(attribute && { subscriber_attributes: { tributary_code: { value: attribute } } }),
          },
        }),
      ),
    );

  test('a founder adds codes of a creator, turns purchase codes on, and deactivates a code', async () => {
    const { page, problems } = await openApp(`creators/${founder.affiliateId}`);
    await codesOf(page).getByText('No purchase codes yet').waitFor();
    // Who adds a creator with a code reads there that it does not count yet.
    await page.goto(`${service.url}/console${app()}/creators`);
    await button(page, 'New creator').click();
    await dialog(page).getByLabel('Add a purchase code').check();
    await dialog(page).getByText('Purchase codes are off.').waitFor();
    await dialog(page).getByRole('button', { name: 'Cancel' }).click();
    await page.goto(`${service.url}/console${app()}/creators/${founder.affiliateId}`);
    await button(page, 'Add a purchase code').click();
    await dialog(page).getByText('tributary_code before the purchase').waitFor();
    await dialog(page).getByLabel('Code', { exact: true }).fill('ann@example.com');
    await dialog(page).getByText('without @').waitFor();
    expect(await button(page, 'Add the code').isDisabled()).toBe(true);
    await dialog(page).getByLabel('Code', { exact: true }).fill(' SPRING20 ');
    await button(page, 'Add the code').click();
    await row(page, /SPRING20 RevenueCat, set by your app Off added/).waitFor();

    // Stripe and Paddle state an id.
    await button(page, 'Add a purchase code').click();
    await dialog(page).getByLabel('Where the code is from').selectOption('stripe');
    await dialog(page).getByLabel('Promotion code', { exact: true }).fill('SPRING20');
    expect(await button(page, 'Add the code').isDisabled()).toBe(true);
    await dialog(page).getByLabel('Id of the promotion code at Stripe').fill('promo_1SZ');
    await button(page, 'Add the code').click();
    await row(page, /SPRING20 promo_1SZ Stripe Off/).waitFor();

    expect(await setting()).toBeUndefined();
    await codesOf(page).getByText('Purchase codes are off.').waitFor();
    await button(page, 'Turn on purchase codes').click();
    await row(page, /SPRING20 promo_1SZ Stripe Active since/).waitFor();
    expect(await codesOf(page).getByText('Purchase codes are off.').count()).toBe(0);
    expect(await setting()).toBe('when_unattributed');

    await row(page, /Stripe/)
      .getByRole('button', { name: 'Deactivate the code SPRING20' })
      .click();
    await dialog(page).getByText('the customers whom it brought stay with Test creator').waitFor();
    await button(page, 'Deactivate the code').last().click();
    await row(page, /SPRING20 promo_1SZ Stripe Deactivated since/).waitFor();
    await row(page, /RevenueCat, set by your app Active/).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a code that another creator has is refused with the name of that creator, and can be added once it is free', async () => {
    const { affiliateId } = await founder.newAffiliate('Grace Hopper');
    const { id } = await addCode(affiliateId, { namespace: 'attribute', value: 'Spring20' });
    const { page, problems } = await openApp(`creators/${founder.affiliateId}`);
    await button(page, 'Add a purchase code').click();
    await dialog(page).getByLabel('Code', { exact: true }).fill('SPRING20');
    await button(page, 'Add the code').click();
    await dialog(page).getByText('The code Spring20 belongs to Grace Hopper.').waitFor();
    const link = dialog(page).getByRole('link', { name: 'Grace Hopper' });
    expect(await link.getAttribute('href')).toContain(`creators/${affiliateId}`);
    // The same form works when the code is free.
    await founder.ok('POST', `${app()}/codes/${id}/deactivate`);
    await button(page, 'Add the code').click();
    await row(page, /SPRING20/).waitFor();
    await button(page, 'Add a purchase code').click();
    await dialog(page).getByLabel('Code', { exact: true }).fill('spring20');
    await button(page, 'Add the code').click();
    await dialog(page).getByText('Test creator has this code already: SPRING20.').waitFor();
    expect(problems(/409/)).toEqual([]);
  });

  test('the set-up shows which codes have come with a purchase, what to do for the others, and codes of nobody', async () => {
    const { page, problems } = await openApp('setup');
    const step = page.getByRole('button', { name: 'Check that codes arrive' });
    await title(page, 'Set-up');
    await addOldCode(founder.affiliateId, 'SPRING20');
    await page.getByText('of 6 done').waitFor();
    await turnOn();
    await addCode(founder.affiliateId, { namespace: 'attribute', value: 'ADA' });
    await page.reload();
    await page.getByText('of 7 done').waitFor();
    await step.click();
    await row(page, /SPRING20 App Store Test creator None yet/).waitFor();
    await page.getByText('No code arrived yet.', { exact: true }).waitFor();
    await page.getByText('set it as the subscriber attribute tributary_code').waitFor();
    // Both rows follow without a reload.
    await buy('user-1', 'Spring25', 'ada');
    await row(page, /ADA RevenueCat, set by your app Test creator \w+ \d+/).waitFor();
    expect(await page.getByText('No code arrived yet').count()).toBe(0);
    await page.getByText('Spring25 (App Store) came with a purchase on').waitFor();
    await buy('user-2', 'spring20');
    await row(page, /SPRING20 App Store Test creator \w+ \d+/).waitFor();
    expect(await page.getByText('no purchase has come with such a code').count()).toBe(0);
    await checkPage(page, 'setup-codes');
    expect(problems()).toEqual([]);
  });

  test('a misspelled code of a purchase is named where its event says what it brought about', async () => {
    await turnOn();
    await addOldCode(founder.affiliateId, 'SPRING20');
    const { body } = await buy('user-1', 'SPR1NG20');
    const { page, problems } = await openApp(`events/${body.eventId}`);
    await page
      .getByRole('region', { name: 'What it brought about' })
      .getByText('The purchase came with the code SPR1NG20, which no creator has.')
      .waitFor();
    expect(problems()).toEqual([]);
  });

  test('the set-up asks for a link or a purchase code, and takes either', async () => {
    const { items } = await founder.ok<{ items: { id: string }[] }>('GET', `${app()}/links`);
    for (const { id } of items) await founder.ok('PATCH', `${app()}/links/${id}`, { active: false });
    const { page, problems } = await openApp('setup');
    const step = page.getByRole('button', { name: 'Add your first creator, with a link or a purchase code' });
    await step.click();
    await page.getByText('A link or a purchase code is enough.').waitFor();
    await turnOn();
    await addCode(founder.affiliateId, { namespace: 'attribute', value: 'ADA' });
    await page.reload();
    await page.getByRole('button', { name: /link or a purchase code \(Done\) *Purchase codes/ }).click();
    await page.getByText('sales count without a link and without a click').waitFor();
    await page
      .getByRole('button', { name: /Put the SDK into your app \(Done\) *Not needed for codes/ })
      .waitFor();
    await page.getByRole('button', { name: /Receive the first purchase/ }).click();
    await page.getByText('any new user id: the purchase comes with the code of Test creator.').waitFor();
    const command = page.locator('pre', { hasText: '"tributary_code"' });
    await command.getByText('{"value": "ADA"').waitFor();
    const { app: steps } = await founder.ok<{ app: { step: string; ok: boolean; detail: string }[] }>(
      'POST',
      `${app()}/self-test`,
    );
    const found = (name: string) => steps.find((one) => one.step === name);
    expect(found('links')).toMatchObject({ ok: true });
    expect(found('purchase_codes')).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^No code arrived yet\./),
    });
    expect(problems()).toEqual([]);
  });

  test('the settings turn purchase codes on and off, and say so', async () => {
    const { page, problems } = await openApp('settings');
    const codes = page.getByLabel('Purchase codes');
    expect(await codes.isChecked()).toBe(false);
    await codes.click({ force: true });
    await button(page, 'Save').click();
    await page.getByText('Saved.').waitFor();
    expect(await setting()).toBe('when_unattributed');
    await page.reload();
    await codes.waitFor({ state: 'attached' });
    expect(await codes.isChecked()).toBe(true);
    await codes.click({ force: true });
    await button(page, 'Save').click();
    await page.getByText('Saved.').waitFor();
    expect(await setting()).toBeUndefined();
    await page.getByRole('link', { name: 'Who changed these settings, and when' }).click();
    await row(page, /Purchase codes.*off.*on$/).waitFor();
    await row(page, /Purchase codes.*on.*off$/).waitFor();
    expect(problems()).toEqual([]);
  });

  test('events, commissions, the audit and the page of the creator say that a purchase came with a code', async () => {
    await turnOn();
    await addOldCode(founder.affiliateId, 'SPRING20');
    const user = `user-${randomUUID()}`;
    await buy(user, 'SPRING20');
    const { page, problems } = await openApp('commissions');
    await row(page, /Test creator Earning .* by a purchase code/)
      .getByRole('link')
      .first()
      .click();
    await title(page, /^Purchase of \$/);
    await page.getByText('by a purchase code for payments since').waitFor();
    expect(await page.getByText('First opened').count()).toBe(0);
    await page.goto(`${service.url}/console/audit?kind=code`);
    await row(page, /Code created: SPRING20.*Where it is from App Store/).waitFor();
    await row(page, /Code created: SPRING20/)
      .getByRole('link')
      .first()
      .click();
    await title(page, 'Test creator');
    await page.goto(`${service.url}/console/creator/as/${founder.app.id}/${founder.affiliateId}/links`);
    const codes = codesOf(page);
    await codes.getByText('Offer “SPRING20” in the App Store').waitFor();
    await codes.getByText('not what customers type').waitFor();
    expect(await codes.locator('b').count()).toBe(0);
    expect(await codes.evaluate((one) => Number.parseFloat(getComputedStyle(one).paddingLeft))).toBe(20);
    await page.goto(`${service.url}/console/creator/as/${founder.app.id}/${founder.affiliateId}/`);
    await page.getByRole('navigation').getByRole('link', { name: 'Commissions' }).click();
    await row(page, /A purchase of a user who bought with your purchase code\./).waitFor();
    // The code brought a payer whom the app never reported, so payers are no part of its users.
    await founder.purchase(await founder.customer(), 10, { occurredAt: Date.now() - HOUR_MS });
    await page.goto(`${service.url}/console${app()}/overview`);
    const payers = page.locator('.funnel > div', { hasText: 'Paying users' });
    await payers.getByText('2', { exact: true }).waitFor();
    expect(await payers.innerText()).not.toContain('%');
    expect(problems()).toEqual([]);
  });

  test('a purchase with codes of several creators is named as such, and is attributed to one of them', async () => {
    await turnOn();
    const { affiliateId } = await founder.newAffiliate('Grace Hopper');
    await addOldCode(founder.affiliateId, 'SPRING20');
    await addCode(affiliateId, { namespace: 'attribute', value: 'GRACE' });
    await service.sql.transaction(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update codes set created_at = created_at - interval '1 day' where affiliate_id = ${affiliateId}`;
    });
    const user = `user-${randomUUID()}`;
    await buy(user, 'SPRING20', 'GRACE');
    const { page, problems } = await openApp('unattributed');
    await row(
      page,
      /Purchase codes of several creators .*Attribute in the console.*Can still earn/,
    ).waitFor();
    await button(page, new RegExp(`Attribute ${user}`)).click();
    await dialog(page).getByRole('combobox', { name: 'Creator' }).fill('Grace');
    await page.getByRole('option', { name: 'Grace Hopper' }).click();
    await dialog(page).getByText('So far, 1 payment earns $2.00 for Grace Hopper.').waitFor();
    await dialog(page).getByLabel('Reason').fill('Heard of it in her podcast');
    await dialog(page).getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await button(page, 'Attribute and book $2.00').click();
    await dialog(page).getByText('1 payment earned $2.00.').waitFor();
    await button(page, 'Done').click();
    await page.getByText('No payment of this range is without a commission').waitFor();
    await page.goto(`${service.url}/console/audit?kind=manual_attribution`);
    await row(page, /Manual attribution created .*Earlier payments that earned 1.*They earned \$2\.00/)
      .getByRole('link', { name: 'Manual attribution created' })
      .click();
    await title(page, 'Manual attributions');
    await row(page, /Grace Hopper .*\$2\.00/).waitFor();
    await page.goto(`${service.url}/console/creator/as/${founder.app.id}/${affiliateId}/commissions`);
    await row(page, /A purchase of a user who was attributed to you\./).waitFor();
    expect(problems()).toEqual([]);
  });

  test('a key without “write” sees codes and cannot change them', async () => {
    await addCode(founder.affiliateId, { namespace: 'attribute', value: 'SPRING20' });
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, ['read']);
    const { page, problems } = await signedIn(key);
    await page.goto(`${service.url}/console${app()}/creators/${founder.affiliateId}`);
    for (const name of ['Add a purchase code', 'Turn on purchase codes', 'Deactivate the code SPRING20']) {
      await button(page, name).waitFor();
      expect([name, await button(page, name).isDisabled()]).toEqual([name, true]);
    }
    expect(problems()).toEqual([]);
  });

  test('the codes of a creator have no violation of WCAG 2.2 AA in any window or state', async () => {
    const { affiliateId } = await founder.newAffiliate('Grace Hopper');
    const { page, problems } = await openApp(`creators/${affiliateId}`, PHONE);
    const check = async (state: string) => await checkPage(page, state);
    await codesOf(page).getByText('No purchase codes yet').waitFor();
    await codesOf(page).getByText('Purchase codes are off.').waitFor();
    await check('codes-empty');
    const { id } = await addCode(affiliateId, {
      namespace: 'paddle',
      value: 'WINTER',
      externalId: 'dsc_01hv6y1jedq4p1n0yqn5ba3ky4',
    });
    await founder.ok('POST', `${app()}/codes/${id}/deactivate`);
    await addCode(affiliateId, { namespace: 'app_store', value: 'grace-podcast-spring-2027' });
    await addCode(founder.affiliateId, { namespace: 'stripe', value: 'SPRING20', externalId: 'promo_1' });
    await addCode(affiliateId, { namespace: 'attribute', value: 'GRACE' });
    await page.reload();
    await row(page, /GRACE/).waitFor();
    await check('codes-off');
    await turnOn();
    await page.reload();
    await row(page, /GRACE .*Active/).waitFor();
    await check('codes');
    await button(page, 'Add a purchase code').click();
    await dialog(page).getByLabel('Where the code is from').selectOption('stripe');
    await check('codes-add');
    await dialog(page).getByLabel('Promotion code', { exact: true }).fill('SPRING20');
    await dialog(page).getByLabel('Id of the promotion code at Stripe').fill('promo_2');
    await button(page, 'Add the code').click();
    await dialog(page).getByText('belongs to Test creator').waitFor();
    await check('codes-taken');
    await dialog(page).getByRole('button', { name: 'Cancel' }).click();
    await button(page, /Deactivate the code GRACE/).click();
    await dialog(page).waitFor();
    await check('codes-deactivate');
    await page.goto(`${service.url}/console${app()}/settings`);
    await page.getByLabel('Purchase codes').waitFor({ state: 'attached' });
    await check('settings-codes');
    expect(problems(/409/)).toEqual([]);
  });
});
