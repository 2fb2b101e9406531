import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { button, checkPage, PHONE, row } from './browser.ts';
import { payees } from './payees.ts';
import type { KeyedFounder } from './payees.ts';
import { describeInBrowser } from './suite.ts';
import type { NewFounder } from './suite.ts';

describeInBrowser(
  'changes of several rows of the console in a browser',
  ({ service, signedIn, post, newFounder }) => {
    const { founderWithKey, earn, signIn, raise } = payees({ service, signedIn, post, newFounder });
    const bar = (page: Page) => page.getByRole('region', { name: 'Selected rows' });
    const inBar = (page: Page, name: string | RegExp) => bar(page).getByRole('button', { name });
    const inDialog = (page: Page, name: string | RegExp) =>
      page.getByRole('dialog').getByRole('button', { name });
    const select = async (page: Page, ...names: readonly string[]) => {
      for (const name of names) await page.getByRole('checkbox', { name: `Select ${name}` }).check();
    };

    const withCreators = async (...names: readonly string[]) => {
      const founder = await newFounder();
      const ids: string[] = [];
      for (const name of names) {
        const { id } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, { name });
        ids.push(id);
      }
      return { founder, ids };
    };
    const linkOf = async ({ appId, key }: NewFounder, affiliateId: string, slug: string) =>
      await post<{ url: string }>(`/apps/${appId}/links`, key, {
        affiliateId,
        slug,
        destinationUrl: 'https://example.com/get',
      });
    const openCreators = async (founder: NewFounder, query = '', options = {}) => {
      const guarded = await signedIn(founder.key, options);
      await guarded.page.goto(`${service.url}/console/apps/${founder.appId}/creators${query}`);
      await guarded.page.getByRole('checkbox').last().waitFor();
      return guarded;
    };
    const statuses = async ({ appId }: NewFounder) =>
      (
        await service.sql<{
          status: string;
        }>`select status from affiliates where app_id = ${appId} order by created_at`
      ).map(({ status }) => status);

    test('rows are selected one by one or all together, and a press on a checkbox opens no row', async () => {
      const { founder } = await withCreators('Ada', 'Bea', 'Cleo');
      const { page, problems } = await openCreators(founder);
      expect(await bar(page).count()).toBe(0);
      await select(page, 'Ada');
      await bar(page).getByText('1 selected').waitFor();
      const all = page.getByRole('checkbox', { name: 'Select all rows' });
      expect(await all.evaluate((one: HTMLInputElement) => one.indeterminate)).toBe(true);
      // Beside the box, in its cell.
      const cell = await row(page, /Bea/).locator('td').first().boundingBox();
      await page.mouse.click((cell?.x ?? 0) + 4, (cell?.y ?? 0) + 4);
      await bar(page).getByText('2 selected').waitFor();
      expect(page.url()).toMatch(/\/creators$/);
      await all.click();
      await bar(page).getByText('3 selected').waitFor();
      expect(await all.isChecked()).toBe(true);
      // Only what is shown is selected.
      await page.getByLabel('Search').fill('cleo');
      await bar(page).getByText('1 selected').waitFor();
      await inBar(page, 'Clear the selection').click();
      await bar(page).waitFor({ state: 'detached' });
      // By keyboard.
      await page.getByRole('checkbox', { name: 'Select Cleo' }).focus();
      await page.keyboard.press('Space');
      await bar(page).getByText('1 selected').waitFor();
      expect(problems()).toEqual([]);
    });

    test('several creators are paused after one question; who was paused or removed meanwhile stays so, and is named', async () => {
      const { founder, ids } = await withCreators('Ada', 'Bea', 'Cleo', 'Dora');
      const { page, problems } = await openCreators(founder);
      await select(page, 'Ada', 'Bea', 'Cleo');
      const [, bea = '', cleo = ''] = ids;
      await service.sql`update affiliates set status = 'removed' where id = ${bea}`;
      await service.sql`update affiliates set status = 'paused' where id = ${cleo}`;
      await inBar(page, 'Pause …').click();
      await page.getByRole('dialog').getByText('Ada, Bea, Cleo').waitFor();
      await inDialog(page, 'Pause 3 creators').click();
      const problem = page.getByRole('alert').filter({ hasText: '2 creators not paused' });
      await problem.getByText('Bea: was removed. A pause would bring the creator back.').waitFor();
      await problem.getByText('Cleo: is paused already.').waitFor();
      expect(await statuses(founder)).toEqual(['paused', 'removed', 'paused', 'active']);
      await inDialog(page, 'Close').click();
      // What is done is no longer selected.
      await bar(page).getByText('2 selected').waitFor();
      expect(problems()).toEqual([]);
    });

    test('a creator whose pause fails is named with the reason, the others are paused, and a second press sends only that one again', async () => {
      const { founder, ids } = await withCreators('Ada', 'Bea', 'Cleo');
      const { page, problems } = await openCreators(founder);
      const patched: string[] = [];
      let isBroken = true;
      await page.route('**/affiliates/*', async (route) => {
        if (route.request().method() !== 'PATCH') return await route.continue();
        const id = route.request().url().split('/').at(-1) ?? '';
        patched.push(id);
        return await (isBroken && id === ids[1]
          ? route.fulfill({
              status: 403,
              contentType: 'application/problem+json',
              json: { code: 'forbidden', title: 'Refused', detail: 'The test refused it.' },
            })
          : route.continue());
      });
      await page.getByRole('checkbox', { name: 'Select all rows' }).check();
      await inBar(page, 'Pause …').click();
      await inDialog(page, 'Pause 3 creators').click();
      await page.getByRole('alert').getByText('Bea: The test refused it.').waitFor();
      expect([patched, await statuses(founder)]).toEqual([ids, ['paused', 'active', 'paused']]);
      isBroken = false;
      await inDialog(page, 'Try these again').click();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await bar(page).waitFor({ state: 'detached' });
      expect([patched, await statuses(founder)]).toEqual([
        [...ids, ids[1]],
        ['paused', 'paused', 'paused'],
      ]);
      expect(problems(/status of 403/)).toEqual([]);
    });

    test('the links of several creators are copied with their names, and who has none is named', async () => {
      const { founder, ids } = await withCreators('Ada', '=Bea', 'Cleo');
      const [ada = '', bea = ''] = ids;
      const links = [
        await linkOf(founder, ada, 'ada-1'),
        await linkOf(founder, ada, 'ada-2'),
        await linkOf(founder, bea, 'bea-1'),
      ];
      await service.sql`update links set active = false where slug = 'ada-2' and app_id = ${founder.appId}`;
      const { page, problems } = await openCreators(founder, '', {
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      await select(page, 'Ada', '=Bea');
      await inBar(page, 'Copy links').click();
      await page.getByText('2 links copied.').waitFor();
      expect(await page.evaluate(async () => await navigator.clipboard.readText())).toBe(
        // A spreadsheet would run the second name as a formula.
        `Ada\t${links[0]?.url}\n'=Bea\t${links[2]?.url}`,
      );
      await select(page, 'Cleo');
      await inBar(page, 'Copy links').click();
      await page.getByRole('alert').getByText('Cleo: has no active link.').waitFor();
      expect(problems()).toEqual([]);
    });

    test('the CSV of selected creators has their rows of the CSV of the list, and no others', async () => {
      const { founder } = await withCreators('Ada', 'Bea, "the second"', 'Cleo');
      const { page, problems } = await openCreators(founder);
      await select(page, 'Bea', 'Cleo');
      const save = async (press: Promise<void>) => {
        const [file] = await Promise.all([page.waitForEvent('download'), press]);
        return (await readFile(await file.path(), 'utf8')).split('\r\n');
      };
      const all = await save(button(page, 'Save as CSV').click());
      const some = await save(inBar(page, 'CSV of the selected').click());
      expect(all).toHaveLength(5);
      expect(some).toEqual([all[0], all[2], all[3], '']);
      expect(problems()).toEqual([]);
    });

    /** Pays creators one by one, as the page does. Returns the ids of the payouts, the latest first. */
    const payAll = async (founder: KeyedFounder, names: readonly string[]) => {
      for (const [nth, name] of names.entries()) {
        const id = await earn(founder, name, 1_000 + nth);
        const response = await fetch(`${service.url}/apps/${founder.appId}/affiliates/${id}/payouts/export`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${founder.key}`,
            'content-type': 'application/json',
            'idempotency-key': `pay-${id}`,
          },
          body: '{}',
        });
        if (!response.ok) throw new Error(await response.text());
      }
      return (
        await service.sql<{
          id: string;
        }>`select id from payouts where app_id = ${founder.appId} order by created_at desc, id desc`
      ).map(({ id }) => id);
    };
    const marks = async ({ appId }: NewFounder) =>
      await service.sql<{ state: string; reference: string | null }>`
        select state, reference from payout_transfers where app_id = ${appId} order by created_at, id`;

    test('several payouts are marked as sent with one reference, and one that is marked already is named and left as it is', async () => {
      const founder = await founderWithKey();
      const [last] = await payAll(founder, ['Ada', 'Bea', 'Cleo']);
      await post(`/apps/${founder.appId}/payouts/${last}/transfers`, founder.key, { state: 'sent' });
      const { page, problems } = await signIn(founder);
      await page.getByRole('checkbox', { name: 'Select all rows' }).check();
      await bar(page).getByText('3 selected').waitFor();
      await bar(page).getByText('$30.03').waitFor();
      const money = (state: string) => page.getByRole('cell', { name: state, exact: true });
      expect([await money('Booked').count(), await money('Sent').count()]).toEqual([2, 1]);
      await inBar(page, 'Mark as sent …').click();
      await raise(page, founder, 'Mark as sent');
      await page.getByRole('dialog').getByLabel('Reference').fill('batch 7');
      await inDialog(page, 'Mark as sent').click();
      await page
        .getByRole('alert')
        .getByText(/^Cleo, \$10\.02 of .*: It is marked as sent already\.$/)
        .waitFor();
      expect((await marks(founder)).map(({ state, reference }) => [state, reference])).toEqual([
        ['sent', null],
        ['sent', 'batch 7'],
        ['sent', 'batch 7'],
      ]);
      await inDialog(page, 'Close').click();
      await bar(page).getByText('1 selected').waitFor();
      await money('Sent').nth(2).waitFor();
      expect(await money('Booked').count()).toBe(0);
      expect(problems(/status of 409/)).toEqual([]);
    });

    test('a payout whose money came back stays so when several are marked as sent, and is named', async () => {
      const founder = await founderWithKey();
      const [last] = await payAll(founder, ['Ada', 'Bea']);
      for (const state of ['sent', 'returned'])
        await post(`/apps/${founder.appId}/payouts/${last}/transfers`, founder.key, { state });
      const { page, problems } = await signIn(founder);
      await page.getByRole('cell', { name: 'Came back', exact: true }).waitFor();
      await page.getByRole('checkbox', { name: 'Select all rows' }).check();
      await inBar(page, 'Mark as sent …').click();
      await raise(page, founder, 'Mark as sent');
      await inDialog(page, 'Mark as sent').click();
      await page
        .getByRole('alert')
        .getByText(/^Bea, \$10\.01 of .*: Its money came back\./)
        .waitFor();
      await inDialog(page, 'Close').click();
      await page.getByRole('cell', { name: 'Sent', exact: true }).waitFor();
      expect((await marks(founder)).map(({ state }) => state)).toEqual(['sent', 'returned', 'sent']);
      expect(problems()).toEqual([]);
    });

    test('a mark whose answer was lost is sent again with its key, and made once', async () => {
      const founder = await founderWithKey();
      await payAll(founder, ['Ada', 'Bea']);
      const { page, problems } = await signIn(founder);
      const keys: string[] = [];
      await page.route('**/payouts/*/transfers', async (route) => {
        keys.push((await route.request().headerValue('idempotency-key')) ?? '');
        if (keys.length > 1) return await route.continue();
        await route.fetch();
        return await route.abort();
      });
      await page.getByRole('checkbox', { name: 'Select all rows' }).check();
      await inBar(page, 'Mark as sent …').click();
      await raise(page, founder, 'Mark as sent');
      await inDialog(page, 'Mark as sent').click();
      await page.getByRole('alert').getByText('The service did not respond.').waitFor();
      await inDialog(page, 'Try these again').click();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      expect([keys.length, keys[2]]).toEqual([3, keys[0]]);
      expect(await marks(founder)).toHaveLength(2);
      expect(problems(/ERR_FAILED/)).toEqual([]);
    });

    test('one CSV of several payouts has the rows of each stored one, and nothing is saved if one cannot be read', async () => {
      const founder = await founderWithKey();
      const ids = await payAll(founder, ['Ada', 'Bea']);
      const { page, problems } = await signIn(founder);
      await page.getByRole('checkbox', { name: 'Select all rows' }).check();
      await inBar(page, 'One CSV of 2 payouts').click();
      await page.getByLabel('Key that may pay').fill(founder.key);
      const [file] = await Promise.all([page.waitForEvent('download'), inDialog(page, 'Continue').click()]);
      const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
      expect(lines.map((line) => line.split(',')[0])).toEqual(['payout_id', ...ids]);
      await page.route(
        `**/payouts/${ids[1]}/csv`,
        async (route) =>
          await route.fulfill({
            status: 404,
            contentType: 'application/problem+json',
            json: { code: 'not_found', title: 'Not found', detail: 'The test has removed it.' },
          }),
      );
      let downloads = 0;
      page.on('download', () => {
        downloads += 1;
      });
      await inBar(page, 'One CSV of 2 payouts').click();
      await page
        .getByText('Nothing was saved, because of the payout to Ada: The test has removed it.')
        .waitFor();
      expect(downloads).toBe(0);
      expect(problems(/status of 404/)).toEqual([]);
    });

    test('no list with selected rows has a violation of WCAG 2.2 AA or a sideways scroll in any window', async () => {
      const founder = await founderWithKey();
      await payAll(founder, [
        'Ada',
        'A creator with a name that is long enough for several lines of a phone',
      ]);
      const { page, problems } = await signIn(founder, PHONE);
      await page.getByRole('checkbox', { name: /^Select the payout to Ada/ }).check();
      await checkPage(page, 'payouts-selected');
      await page.goto(`${service.url}/console/apps/${founder.appId}/creators`);
      await page.getByRole('checkbox', { name: 'Select Ada' }).check();
      await inBar(page, 'Select all 2').waitFor();
      await checkPage(page, 'creators-selected');
      await inBar(page, 'Select all 2').click();
      await inBar(page, 'Pause …').click();
      await page.getByRole('dialog').getByText('Ada, A creator').waitFor();
      await checkPage(page, 'creators-pause');
      expect(problems()).toEqual([]);
    });
  },
);
