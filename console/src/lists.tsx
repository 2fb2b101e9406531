import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorBox, Waiting } from './parts.tsx';

interface ListPage<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** Reads a list of the API page by page. `rows` is undefined until the first page is there. */
export function useList<T>(
  queryKey: readonly unknown[],
  readPage: (cursor: string | undefined) => Promise<ListPage<T>>,
  options: { readonly enabled?: boolean; readonly refetchInterval?: number } = {},
) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: async ({ pageParam }) => await readPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextCursor ?? undefined,
    ...options,
  });
  return {
    rows: query.data?.pages.flatMap(({ items }) => items),
    error: query.error,
    retry: () => void query.refetch(),
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    loadMore: () => void query.fetchNextPage(),
  };
}

export type List<T> = ReturnType<typeof useList<T>>;

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

/** A list with its states: loading, error, nothing, rows, more. `children` gets the rows. */
export function ListSurface<T>({
  list,
  what,
  nothing,
  children,
}: {
  readonly list: List<T>;
  /** Completes "Loading … ". */
  readonly what: string;
  readonly nothing: ReactNode;
  readonly children: (rows: readonly T[]) => ReactNode;
}) {
  const { rows, error, retry } = list;
  return (
    <>
      <div className="surface">
        {error !== null && <ErrorBox error={error} retry={retry} />}
        {rows === undefined && error === null && <Waiting what={what} />}
        {/* A page of a filter without an index may have no rows, and more pages. */}
        {rows?.length === 0 && !list.hasMore && nothing}
        {rows !== undefined && rows.length > 0 && children(rows)}
      </div>
      {list.hasMore && (
        <Group justify="center" mt="sm">
          <Button variant="default" loading={list.isLoadingMore} onClick={list.loadMore}>
            Load more
          </Button>
        </Group>
      )}
    </>
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
