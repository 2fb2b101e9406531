import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { setUpFounder } from '../../test/support/founder.ts';
import type { Founder } from '../../test/support/founder.ts';
import { button, row, title } from './browser.ts';
import { describeInBrowser } from './suite.ts';

/** How long after the first press the back button is pressed a second time, ms. */
const GAPS = [0, 20, 60, 110, 300];
/** How long the history is watched before it counts as quiet, ms. A held move is brought back at once, or tried again after 500 ms. */
const QUIET_MS = 800;

describeInBrowser('what is entered in the console in a browser', ({ service, signedIn }) => {
  let founder: Founder;

  beforeAll(async () => {
    founder = await setUpFounder(service, { name: 'Lantern Notes' });
    await founder.purchase('stranger', 20);
  });

  const open = async (at: string) => {
    const guarded = await signedIn(founder.key);
    await guarded.page.goto(`${service.url}/console/apps/${founder.app.id}/${at}`);
    return guarded;
  };
  const question = (page: Page) => page.getByRole('dialog', { name: 'Discard what you entered?' });
  const inQuestion = (page: Page, name: string) => question(page).getByRole('button', { name });
  const dialog = (page: Page, name: string | RegExp) => page.getByRole('dialog', { name });
  const closeByEscape = async (page: Page) => await page.keyboard.press('Escape');
  const closeOutside = async (page: Page) => await page.mouse.click(5, 5);
  const pathOf = (page: Page) => new URL(page.url()).pathname.replace(/.*\/apps\/\w+/, '');
  /** Where the page is in the history of the tab. */
  const placeOf = async (page: Page) =>
    await page.evaluate(() => [history.length, (history.state as { idx: number }).idx] as const);
  /** Waits until the browser moves no more in its history. */
  const quiet = async (page: Page) =>
    await page.evaluate(
      async (ms) =>
        await new Promise<void>((resolve) => {
          let timer = setTimeout(resolve, ms);
          addEventListener('popstate', () => {
            clearTimeout(timer);
            timer = setTimeout(resolve, ms);
          });
        }),
      QUIET_MS,
    );

  test('a box that was unticked, an option and a creator that were chosen are asked about before their dialog closes, as texts are', async () => {
    const { page, problems } = await open('webhooks');
    await button(page, 'New endpoint').click();
    const box = page.getByRole('checkbox').first();
    await box.uncheck();
    for (const close of [closeByEscape, closeOutside]) {
      await close(page);
      await inQuestion(page, 'Keep editing').click();
      await question(page).waitFor({ state: 'hidden' });
      expect(await box.isChecked()).toBe(false);
    }
    // What is as it was before is not entered.
    await box.check();
    await closeByEscape(page);
    await dialog(page, 'New endpoint').waitFor({ state: 'hidden' });

    await page.getByRole('link', { name: 'Links', exact: true }).click();
    await button(page, 'New link').click();
    const creator = dialog(page, 'New link').getByRole('combobox', { name: 'Creator' });
    await creator.fill('Test');
    await page.getByRole('option', { name: 'Test creator' }).click();
    await closeByEscape(page);
    await inQuestion(page, 'Discard').click();
    await dialog(page, 'New link').waitFor({ state: 'hidden' });

    await page.goto(`${service.url}/console/apps/${founder.app.id}/creators/${founder.affiliateId}`);
    await button(page, 'Add or deduct').click();
    await page.getByLabel('Key that may pay').fill(founder.key);
    await button(page, 'Continue').click();
    await page.getByLabel('For', { exact: true }).selectOption('fixed_fee');
    await closeByEscape(page);
    await inQuestion(page, 'Discard').click();
    await dialog(page, 'Bonus or deduction').waitFor({ state: 'hidden' });
    expect(problems()).toEqual([]);
  });

  test('what was entered in the first step of a dialog is asked about in the next ones, also after a key was sent', async () => {
    const { page, problems } = await open('unattributed?range=90d');
    await row(page, /stranger/)
      .getByRole('button', { name: /Attribute stranger/ })
      .click();
    const steps = dialog(page, 'Attribute stranger');
    await steps.getByRole('combobox', { name: 'Creator' }).fill('Test');
    await page.getByRole('option', { name: 'Test creator' }).click();
    await steps.getByLabel('Reason').fill('Told us in the chat');
    await steps.getByRole('button', { name: 'Continue' }).click();
    const key = page.getByLabel('Key that may pay');
    await key.waitFor();
    await closeByEscape(page);
    await inQuestion(page, 'Keep editing').click();
    await key.fill(founder.key);
    await steps.getByRole('button', { name: 'Continue' }).click();
    await steps.getByRole('button', { name: /^Attribute and book/ }).waitFor();
    await closeOutside(page);
    await inQuestion(page, 'Keep editing').click();
    await steps.getByRole('button', { name: 'Back' }).click();
    expect(await steps.getByLabel('Reason').inputValue()).toBe('Told us in the chat');
    await closeByEscape(page);
    await inQuestion(page, 'Discard').click();
    await steps.waitFor({ state: 'hidden' });
    expect(problems()).toEqual([]);
  });

  test('leaving the page asks about what a dialog holds, once, and not when nothing was entered or all was saved', async () => {
    const { page, problems } = await open('creators');
    await page.getByRole('link', { name: 'Links', exact: true }).click();
    await title(page, 'Links');
    await page.getByRole('link', { name: 'Creators', exact: true }).click();
    await title(page, 'Creators');
    await button(page, 'New creator').click();
    const sheet = dialog(page, 'New creator');
    await sheet.waitFor();
    await page.goBack();
    await sheet.waitFor({ state: 'hidden' });
    await page.goForward();
    await title(page, 'Creators');
    await button(page, 'New creator').click();
    const name = page.getByLabel('Name', { exact: true });
    await name.fill('Ada');
    await page.goBack();
    await inQuestion(page, 'Keep editing').click();
    expect([pathOf(page), await name.inputValue()]).toEqual(['/creators', 'Ada']);
    const asked: string[] = [];
    page.once('dialog', (one) => {
      asked.push(one.type());
      void one.dismiss();
    });
    await page.reload({ timeout: 2_000 }).catch(() => {});
    expect(asked).toEqual(['beforeunload']);
    await page.goBack();
    await inQuestion(page, 'Discard').click();
    await sheet.waitFor({ state: 'hidden' });
    await page.goForward();
    await title(page, 'Creators');
    await button(page, 'New creator').click();
    await name.fill('Ada');
    await button(page, 'Add the creator').click();
    await sheet.getByText('is a creator now').waitFor();
    // All was saved, so the way on asks nothing.
    await sheet.getByRole('link', { name: 'Open the creator' }).click();
    await title(page, 'Ada');
    expect(problems()).toEqual([]);
  });

  test('what a dialog holds still counts as not saved after the session has ended and a key has signed in again', async () => {
    const { page, problems } = await open('webhooks');
    await button(page, 'New endpoint').click();
    await page.getByLabel('What it is for').fill('After a pause');
    await page.context().clearCookies();
    // As when the tab is shown again.
    await page.evaluate(() => dispatchEvent(new Event('visibilitychange')));
    const signIn = dialog(page, 'Sign in again');
    await signIn.getByLabel('Account key').fill(founder.key);
    await signIn.getByRole('button', { name: 'Sign in' }).click();
    await signIn.waitFor({ state: 'hidden' });
    await closeByEscape(page);
    await inQuestion(page, 'Keep editing').click();
    expect(await page.getByLabel('What it is for').inputValue()).toBe('After a pause');
    expect(problems(/status of 401/)).toEqual([]);
  });

  test.each(GAPS)(
    'the back button pressed twice within %i ms loses nothing that was entered, and leaves the history as it was',
    async (gap) => {
      const { page, problems } = await open('creators');
      await page.getByRole('link', { name: 'Links', exact: true }).click();
      await title(page, 'Links');
      await page.getByRole('link', { name: 'Settings' }).click();
      const name = page.getByLabel('Name', { exact: true });
      await name.fill('Edited and not saved');
      const place = await placeOf(page);
      await page.evaluate((ms) => {
        history.back();
        setTimeout(() => history.back(), ms);
      }, gap);
      await question(page).waitFor();
      await quiet(page);
      expect([pathOf(page), await placeOf(page)]).toEqual(['/settings', place]);
      await inQuestion(page, 'Keep editing').click();
      await question(page).waitFor({ state: 'hidden' });
      expect(await name.inputValue()).toBe('Edited and not saved');
      // Each button then leads where it should.
      await page.goBack();
      await inQuestion(page, 'Discard').click();
      await title(page, 'Links');
      expect(pathOf(page)).toBe('/links');
      await page.goForward();
      await name.waitFor();
      expect([pathOf(page), await placeOf(page)]).toEqual(['/settings', place]);
      expect(problems()).toEqual([]);
    },
  );

  test('the back button pressed while the question is open keeps the question, and an answer given at once is obeyed', async () => {
    const { page, problems } = await open('creators');
    await page.getByRole('link', { name: 'Links', exact: true }).click();
    await title(page, 'Links');
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Edited and not saved');
    await page.goBack();
    await question(page).waitFor();
    await page.evaluate(() => history.back());
    await quiet(page);
    expect(await question(page).count()).toBe(1);
    await inQuestion(page, 'Keep editing').click();
    await question(page).waitFor({ state: 'hidden' });
    // The answer comes before the browser is back at the page.
    await page.evaluate(
      async () =>
        await new Promise<void>((resolve) => {
          new MutationObserver((_, observer) => {
            const discard = [...document.querySelectorAll('button')].find(
              ({ innerText }) => innerText === 'Discard',
            );
            if (discard === undefined) return;
            observer.disconnect();
            discard.click();
            resolve();
          }).observe(document.body, { childList: true, subtree: true });
          history.back();
        }),
    );
    await title(page, 'Links');
    await quiet(page);
    expect(pathOf(page)).toBe('/links');
    expect(await page.getByRole('heading', { level: 1, name: 'Links' }).count()).toBe(1);
    expect(problems()).toEqual([]);
  });

  test('a sign-in link that is pasted into the tab of an edited page asks first, and the back button still does afterwards', async () => {
    const { page, problems } = await open('creators');
    await page.getByRole('link', { name: 'Settings' }).click();
    const name = page.getByLabel('Name', { exact: true });
    await name.fill('Edited and not saved');
    const paste = async () => await page.evaluate(() => (location.hash = '#token=made-up'));
    await paste();
    await inQuestion(page, 'Keep editing').click();
    await question(page).waitFor({ state: 'hidden' });
    expect(await name.inputValue()).toBe('Edited and not saved');
    expect(page.url()).not.toContain('made-up');
    // The address with the link is a place of its own, from where the second press leaves the page.
    await page.goBack();
    await page.goBack();
    await inQuestion(page, 'Keep editing').click();
    await quiet(page);
    expect([pathOf(page), await name.inputValue()]).toEqual(['/settings', 'Edited and not saved']);
    expect(problems()).toEqual([]);
  });
});
