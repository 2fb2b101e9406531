import './creator.css';
import { baseTheme } from '../base-theme.ts';
import { consoleUrl } from '../api/client.ts';
import { ONCE } from '../api/query-client.ts';
import { mount } from '../mount.tsx';
import { seenAs } from './api.ts';
import { CreatorApp } from './creator-app.tsx';
import { CREATOR, queryClient, SESSION } from './queries.ts';

/** Waits for what decides which page is shown, so that it is drawn once. Meanwhile the document shows its outline. */
async function prepare(): Promise<void> {
  // It notices from now on that the browser goes offline, or comes back.
  queryClient.mount();
  await queryClient.prefetchQuery({ ...SESSION, ...ONCE });
  if (queryClient.getQueryData(SESSION.queryKey)?.person != null)
    await queryClient.prefetchQuery({ ...CREATOR, ...ONCE });
}

void prepare().then(() =>
  mount(<CreatorApp />, {
    basename: `${consoleUrl.pathname}${seenAs?.path ?? 'creator'}`,
    client: queryClient,
    theme: baseTheme,
  }),
);
