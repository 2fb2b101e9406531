import { mergeThemeOverrides } from '@mantine/core';
import { baseTheme } from './base-theme.ts';

/** The theme of the pages of founders. It names the components, because a module that imports them loads them at once. */
export const theme = mergeThemeOverrides(baseTheme, {
  components: {
    TextInput: { defaultProps: { size: 'sm' } },
    PasswordInput: { defaultProps: { size: 'sm' } },
  },
});
