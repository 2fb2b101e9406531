import { Button, Group, Stack, Text } from '@mantine/core';
import { useCallback, useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import { createEnteredFields, openFields } from './leave/entered-fields.ts';
import { LazyWindow } from './lazy-window.tsx';
import { useIsInFront } from './leave/in-front.ts';
import { useLeaveGuard } from './leave/leave-guard.tsx';
import type { ModalWindowProps } from './modal-window.tsx';
import { ErrorBox } from './parts.tsx';
import { HoldContext } from './parts/held.ts';

/** Keeps the focus in a dialog when the step that had it makes room for the next one. */
function keepFocus(content: HTMLElement): () => void {
  const observer = new MutationObserver(() => {
    if (document.activeElement === document.body) content.focus();
  });
  observer.observe(content, { childList: true, subtree: true });
  return () => observer.disconnect();
}

/** Gives the focus to the page when the button that opened the dialog is gone, so has not got it back. */
function focusPage() {
  const main = document.querySelector('main');
  if (main === null || document.activeElement !== document.body) return;
  main.tabIndex = -1;
  main.focus({ preventScroll: true });
}

interface DialogProps extends Omit<ModalWindowProps, 'onClosed' | 'contentRef'> {
  /** Whether it holds what was entered and not saved before it was opened this time. Its own fields are watched without it. */
  readonly isEdited?: boolean;
}

/**
 * A dialog over the page. Escape, a click outside and leaving the page ask first where something was entered, in whichever step. “Cancel”
 * says itself what it does, and does not ask.
 */
export function Dialog({
  isOpen,
  onClose,
  title,
  size,
  isHeld = false,
  isEdited = false,
  isPageHidden = false,
  children,
}: DialogProps) {
  const isInFront = useIsInFront(isOpen);
  const [holds, setHolds] = useState(0);
  const hold = useCallback(() => {
    setHolds((count) => count + 1);
    return () => setHolds((count) => count - 1);
  }, []);
  const [fields] = useState(createEnteredFields);
  useEffect(() => (isOpen ? openFields(fields) : undefined), [fields, isOpen]);
  const { question, leave } = useLeaveGuard(isOpen, () => isEdited || fields.isEntered());
  const watch = useCallback(
    (content: HTMLDivElement | null) => {
      if (content === null) return;
      const stops = [keepFocus(content), fields.watch(content)];
      return () => {
        for (const stop of stops) stop();
      };
    },
    [fields],
  );
  return (
    <LazyWindow
      isOpen={isOpen}
      onClose={() => {
        if (isInFront()) leave(onClose);
      }}
      title={title}
      {...(size === undefined ? {} : { size })}
      isHeld={isHeld || holds > 0}
      isPageHidden={isPageHidden}
      onClosed={focusPage}
      contentRef={watch}
    >
      <HoldContext value={hold}>{children}</HoldContext>
      {question}
    </LazyWindow>
  );
}

/** What a dialog shows that asks before a change: what the change means, and the button that makes it. */
export function Confirm({
  action,
  color,
  change: { error, isPending },
  onConfirm,
  onClose,
  children,
}: {
  readonly action: string;
  /** Red where the change takes something away. */
  readonly color?: 'red.9';
  readonly change: { readonly error: Error | null; readonly isPending: boolean };
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  return (
    <Stack>
      <Text size="sm">{children}</Text>
      {error !== null && <ErrorBox error={error} />}
      <Group justify="flex-end">
        <Button variant="default" data-autofocus onClick={onClose}>
          Cancel
        </Button>
        <Button {...(color === undefined ? {} : { color })} loading={isPending} onClick={onConfirm}>
          {action}
        </Button>
      </Group>
    </Stack>
  );
}
