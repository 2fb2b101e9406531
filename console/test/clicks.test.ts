import { expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { setUpFounder } from '../../test/support/founder.ts';
import { button, title } from './browser.ts';
import { payees } from './payees.ts';
import { describeInBrowser } from './suite.ts';

/** How many clicks each common job may take, and how many the design asks for. */
const JOBS = {
  'a new creator with a link and an invite': { most: 3, goal: 3 },
  'copy a creator’s link': { most: 1, goal: 1 },
  'explain a payment that earned nothing, from the search': { most: 1, goal: 1 },
  // One of them opens the question for a key, which a passkey would spare.
  'the first payment of all creators who are due': { most: 4, goal: 4 },
  // One of them creates the key.
  'the first payment by a founder without a key that may pay': { most: 4, goal: 4 },
  'mark ten payouts as sent': { most: 2, goal: 3 },
  'the file of ten payouts': { most: 1, goal: 1 },
  'rotate a key': { most: 3, goal: 3 },
} as const;

describeInBrowser('the clicks of common jobs in a browser', ({ service, signedIn, post, newFounder }) => {
  const { founderWithKey, earn, signIn } = payees({ service, signedIn, post, newFounder });
  const inDialog = (page: Page, name: string | RegExp) =>
    page.getByRole('dialog').getByRole('button', { name });

  /** Walks a job by clicks, counts them and prints the count beside the goal. */
  const walk = async (job: keyof typeof JOBS, steps: readonly (Locator | (() => Promise<void>))[]) => {
    let clicks = 0;
    for (const step of steps) {
      if (typeof step === 'function') {
        await step();
      } else {
        await step.click();
        clicks += 1;
      }
    }
    const { most, goal } = JOBS[job];
    process.stdout.write(`  clicks for ${job}: ${clicks}; goal: ${goal}\n`);
    expect({ job, clicks }).toEqual({ job, clicks: most });
  };

  test('the jobs around creators take few clicks', async () => {
    const founder = await setUpFounder(service, { name: 'Lantern Notes' });
    const { page, problems } = await signedIn(founder.key);
    const app = `${service.url}/console/apps/${founder.app.id}`;
    await page.goto(`${app}/creators`);
    await walk('a new creator with a link and an invite', [
      button(page, 'New creator'),
      async () => {
        await page.getByLabel('Name').fill('Ada Lovelace');
        await page.getByLabel('Where the link leads').fill('https://example.com/get');
      },
      inDialog(page, 'Add the creator'),
      inDialog(page, 'Copy the invite'),
    ]);
    await page.goto(`${app}/links`);
    await walk('copy a creator’s link', [button(page, 'Copy the link ada-lovelace')]);
    await founder.purchase('user-4711', 20);
    await page.goto(`${app}/overview`);
    await title(page, 'Overview');
    await walk('explain a payment that earned nothing, from the search', [
      async () => {
        await page.keyboard.press('Control+k');
        await page.getByRole('textbox', { name: 'Search or jump to' }).fill('user-4711');
      },
      button(page, /^Purchase of \$20\.00/),
      async () => {
        await page
          .getByRole('region', { name: 'What it brought about' })
          .getByText('No commission')
          .waitFor();
      },
    ]);
    expect(problems()).toEqual([]);
  });

  test('a founder without a key that may pay creates one where it is asked for', async () => {
    const founder = await founderWithKey();
    for (const name of ['Ada', 'Grace']) await earn(founder, name, 1_000);
    const { page, problems } = await signIn(founder, {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    await walk('the first payment by a founder without a key that may pay', [
      button(page, 'Draft a payout run'),
      inDialog(page, 'Create a key and go on'),
      button(page, 'Approve …'),
      inDialog(page, /^Pay 2 creators/),
      async () => await page.getByText(/are booked for 2 creators/).waitFor(),
    ]);
    expect(await page.evaluate(async () => await navigator.clipboard.readText())).toMatch(/^tri_sk_live_/);
    await page.goto(`${service.url}/console/access`);
    await page.getByText('Payments in the console').waitFor();
    expect(problems()).toEqual([]);
  });

  test('a new key that the browser cannot copy stays until somebody has copied it', async () => {
    const founder = await founderWithKey();
    await earn(founder, 'Ada', 1_000);
    const { page, problems } = await signIn(founder);
    await page.evaluate(() => {
      navigator.clipboard.writeText = async () => await Promise.reject(new Error('not allowed'));
    });
    await button(page, 'Draft a payout run').click();
    await inDialog(page, 'Create a key and go on').click();
    await page.getByText('This browser does not copy by itself.').waitFor();
    await page
      .getByRole('dialog')
      .getByText(/^tri_sk_live_/)
      .waitFor();
    await inDialog(page, 'Continue').click();
    await button(page, 'Approve …').waitFor();
    expect(problems()).toEqual([]);
  });

  test('the jobs around payouts and keys take few clicks', async () => {
    const founder = await founderWithKey();
    for (let n = 0; n < 10; n += 1) await earn(founder, `Creator ${n}`, 1_000 + n);
    const { page, problems } = await signIn(founder);
    await walk('the first payment of all creators who are due', [
      button(page, 'Draft a payout run'),
      async () => await page.getByLabel('Key that may pay').fill(founder.key),
      inDialog(page, 'Continue'),
      button(page, 'Approve …'),
      inDialog(page, /^Pay 10 creators/),
      async () => await page.getByText(/are booked for 10 creators/).waitFor(),
    ]);
    await walk('the file of ten payouts', [
      button(page, 'CSV for Another way'),
      async () => await page.getByText('Downloaded 1 time.').waitFor(),
    ]);
    await walk('mark ten payouts as sent', [
      button(page, 'Mark all as sent …'),
      inDialog(page, 'Mark as sent'),
      async () => await page.getByText('10 payouts are marked as sent.').waitFor(),
    ]);
    await page.goto(`${service.url}/console/access`);
    await title(page, 'Access');
    await walk('rotate a key', [
      button(page, 'Rotate Ann'),
      inDialog(page, 'Create the new key'),
      inDialog(page, 'Copy the new key'),
    ]);
    expect(problems()).toEqual([]);
  });
});
