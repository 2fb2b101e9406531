import { readFileSync, renameSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import type { Storage } from '../../core/src/index.ts';

function read(path: string): Record<string, string> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  try {
    const values: unknown = JSON.parse(text);
    if (typeof values === 'object' && values !== null && !Array.isArray(values))
      return values as Record<string, string>;
  } catch {
    // Damaged: kept beside, so that nothing is lost.
  }
  renameSync(path, `${path}.damaged`);
  return {};
}

/** A state of a visitor who has refused. It is a device's last change, and is to last. */
const REFUSED = /"enabled":false/;

export interface FileStorageOptions {
  /** How many devices the file keeps: those that changed last, and rather those who refused than others. The default is 10,000. */
  readonly maxDevices?: number;
}

/**
 * Returns a storage in one JSON file, for one process. Writes replace the file as a whole, and writes of the same moment
 * share one replacement. A file that exists but cannot be read is not overwritten.
 */
export function fileStorage(path: string, { maxDevices = 10_000 }: FileStorageOptions = {}): Storage {
  let values: Map<string, string> | undefined;
  let writing = Promise.resolve();
  let next: Promise<void> | undefined;

  const load = () => (values ??= new Map(Object.entries(read(path))));
  const write = (): Promise<void> =>
    (next ??= writing = writing
      .catch(() => {})
      .then(async () => {
        next = undefined;
        const text = JSON.stringify(Object.fromEntries(load()));
        await writeFile(`${path}.new`, text, { mode: 0o600 });
        await rename(`${path}.new`, path);
      }));

  return {
    keys: () => [...load().keys()],
    get: (key) => load().get(key) ?? null,
    set: (key, value) => {
      const devices = load();
      // The last one is the one that changed last.
      devices.delete(key);
      devices.set(key, value);
      for (const isRefused of [false, true])
        for (const [oldest, text] of devices) {
          if (devices.size <= maxDevices) return write();
          if (oldest !== key && REFUSED.test(text) === isRefused) devices.delete(oldest);
        }
      return write();
    },
    remove: (key) => {
      load().delete(key);
      return write();
    },
  };
}
