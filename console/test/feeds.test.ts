import { beforeAll, expect, test } from '@jest/globals';
import { bodyOf, revenuecatEvent, stripeInvoicePaid } from '../../test/support/provider-fixtures.ts';
import { setUpApp, setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { button, checkPage, chooseFilter, openFilter, PHONE, row, title } from './browser.ts';
import { describeInBrowser } from './suite.ts';

const DAY_MS = 86_400_000;

describeInBrowser('events, unattributed payments and deliveries in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
  });

  test('the feed shows what each event earned, or why nothing, and new events wait until they are asked for', async () => {
    const own = await setUpApp(founder, { name: 'Feed' });
    const user = await own.customer();
    await own.purchase(user, 9.99, { transactionId: `paid-${user}` });
    await own.refund(user, 4.99, `paid-${user}`);
    await own.purchase('a stranger', 20);
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/events`);
    await row(page, /Purchase.*\$9\.99.*Earned \$2\.00.*Test creator/).waitFor();
    await row(page, /Refund.*\$4\.99.*Taken back -\$1\.00/).waitFor();
    await row(page, /a stranger.*Nothing.*The app never reported the user/).waitFor();
    await own.purchase(user, 30);
    await button(page, '1 new').click();
    await row(page, /\$30\.00.*Earned/).waitFor();
    expect(await page.getByRole('row').count()).toBe(5);

    await row(page, /\$9\.99.*Earned/)
      .getByRole('link', { name: 'Purchase' })
      .click();
    await title(page, 'Purchase of $9.99');
    // What it brought about comes first, then how.
    await page
      .getByRole('region', { name: 'What it brought about' })
      .filter({ hasText: /^\$2\.00 for Test creator.*After refunds and corrections, \$1\.00 of it remain\./ })
      .waitFor();
    await page.getByText(`The user is ${user}. The device came through Test creator`).waitFor();
    await page.getByText('$2.00: 20 % of $9.99, due').first().waitFor();
    await page.getByText('an event of the kind purchase, with $9.99.').waitFor();
    await page.getByText('matches the token that was set for RevenueCat.').waitFor();
    await page.goBack();
    await row(page, /\$30\.00.*Earned/).waitFor();

    // Filters live in the address.
    await chooseFilter(page, 'Outcome', 'Nothing');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    await page.reload();
    await row(page, /a stranger/).waitFor();
    expect(await page.getByRole('row').count()).toBe(2);
    await row(page, /a stranger/)
      .getByRole('link', { name: 'Purchase' })
      .click();
    // The reason is written once, above the steps.
    await page.getByText('No commission', { exact: true }).waitFor();
    await page.getByText('For the reason above.').waitFor();
    expect(await page.getByText('No device has reported this user.').count()).toBe(1);
    await page.goBack();
    await row(page, /a stranger/).waitFor();
    await page.getByLabel('User id').fill('nobody');
    await page.getByText('No events match these filters').waitFor();
    await button(page, 'Clear the filters').first().click();
    await row(page, /\$30\.00.*Earned/).waitFor();
    expect(new URL(page.url()).search).toBe('');
    await own.stripe(
      bodyOf(stripeInvoicePaid({ userId: null, amount: 1_200, occurredAt: Date.now() - DAY_MS })),
    );
    await button(page, '1 new').click();
    await row(page, /Stripe .* none .*12\.00.* Nothing No user id/).waitFor();
    expect(problems()).toEqual([]);
  });

  test('unattributed payments are grouped by cause, with their money and what heals them', async () => {
    const own = await setUpApp(founder, { name: 'Unattributed' });
    await own.purchase('stranger-1', 20);
    await own.purchase('stranger-2', 30.5);
    await own.purchase('stranger-3', 5);
    const device = `no-creator-${Date.now()}`;
    await own.call('POST', '/sdk/identify', {
      key: own.app.sdkKey,
      body: { deviceId: device, customerUserId: 'known', identifiedAt: Date.now() },
    });
    await own.purchase('known', 7);
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/unattributed?range=90d`);
    await row(page, /The app never reported the user.*Can still earn.*3.*\$55\.50/).waitFor();
    await row(page, /came through no creator.*1.*\$7\.00/).waitFor();
    await page
      .getByRole('row', { name: /stranger-\d/ })
      .nth(2)
      .waitFor();
    // Payments without a known price are no payments of $0.00.
    await page.route('**/unattributed/summary?**', async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { causes: { count: number; unknownCount: number }[] };
      expect(body.causes.map(({ unknownCount }) => unknownCount)).toEqual([0, 0]);
      const causes = body.causes.map((cause, index) => ({
        ...cause,
        unknownCount: index === 0 ? 2 : cause.count,
      }));
      await route.fulfill({ response, json: { ...body, causes } });
    });
    await page.reload();
    await row(page, /The app never reported the user.*3.*\$55\.50 and 2 without a known price/).waitFor();
    await row(page, /came through no creator.*1.*unknown/).waitFor();
    await page.unroute('**/unattributed/summary?**');
    await button(page, 'Show only: The user came through no creator').click();
    await row(page, /RevenueCat Purchase known.*\$7\.00/).waitFor();
    await row(page, /stranger-\d/)
      .first()
      .waitFor({ state: 'detached' });
    expect(await row(page, /stranger-\d/).count()).toBe(0);
    expect(new URL(page.url()).searchParams.get('cause')).toBe('user_not_attributed');

    // Two dates apply to the causes and to the payments once the first one is there. The payments are older than 30 days.
    const dayOf = (agoDays: number) => new Date(Date.now() - agoDays * DAY_MS).toISOString().slice(0, 10);
    await page.goto(`${service.url}/console/apps/${own.app.id}/unattributed?range=dates&to=${dayOf(0)}`);
    await page.getByText('No payment of this range is without a commission').waitFor();
    await page.getByText('No payments match these filters').waitFor();
    await openFilter(page, 'Paid');
    await page.getByLabel('First day').fill(dayOf(90));
    await row(page, /The app never reported the user.*3.*\$55\.50/).waitFor();
    await page
      .getByRole('row', { name: /stranger-\d/ })
      .nth(2)
      .waitFor();
    expect(problems()).toEqual([]);
  });

  test('deliveries show their outcome and error, and change while the page is open', async () => {
    const own = await setUpApp(founder, { name: 'Deliveries' });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/deliveries`);
    await page.getByText('No deliveries yet').waitFor();
    await own.revenuecat('{"event": 7}');
    await own.call('POST', `/webhooks/stripe/${own.app.id}`, { key: null, body: {} });
    await row(page, /RevenueCat Failed/).waitFor();
    await row(page, /Stripe Refused/).waitFor();
    const event = bodyOf(revenuecatEvent({ userId: 'someone', usd: 5, occurredAt: Date.now() - DAY_MS }));
    await own.revenuecat(event);
    await page.reload();
    await row(page, /^RevenueCat Some failed just now 2 .*1/).waitFor();
    await button(page, 'Show 1 failed of RevenueCat').click();
    // The count is of the last 24 hours, and so is the list.
    await page.waitForURL(/status=failed&source=revenuecat&range=24h/);
    await button(page, 'Outcome: Failed').waitFor();
    await chooseFilter(page, 'Outcome', 'Processed');
    await row(page, /Processed/).waitFor();
    await page.getByRole('link', { name: /^[0-9A-F-]{36}$/i }).click();
    await title(page, 'Purchase of $5.00');
    await page.getByText('The app never reported the user').first().waitFor();
    await page.goto(`${service.url}/console/apps/${own.app.id}/deliveries?status=rejected`);
    await row(page, /Stripe Refused/)
      .getByRole('link', { name: 'Check the secret' })
      .click();
    await page.getByRole('tab', { name: 'Stripe', selected: true }).waitFor();
    // The step that the link leads to has the focus.
    await page.locator('button:focus', { hasText: 'Connect your billing provider' }).waitFor();
    // Loaded again, the page begins at its top.
    await page.reload();
    await page.locator('.step-body:not([hidden])').waitFor();
    expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('BODY');
    expect(problems()).toEqual([]);
  });

  test('a payment that waits for an event that names its user is shown as waiting, with when it is decided', async () => {
    const own = await setUpApp(founder, { name: 'Waits' });
    await own.purchase('stranger', 20, { occurredAt: Date.now() - DAY_MS });
    const { page, problems } = await signedIn(founder.key);
    await page.goto(`${service.url}/console/apps/${own.app.id}/events`);
    await row(page, /stranger .*Nothing The app never reported the user/).waitFor();
    // As the service marks a payment that came with a code and without a user.
    await service.sql`update payments set recheck_since = now() + interval '1 hour' where app_id = ${own.app.id}`;
    await page.goto(`${service.url}/console/apps/${own.app.id}/events?outcome=waiting`);
    await row(page, /stranger .*Waiting Decided in /).waitFor();
    await page.goto(`${service.url}/console/apps/${own.app.id}/unattributed`);
    await row(page, /stranger .*Waiting Decided in /).waitFor();
    expect(problems()).toEqual([]);
  });

  test('what there is to do on the overview says where its count is a lower bound', async () => {
    const own = await setUpApp(founder, { name: 'To do' });
    const yesterday = { occurredAt: Date.now() - DAY_MS };
    await own.purchase('stranger-1', 20, yesterday);
    await own.purchase('stranger-2', 20, yesterday);
    await own.revenuecat('{"event": 7}');
    const device = `no-creator-${Date.now()}`;
    await own.call('POST', '/sdk/identify', {
      key: own.app.sdkKey,
      body: { deviceId: device, customerUserId: 'known', identifiedAt: Date.now() },
    });
    await own.purchase('guest', 5, yesterday);
    // A sale without a creator is nothing to fix.
    await own.purchase('known', 7, yesterday);
    const { page, problems } = await signedIn(founder.key);
    const card = (text: RegExp) => page.getByRole('listitem').filter({ hasText: text });
    await page.goto(`${service.url}/console/apps/${own.app.id}/overview`);
    await card(/^3 payments earned nothing, and still can/).waitFor();
    await card(/The app never reported the user \(2\), and 1 other cause\./).waitFor();
    await card(/RevenueCat: 1 failed in the last 24 hours/).waitFor();
    // The service counts 4,000 rows of a kind. These are what it says of more.
    let lowerBounds = ['failed'];
    await page.route(/\/(unattributed|webhooks)\/summary$/, async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as { causes?: object[]; providers?: object[] };
      const cut = (rows: object[] | undefined, mark: object) => rows?.map((one) => ({ ...one, ...mark }));
      await route.fulfill({
        response,
        json: {
          ...body,
          causes: cut(body.causes, { truncated: true }),
          providers: cut(body.providers, { lowerBounds }),
        },
      });
    });
    await page.reload();
    await card(/^3 or more payments earned nothing, and still can/).waitFor();
    await card(/The app never reported the user \(2 or more\), and 1 other cause\./).waitFor();
    await card(/RevenueCat: 1 or more failed in the last 24 hours/).waitFor();
    lowerBounds = ['accepted'];
    await page.reload();
    await card(/RevenueCat: 1 failed in the last 24 hours/).waitFor();
    expect(problems()).toEqual([]);
  });

  test('no feed has a violation of WCAG 2.2 AA, an error or a sideways scroll in any window, empty or full', async () => {
    const empty = (await setUpApp(founder, { name: 'Empty' })).app.id;
    const own = await setUpApp(founder, { name: 'Full' });
    const user = await own.customer();
    await own.purchase(user, 9.99, { transactionId: `axe-${user}` });
    await own.refund(user, 4.99, `axe-${user}`);
    await own.purchase('a stranger', 20);
    const { body } = await own.purchase(user, 5);
    await own.revenuecat('{"event": 7}');
    await own.call('POST', `/webhooks/stripe/${own.app.id}`, { key: null, body: {} });
    const { page, problems } = await signedIn(founder.key, PHONE);
    for (const appId of [empty, own.app.id]) {
      const event = appId === empty ? [] : [`events/${body.eventId ?? ''}`];
      for (const path of ['events', 'unattributed?range=90d', 'deliveries', ...event]) {
        await page.goto(`${service.url}/console/apps/${appId}/${path}`);
        await (
          appId === empty
            ? page.getByText(/ yet|without a commission/)
            : page.locator('tbody tr, .timeline li').last()
        )
          .first()
          .waitFor();
        const name = path.replace(/[?/].*/, path.includes('/') ? '-one' : '');
        const state = appId === empty ? 'empty' : 'full';
        await checkPage(page, `${name}-${state}`);
      }
    }
    expect(problems()).toEqual([]);
  });
});
