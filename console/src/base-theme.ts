import { Alert, Anchor, Badge, Button, createTheme } from '@mantine/core';

/** The theme of every page. Each page adds the components that only it has. */
export const baseTheme = createTheme({
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
    Button: Button.extend({
      defaultProps: { size: 'sm', fw: 500 },
      // In the letters of the small buttons beside headings.
      vars: (_, { size }) => ({
        root: size === 'compact-sm' ? { '--button-fz': 'var(--mantine-font-size-xs)' } : {},
      }),
    }),
  },
});
