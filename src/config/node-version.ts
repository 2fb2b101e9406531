import { readFileSync } from 'node:fs';

/** The oldest version of Node that the service supports, as in `engines` of package.json. */
export const MINIMUM_NODE = '20.20.0';

/** Returns what is wrong with a version of Node, in one sentence with what to do; null for a supported one. */
export function nodeVersionProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = MINIMUM_NODE.split('.').map(Number);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
    ? null
    : `Tributary requires Node ${MINIMUM_NODE} or newer, and this is Node ${version}: install a newer version from https://nodejs.org, then run the command again.`;
}

/** Files and connections that a process has open at least: its modules while they load, the database, Temporal, some clients. */
const MINIMUM_FILES = 512;

/**
 * Returns what is wrong with the limits of a process in the format of /proc/self/limits, in one sentence with what to do; null for
 * enough. Node has raised the limit as far as it may.
 */
export function openFilesProblem(limits: string): string | null {
  const [, files] = /^Max open files\s+(\d+)\s/m.exec(limits) ?? [];
  return files === undefined || Number(files) >= MINIMUM_FILES
    ? null
    : `This process may open ${files} files, and Tributary needs at least ${MINIMUM_FILES}, and one more for each connection: raise the limit ("ulimit -n", LimitNOFILE of systemd, "ulimits" of Compose), then run the command again.`;
}

/** Returns the limits of this process; nothing where the system does not show them. */
function ownLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

/**
 * Ends the process with one sentence when its Node is too old or it may open too few files. An entry point calls it before it
 * imports anything else, because a package may then fail with an error that does not name the reason.
 */
export function requireRuntime(): void {
  const problem = nodeVersionProblem(process.versions.node) ?? openFilesProblem(ownLimits());
  if (problem === null) return;
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
