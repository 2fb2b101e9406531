/** A sign-in link that was opened and not yet used. */
export interface SignInLink {
  readonly token: string;
  readonly isNew: boolean;
}

/** Reads the token of a sign-in link, and removes it from the address bar and the history. */
export function takeLink(): SignInLink | null {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get('token');
  if (token === null) return null;
  history.replaceState(null, '', location.pathname + location.search);
  return { token, isNew: fragment.get('new') === '1' };
}

/** The link with which the page was loaded, taken once: the fragment is gone afterwards. */
export const openedLink = takeLink();
