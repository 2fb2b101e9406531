import { Modal } from '@mantine/core';
import { useMounted } from '@mantine/hooks';
import type { ReactNode, Ref } from 'react';

export interface ModalWindowProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly size?: 'md' | 'lg';
  /** Whether Escape and a click outside leave it open. */
  readonly isHeld?: boolean;
  /** Hides the page behind it from sight. */
  readonly isPageHidden?: boolean;
  readonly onClosed?: () => void;
  readonly contentRef?: Ref<HTMLDivElement>;
  readonly children: ReactNode;
}

/** A window over the page. Its title is no banner of the page, unlike the header of `Modal`. */
export function ModalWindow({
  isOpen,
  onClose,
  title,
  size = 'md',
  isHeld = false,
  isPageHidden = false,
  onClosed,
  contentRef,
  children,
}: ModalWindowProps) {
  // Opens after it is there: only then does it keep what had the focus, and give the focus back.
  const isThere = useMounted();
  return (
    <Modal.Root
      opened={isOpen && isThere}
      onClose={onClose}
      size={size}
      closeOnEscape={!isHeld}
      closeOnClickOutside={!isHeld}
      {...(onClosed === undefined ? {} : { onExitTransitionEnd: onClosed })}
    >
      <Modal.Overlay {...(isPageHidden ? { blur: 6 } : {})} />
      <Modal.Content {...(contentRef === undefined ? {} : { ref: contentRef })}>
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
