import { UNSAFE_createBrowserHistory as createBrowserHistory } from 'react-router';
import type { To } from 'react-router';

/** Decides what becomes of a navigation to another page: calls `go` now, later, or never. */
type Guard = (go: () => void) => void;

let guard: Guard | null = null;

/** Lets a guard decide about each navigation to another page, until the function that it returns is called. */
export function guardNavigation(next: Guard): () => void {
  guard = next;
  return () => {
    if (guard === next) guard = null;
  };
}

/** Leaves the page by `go`, once the guard lets it. */
export function askToLeave(go: () => void): void {
  if (guard === null) go();
  else guard(go);
}

/**
 * Creates the history of the router, whose navigations a page can hold back: links, the search, and the buttons of the browser.
 * `useBlocker` of the router needs its data routers, which are 16 KiB more.
 */
export function createGuardedHistory() {
  const history = createBrowserHistory({ window, v5Compat: true });
  /** The path of the page that is shown. The address of the browser is that of the next page while its back button is held. */
  let { pathname } = history.location;
  /** Whether the next move of the browser undoes one that is held, or was allowed. */
  let isExpected: 'undo' | 'allowed' | null = null;
  const ask = (next: string, go: () => void) => {
    if (guard === null || next === pathname) go();
    else guard(go);
  };
  const pathOf = (to: To) => history.createURL(to).pathname;
  return {
    get action() {
      return history.action;
    },
    get location() {
      return history.location;
    },
    createHref: history.createHref,
    createURL: history.createURL,
    encodeLocation: history.encodeLocation,
    go: history.go,
    push: (to: To, state?: unknown) => ask(pathOf(to), () => history.push(to, state)),
    replace: (to: To, state?: unknown) => ask(pathOf(to), () => history.replace(to, state)),
    listen: (listener: Parameters<typeof history.listen>[0]) =>
      history.listen((update) => {
        const { action, location, delta } = update;
        const expected = isExpected;
        isExpected = null;
        if (expected === 'undo') return;
        const isHeld =
          guard !== null && action === 'POP' && expected === null && location.pathname !== pathname;
        if (isHeld && delta !== null && delta !== 0) {
          isExpected = 'undo';
          history.go(-delta);
          guard?.(() => {
            isExpected = 'allowed';
            history.go(delta);
          });
          return;
        }
        ({ pathname } = location);
        listener(update);
      }),
  };
}
