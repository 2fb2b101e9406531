import { useEffect, useEffectEvent, useState } from 'react';
import { askToLeave } from './leave/entries.ts';

/** A sign-in link that was opened and not yet used. */
export interface SignInLink {
  readonly token: string;
  readonly isNew: boolean;
}

/** Reads the token of a sign-in link, and removes it from the address bar and the history. */
function takeLink(): SignInLink | null {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get('token');
  if (token === null) return null;
  history.replaceState(history.state, '', location.pathname + location.search);
  return { token, isNew: fragment.get('new') === '1' };
}

/** The link with which the page was loaded, taken once: the fragment is gone afterwards. */
const openedLink = takeLink();

/**
 * Returns the sign-in link that was opened last, or null, and a function that closes it. `isSignedIn`: a link takes the place of the
 * page, which asks before it loses what was entered.
 */
export function useSignInLink(isSignedIn: boolean): readonly [link: SignInLink | null, close: () => void] {
  const [link, setLink] = useState(openedLink);
  const open = useEffectEvent((pasted: SignInLink) => {
    if (isSignedIn) askToLeave(() => setLink(pasted));
    else setLink(pasted);
  });
  // A link that is pasted where the page is shown already only changes the fragment: the page is not loaded again.
  useEffect(() => {
    const take = () => {
      const pasted = takeLink();
      if (pasted !== null) open(pasted);
    };
    // Or while the page waits for its session.
    take();
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, []);
  return [link, () => setLink(null)];
}
