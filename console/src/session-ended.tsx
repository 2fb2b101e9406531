import { Button, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { Dialog } from './dialog.tsx';

/** The dialog over a page whose session has ended, which hides the page from sight until the same person is signed in again. */
export function SessionEnded({
  isOpen,
  onLeave,
  children,
}: {
  readonly isOpen: boolean;
  /** Leaves the page with what was entered. */
  readonly onLeave: () => void;
  readonly children: ReactNode;
}) {
  return (
    <Dialog isOpen={isOpen} isHeld isPageHidden onClose={onLeave} title="Sign in again">
      <Stack>
        {children}
        <Button variant="default" onClick={onLeave}>
          Leave the page
        </Button>
      </Stack>
    </Dialog>
  );
}
