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

/**
 * Ends the process with one sentence when its Node is too old. An entry point calls it before it imports anything else,
 * because a package may fail on an old version with an error that does not name the reason.
 */
export function requireNode(): void {
  const problem = nodeVersionProblem(process.versions.node);
  if (problem === null) return;
  process.stderr.write(`${problem}\n`);
  process.exit(1);
}
