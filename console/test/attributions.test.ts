import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { createAccountKey } from '../../src/db/account-keys.ts';
import type { AccountId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/time.ts';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { eventually } from '../../test/support/eventually.ts';
import { bodyOf, stripeInvoicePaid } from '../../test/support/provider-fixtures.ts';
import { button, checkPage, PHONE, row, title } from './browser.ts';
import type { GuardedPage } from './browser.ts';
import { describeInBrowser } from './suite.ts';

describeInBrowser('manual attributions in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeEach(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
  });

  const app = () => `/apps/${founder.app.id}`;
  const dialog = (page: Page) => page.getByRole('dialog');

  /** Opens a page of the app, signed in. */
  const openApp = async (path: string, options = {}): Promise<GuardedPage> => {
    const guarded = await signedIn(founder.key, options);
    await guarded.page.goto(`${service.url}/console${app()}/${path}`);
    return guarded;
  };

  const choose = async (page: Page, name: string) => {
    await dialog(page).getByRole('combobox', { name: 'Creator' }).fill(name);
    await page.getByRole('option', { name }).click();
  };
  const allowToPay = async (page: Page) => {
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
  };
  interface Earned {
    readonly amountCents: number;
    readonly matchMethod: string;
    readonly affiliateName: string;
  }
  const commissions = async () =>
    (await founder.ok<{ items: Earned[] }>('GET', `${app()}/commissions`)).items.map(
      ({ affiliateName, amountCents, matchMethod }) => [affiliateName, amountCents, matchMethod],
    );
  const attributions = async () =>
    (await founder.ok<{ items: Record<string, unknown>[] }>('GET', `${app()}/manual-attributions`)).items;

  /** Delivers three payments of $10 of a user who belongs to nobody, 12, 11 and 10 days ago. */
  async function payThrice(user: string): Promise<void> {
    for (const ago of [12, 11, 10])
      await founder.purchase(user, 10, {
        occurredAt: Date.now() - ago * DAY_MS,
        transactionId: `${user}-${ago}`,
      });
  }

  test('a founder gives the user of an unattributed payment to a creator from that payment on, and agrees to the sum', async () => {
    await founder.newAffiliate('Grace Hopper');
    const user = `user-${randomUUID()}`;
    await payThrice(user);
    const { page, problems } = await openApp('unattributed');
    // The second of the three payments.
    await row(page, new RegExp(`11 days ago .*${user}`))
      .getByRole('link', { name: 'Purchase' })
      .click();
    await title(page, /^Purchase of \$/);
    await button(page, 'Attribute to a creator').click();
    await choose(page, 'Grace Hopper');
    await dialog(page).getByText('So far, 2 payments earn $4.00 for Grace Hopper.').waitFor();
    expect(await dialog(page).getByRole('button', { name: 'Continue' }).isDisabled()).toBe(true);
    await dialog(page).getByLabel('Reason').fill('  Told us in the chat ');
    await dialog(page).getByRole('button', { name: 'Continue' }).click();
    await allowToPay(page);
    await dialog(page).getByText('2 payments earn $4.00').waitFor();
    // A refund arrives before the founder agrees.
    await founder.refund(user, 5, `${user}-10`);
    await button(page, 'Attribute and book $4.00').click();
    await page.getByText('The sum has changed').waitFor();
    await page.getByText('You agreed to $4.00.').waitFor();
    expect(await commissions()).toEqual([]);
    await button(page, 'Attribute and book $3.00').click();
    await page.getByText(/belong to Grace Hopper\. 2 payments earned \$3\.00\./).waitFor();
    await button(page, 'Done').click();
    // The event says at once what it earned, and by what.
    await page.getByText('by a manual attribution for payments since').waitFor();
    await page
      .getByText(/\$2\.00: 20 % of \$10\.00/)
      .first()
      .waitFor();
    expect(await button(page, 'Attribute to a creator').count()).toBe(0);
    expect(await commissions()).toEqual([
      ['Grace Hopper', -100, 'manual'],
      ['Grace Hopper', 200, 'manual'],
      ['Grace Hopper', 200, 'manual'],
    ]);
    expect(await attributions()).toMatchObject([
      {
        customerUserId: user,
        reason: 'Told us in the chat',
        payments: 2,
        earnedCents: 300,
        reassigns: false,
      },
    ]);
    await page.goto(`${service.url}/console${app()}/commissions`);
    await row(page, /Grace Hopper Earning .* by a manual attribution/)
      .first()
      .waitFor();
    expect(problems(/409/)).toEqual([]);
  });

  test('a founder gives a subscription without a user to a creator from its payment on', async () => {
    const at = Date.now() - 2 * DAY_MS;
    const invoice = { userId: null, subscriptionId: 'sub_waits', customerId: 'cus_1', amount: 1_000 };
    for (const [invoiceId, occurredAt] of [
      ['in_1', at],
      ['in_2', at + DAY_MS],
    ] as const)
      await founder.stripe(bodyOf(stripeInvoicePaid({ ...invoice, invoiceId, occurredAt })));
    const { page, problems } = await openApp('unattributed');
    await row(page, /2 days ago .*none \(subscription\)/)
      .getByRole('button', { name: /Attribute sub_waits/ })
      .click();
    await dialog(page).getByRole('heading', { name: 'Attribute this subscription' }).waitFor();
    await dialog(page).getByText('No user is known. Instead, this subscription belongs').waitFor();
    await choose(page, 'Test creator');
    await dialog(page).getByText('So far, 2 payments earn $4.00 for Test creator.').waitFor();
    await dialog(page).getByLabel('Reason').fill('Told us in the chat');
    await dialog(page).getByRole('button', { name: 'Continue' }).click();
    await allowToPay(page);
    await button(page, 'Attribute and book $4.00').click();
    await page
      .getByText(/of this subscription belong to Test creator\. 2 payments earned \$4\.00\./)
      .waitFor();
    await dialog(page).getByRole('link', { name: 'All manual attributions' }).click();
    await row(page, /sub_waits Test creator .*\$4\.00/).waitFor();
    expect(await commissions()).toEqual([
      ['Test creator', 200, 'manual'],
      ['Test creator', 200, 'manual'],
    ]);
    expect(problems()).toEqual([]);
  });

  test('an anonymous customer is given to a creator on the page of its event, from now on', async () => {
    const anonymous = `$RCAnonymousID:${randomUUID().replaceAll('-', '')}`;
    await founder.purchase(anonymous, 10, { occurredAt: Date.now() - DAY_MS });
    const { page, problems } = await openApp('events');
    await row(page, /Purchase/)
      .getByRole('link', { name: 'Purchase' })
      .click();
    await page.getByText('Customer without a user').waitFor();
    await button(page, 'Attribute to a creator').click();
    await dialog(page).getByRole('heading', { name: 'Attribute this anonymous customer' }).waitFor();
    await choose(page, 'Test creator');
    await dialog(page).getByLabel('Only payments from now on').check();
    await dialog(page).getByLabel('Reason').fill('Podcast');
    await dialog(page).getByRole('button', { name: 'Attribute' }).click();
    await page.getByText('Payments from now on of this anonymous customer belong to Test creator.').waitFor();
    await button(page, 'Done').click();
    // Earlier payments of what belongs to somebody stay as they are, so nothing is offered.
    await button(page, 'Attribute to a creator').waitFor({ state: 'detached' });
    expect(await attributions()).toMatchObject([{ customerUserId: anonymous, payments: 0 }]);
    expect(problems()).toEqual([]);
  });

  test('a founder gives a user away from now on, without a key that may pay, and the payment stays unattributed', async () => {
    const user = `user-${randomUUID()}`;
    await payThrice(user);
    const { page, problems } = await openApp('unattributed');
    await button(page, new RegExp(`Attribute ${user}`))
      .first()
      .click();
    await choose(page, 'Test creator');
    await dialog(page).getByLabel('Only payments from now on').check();
    await dialog(page).getByLabel('Reason').fill('Podcast');
    await dialog(page).getByRole('button', { name: 'Attribute' }).click();
    await page.getByText('Earlier ones stay as they are.').waitFor();
    await dialog(page).getByRole('link', { name: 'All manual attributions' }).click();
    await title(page, 'Manual attributions');
    await row(page, new RegExp(`${user} Test creator payments since .* none Podcast by`)).waitFor();
    expect(await commissions()).toEqual([]);

    // What it settles is no longer to do.
    await page.goto(`${service.url}/console/apps/${founder.app.id}/unattributed`);
    await eventually('the earlier payments are settled', async () => {
      const { causes } = await founder.ok<{ causes: { count: number; settledCount: number }[] }>(
        'GET',
        `/apps/${founder.app.id}/diagnostics/unattributed/summary`,
      );
      return causes.length === 1 && causes.every(({ count, settledCount }) => count === settledCount);
    });
    await page.reload();
    await row(page, /3 of these payments are from before a manual attribution .* Earns nothing/).waitFor();
    await page.goto(`${service.url}/console/apps/${founder.app.id}/overview`);
    await page.locator('.owed').waitFor();
    expect(await page.getByText('earned nothing, and still can').count()).toBe(0);
    await page.goto(`${service.url}/console/apps/${founder.app.id}/unattributed`);

    // The same user cannot be given away for the past once more, which the dialog says before anything is sent.
    await title(page, 'Unattributed');
    await button(page, new RegExp(`Attribute ${user}`))
      .first()
      .click();
    await choose(page, 'Test creator');
    await dialog(page).getByText('belongs to a creator already').waitFor();
    expect(await dialog(page).getByRole('radio').count()).toBe(0);
    expect(problems(/409/)).toEqual([]);
  });

  test('the later payments of a user are given to another creator, and taken away, each with a reason', async () => {
    const { affiliateId } = await founder.newAffiliate('Grace Hopper');
    const user = `user-${randomUUID()}`;
    await founder.ok('POST', `${app()}/manual-attributions`, {
      customerUserId: user,
      affiliateId: founder.affiliateId,
      reason: 'First',
    });
    const { page, problems } = await openApp('unattributed/manual');
    await button(page, `Give to another creator: ${user}`).click();
    await choose(page, 'Test creator');
    await dialog(page).getByText('The user belongs to Test creator already.').waitFor();
    await dialog(page).getByLabel('Reason').fill('Second');
    expect(await button(page, 'Give later payments').isDisabled()).toBe(true);
    await choose(page, 'Grace Hopper');
    await button(page, 'Give later payments').click();
    await row(page, /Grace Hopper .*Second/).waitFor();
    await row(page, /Test creator .*First .*Replaced later/).waitFor();
    await button(page, `Take away ${user}`).click();
    await dialog(page).getByText('Payments from now on belong to nobody.').waitFor();
    await dialog(page).getByText('What Grace Hopper earned stays').waitFor();
    await dialog(page).getByLabel('Reason').fill('Third');
    await dialog(page).getByRole('button', { name: 'Take away' }).click();
    await row(page, /Nobody .*Third/).waitFor();
    await button(page, `Give to a creator: ${user}`).waitFor();
    expect((await attributions()).map((one) => [one['affiliateId'], one['reason']])).toEqual([
      [null, 'Third'],
      [affiliateId, 'Second'],
      [founder.affiliateId, 'First'],
    ]);
    expect(problems()).toEqual([]);
  });

  test('an attribution whose answer was lost is written once', async () => {
    const user = `user-${randomUUID()}`;
    await payThrice(user);
    const { page, problems } = await openApp('unattributed');
    await button(page, new RegExp(`Attribute ${user}`))
      .first()
      .click();
    await choose(page, 'Test creator');
    await dialog(page).getByLabel('Only payments from now on').check();
    await dialog(page).getByLabel('Reason').fill('Podcast');
    let losses = 1;
    await page.route('**/manual-attributions', async (route) => {
      losses -= 1;
      if (losses < 0) return await route.continue();
      await route.fetch();
      await route.abort();
    });
    const send = dialog(page).getByRole('button', { name: 'Attribute' });
    await send.click();
    await page.getByText('The service did not respond').waitFor();
    await send.click();
    await page.getByText('Earlier ones stay as they are.').waitFor();
    expect(await attributions()).toHaveLength(1);
    expect(problems(/ERR_FAILED/)).toEqual([]);
  });

  test('a payment that is older than a year is given away from now on only', async () => {
    const user = `user-${randomUUID()}`;
    await founder.purchase(user, 10, { occurredAt: Date.now() - 400 * DAY_MS });
    const { page, problems } = await openApp('events');
    await row(page, new RegExp(user)).getByRole('link', { name: 'Purchase' }).click();
    await button(page, 'Attribute to a creator').click();
    await page.getByText('more than 365 days old').waitFor();
    expect(await dialog(page).getByLabel('This payment and those after it').isDisabled()).toBe(true);
    await choose(page, 'Test creator');
    await dialog(page).getByLabel('Reason').fill('Podcast');
    await dialog(page).getByRole('button', { name: 'Attribute' }).click();
    await page.getByText('Earlier ones stay as they are.').waitFor();
    expect(problems()).toEqual([]);
  });

  test('only payments of a known user without a creator have the button, and a key without “write” cannot press it', async () => {
    const user = `user-${randomUUID()}`;
    await founder.purchase(user, 10, { occurredAt: Date.now() - DAY_MS });
    await founder.purchase(await founder.customer(), 10, { occurredAt: Date.now() - DAY_MS });
    const { key } = await createAccountKey(service.sql, founder.accountId as AccountId, ['read']);
    const { page, problems } = await signedIn(key);
    await page.goto(`${service.url}/console${app()}/unattributed`);
    expect(await button(page, new RegExp(`Attribute ${user}`)).isDisabled()).toBe(true);
    await row(page, new RegExp(user)).getByRole('link', { name: 'Purchase' }).click();
    expect(await button(page, 'Attribute to a creator').isDisabled()).toBe(true);
    await page.getByText('It needs the permission “write”, which you do not have.').waitFor();
    await page.goto(`${service.url}/console${app()}/events`);
    await row(page, /Earned/)
      .getByRole('link', { name: 'Purchase' })
      .click();
    await page.getByText('The user is').waitFor();
    expect(await button(page, 'Attribute to a creator').count()).toBe(0);
    expect(problems()).toEqual([]);
  });

  test('the dialogs and the list of manual attributions have no violation of WCAG 2.2 AA in any window or state', async () => {
    const { page, problems } = await openApp('unattributed/manual', PHONE);
    const check = async (state: string) => await checkPage(page, state);
    await page.getByText('No manual attributions yet').waitFor();
    await check('manual-empty');
    await founder.newAffiliate('Grace Hopper');
    const users = ['user-4711', 'user-4712', 'user-4713'];
    for (const user of users) await payThrice(user);
    for (const affiliateId of [founder.affiliateId, null])
      await founder.ok('POST', `${app()}/manual-attributions`, {
        customerUserId: 'user-4713',
        affiliateId,
        reason: 'Told us in the support chat that the podcast of last week brought them',
      });
    await page.goto(`${service.url}/console${app()}/unattributed`);
    await button(page, /Attribute user-4712/)
      .first()
      .waitFor();
    await check('unattributed');
    await page
      .getByRole('row', { name: /11 days ago .*user-4711/ })
      .getByRole('link')
      .click();
    await title(page, /^Purchase of \$/);
    await check('event-unattributed');
    await button(page, 'Attribute to a creator').click();
    await choose(page, 'Grace Hopper');
    await dialog(page).getByText('2 payments earn $4.00').waitFor();
    await dialog(page).getByLabel('Reason').fill('Told us in the support chat');
    await check('attribute');
    await dialog(page).getByRole('button', { name: 'Continue' }).click();
    await allowToPay(page);
    await button(page, 'Attribute and book $4.00').waitFor();
    await check('attribute-confirm');
    await founder.refund('user-4711', 5, 'user-4711-10');
    await button(page, 'Attribute and book $4.00').click();
    await button(page, 'Attribute and book $3.00').waitFor();
    await check('attribute-changed');
    await button(page, 'Attribute and book $3.00').click();
    await button(page, 'Done').waitFor();
    await check('attribute-done');
    await button(page, 'Done').click();
    await page.getByText('by a manual attribution').waitFor();
    await check('event-attributed');
    await page.goto(`${service.url}/console${app()}/unattributed`);
    await button(page, /Attribute user-4713/)
      .first()
      .click();
    await choose(page, 'Grace Hopper');
    await dialog(page).getByText('belongs to a creator already').waitFor();
    await check('attribute-owned');
    await page.goto(`${service.url}/console${app()}/unattributed/manual`);
    await row(page, /user-4711/).waitFor();
    await check('manual');
    await button(page, 'Take away user-4711').click();
    await dialog(page).getByLabel('Reason').waitFor();
    await check('manual-take');
    expect(problems(/409/)).toEqual([]);
  });
});
