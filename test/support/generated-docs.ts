import { conformancePage } from './conformance-page.ts';
import { errorsPage } from './errors-page.ts';
import { readTaggedTests } from './tagged-tests.ts';
import { routes } from '../../src/http/routes.ts';

/** The types of the API that the pages of the console use. */
export const CONSOLE_TYPES = 'console/src/api/schema.d.ts';

/** Returns the generated pages of the documentation, each with the text that it should have. */
export function generatedDocs(): readonly { readonly file: string; readonly text: string }[] {
  return [
    { file: 'docs/errors.md', text: errorsPage(routes) },
    { file: 'docs/conformance.md', text: conformancePage(readTaggedTests().tests) },
  ];
}
