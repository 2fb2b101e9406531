/** The heading of what no release contains yet. */
const UNRELEASED = '## Unreleased';

const HEADING = /^## (?<version>\d+\.\d+\.\d+), (?<date>\d{4}-\d{2}-\d{2})$/;

/** Returns the notes of a version from the text of CHANGELOG.md. Throws if it has none. */
export function notesOf(changelog: string, version: string): string {
  const lines = changelog.split('\n');
  const start = lines.findIndex((line) => HEADING.exec(line)?.groups?.['version'] === version);
  if (start === -1) throw new Error(`CHANGELOG.md has no heading "## ${version}, YYYY-MM-DD"`);
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## '));
  const notes = lines.slice(start + 1, length === -1 ? undefined : start + 1 + length);
  const text = notes.join('\n').trim();
  if (text === '') throw new Error(`CHANGELOG.md says nothing about ${version}`);
  return `${text}\n`;
}

/**
 * Gives what is not released yet the heading of a version and its date (YYYY-MM-DD), below a new and empty heading for what comes next. Throws if nothing
 * is listed, or if the version is not above all others.
 */
export function withRelease(changelog: string, version: string, date: string): string {
  const [before = '', after] = changelog.split(`${UNRELEASED}\n`);
  if (after === undefined) throw new Error(`CHANGELOG.md has no heading "${UNRELEASED}"`);
  const notes = after.slice(0, after.search(/^## /m) === -1 ? undefined : after.search(/^## /m));
  if (notes.trim() === '') throw new Error(`CHANGELOG.md lists nothing under "${UNRELEASED}"`);
  const [latest] = after.split('\n').flatMap((line) => HEADING.exec(line)?.groups?.['version'] ?? []);
  if (latest !== undefined && !isNewer(version, latest))
    throw new Error(`${version} is not newer than ${latest}`);
  return `${before}${UNRELEASED}\n\n## ${version}, ${date}\n${after}`;
}

/** Whether a version (MAJOR.MINOR.PATCH) comes after another one. */
export function isNewer(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number));
  const at = (a ?? []).findIndex((number, n) => number !== b?.[n]);
  return at !== -1 && (a?.[at] ?? 0) > (b?.[at] ?? 0);
}
