import { DECISIONS } from './decisions.ts';
import { ENDPOINTS } from './endpoints.ts';
import { MODEL, PROTOCOL } from './specification.ts';

export { DECISIONS } from './decisions.ts';
export { ENDPOINTS } from './endpoints.ts';
export { MODEL, PROTOCOL } from './specification.ts';
export type { PromiseSection } from './promise.ts';

/** The ids of all promises, in the order of the page. */
export const PROMISE_IDS: readonly string[] = [...MODEL, ...ENDPOINTS, ...PROTOCOL, ...DECISIONS].flatMap(
  ({ promises }) => Object.keys(promises),
);
