import { readFileSync, readdirSync } from 'node:fs';

export * from '../../demo/provider-payloads.ts';

const ROOT = new URL('../fixtures/providers/', import.meta.url);

/** The names of a provider's fixtures, without their ending. */
export function fixtureNames(provider: string): readonly string[] {
  const files = readdirSync(new URL(`${provider}/`, ROOT));
  return files.map((file) => file.replace(/\.json$/, '')).toSorted();
}

/** A fixture's bytes, as they would arrive. */
export function fixture(provider: string, name: string): Buffer {
  return readFileSync(new URL(`${provider}/${name}.json`, ROOT));
}
