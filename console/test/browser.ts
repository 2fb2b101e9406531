import { readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { expect } from '@jest/globals';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { projectRoot } from '../../src/config/project-root.ts';
import { chromiumPath, NO_CHROMIUM } from '../../tools/open-browser.ts';

/** The widths in which every page is checked, px, each in both colours. */
const WIDTHS = [360, 1280];
const COLOR_SCHEMES = ['light', 'dark'] as const;

/** The window of a phone. A walk through the states of a page takes place in it, since there is less room to press. */
export const PHONE = { viewport: { width: 360, height: 800 } } as const;

/** Whether a browser is installed. With CI set, its absence is a failure. */
export function hasBrowser(): boolean {
  if (chromiumPath() !== undefined) return true;
  if (process.env['CI'] !== undefined) throw new Error(NO_CHROMIUM);
  process.stderr.write(`Left out: all tests of the console. ${NO_CHROMIUM}\n`);
  return false;
}

/** A page that collects what must never happen: an error in the console, a call of another host, a 5xx. */
export interface GuardedPage {
  readonly page: Page;
  /** Expected problems are removed by their text. */
  readonly problems: (expected?: RegExp) => string[];
  readonly close: () => Promise<void>;
}

export async function openPage(
  browser: Browser,
  serviceUrl: string,
  options: BrowserContextOptions = {},
): Promise<GuardedPage> {
  // Windows open and close a thousand times in the tests. How they move is seen in the tests that ask for it.
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  const found: string[] = [];
  const { host } = new URL(serviceUrl);
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') found.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => found.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.host !== host && !['data:', 'blob:'].includes(url.protocol))
      found.push(`other host: ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 500) found.push(`${response.status()}: ${response.url()}`);
  });
  return {
    page,
    problems: (expected) => found.filter((text) => expected === undefined || !expected.test(text)),
    close: async () => await context.close(),
  };
}

export const button = (page: Page, name: string | RegExp): Locator => page.getByRole('button', { name });

/** The button of the menu “More”, and no button that loads more. */
export const moreButton = (page: Page): Locator => page.getByRole('button', { name: 'More', exact: true });

/** Chooses an item of the menu “More”. */
export async function chooseMore(page: Page, name: string): Promise<void> {
  await moreButton(page).click();
  await page.getByRole('menuitem', { name, exact: true }).click();
}

export const row = (root: Page | Locator, name: string | RegExp): Locator => root.getByRole('row', { name });

/** The chip of a filter that is set. */
export const chip = (page: Page, label: string): Locator =>
  page.getByRole('search').getByRole('button', { name: new RegExp(`^${label}: `) });

/** Opens the control of a filter: by its chip, or as one that is added. */
export async function openFilter(page: Page, label: string): Promise<void> {
  if ((await chip(page, label).count()) > 0) return await chip(page, label).click();
  const add = button(page, 'Add a filter');
  await add.click();
  // A bar with a single filter opens its control at once.
  if ((await add.getAttribute('aria-haspopup')) === 'menu')
    await page.getByRole('menuitem', { name: label, exact: true }).click();
}

/** Chooses a value of a filter. */
export async function chooseFilter(page: Page, label: string, value: string): Promise<void> {
  await openFilter(page, label);
  await page.getByRole('menuitemradio', { name: value, exact: true }).click();
  await chip(page, label).filter({ hasText: value }).waitFor();
}

/** Waits for a page: its title, which comes first, and its program. */
export async function title(page: Page, name: string | RegExp): Promise<void> {
  await page.getByRole('heading', { level: 1, name }).waitFor();
  await page.getByText('Loading the page …').waitFor({ state: 'detached' });
}

const axeFile = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const RULES = {
  type: 'tag',
  values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
};
/** What other colours can break. */
const RULES_OF_COLORS = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };

/** Returns the violations that axe finds on a page, in words. */
export async function violationsOf(page: Page, rules = RULES): Promise<string[]> {
  // Evaluated by the debugger, so that the policy of the page does not refuse it.
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(await readFile(axeFile, 'utf8'));
  return await page.evaluate(async (runOnly) => {
    const { axe } = globalThis as unknown as {
      axe: {
        run: (
          at: Document,
          options: object,
        ) => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
      };
    };
    const { violations } = await axe.run(document, { runOnly, resultTypes: ['violations'] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
    );
  }, rules);
}

/** Returns how many pixels a page is wider than its window. */
export async function overflowOf(page: Page): Promise<number> {
  return await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
}

/** The widest window in which what is pressed has the size of a finger, and that size, px. As in console/src/styles.css. */
const NARROW = 640;
const FINGER = 44;

/** Returns what does not fit on a page: texts that are cut off, and in a narrow window what is too small for a finger. */
async function misfitsOf(page: Page): Promise<string[]> {
  return await page.evaluate(
    ({ narrow, finger }) => {
      const pen = document.createElement('canvas').getContext('2d');
      const isCut = (field: HTMLElement, text: string) => {
        if (pen === null) return true;
        const style = getComputedStyle(field);
        pen.font = style.font;
        const room =
          field.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight);
        return pen.measureText(text).width > room + 1;
      };
      const shown = <E extends HTMLElement>(selector: string) =>
        [...document.querySelectorAll<E>(selector)].filter(
          (one) => one.checkVisibility({ visibilityProperty: true }) && one.offsetWidth > 1,
        );
      const cut = [
        ...shown<HTMLInputElement>('input[placeholder]')
          .filter((field) => field.value === '' && isCut(field, field.placeholder))
          .map(({ placeholder }) => placeholder),
        ...shown<HTMLSelectElement>('select')
          .filter((field) => isCut(field, field.selectedOptions[0]?.text ?? ''))
          .map((field) => field.selectedOptions[0]?.text ?? ''),
        ...shown('button')
          .filter((one) => one.scrollWidth > one.clientWidth)
          .map((one) => one.innerText),
      ];
      const small =
        innerWidth > narrow
          ? []
          : shown(
              'button, select, textarea, summary, .nav, [role=tab], input:not([type=checkbox], [type=radio])',
            )
              // A button inside of a field is another way to do what the field does.
              .filter((one) => one.closest('.mantine-Input-section') === null)
              .map((one) => one.closest<HTMLElement>('.mantine-Input-input') ?? one)
              .filter(({ offsetWidth, offsetHeight }) => offsetWidth < finger || offsetHeight < finger)
              .map(
                (one) =>
                  `${one.tagName} ${one.innerText.slice(0, 40)} ${one.offsetWidth} × ${one.offsetHeight}`,
              );
      return [...cut.map((text) => `cut off: ${text}`), ...small.map((text) => `small: ${text}`)];
    },
    { narrow: NARROW, finger: FINGER },
  );
}

/** Writes a picture of a page into the folder that CONSOLE_SHOTS names, for people to look at. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env['CONSOLE_SHOTS'];
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

/**
 * Returns what is wrong with a page in each width and both colours, by window: violations of WCAG 2.2 AA, a sideways scroll, what does not fit.
 * Takes a picture of each. The window is as before afterwards.
 */
export async function faultsOf(page: Page, state: string): Promise<Record<string, unknown>> {
  await atRest(page);
  const faults: Record<string, unknown> = {};
  const before = page.viewportSize() ?? PHONE.viewport;
  // The width of before is the last one.
  for (const width of WIDTHS.toSorted((a, b) => Math.abs(b - before.width) - Math.abs(a - before.width))) {
    if (page.viewportSize()?.width !== width) await page.setViewportSize({ ...before, width });
    for (const colorScheme of COLOR_SCHEMES) {
      await page.emulateMedia({ colorScheme });
      await atRest(page, true);
      await shoot(page, `${state}-${colorScheme}-${width}`);
      const isFirst = colorScheme === 'light';
      const violations = await violationsOf(page, isFirst ? RULES : RULES_OF_COLORS);
      const overflow = isFirst ? await overflowOf(page) : 0;
      const misfits = isFirst ? await misfitsOf(page) : [];
      if (violations.length + misfits.length > 0 || overflow > 0)
        faults[`${colorScheme} ${width}`] = { violations, overflow, misfits };
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(before);
  return faults;
}

/** Waits until nothing moves, but for what moves without an end: colours and sizes are measured after the transitions. With `isAtOnce`, they jump to their ends. */
export async function atRest(page: Page, isAtOnce = false): Promise<void> {
  await page.evaluate(async (jumps) => {
    const frame = async () => await new Promise((resolve) => requestAnimationFrame(resolve));
    // What another window starts has started in the second frame.
    await frame();
    await frame();
    for (;;) {
      const moving = document
        .getAnimations()
        .filter((one) => one.playState === 'running' && one.effect?.getComputedTiming().endTime !== Infinity);
      if (moving.length === 0) return;
      if (jumps) for (const one of moving) one.finish();
      await frame();
    }
  }, isAtOnce);
}

/** Expects that a page has no violation and no sideways scroll, and that all fits, in every window. `state` names what is shown. */
export async function checkPage(page: Page, state: string): Promise<void> {
  expect({ state, faults: await faultsOf(page, state) }).toEqual({ state, faults: {} });
}

/** Returns the size of the files with an ending that a page names, so loads at once: bytes, gzip. */
export function firstLoadOf(page: 'index' | 'creator' | 'operator', end: string): number {
  const folder = path.join(projectRoot, 'dist/console');
  const names = readFileSync(path.join(folder, `${page}.html`), 'utf8').match(/assets\/[^"]+/g) ?? [];
  return names
    .filter((name) => name.endsWith(end))
    .reduce((sum, name) => sum + statSync(path.join(folder, `${name}.gz`)).size, 0);
}
