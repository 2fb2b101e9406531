import { readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { projectRoot } from '../../src/config/project-root.ts';
import { eventually } from '../../test/support/eventually.ts';
import { insertEarning, insertReversal, payOut } from '../../test/support/ledger.ts';
import { button, checkPage, PHONE, title } from './browser.ts';
import type { GuardedPage } from './browser.ts';
import { describeInBrowserWith } from './suite.ts';
import type { NewFounder } from './suite.ts';

const DAY_MS = 86_400_000;
const KIB = 1024;
/** What the first load and the chart may have, gzip. */
const FIRST_LOAD = 160 * KIB;
const CHART = 120 * KIB;

// A host that is not this machine by its name, as in a network: http to it is no secure context.
const describeInNetwork = describeInBrowserWith({ args: ['--host-resolver-rules=MAP lan.test 127.0.0.1'] });

describeInNetwork("the creator's page in a browser", ({ service, newPage, post, newFounder }) => {
  /** Creates a creator. With money, one that was paid, has something due and something held, and had a refund. */
  const newCreator = async (founder: NewFounder, name: string, hasMoney: boolean) => {
    const { id: affiliateId } = await post<{ id: string }>(`/apps/${founder.appId}/affiliates`, founder.key, {
      name,
    });
    if (!hasMoney) return affiliateId;
    const link = await post<{ id: string }>(`/apps/${founder.appId}/links`, founder.key, {
      affiliateId,
      destinationUrl: 'https://example.com/a/page/with/a/long/address/that/has/to/wrap/somewhere',
      slug: name.toLowerCase(),
      campaign: 'internal name',
    });
    const at = Date.now() - 40 * DAY_MS;
    const row = { affiliateId, linkId: link.id };
    const earn = async (amountCents: number, days: number, dueDays: number, matured: boolean) =>
      await insertEarning(service, founder, {
        ...row,
        amountCents,
        occurredAt: at + days * DAY_MS,
        dueAt: at + dueDays * DAY_MS,
        matured,
      });
    const refunded = await earn(1250, 1, 10, true);
    await earn(4999, 2, 10, true);
    await insertReversal(service, refunded, { amountCents: 250, occurredAt: at + 5 * DAY_MS });
    await payOut(service, founder, affiliateId);
    await earn(800, 15, 20, true);
    await earn(1999, 30, 60, false);
    await earn(2400, 36, 66, false);
    return affiliateId;
  };

  const invite = async (founder: NewFounder, affiliateId: string): Promise<string> =>
    (
      await post<{ url: string }>(
        `/apps/${founder.appId}/affiliates/${affiliateId}/sign-in-links`,
        founder.key,
      )
    ).url;

  const goTo = async (page: Page, name: string) =>
    await page.getByRole('navigation').getByRole('link', { name }).click();

  const signIn = async (guarded: GuardedPage, url: string): Promise<Page> => {
    await guarded.page.goto(url);
    await button(guarded.page, 'Show my earnings').click();
    await title(guarded.page, 'Your earnings');
    await guarded.page.getByText('Of all time').waitFor();
    return guarded.page;
  };

  test('a creator follows the link, sees what is earned, held, due and paid, and saves a statement', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder, 'Ada', true);
    await newCreator(founder, 'Grace', true);
    const guarded = await newPage();
    const page = await signIn(guarded, await invite(founder, ada));
    expect(page.url()).toBe(`${service.url}/console/creator/`);
    expect(await page.locator('.tiles').first().innerText()).toMatch(
      /Earned\s+\$111\.98[^]*Held\s+\$43\.99[^]*Due\s+\$8\.00[^]*Booked\s+\$59\.99/,
    );
    await page.locator('.recharts-bar-rectangle').first().waitFor({ state: 'attached' });
    await page.getByText('As a table').click();
    await page.getByRole('row', { name: /\$19\.99/ }).waitFor();
    await page.getByText('20 % of each purchase').waitFor();

    await goTo(page, 'Links');
    await button(page, 'QR code of ada').click();
    await page.getByRole('img', { name: /^QR code of .*\/ada$/ }).waitFor();
    expect(await page.content()).not.toContain('internal name');

    await goTo(page, 'Commissions');
    await page.getByLabel('Status').selectOption('Held');
    await page.waitForURL(/status=pending/);
    await page.getByRole('row', { name: /\$24\.00/ }).waitFor();
    await page.getByText('$8.00').waitFor({ state: 'detached' });
    await page.reload();
    await page.getByRole('row', { name: /\$24\.00/ }).waitFor();

    await page.getByRole('link', { name: 'Statement of a month' }).click();
    const earnedAt = new Date(Date.now() - 4 * DAY_MS);
    const month = `${earnedAt.getFullYear()}-${String(earnedAt.getMonth() + 1).padStart(2, '0')}`;
    await page.getByLabel('Month').selectOption(month);
    await page.getByRole('row', { name: /\$24\.00/ }).waitFor();
    const statement = page.waitForEvent('download');
    await button(page, 'CSV').click();
    expect(await readFile(await (await statement).path(), 'utf8')).toContain(',2400,USD,');
    // A long month comes in parts.
    await page.route('**/creator/commissions?**', async (route) => {
      const isSecond = route.request().url().includes('cursor=second');
      return await route.fulfill({
        headers: { 'content-type': 'text/csv', ...(isSecond ? {} : { 'x-next-cursor': 'second' }) },
        body: `id\r\n${isSecond ? 'b' : 'a'}\r\n`,
      });
    });
    const long = page.waitForEvent('download');
    await button(page, 'CSV').click();
    expect(await readFile(await (await long).path(), 'utf8')).toBe('id\r\na\r\nb\r\n');
    await page.unroute('**/creator/commissions?**');

    await goTo(page, 'Payouts');
    const download = page.waitForEvent('download');
    await button(page, /^CSV of/).click();
    const csv = await readFile(await (await download).path(), 'utf8');
    expect(csv).toContain('total,,59.99,USD');
    await page.getByRole('link', { name: /^Statement of/ }).click();
    await page.getByText('in 2 rows').waitFor();
    await page.getByRole('row', { name: /refunded.*-\$2\.50/ }).waitFor();
    // A deep link works after a reload, and in print only the statement remains.
    await page.reload();
    await page.getByText('in 2 rows').waitFor();
    await page.emulateMedia({ media: 'print' });
    expect(await button(page, 'Print').isVisible()).toBe(false);
    expect(await page.getByText('in 2 rows').isVisible()).toBe(true);
    expect(guarded.problems()).toEqual([]);
  });

  test('the page begins with the link to share: by the dialog of a phone, and by copying where there is none', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder, 'Ada', true);
    const link = await invite(founder, ada);
    const desktop = await newPage({ permissions: ['clipboard-read', 'clipboard-write'] });
    const page = await signIn(desktop, link);
    const own = page.getByRole('region', { name: 'Your link' });
    await own.getByRole('button', { name: 'Copy the link ada' }).click();
    await own.getByText('Copied').waitFor();
    const url = await page.evaluate(async () => await navigator.clipboard.readText());
    expect(url).toMatch(/\/l\/[\w-]+\/ada$/);
    expect(await own.getByRole('button', { name: 'Share the link ada' }).count()).toBe(0);
    await own.getByRole('button', { name: 'QR code of ada' }).click();
    await own.getByRole('img', { name: `QR code of ${url}` }).waitFor();
    await checkPage(page, 'creator-share');

    const phone = await newPage(PHONE);
    await phone.page.addInitScript(() => {
      const shared: ShareData[] = [];
      Object.assign(globalThis, { shared });
      Object.assign(navigator, { share: async (data: ShareData) => void shared.push(data) });
    });
    await signIn(phone, link);
    await button(phone.page, 'Share the link ada').click();
    expect(await phone.page.evaluate(() => Reflect.get(globalThis, 'shared') as unknown)).toEqual([
      { title: 'Lantern Notes', url },
    ]);
    await checkPage(phone.page, 'creator-share-phone');
    expect([...desktop.problems(), ...phone.problems()]).toEqual([]);
  });

  test('a link says what it has earned, and the page what is due next, with a schedule what the next payout will be', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder, 'Ada', true);
    const guarded = await newPage();
    const page = await signIn(guarded, await invite(founder, ada));
    const day = (daysAhead: number) =>
      page.evaluate(
        (ahead) =>
          new Date(Date.now() + ahead * 86_400_000).toLocaleDateString('en-US', { dateStyle: 'medium' }),
        daysAhead,
      );
    const next = page.locator('.tile-first');
    // The earnings that are due in 20 and in 26 days.
    await next.getByText(`On ${await day(20)}`).waitFor();
    expect(await next.innerText()).toMatch(/Next due\s+\$19\.99/);
    await goTo(page, 'Links');
    await page.getByText('earned $111.98').waitFor();

    const schedule = async (minimumCents: number, withoutPayee: 'exclude' | 'include') => {
      const response = await fetch(`${service.url}/apps/${founder.appId}/settings`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${founder.key}` },
        body: JSON.stringify({
          payoutSchedule: {
            day: new Date().getUTCDate() > 14 ? 1 : 28,
            timezone: 'UTC',
            minimumCents,
            withoutPayee,
          },
        }),
      });
      expect(response.status).toBe(200);
      await goTo(page, 'Earnings');
      await page.reload();
    };
    await schedule(0, 'exclude');
    await next.getByText(/^You have no recipient yet: the run on .* leaves you out$/).waitFor();
    await schedule(0, 'include');
    await next.getByText(/^Estimate for /).waitFor();
    expect(await next.innerText()).toMatch(/Next payout\s+\$\d+\.\d\d/);
    await checkPage(page, 'creator-next-payout');
    await schedule(100_000, 'include');
    await next.getByText(/from \$1,000\.00 on: less is kept for later/).waitFor();
    expect(guarded.problems()).toEqual([]);
  });

  test('the page has the colour that the founder chose for the app, with a text on it that can be read', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder, 'Ada', true);
    const settings = await newPage();
    await settings.page.request.post(`${service.url}/session`, { data: { key: founder.key } });
    await settings.page.goto(`${service.url}/console/apps/${founder.appId}/settings`);
    const field = settings.page.getByLabel('Colour');
    await field.fill('#ffd4');
    await button(settings.page, 'Save').click();
    await settings.page.getByText('Must be # and six hexadecimal digits, such as #0b7285.').waitFor();
    await field.fill('#FFD400');
    await button(settings.page, 'Save').click();
    await settings.page.getByText('Saved.').waitFor();
    expect(await field.inputValue()).toBe('#ffd400');
    await checkPage(settings.page, 'settings-colour');

    const guarded = await newPage();
    const page = await signIn(guarded, await invite(founder, ada));
    const colours = async (selector: string) =>
      await page
        .locator(selector)
        .first()
        .evaluate((one) => {
          const { backgroundColor, color } = getComputedStyle(one);
          return [backgroundColor, color];
        });
    const expected = ['rgb(255, 212, 0)', 'rgb(0, 0, 0)'];
    expect(await page.locator('.brand-mark').innerText()).toBe('L');
    expect(await colours('.brand-mark')).toEqual(expected);
    expect(await colours('.share-first button[data-variant=filled]')).toEqual(expected);
    await checkPage(page, 'creator-branded');
    // A dialog is outside of the elements of the page. Its button that ends something stays red.
    await signIn(await newPage(), await invite(founder, ada));
    await page.getByRole('link', { name: 'Devices' }).click();
    await button(page, 'Sign all others out …').click();
    await page.getByRole('dialog').waitFor();
    const [background, text] = await colours('[role=dialog] .mantine-Button-root:not([data-variant])');
    expect(background).not.toBe(expected[0]);
    expect(text).toBe('rgb(255, 255, 255)');
    expect(
      await page
        .getByRole('dialog')
        .evaluate((one) => getComputedStyle(one).getPropertyValue('--brand').trim()),
    ).toBe('#ffd400');
    await checkPage(page, 'creator-branded-dialog');
    expect(guarded.problems()).toEqual([]);
    expect(settings.problems(/status of 400/)).toEqual([]);
  });

  test('the chart begins at the start of a local day, week and month, so that its first bar is whole', async () => {
    const founder = await newFounder();
    const guarded = await newPage({ timezoneId: 'Asia/Kolkata' });
    const page = await signIn(guarded, await invite(founder, await newCreator(founder, 'Ada', true)));
    for (const [range, weekday, day] of [
      ['90d', 1, null],
      ['12m', null, 1],
      ['30d', null, null],
    ] as const) {
      // The request of the page before has gone, too, before that of the range is waited for.
      const open = async (query: string) => {
        const [sent] = await Promise.all([
          page.waitForRequest((one) => one.url().includes('/creator/timeseries')),
          page.goto(`${service.url}/console/creator/${query}`),
        ]);
        return sent;
      };
      await open('');
      const request = await open(`?range=${range}`);
      const from = Number(new URL(request.url()).searchParams.get('from'));
      const start = await page.evaluate((at) => {
        const local = new Date(at);
        return [local.getHours(), local.getMinutes(), local.getDay(), local.getDate()] as const;
      }, from);
      expect({ range, time: start.slice(0, 2) }).toEqual({ range, time: [0, 0] });
      if (weekday !== null) expect(start[2]).toBe(weekday);
      if (day !== null) expect(start[3]).toBe(day);
    }
    expect(guarded.problems()).toEqual([]);
  });

  test('a link is spent by the button alone, works five times, and says what to do afterwards', async () => {
    const founder = await newFounder();
    const link = await invite(founder, await newCreator(founder, 'Ada', false));
    const first = await newPage();
    await first.page.goto(link);
    await button(first.page, 'Show my earnings').waitFor();
    expect(first.page.url()).not.toContain('token');
    for (let nth = 0; nth < 5; nth += 1) await signIn(await newPage(), link);
    await button(first.page, 'Show my earnings').click();
    await first.page.getByText('The link was used too often').waitFor();
    expect(first.problems(/status of 401/)).toEqual([]);
  });

  test('revoking the link signs the open page out', async () => {
    const founder = await newFounder();
    const ada = await newCreator(founder, 'Ada', false);
    const guarded = await newPage();
    const page = await signIn(guarded, await invite(founder, ada));
    await post(`/apps/${founder.appId}/affiliates/${ada}/sign-in-links/revoke`, founder.key);
    await goTo(page, 'Payouts');
    await page.getByText('You are not signed in').waitFor();
    expect(guarded.problems(/status of 401/)).toEqual([]);
  });

  test('the devices are listed, and signing out one of them ends its session', async () => {
    const founder = await newFounder();
    const link = await invite(founder, await newCreator(founder, 'Ada', false));
    const [mine, other] = [await newPage(), await newPage()];
    await signIn(mine, link);
    await signIn(other, link);
    await goTo(mine.page, 'Devices');
    await button(mine.page, 'Sign all others out …').click();
    await mine.page.getByText('Every other browser that is signed in to your page').waitFor();
    await button(mine.page, 'Cancel').click();
    await mine.page.getByRole('dialog').waitFor({ state: 'hidden' });
    await other.page.reload();
    await title(other.page, 'Your earnings');
    // A single one is asked about, too.
    await button(mine.page, /^Sign out Chrome/).click();
    await mine.page.getByText(/^Chrome on Linux, signed in since .*, is signed out at once/).waitFor();
    await button(mine.page, 'Cancel').click();
    await mine.page.getByRole('dialog').waitFor({ state: 'hidden' });
    await other.page.reload();
    await title(other.page, 'Your earnings');
    await button(mine.page, /^Sign out Chrome/).click();
    await button(mine.page, 'Sign it out').click();
    await mine.page.getByRole('dialog').waitFor({ state: 'hidden' });
    await mine.page.getByRole('row', { name: /this one/ }).waitFor();
    await button(mine.page, /^Sign out Chrome/).waitFor({ state: 'detached' });
    await goTo(other.page, 'Links');
    await other.page.getByText('You are not signed in').waitFor();
    // Signed in again, and out again with all others.
    await signIn(other, link);
    await mine.page.reload();
    await button(mine.page, 'Sign all others out …').click();
    await mine.page.getByRole('dialog').getByRole('button', { name: 'Sign all others out' }).click();
    await mine.page.getByRole('dialog').waitFor({ state: 'hidden' });
    await button(mine.page, /^Sign out Chrome/).waitFor({ state: 'detached' });
    await goTo(other.page, 'Links');
    await other.page.getByText('You are not signed in').waitFor();
    await button(mine.page, 'Sign out').click();
    await mine.page.getByText('You are not signed in').waitFor();
    expect(await mine.page.context().cookies()).toEqual([]);
    expect(mine.problems()).toEqual([]);
    expect(other.problems(/status of 401/)).toEqual([]);
  });

  test('a page that cannot be loaded says so below the navigation, and a second attempt shows it', async () => {
    const founder = await newFounder();
    const guarded = await newPage();
    const page = await signIn(guarded, await invite(founder, await newCreator(founder, 'Ada', false)));
    const program = '**/assets/sessions-page-*.js';
    await page.route(program, async (route) => await route.abort());
    await goTo(page, 'Devices');
    await page.getByText('The page could not be loaded.').waitFor();
    await goTo(page, 'Payouts');
    await title(page, 'Payouts');
    await goTo(page, 'Devices');
    await page.unroute(program);
    await button(page, 'Try again').click();
    await page.getByRole('row', { name: /this one/ }).waitFor();
    expect(guarded.problems(/ERR_FAILED|dynamically imported/)).toEqual([]);
  });

  test('another creator in the same browser sees nothing of the first one', async () => {
    const founder = await newFounder();
    const [ada, grace] = [await newCreator(founder, 'Ada', true), await newCreator(founder, 'Grace', false)];
    const guarded = await newPage();
    const page = await signIn(guarded, await invite(founder, ada));
    await goTo(page, 'Payouts');
    await page.getByText('$59.99').waitFor();
    // The same document, since only the fragment differs.
    await page.goto(`${page.url()}#${(await invite(founder, grace)).split('#')[1] ?? ''}`);
    await button(page, 'Show my earnings').click();
    await page.getByText('No payout yet').waitFor();
    expect(await page.content()).not.toContain('59.99');
    expect(guarded.problems()).toEqual([]);
  });

  test("neither the page's session nor another page of the host reaches more than the creator's routes", async () => {
    const founder = await newFounder();
    const [ada, grace] = [await newCreator(founder, 'Ada', true), await newCreator(founder, 'Grace', true)];
    const guarded = await newPage();
    const page = await signIn(guarded, await invite(founder, ada));
    const { id: foreign } = await service.sql.one<{ id: string }>`
      select id from payouts where affiliate_id = ${grace}`;
    const statusesOf = async (tab: Page, paths: readonly string[]) =>
      await tab.evaluate(
        async ({ at, all }) =>
          await Promise.all(
            all.map(async (one) => {
              const response = await fetch(at + one, { credentials: 'include' }).catch(() => null);
              return response?.status ?? 0;
            }),
          ),
        { at: service.url, all: paths },
      );
    const { appId } = founder;
    expect(
      await statusesOf(page, [
        '/creator',
        '/apps',
        `/apps/${appId}/overview`,
        `/apps/${appId}/affiliates/${ada}/overview`,
        '/sessions',
        `/creator/payouts/${foreign}/statement`,
        `/creator/payouts/${foreign}/csv`,
      ]),
    ).toEqual([200, 401, 401, 401, 401, 404, 404]);

    const evil = createServer((_, response) => response.end('<!doctype html><title>x</title>'));
    await new Promise<void>((resolve) => {
      evil.listen(0, '127.0.0.1', resolve);
    });
    const tab = await page.context().newPage();
    await tab.goto(`http://127.0.0.1:${(evil.address() as AddressInfo).port}`);
    const seen: number[] = [];
    tab.on('response', (response) => seen.push(response.status()));
    await tab.evaluate(async (at) => {
      for (const [one, method] of [
        ['/creator/overview', 'GET'],
        ['/creator/session', 'GET'],
        ['/creator/session/end', 'POST'],
      ] as const)
        await fetch(at + one, { method, credentials: 'include', mode: 'no-cors' }).catch(() => {});
    }, service.url);
    // Without the cookie, which SameSite did not keep back, the first would be 401.
    await eventually('the answers are noted', async () => await Promise.resolve(seen.length === 3));
    expect(seen).toEqual([403, 403, 403]);
    await page.reload();
    await title(page, 'Your earnings');
    evil.close();
    evil.closeAllConnections();
    expect(guarded.problems(/status of 40[14]/)).toEqual([]);
  });

  test('it works over plain http in a network, where the browser has no clipboard and names no origin', async () => {
    const founder = await newFounder();
    const link = await invite(founder, await newCreator(founder, 'Ada', true));
    const lan = service.url.replace('127.0.0.1', 'lan.test');
    const guarded = await newPage({}, lan);
    const page = await signIn(guarded, link.replace(/^http:\/\/[^/]+/, lan));
    expect(await page.evaluate(() => [isSecureContext, navigator.clipboard])).toEqual([false, undefined]);
    await goTo(page, 'Links');
    await button(page, 'Copy the link ada').click();
    await page.getByText('Copied').waitFor();
    const csv = async (): Promise<string> => {
      const download = page.waitForEvent('download');
      await page.getByText('CSV', { exact: true }).click();
      return await readFile(await (await download).path(), 'utf8');
    };
    await goTo(page, 'Payouts');
    expect(await csv()).toContain('total,,59.99,USD');
    await page.getByRole('link', { name: /^Statement of/ }).click();
    await button(page, 'Print').waitFor();
    expect(await csv()).toContain('total,,59.99,USD');
    await goTo(page, 'Devices');
    await page.getByText('this one').waitFor();
    await button(page, 'Sign out').click();
    await page.getByText('You are not signed in').waitFor();
    // Chromium says that it ignores the header here.
    expect(guarded.problems(/Cross-Origin-Opener-Policy/)).toEqual([]);
  });

  test('no page has a violation of WCAG 2.2 AA, an error or a sideways scroll in any window, empty or full', async () => {
    const founder = await newFounder();
    for (const hasMoney of [false, true]) {
      const guarded = await newPage(PHONE);
      const { page } = guarded;
      const check = async (state: string) => {
        await page
          .getByText(/^Loading/)
          .first()
          .waitFor({ state: 'detached' });
        await checkPage(page, `creator-${state}`);
      };
      const state = hasMoney ? 'full' : 'empty';
      const link = await invite(founder, await newCreator(founder, hasMoney ? 'Ada' : 'Bob', hasMoney));
      if (!hasMoney) {
        await page.goto(`${service.url}/console/creator/`);
        await page.getByText('You are not signed in').waitFor();
        await check('no-session');
      }
      await page.goto('about:blank');
      await page.goto(link);
      await button(page, 'Show my earnings').waitFor();
      if (!hasMoney) await check('link');
      await button(page, 'Show my earnings').click();
      await page.getByText('Of all time').waitFor();
      if (hasMoney) {
        await page.locator('.recharts-bar-rectangle').first().waitFor({ state: 'attached' });
        await page.getByText('As a table').click();
      }
      await check(`earnings-${state}`);
      for (const name of ['Links', 'Commissions', 'Payouts', 'Devices']) {
        await goTo(page, name);
        // The page before stays until this one is drawn.
        await title(page, new RegExp(`^${name}`));
        await page.locator('.surface').first().waitFor();
        if (name === 'Links' && hasMoney) await button(page, 'QR code of ada').click();
        await check(`${name.toLowerCase()}-${state}`);
      }
      await page.goto(`${service.url}/console/creator/statement`);
      await page.getByLabel('Month').waitFor();
      await check(`month-${state}`);
      if (hasMoney) {
        await goTo(page, 'Payouts');
        await page.getByRole('link', { name: /^Statement of/ }).click();
        await page.getByText('in 2 rows').waitFor();
        await check('statement');
        await goTo(page, 'Commissions');
        await page.goto(`${service.url}/console/creator/payouts/pay_unknown`);
        await page.getByRole('alert').waitFor();
        await check('statement-unknown');
        await page.goto(`${service.url}/console/creator/nowhere`);
        await title(page, 'There is no such page');
        await check('nowhere');
      }
      expect(guarded.problems(/status of 404/)).toEqual([]);
    }
  });

  test('the first load and the chart stay within their budgets', () => {
    const folder = path.join(projectRoot, 'dist/console');
    const names = readFileSync(path.join(folder, 'creator.html'), 'utf8').match(/assets\/[^"]+\.js/g) ?? [];
    const sizeOf = (name: string) => statSync(path.join(folder, `${name}.gz`)).size;
    const first = names.reduce((sum, name) => sum + sizeOf(name), 0);
    const all = names.flatMap(
      (name) => readFileSync(path.join(folder, name), 'utf8').match(/chart-[\w-]+\.js/g) ?? [],
    );
    const chart = sizeOf(`assets/${all[0] ?? ''}`);
    process.stdout.write(
      `creator: ${(first / KIB).toFixed(1)} of ${FIRST_LOAD / KIB} KiB gzip, chart: ${(chart / KIB).toFixed(1)} of ${CHART / KIB}\n`,
    );
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(FIRST_LOAD);
    expect(chart).toBeLessThan(CHART);
  });
});
