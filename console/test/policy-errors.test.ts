import { beforeEach, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { button, checkPage, PHONE, title } from './browser.ts';
import { describeInBrowser } from './suite.ts';

describeInBrowser('the errors of the form of a policy in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeEach(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
  });

  const open = async (options = {}) => {
    const guarded = await signedIn(founder.key, options);
    await guarded.page.goto(`${service.url}/console/apps/${founder.app.id}/policies/new`);
    return guarded;
  };
  const rule = (page: Page, number: number) => page.getByRole('listitem', { name: `Rule ${number}` });
  const create = async (page: Page) => await button(page, 'Create the policy').click();
  const addConditions = async (page: Page, number: number) => {
    for (const condition of ['Months', 'Payment number', 'Products', 'Stores'])
      await rule(page, number).getByRole('button', { name: condition, exact: false }).first().click();
  };
  /** Returns what a screen reader says is wrong with a field, and whether it is in front. */
  const saidOf = async (field: Locator) =>
    await field.evaluate((one) => ({
      isInvalid: one.getAttribute('aria-invalid') === 'true',
      said: (one.getAttribute('aria-describedby') ?? '')
        .split(' ')
        .map((id) => document.querySelector(`[id="${id}"]`))
        .filter((text) => text?.matches('[class*=error]') === true)
        .map((text) => text?.textContent)
        .join(),
      hasFocus: one === document.activeElement,
    }));
  const wrong = (said: string, hasFocus = false) => ({ isInvalid: true, said, hasFocus });
  const right = { isInvalid: false, said: '', hasFocus: false };

  test('each field of an incomplete policy says what is wrong with it, the first one gets the focus, and nothing is sent', async () => {
    const { page, problems } = await open();
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST' && !request.url().endsWith('/preview')) sent.push(request.url());
    });
    const name = page.getByLabel('Name', { exact: true });
    const field = (label: string) => rule(page, 1).getByLabel(label, { exact: true });
    await field('Percentage').fill('');
    await addConditions(page, 1);
    await field('Last month').fill('');
    await field('First payment').fill('3');
    await page.getByLabel('Takes effect').selectOption('at');
    // Nothing is called wrong before somebody has tried.
    expect(await saidOf(name)).toEqual(right);
    await create(page);
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-invalid') === 'true');
    expect(await saidOf(name)).toEqual(wrong('Enter a name.', true));
    expect(await saidOf(field('Percentage'))).toEqual(wrong('Enter a percentage up to 100.'));
    expect(await saidOf(field('First month'))).toEqual(right);
    expect(await saidOf(field('Last month'))).toEqual(
      wrong('Enter the last month, or remove the condition.'),
    );
    expect(await saidOf(field('Last payment'))).toEqual(
      wrong('The last payment must not be before the first one.'),
    );
    expect(await saidOf(field('Products'))).toEqual(wrong('Enter a product.'));
    expect(await saidOf(field('App Store'))).toEqual(wrong('Choose a store.'));
    expect(await saidOf(page.getByLabel('Date'))).toEqual(wrong('Choose the day on which it takes effect.'));
    expect(await page.getByRole('alert').count()).toBe(0);
    // What is changed is not called wrong any more, and the next attempt leads to what still is.
    await name.fill('Standard');
    expect((await saidOf(name)).said).toBe('');
    await create(page);
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Percentage');
    await field('Percentage').fill('20');
    await field('Last month').fill('12');
    await field('First payment').fill('1');
    await field('Products').fill('pro');
    await field('Google Play').check();
    await page.getByLabel('Date').fill('2020-01-01');
    await create(page);
    await page.waitForFunction(() => document.activeElement?.getAttribute('type') === 'date');
    expect(await saidOf(page.getByLabel('Date'))).toEqual(
      wrong('Choose a time at least two minutes ahead.', true),
    );
    expect(sent).toEqual([]);
    await page.getByLabel('Takes effect').selectOption('soon');
    await create(page);
    await title(page, 'Standard');
    expect(sent).toHaveLength(2);
    expect(problems()).toEqual([]);
  });

  test('what the service refuses is said at its field, also in a part that is folded, and goes with its rule', async () => {
    const { page, problems } = await open();
    await page.getByLabel('Name', { exact: true }).fill('Standard');
    await button(page, 'More in the first year').click();
    await rule(page, 1).getByRole('button', { name: 'Products', exact: false }).first().click();
    const products = rule(page, 1).getByLabel('Products', { exact: true });
    await products.fill(`pro, ${'x'.repeat(201)}`);
    await create(page);
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'Products');
    expect(await saidOf(products)).toEqual(
      wrong(expect.stringMatching(/^Must .*200/) as unknown as string, true),
    );
    expect(await page.getByRole('alert').count()).toBe(0);
    // It is not said of the rule that takes its place.
    await rule(page, 2).getByRole('button', { name: 'Products', exact: false }).first().click();
    await button(page, 'Move down rule 1').click();
    expect(await saidOf(rule(page, 1).getByLabel('Products', { exact: true }))).toEqual(right);
    await button(page, 'Remove rule 2').click();
    await rule(page, 1).getByLabel('Products', { exact: true }).fill('pro');

    const summary = page.getByText('If the provider does not state tax');
    await summary.click();
    const fee = page.getByLabel('Fee of App Store');
    await fee.fill('');
    await summary.click();
    await fee.waitFor({ state: 'hidden' });
    await create(page);
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-invalid') === 'true');
    expect(await saidOf(fee)).toEqual(wrong('Enter a share up to 100 %, or 0.', true));
    await fee.fill('15');
    expect(await fee.isVisible()).toBe(true);
    await create(page);
    await title(page, 'Standard');
    expect(problems(/status of 400/)).toEqual([]);
  });

  test('the form with its errors is accessible and fits in any window', async () => {
    const { page, problems } = await open(PHONE);
    await rule(page, 1).getByLabel('Percentage').fill('');
    await addConditions(page, 1);
    await rule(page, 1).getByLabel('Last month').fill('');
    await button(page, 'Add a rule').click();
    await rule(page, 2).getByLabel('Earns').selectOption('fixed');
    await page.getByLabel('Takes effect').selectOption('at');
    await create(page);
    await rule(page, 2).getByText('Enter an amount from $0.01 to $1,000.').waitFor();
    await checkPage(page, 'policy-errors');
    expect(problems()).toEqual([]);
  });
});
