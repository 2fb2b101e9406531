import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';

/** Opens the Chromium that CHROMIUM names, by default Debian's. Throws an error that says what to install. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
  if (!existsSync(executablePath))
    throw new Error(`There is no Chromium at ${executablePath}: install it, or set CHROMIUM to its path.`);
  return await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-background-networking'],
  });
}
