import { useEffect, useId } from 'react';

/** The open dialogs, the one in front last. */
const openIds: string[] = [];

/** The dialog that was in front when a key or the pointer was last pressed: one key closes one dialog, and opens none that it closes. */
let pressedAt: string | undefined;
for (const type of ['keydown', 'pointerdown'] as const)
  addEventListener(type, () => (pressedAt = openIds.at(-1)), { capture: true });

/** Returns a function that says whether a dialog was in front when a key or the pointer was last pressed. */
export function useIsInFront(isOpen: boolean): () => boolean {
  const id = useId();
  useEffect(() => {
    if (!isOpen) return;
    openIds.push(id);
    return () => {
      openIds.splice(openIds.indexOf(id), 1);
    };
  }, [id, isOpen]);
  return () => pressedAt === id;
}
