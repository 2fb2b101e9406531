import { errorsPage } from './errors-page.ts';
import { routes } from '../../src/http/routes/index.ts';

/** The pages of the documentation that are made of code, as they should be now. */
export function generatedDocs(): readonly { readonly file: string; readonly text: string }[] {
  return [{ file: 'docs/errors.md', text: errorsPage(routes) }];
}
