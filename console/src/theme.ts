import { Alert, Anchor, Badge, Button, createTheme, Modal, PasswordInput, TextInput } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'cyan',
  primaryShade: 9,
  autoContrast: true,
  defaultRadius: 'md',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: { fontWeight: '600' },
  components: {
    Alert: Alert.extend({ styles: { title: { color: 'var(--mantine-color-text)' } } }),
    Anchor: Anchor.extend({ defaultProps: { underline: 'always', c: 'var(--tri-accent)' } }),
    Badge: Badge.extend({
      styles: { root: { overflow: 'visible', maxWidth: 'none' }, label: { overflow: 'visible' } },
    }),
    Button: Button.extend({ defaultProps: { size: 'sm', fw: 500 } }),
    Modal: Modal.extend({ styles: { title: { fontWeight: 600, fontSize: 17 } } }),
    TextInput: TextInput.extend({ defaultProps: { size: 'sm' } }),
    PasswordInput: PasswordInput.extend({ defaultProps: { size: 'sm' } }),
  },
});
