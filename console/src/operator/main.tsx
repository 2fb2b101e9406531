import '../creator/creator.css';
import './operator.css';
import { baseTheme } from '../base-theme.ts';
import { consoleUrl } from '../api/client.ts';
import { mount } from '../mount.tsx';
import { OperatorApp } from './operator-app.tsx';
import { queryClient } from './queries.ts';

mount(<OperatorApp />, {
  basename: `${consoleUrl.pathname}operator`,
  client: queryClient,
  theme: baseTheme,
});
