import { readFileSync } from 'node:fs';
import path from 'node:path';
import { projectRoot } from '../../src/config/project-root.ts';
import { errorsPage } from './errors-page.ts';
import { withWorkflowsTable, WORKFLOWS_PAGE } from './workflows-table.ts';
import { routes } from '../../src/http/routes.ts';

/** The types of the API that the pages of the console use. */
export const CONSOLE_TYPES = 'console/src/api/schema.d.ts';

/** Returns the pages of the documentation that are generated, in whole or in part, each with the text that it should have. */
export function generatedDocs(): readonly { readonly file: string; readonly text: string }[] {
  return [
    { file: 'docs/errors.md', text: errorsPage(routes) },
    {
      file: WORKFLOWS_PAGE,
      text: withWorkflowsTable(readFileSync(path.join(projectRoot, WORKFLOWS_PAGE), 'utf8')),
    },
  ];
}
