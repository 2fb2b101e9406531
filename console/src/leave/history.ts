import { UNSAFE_createBrowserHistory as createBrowserHistory } from 'react-router';
import type { To } from 'react-router';
import { askToLeave, holdsEntries } from './entries.ts';

/** How long the buttons of the browser are quiet before the page that is shown is returned to, ms. */
const QUIET_MS = 50;
/** How long after a return that did not arrive another one is tried, ms. */
const LOST_MS = 500;

/** Returns the place of the present address among those of the tab, as the router numbers them. Null for one that it did not number. */
function positionNow(): number | null {
  const state = window.history.state as { readonly idx?: number } | null;
  return state?.idx ?? null;
}

/**
 * Creates the history of the router, whose navigations a page can hold back: links, the search, and the buttons of the browser.
 * `useBlocker` of the router needs its data routers, which are 16 KiB more.
 *
 * The browser has moved when it reports a button. While the page keeps what was entered, it is brought back to the address of the
 * page, and whatever it tells meanwhile changes nothing: a second press, a return, or both, in any order. Only the place where it
 * ends counts.
 */
export function createGuardedHistory() {
  const history = createBrowserHistory({ window, v5Compat: true });
  /** The page that is shown, and its place. The address of the browser is another one while a button is held. */
  let { pathname } = history.location;
  let shownAt = positionNow() ?? 0;
  /** What waits until the browser is back at the page that is shown. Null: it is there. */
  let waiting: (() => void)[] | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether the next move of the browser was agreed to. */
  let isAllowed = false;

  const whenBack = (go: () => void) => {
    if (waiting === null) go();
    else waiting.push(go);
  };
  const comeBack = () => {
    const away = shownAt - (positionNow() ?? shownAt);
    if (away === 0) {
      const ready = waiting ?? [];
      waiting = null;
      for (const go of ready) go();
      return;
    }
    history.go(away);
    timer = setTimeout(comeBack, LOST_MS);
  };
  /** Keeps the page, and asks once about a move away from it. */
  const hold = (delta: number) => {
    if (waiting === null) {
      waiting = [];
      askToLeave(() =>
        whenBack(() => {
          isAllowed = true;
          history.go(delta);
        }),
      );
    }
    clearTimeout(timer);
    timer = setTimeout(comeBack, QUIET_MS);
  };
  const ask = (to: To, go: () => void) => {
    const next = () => whenBack(go);
    if (history.createURL(to).pathname === pathname) next();
    else askToLeave(next);
  };

  // A fragment that is entered in the address bar makes a place that the router does not number.
  addEventListener('popstate', () => {
    if (positionNow() === null)
      window.history.replaceState({ ...(window.history.state as object | null), idx: shownAt + 1 }, '');
  });

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
    push: (to: To, state?: unknown) => ask(to, () => history.push(to, state)),
    replace: (to: To, state?: unknown) => ask(to, () => history.replace(to, state)),
    listen: (listener: Parameters<typeof history.listen>[0]) =>
      history.listen((update) => {
        const position = positionNow() ?? shownAt;
        if (update.action === 'POP') {
          const isSame = update.location.pathname === pathname || position === shownAt;
          const isFree = isAllowed || isSame || !holdsEntries();
          isAllowed = false;
          if (waiting !== null || !isFree) {
            hold(position - shownAt);
            return;
          }
        }
        ({ pathname } = update.location);
        shownAt = position;
        listener(update);
      }),
  };
}
