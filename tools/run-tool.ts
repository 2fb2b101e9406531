import { rm } from 'node:fs/promises';

/** Prints a line of a tool. What it measures or returns goes to the standard output. */
export const say = (line: string) => void process.stderr.write(`${line}\n`);

/** Returns the names of the checks that fail in the body of a `/readyz` response, or null for any other text. */
export function failingChecks(text: string): string[] | null {
  try {
    const { status, checks } = JSON.parse(text) as { status?: unknown; checks?: unknown };
    if (typeof status !== 'string' || !Array.isArray(checks)) return null;
    const failing = (checks as { name: string; ok: boolean }[]).filter(({ ok }) => !ok);
    return failing.map(({ name }) => name);
  } catch {
    return null;
  }
}

/**
 * Runs a tool, stops what it has started, the last one first, removes its folder and ends the process: with 1 if the tool
 * failed. `onFailure` may print more about a failure, before anything is stopped.
 */
export async function runTool(
  main: () => Promise<void>,
  {
    stops,
    folder,
    onFailure = async () => {},
  }: {
    readonly stops: readonly (() => Promise<unknown>)[];
    readonly folder: string;
    readonly onFailure?: () => Promise<void>;
  },
): Promise<never> {
  let failed = false;
  try {
    await main();
  } catch (error) {
    failed = true;
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    await onFailure();
  } finally {
    for (const stop of stops.toReversed()) await stop().catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
  process.exit(failed ? 1 : 0);
}
