import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';

/** Debian's packages. The first one is the same engine without windows, which needs a third less of the processors. */
const PATHS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

/** The path of the Chromium that CHROMIUM names, by default of one that Debian has installed. Undefined without one. */
export function chromiumPath(): string | undefined {
  const given = process.env['CHROMIUM'];
  return (given === undefined ? PATHS : [given]).find((file) => existsSync(file));
}

/** What to do without a Chromium. */
export const NO_CHROMIUM =
  'There is no Chromium: install chromium-headless-shell or chromium, or set CHROMIUM to its path.';

/** Opens the Chromium of `chromiumPath`. Throws an error that says what to install. */
export async function openBrowser(args: readonly string[] = []): Promise<Browser> {
  const executablePath = chromiumPath();
  if (executablePath === undefined) throw new Error(NO_CHROMIUM);
  return await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-background-networking', ...args],
  });
}
