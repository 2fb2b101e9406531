import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { generatedDocs } from '../support/generated-docs.ts';

test.each(generatedDocs().map(({ file, text }) => [file, text] as const))(
  '%s is up to date (npm run docs:write updates it)',
  async (file, text) => {
    expect(await readFile(path.join(projectRoot, file), 'utf8')).toBe(text);
  },
);
