import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

function findProjectRoot(from: string): string {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const manifest = path.join(folder, 'package.json');
    if (
      existsSync(manifest) &&
      (JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string }).name === 'tributary'
    ) {
      return folder;
    }
    if (folder === path.dirname(folder)) throw new Error(`no package.json of tributary above ${from}`);
  }
}

/** The folder of package.json, whether this runs from `src` or from `dist`. Files other than code are found from here. */
export const projectRoot = findProjectRoot(path.dirname(fileURLToPath(import.meta.url)));
