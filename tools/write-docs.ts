import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../src/config/project-root.ts';
import { openApiDocument } from '../src/http/openapi.ts';
import { routeGroups } from '../src/http/routes.ts';
import { CONSOLE_TYPES, generatedDocs } from '../test/support/generated-docs.ts';

for (const { file, text } of generatedDocs()) await writeFile(path.join(projectRoot, file), text);

// The types of the API in the console's pages are generated from the same route table.
const folder = await mkdtemp(path.join(tmpdir(), 'tributary-openapi-'));
try {
  const description = path.join(folder, 'openapi.json');
  await writeFile(description, JSON.stringify(openApiDocument(routeGroups, '/')));
  const types = path.join(projectRoot, CONSOLE_TYPES);
  execFileSync(process.execPath, [path.join(projectRoot, 'tools/console-client.mjs'), description, types], {
    stdio: 'inherit',
  });
} finally {
  await rm(folder, { recursive: true });
}
