import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useId, useRef, useState } from 'react';
import type { FocusEvent, ReactNode } from 'react';
import { ErrorBox } from './parts.tsx';

/** Keeps the focus in a dialog when the step that had it makes room for the next one. */
function keepFocus(content: HTMLDivElement | null) {
  if (content === null) return;
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

/** The open dialogs, the one in front last. */
const openIds: string[] = [];

/** The dialog that was in front when a key or the pointer was last pressed: one key closes one dialog, and opens none that it closes. */
let pressedAt: string | undefined;
for (const type of ['keydown', 'pointerdown'] as const)
  addEventListener(type, () => (pressedAt = openIds.at(-1)), { capture: true });

/** Returns a function that says whether a dialog was in front when a key or the pointer was last pressed. */
function useIsInFront(isOpen: boolean): () => boolean {
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

type TextField = HTMLInputElement | HTMLTextAreaElement;

/** Whether a field holds text that somebody enters. A key is pasted from elsewhere, and what searches a list enters nothing. */
const isTextField = (target: EventTarget): target is TextField =>
  target instanceof HTMLTextAreaElement ||
  (target instanceof HTMLInputElement &&
    !['checkbox', 'radio', 'password'].includes(target.type) &&
    target.getAttribute('aria-haspopup') !== 'listbox');

/** Returns what finds out whether text was entered in a dialog and not sent. */
function useEnteredText(isOpen: boolean) {
  const client = useQueryClient();
  /** What each field held when it got the focus, or when something was last sent. */
  const before = useRef(new Map<TextField, string>());
  useEffect(() => {
    if (!isOpen) return;
    const fields = before.current;
    const stop = client.getMutationCache().subscribe((event) => {
      if (event.type !== 'updated' || event.action.type !== 'success') return;
      for (const field of fields.keys()) fields.set(field, field.value);
    });
    return () => {
      stop();
      fields.clear();
    };
  }, [client, isOpen]);
  return {
    remember: ({ target }: FocusEvent) => {
      if (isTextField(target) && !before.current.has(target)) before.current.set(target, target.value);
    },
    isEntered: () => [...before.current].some(([field, text]) => field.isConnected && field.value !== text),
  };
}

interface DialogProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly size?: 'md' | 'lg';
  /** Whether Escape and a click outside leave it open. */
  readonly isHeld?: boolean;
  /** Whether it holds what was entered in a step that is not shown now. */
  readonly isEdited?: boolean;
  /** Hides the page behind it from sight. */
  readonly isPageHidden?: boolean;
  readonly children: ReactNode;
}

/**
 * A dialog over the page. Its title is no banner of the page, unlike the header of `Modal`. Escape and a click outside ask first where
 * text was entered.
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
  const entered = useEnteredText(isOpen);
  const [isAsking, setIsAsking] = useState(false);
  if (!isOpen && isAsking) setIsAsking(false);
  const close = () => {
    if (!isInFront()) return;
    if (isEdited || entered.isEntered()) setIsAsking(true);
    else onClose();
  };
  return (
    <Modal.Root
      opened={isOpen}
      onClose={close}
      size={size ?? 'md'}
      closeOnEscape={!isHeld}
      closeOnClickOutside={!isHeld}
      onExitTransitionEnd={focusPage}
    >
      <Modal.Overlay {...(isPageHidden ? { blur: 6 } : {})} />
      <Modal.Content ref={keepFocus} onFocusCapture={entered.remember}>
        <Modal.Body pt="md">
          <Modal.Title mb="md" fw={600} fz={17}>
            {title}
          </Modal.Title>
          {children}
          <DiscardQuestion
            isOpen={isAsking}
            onStay={() => setIsAsking(false)}
            onDiscard={() => {
              setIsAsking(false);
              onClose();
            }}
          />
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

/** Asks before what was entered in a dialog or on a page is lost. */
export function DiscardQuestion({
  isOpen,
  onStay,
  onDiscard,
}: {
  readonly isOpen: boolean;
  readonly onStay: () => void;
  readonly onDiscard: () => void;
}) {
  const isInFront = useIsInFront(isOpen);
  return (
    <Modal.Root
      opened={isOpen}
      onClose={() => {
        if (isInFront()) onStay();
      }}
    >
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Body pt="md">
          <Modal.Title mb="md" fw={600} fz={17}>
            Discard what you entered?
          </Modal.Title>
          <Stack>
            <Text size="sm">It was not saved.</Text>
            <Group justify="flex-end">
              <Button variant="default" data-autofocus onClick={onStay}>
                Keep editing
              </Button>
              <Button color="red.9" onClick={onDiscard}>
                Discard
              </Button>
            </Group>
          </Stack>
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
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
