import { readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from './project-root.ts';

/** The version of this process. Read once: an update may replace the files under a running process. */
export const SERVICE_VERSION: string = (
  JSON.parse(readFileSync(path.join(projectRoot, 'package.json'), 'utf8')) as { version: string }
).version;
