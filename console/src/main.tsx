import { consoleUrl } from './api/client.ts';
import { ONCE } from './api/query-client.ts';
import { queryClient, SESSION } from './api/queries.ts';
import { App } from './app.tsx';
import { mount } from './mount.tsx';
import { loadPageOf } from './pages.tsx';
import { theme } from './theme.ts';

const basename = consoleUrl.pathname.replace(/\/$/, '');

/**
 * Waits for what decides which page is shown. Meanwhile the document shows its outline. What fails is asked for again by the page
 * itself, which says so.
 */
async function prepare(): Promise<void> {
  loadPageOf(location.pathname.slice(basename.length)).catch(() => {});
  // It notices from now on that the browser goes offline, or comes back.
  queryClient.mount();
  await queryClient.prefetchQuery({ ...SESSION, ...ONCE });
}

void prepare().then(() => mount(<App />, { basename, client: queryClient, theme }));
