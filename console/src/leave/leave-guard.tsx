import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { DiscardQuestion } from './discard-question.tsx';
import { addPlace } from './entries.ts';

interface LeaveGuard {
  /** The question, to be shown in the dialog or the page. */
  readonly question: ReactNode;
  /** Closes by `go`: at once if nothing entered is lost, else if the person agrees. */
  readonly leave: (go: () => void) => void;
  /** Lets what is entered go without a question, because it was saved or given up. */
  readonly release: () => void;
}

/**
 * Asks before what is entered in a dialog or a form is lost: when it is closed, by another page, the back button or the end of the
 * tab. `isShown`: whether it is there at all. `holds` says whether it holds data that was entered and not saved.
 */
export function useLeaveGuard(isShown: boolean, holds: () => boolean): LeaveGuard {
  const [go, setGo] = useState<(() => void) | null>(null);
  const isReleased = useRef(false);
  if (!isShown && go !== null) setGo(null);
  const isHolding = () => !isReleased.current && holds();
  const isHoldingNow = useEffectEvent(isHolding);
  useEffect(() => {
    if (!isShown) return;
    isReleased.current = false;
    return addPlace({ holds: () => isHoldingNow(), ask: (next) => setGo(() => next) });
  }, [isShown]);
  const release = () => {
    isReleased.current = true;
  };
  return {
    question: (
      <DiscardQuestion
        isOpen={go !== null}
        onStay={() => setGo(null)}
        onDiscard={() => {
          release();
          setGo(null);
          go?.();
        }}
      />
    ),
    leave: (next) => {
      if (isHolding()) setGo(() => next);
      else next();
    },
    release,
  };
}
