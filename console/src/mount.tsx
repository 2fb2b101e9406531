import '@mantine/core/styles.css';
import './fonts.css';
import './styles.css';
import { MantineProvider } from '@mantine/core';
import type { MantineThemeOverride } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import type { QueryClient } from '@tanstack/react-query';
import { StrictMode, useLayoutEffect } from 'react';
import type { ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { unstable_HistoryRouter as HistoryRouter } from 'react-router';
import { createGuardedHistory } from './leave/history.ts';

/** The nonce of this page, with which the policy allows the styles that the components add. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
// The name under which the package for locked scrolling looks for it.
Reflect.set(globalThis, '__webpack_nonce__', nonce);

/** Removes the outline of the document (outline.html) when the page is there. */
function WithoutOutline({ children }: { readonly children: ReactNode }) {
  useLayoutEffect(() => document.querySelector('#outline')?.remove(), []);
  return children;
}

/** Shows a page. `basename` is its path, without a slash at the end. */
export function mount(
  page: ReactNode,
  {
    basename,
    client,
    theme,
  }: { readonly basename: string; readonly client: QueryClient; readonly theme: MantineThemeOverride },
): void {
  createRoot(document.querySelector('#root') as HTMLElement).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
        <QueryClientProvider client={client}>
          <HistoryRouter basename={basename} history={createGuardedHistory()}>
            <WithoutOutline>{page}</WithoutOutline>
          </HistoryRouter>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
