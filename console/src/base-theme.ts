import { Alert, Anchor, Badge, Button, createTheme } from '@mantine/core';

/** The theme of every page. Each page adds the components that only it has. */
export const baseTheme = createTheme({
  // Windows and menus are there at once for who has asked the system for less motion.
  respectReducedMotion: true,
  primaryColor: 'cyan',
  primaryShade: 9,
  autoContrast: true,
  radius: { xs: '4px', sm: '6px', md: '8px', lg: '12px' },
  defaultRadius: 'sm',
  // Dark surfaces and edges; the page is darker than what lies on it.
  colors: {
    dark: [
      '#e7eaec',
      '#c3c9ce',
      '#a4adb5',
      '#6b757d',
      '#343b41',
      '#262c31',
      '#1b2024',
      '#14181b',
      '#0f1315',
      '#0c0f11',
    ],
  },
  fontFamily: '"Inter Variable", "Inter Fallback", system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontSizes: { xs: '12px', sm: '14px', md: '14px', lg: '16px', xl: '20px' },
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: {
    fontWeight: '600',
    sizes: {
      h1: { fontSize: '28px', lineHeight: '1.25' },
      h2: { fontSize: '20px', lineHeight: '1.3' },
      h3: { fontSize: '16px', lineHeight: '1.4' },
      h4: { fontSize: '16px', lineHeight: '1.4' },
    },
  },
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
