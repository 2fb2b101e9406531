import { readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';

/** Returns the text of a file, given its path from the root of the project. */
export const textOf = (file: string): string => readFileSync(path.join(projectRoot, file), 'utf8');
