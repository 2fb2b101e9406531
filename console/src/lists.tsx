import { Group, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** What a list shows without rows: that there is nothing yet, or that nothing matches the filters. */
export function Nothing({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <Stack gap={4} p="lg" align="flex-start">
      <Text size="sm" fw={600}>
        {title}
      </Text>
      {children !== undefined && (
        <Text size="sm" className="quiet" maw={560} component="div">
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
      <Stack gap={4} mb="xs">
        {/* What it offers is beside its name, also where the text below takes several lines. */}
        <Group justify="space-between" gap="xs">
          <Title order={2} size="h4" id={id}>
            {title}
          </Title>
          {aside}
        </Group>
        {hint !== undefined && (
          <Text size="sm" className="quiet" maw={640}>
            {hint}
          </Text>
        )}
      </Stack>
      {children}
    </section>
  );
}
