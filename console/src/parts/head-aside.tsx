import { Text } from '@mantine/core';
import { createContext, use } from 'react';
import type { ReactNode } from 'react';
import { createPortal } from 'react-dom';

/** The place beside the title of a page, whose head is drawn before its module is loaded. Null until it is drawn. */
export const HeadSlot = createContext<HTMLElement | null>(null);

/** What a page shows beside its title: the buttons of what is done most. */
export function HeadAside({ children }: { readonly children: ReactNode }) {
  const slot = use(HeadSlot);
  return slot === null ? null : createPortal(children, slot);
}

/** A sentence below the head of a page, for whom it concerns. */
export const HeadNote = ({ children }: { readonly children: ReactNode }) => (
  <Text size="sm" className="quiet" mt={-16} mb="lg">
    {children}
  </Text>
);
