import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { projectRoot } from '../../src/config/project-root.ts';
import { openApiDocument } from '../../src/http/openapi.ts';
import { routeGroups } from '../../src/http/routes.ts';
import { CONSOLE_TYPES } from '../support/generated-docs.ts';
import { textOf } from '../support/text-of.ts';

// Without its packages, the generator writes nothing; with CI set, it fails.
test('the types of the API in the console are those of the route table (update them with npm run docs:write)', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'tributary-types-'));
  try {
    const [description, types] = [path.join(folder, 'openapi.json'), path.join(folder, 'schema.d.ts')];
    await writeFile(description, JSON.stringify(openApiDocument(routeGroups, '/')));
    execFileSync(process.execPath, [path.join(projectRoot, 'tools/console-client.mjs'), description, types]);
    // oxlint-disable-next-line jest/no-conditional-in-test
    if (existsSync(types)) expect(await readFile(types, 'utf8')).toBe(textOf(CONSOLE_TYPES));
  } finally {
    await rm(folder, { recursive: true });
  }
});
