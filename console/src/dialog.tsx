import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';

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
    >
      <Modal.Overlay />
      <Modal.Content>
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
