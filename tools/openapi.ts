import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openApiDocument } from '../src/http/openapi.ts';
import { routeGroups } from '../src/http/routes.ts';

/** `npm run openapi`: writes the OpenAPI document to the file in the first argument, or prints it. */
const [file] = process.argv.slice(2);
const text = `${JSON.stringify(openApiDocument(routeGroups, '/'), null, 2)}\n`;
if (file === undefined) {
  process.stdout.write(text);
} else {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}
