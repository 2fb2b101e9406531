import '@mantine/core/styles.css';
import './styles.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router';
import { consoleUrl } from './api/client.ts';
import { queryClient } from './api/queries.ts';
import { App } from './app.tsx';
import { theme } from './theme.ts';

/** The nonce of this page, with which the policy allows the styles that the components add. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? '';
// The name under which the package for locked scrolling looks for it.
Reflect.set(globalThis, '__webpack_nonce__', nonce);

createRoot(document.querySelector('#root') as HTMLElement).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queryClient}>
        <BrowserRouter basename={consoleUrl.pathname.replace(/\/$/, '')}>
          <App />
        </BrowserRouter>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
