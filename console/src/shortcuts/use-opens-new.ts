import { useEffect, useEffectEvent } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { askToLeave } from '../leave/entries.ts';

/** The state of a navigation to a page on which something is to be created at once. */
export const OPENS_NEW = { opensNew: true } as const;

/** Calls `open` once after a navigation with `OPENS_NEW`, and not again when the page is reloaded or returned to. */
export function useOpensNew(open: () => void): void {
  const navigate = useNavigate();
  const { state, pathname, search } = useLocation() as { state: unknown; pathname: string; search: string };
  const opens = typeof state === 'object' && state !== null && 'opensNew' in state;
  const onOpen = useEffectEvent(() => {
    askToLeave(open);
    void navigate({ pathname, search }, { replace: true, state: null });
  });
  useEffect(() => {
    if (opens) onOpen();
  }, [opens]);
}
