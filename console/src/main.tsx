import { consoleUrl } from './api/client.ts';
import { queryClient } from './api/queries.ts';
import { App } from './app.tsx';
import { mount } from './mount.tsx';
import { theme } from './theme.ts';

mount(<App />, { basename: consoleUrl.pathname.replace(/\/$/, ''), client: queryClient, theme });
