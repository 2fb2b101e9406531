import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
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

/** A dialog over the page. Its title is no banner of the page, unlike the header of `Modal`. */
export function Dialog({
  isOpen,
  onClose,
  title,
  size,
  isHeld = false,
  children,
}: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly size?: 'md' | 'lg';
  /** Whether Escape and a click outside leave it open. */
  readonly isHeld?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <Modal.Root
      opened={isOpen}
      onClose={onClose}
      size={size ?? 'md'}
      closeOnEscape={!isHeld}
      closeOnClickOutside={!isHeld}
      onExitTransitionEnd={focusPage}
    >
      <Modal.Overlay />
      <Modal.Content ref={keepFocus}>
        <Modal.Body pt="md">
          <Modal.Title mb="md" fw={600} fz={17}>
            {title}
          </Modal.Title>
          {children}
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
