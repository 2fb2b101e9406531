import { Stack, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** A part of the settings, with its title. */
export function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="surface" aria-label={title} style={{ padding: 24 }}>
      <Title order={2} size="h4" mb="md">
        {title}
      </Title>
      <Stack>{children}</Stack>
    </section>
  );
}
