import './creator.css';
import { baseTheme } from '../base-theme.ts';
import { consoleUrl } from '../api/client.ts';
import { mount } from '../mount.tsx';
import { seenAs } from './api.ts';
import { CreatorApp } from './creator-app.tsx';
import { queryClient } from './queries.ts';

mount(<CreatorApp />, {
  basename: `${consoleUrl.pathname}${seenAs?.path ?? 'creator'}`,
  client: queryClient,
  theme: baseTheme,
});
