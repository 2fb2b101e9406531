import { createContext, use, useEffect } from 'react';

/** Holds the dialog around, and returns what lets it go. Null outside of a dialog. */
export const HoldContext = createContext<(() => () => void) | null>(null);

/** Keeps the dialog around open at Escape and at a press beside it, while what calls this is shown. */
export function useHeldDialog(): void {
  const hold = use(HoldContext);
  useEffect(() => hold?.(), [hold]);
}
