import { setTimeout as sleep } from 'node:timers/promises';

/** Calls `check` every 25 ms until it returns true. Throws an error that names `what` after `timeoutMs`. */
export async function eventually(
  what: string,
  check: () => Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  const giveUpAt = Date.now() + timeoutMs;
  while (!(await check())) {
    if (Date.now() > giveUpAt) throw new Error(`did not happen in ${timeoutMs} ms: ${what}`);
    await sleep(25);
  }
}
