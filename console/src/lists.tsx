import { Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** What a list shows without rows: that there is nothing yet, or that nothing matches the filters. */
export function Nothing({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <Stack gap={4} p="xl" align="center" ta="center">
      <Text fw={500}>{title}</Text>
      {children !== undefined && (
        <Text size="sm" className="quiet" maw={460} component="div">
          {children}
        </Text>
      )}
    </Stack>
  );
}

/** A part of a page with a heading. */
export function Section({
  id,
  title,
  hint,
  aside,
  children,
}: {
  readonly id: string;
  readonly title: string;
  readonly hint?: ReactNode;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section aria-labelledby={id}>
      <Group justify="space-between" align="flex-end" mb="xs" gap="sm">
        <div style={{ maxWidth: 640 }}>
          <Title order={2} size="h4" id={id}>
            {title}
          </Title>
          {hint !== undefined && (
            <Text size="sm" className="quiet">
              {hint}
            </Text>
          )}
        </div>
        {aside}
      </Group>
      {children}
    </section>
  );
}
