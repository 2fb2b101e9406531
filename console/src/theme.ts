import { mergeThemeOverrides, Modal, PasswordInput, TextInput } from '@mantine/core';
import { baseTheme } from './base-theme.ts';

export const theme = mergeThemeOverrides(baseTheme, {
  components: {
    Modal: Modal.extend({ styles: { title: { fontWeight: 600, fontSize: 17 } } }),
    TextInput: TextInput.extend({ defaultProps: { size: 'sm' } }),
    PasswordInput: PasswordInput.extend({ defaultProps: { size: 'sm' } }),
  },
});
