import { startTransition, useEffect, useRef, useState } from 'react';

/** How long after a press its click may come, ms. */
const CLICK_MS = 50;

/** Which control of a bar is open, by the name of its filter. */
export interface OpenControl {
  readonly open: string | null;
  /** Whether the chip of a filter without a value is shown: while its control is open, and while the press lasts that closes it. */
  readonly shows: (name: string) => boolean;
  readonly show: (name: string) => void;
  readonly close: (name: string) => void;
}

/** Opens one control at a time. */
export function useOpenControl(): OpenControl {
  const [open, setOpen] = useState<string | null>(null);
  // A chip that goes away while a pointer is pressed would move what is pressed away from under it.
  const [leaving, setLeaving] = useState<string | null>(null);
  const isPressed = useRef(false);
  useEffect(() => {
    const press = () => {
      isPressed.current = true;
    };
    const release = () => {
      isPressed.current = false;
      setTimeout(() => setLeaving(null), CLICK_MS);
    };
    addEventListener('pointerdown', press, true);
    addEventListener('pointerup', release, true);
    addEventListener('pointercancel', release, true);
    return () => {
      removeEventListener('pointerdown', press, true);
      removeEventListener('pointerup', release, true);
      removeEventListener('pointercancel', release, true);
    };
  }, []);
  return {
    open,
    shows: (name) => name === open || name === leaving,
    show: setOpen,
    // Together with the address, whose change is a transition: a chip that has just got its value must not go away in between.
    close: (name) =>
      startTransition(() => {
        setOpen((now) => (now === name ? null : now));
        if (isPressed.current) setLeaving(name);
      }),
  };
}
