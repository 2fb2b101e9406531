import { Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';

/** A part of the settings: its title and what it decides, and its fields, in a wide window beside each other. */
export function Section({
  title,
  about,
  children,
}: {
  readonly title: string;
  readonly about: string;
  readonly children: ReactNode;
}) {
  return (
    <section className="settings-part" aria-label={title}>
      <div className="settings-about">
        <Title order={2} size="h4">
          {title}
        </Title>
        <Text size="sm" className="quiet" mt={4}>
          {about}
        </Text>
      </div>
      <Stack className="surface" p={24}>
        {children}
      </Stack>
    </section>
  );
}
