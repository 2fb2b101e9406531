import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../src/config/project-root.ts';
import { generatedDocs } from '../test/support/generated-docs.ts';

for (const { file, text } of generatedDocs()) await writeFile(path.join(projectRoot, file), text);
