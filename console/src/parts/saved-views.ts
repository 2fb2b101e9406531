import { useCurrentSession } from '../session.ts';
import { forgetStored, useStored } from './stored.ts';

/** Filters and an order of a list under a name, as in an address. */
interface SavedView {
  readonly name: string;
  readonly query: string;
}

const PREFIX = 'tributary-views:';

/** How many views a list keeps. The oldest goes first. */
const MOST_VIEWS = 50;
export const MOST_LETTERS = 60;

const isView = (stored: unknown): stored is SavedView =>
  typeof stored === 'object' &&
  stored !== null &&
  'name' in stored &&
  typeof stored.name === 'string' &&
  'query' in stored &&
  typeof stored.query === 'string';

const parseViews = (stored: unknown): readonly SavedView[] =>
  Array.isArray(stored) ? stored.filter((one) => isView(one)) : [];

/** Removes the views of everybody who uses this browser: filters and names may hold ids of users, names and addresses. */
export const forgetViews = (): void => forgetStored(PREFIX);

/**
 * Returns the views of a list that this person has saved in this browser, and what saves and removes one by its name. `appId` is null
 * for a list of the account. Saving returns whether the browser keeps it after the page is closed.
 */
export function useViews(
  list: string,
  appId: string | null,
): {
  readonly views: readonly SavedView[];
  readonly save: (view: SavedView) => boolean;
  readonly remove: (name: string) => void;
} {
  const { account, member } = useCurrentSession();
  const [views, store] = useStored(
    `${PREFIX}${[account.id, member?.id ?? '', appId ?? '', list].join(':')}`,
    parseViews,
  );
  const without = (name: string) => views.filter((view) => view.name !== name);
  return {
    views,
    save: (view) => store([...without(view.name), view].slice(-MOST_VIEWS)),
    remove: (name) => void store(without(name)),
  };
}
