import { beforeEach, expect, test } from '@jest/globals';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { assignPolicy, moveToGroup, publishPolicy } from '../../test/support/policies.ts';
import { row, title } from './browser.ts';
import type { GuardedPage } from './browser.ts';
import { describeInBrowser } from './suite.ts';

const YEAR_THEN_LESS = {
  base: 'proceeds',
  rules: [{ when: { monthsSinceFirst: { below: 12 } }, percentBps: 5_000 }, { percentBps: 2_000 }],
} as const;
/** Its sentences. */
const YEAR = '50 % of the proceeds in the first 12 months of a customer.';
const AFTER = 'Otherwise 20 % of the proceeds.';

const NEXT_YEAR = new Date().getFullYear() + 1;

describeInBrowser('what policies show on other pages, in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeEach(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
  });

  const app = () => `/apps/${founder.app.id}`;

  /** Opens a page of the app, signed in. */
  const openApp = async (path: string, options = {}): Promise<GuardedPage> => {
    const guarded = await signedIn(founder.key, options);
    await guarded.page.goto(`${service.url}/console${app()}/${path}`);
    return guarded;
  };

  test('commissions and events name the policy, its version and what the amount was computed from', async () => {
    const policyId = await publishPolicy(founder, service.sql, YEAR_THEN_LESS);
    await assignPolicy(founder, service.sql, policyId);
    await founder.purchase(await founder.customer(), 9.99);
    const { affiliateId, slug } = await founder.newAffiliate('Grace');
    const fixed = await publishPolicy(founder, service.sql, { base: 'gross', rules: [{ flatCents: 150 }] });
    await founder.ok('PATCH', `${app()}/policies/${fixed}`, { name: 'Fixed' });
    await assignPolicy(founder, service.sql, fixed, { affiliateId });
    await founder.purchase(await founder.customer(slug), 20);

    const { page, problems } = await openApp('commissions');
    await row(
      page,
      /Test creator Earning 50 % of \$8\.49 proceeds \(estimated\) Test policy, version 1/,
    ).waitFor();
    await row(page, /Grace Earning Fixed amount of \$1\.50 Fixed, version 1 .*\$1\.50/).waitFor();
    expect(await page.getByRole('main').innerText()).not.toMatch(/\b0 %/);
    await row(page, /Test creator/)
      .getByRole('link')
      .first()
      .click();
    await title(page, /^Purchase of \$/);
    await page.getByText('$4.25: 50 % of $8.49 proceeds (estimated), due').waitFor();
    await page.getByText('rule 1 of Test policy, version 1, the policy of the app').waitFor();
    // The facts of a usual step are behind a button.
    const estimated = page.getByText('$1.50, estimated by the provider').first();
    expect(await estimated.isVisible()).toBe(false);
    await page.getByLabel('Details: The body was read').click();
    await estimated.waitFor();
    await page.getByText('payment 1, in month 1').waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Test policy' }).click();
    await title(page, 'Test policy');
    await page.getByRole('region', { name: 'In effect' }).getByText(AFTER).waitFor();

    // The creator reads the same rules, and no percentage of a fixed amount.
    await page.goto(`${service.url}/console/creator/as/${founder.app.id}/${affiliateId}/`);
    await page.getByText('$1.50 (at most the price) for each payment.').waitFor();
    await page.getByText('By “Fixed”').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Commissions' }).click();
    await row(page, /Fixed amount of \$1\.50 .*\$1\.50/).waitFor();
    expect(await page.getByRole('main').innerText()).not.toContain('%');
    await page.goto(`${service.url}/console/creator/as/${founder.app.id}/${founder.affiliateId}/commissions`);
    await row(page, /50 % of \$8\.49 proceeds \(estimated\) .*\$4\.25/).waitFor();
    await page.getByText('Estimated: the exact tax or store fee').waitFor();
    expect(problems()).toEqual([]);
  });

  test("the creator's page says what changes later", async () => {
    const policyId = await publishPolicy(founder, service.sql, YEAR_THEN_LESS);
    await founder.ok('PUT', `${app()}/policy-assignment`, {
      policyId,
      effectiveFrom: Date.UTC(NEXT_YEAR, 0, 1),
    });
    const { page, problems } = await openApp('overview', { timezoneId: 'UTC' });
    await page.goto(`${service.url}/console/creator/as/${founder.app.id}/${founder.affiliateId}/`);
    const rules = page.getByRole('region', { name: 'How you earn' });
    await rules.getByText('20 % of the price for each payment.').waitFor();
    await rules.getByText(`From Jan 1, ${NEXT_YEAR}, 12:00 AM`).waitFor();
    await rules.getByText(YEAR).waitFor();
    await rules.getByText(AFTER).waitFor();
    expect(problems()).toEqual([]);
  });

  test('the audit page names policies, versions, assignments, groups and memberships, and leads to them', async () => {
    const policyId = await publishPolicy(founder, service.sql, YEAR_THEN_LESS);
    const { id: groupId } = await founder.ok<{ id: string }>('POST', `${app()}/groups`, { name: 'VIPs' });
    await assignPolicy(founder, service.sql, policyId, { groupId });
    await moveToGroup(founder, service.sql, founder.affiliateId, groupId);
    const { page, problems } = await openApp('overview');
    await page.goto(`${service.url}/console/audit`);
    await page.getByRole('table').waitFor();
    const text = await page.getByRole('main').innerText();
    for (const words of [
      'Policy created: Test policy',
      'Version of a policy created',
      'Assignment of a policy created',
      'Group of creators created: VIPs',
      'Membership of a group created: Test creator',
    ])
      expect(text).toContain(words);
    await page.getByRole('link', { name: 'Test policy' }).first().click();
    await title(page, 'Test policy');
    expect(problems()).toEqual([]);
  });
});
