import { Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { ErrorBox, Waiting } from '../parts.tsx';

/** A part of the page with its title. */
export function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section aria-label={title}>
      <Title order={2} size="h4" mb="xs">
        {title}
      </Title>
      {children}
    </section>
  );
}

/** Says above an older answer that the latest query failed. */
export function NotCurrent({
  query,
}: {
  readonly query: { readonly error: Error | null; readonly refetch: () => unknown };
}) {
  return query.error === null ? null : <ErrorBox error={query.error} retry={() => void query.refetch()} />;
}

/** What a section shows until its query has an answer. */
export function NotYet({
  query,
  what,
}: {
  readonly query: { readonly error: Error | null; readonly refetch: () => unknown };
  readonly what: string;
}) {
  return query.error === null ? (
    <Waiting what={what} />
  ) : (
    <ErrorBox error={query.error} retry={() => void query.refetch()} />
  );
}
