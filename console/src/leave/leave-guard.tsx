import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { DiscardQuestion } from '../dialog.tsx';
import { guardNavigation } from './history.ts';
import { isStartingAnew } from './start-anew.ts';

/**
 * Asks before another page, the back button or the end of the tab discards what a form of a page holds. Returns the question, to be
 * shown in the page, and a function that leaves without it, for a form that has been sent.
 */
export function useLeaveGuard(isEdited: boolean): readonly [question: ReactNode, release: () => void] {
  const [go, setGo] = useState<(() => void) | null>(null);
  const isReleased = useRef(false);
  const hold = useEffectEvent((next: () => void) => {
    if (isReleased.current) next();
    else setGo(() => next);
  });
  useEffect(() => {
    if (!isEdited) return;
    const stopGuarding = guardNavigation((next) => hold(next));
    const askBrowser = (event: BeforeUnloadEvent) => {
      if (!isReleased.current && !isStartingAnew()) event.preventDefault();
    };
    addEventListener('beforeunload', askBrowser);
    return () => {
      stopGuarding();
      removeEventListener('beforeunload', askBrowser);
    };
  }, [isEdited]);
  const release = () => {
    isReleased.current = true;
  };
  const question = (
    <DiscardQuestion
      isOpen={go !== null}
      onStay={() => setGo(null)}
      onDiscard={() => {
        release();
        setGo(null);
        go?.();
      }}
    />
  );
  return [question, release];
}
