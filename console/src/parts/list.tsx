import { Box, Button, Group, Text } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { given } from '../api/client.ts';
import { LIVE_MS } from '../api/query-client.ts';
import { formatCount } from '../format.ts';
import { Nothing } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';

/** One page of a list of the API. */
interface ListPage<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
  /** How many rows all pages have, where the API says so. */
  readonly total?: number;
}

/** A list that is read page by page, with the rows that arrived since. */
export interface List<T> {
  readonly query: UseInfiniteQueryResult<InfiniteData<ListPage<T>>>;
  readonly rows: readonly T[];
  /** How many rows there are, also those of pages that were not read. Null if nobody knows. */
  readonly total: number | null;
  /** How many rows arrived since the list was read. */
  readonly newRows: number;
  readonly showNew: () => void;
}

/** How many pages are read at most until one has rows: a page of some filters has few, even none, of many rows examined. */
const MOST_PAGES = 5;

/** How a list is kept up to date. A live one compares rows by their id. */
type ListOptions<T> = (
  | { readonly idOf: (row: T) => string; readonly isLive?: boolean }
  | { readonly idOf?: undefined; readonly isLive?: undefined; readonly isEnabled?: boolean }
) & {
  /** Whether its rows stay while those of another filter are read, so that nothing flickers while somebody types. */
  readonly keepsRows?: boolean;
};

/**
 * Reads a list page by page. `name` has everything that chooses its rows. With `isLive` its first page is read again every
 * few seconds while the page is visible: rows that are shown change, and new ones wait until they are asked for. Without
 * `idOf` all its pages are read again when the window gets the focus.
 */
export function useList<T>(
  name: readonly unknown[],
  readPage: (cursor: { readonly cursor?: string }) => Promise<ListPage<T>>,
  options: ListOptions<T> = {},
): List<T> {
  const { idOf = () => '', isLive = false, keepsRows = false } = options;
  const client = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: [...name, 'pages'],
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam }) => {
      let page: ListPage<T> = await readPage(given({ cursor: pageParam }));
      // The first look for newer rows follows later.
      if (isLive && pageParam === undefined) client.setQueryData([...name, 'head'], page);
      for (
        let turn = 1;
        turn < MOST_PAGES && page.items.length === 0 && page.nextCursor !== null;
        turn += 1
      ) {
        page = await readPage({ cursor: page.nextCursor });
      }
      return page;
    },
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    // Pages that were read stay as they are, so that nothing moves while somebody reads.
    staleTime: isLive ? Infinity : 5_000,
    refetchOnWindowFocus: options.idOf === undefined,
    ...(keepsRows ? { placeholderData: keepPreviousData } : {}),
    enabled: !('isEnabled' in options) || options.isEnabled !== false,
  });
  const head = useQuery({
    queryKey: [...name, 'head'],
    queryFn: async () => await readPage({}),
    enabled: isLive && query.data !== undefined,
    refetchInterval: LIVE_MS,
    staleTime: LIVE_MS,
  });
  const shown = query.data?.pages.flatMap(({ items }) => items) ?? [];
  const latest = isLive && query.data !== undefined ? (head.data?.items ?? []) : [];
  const known = new Set(shown.map((row) => idOf(row)));
  const isNew = (row: T) => !known.has(idOf(row));
  // Rows above the first one that is shown; a row below it appeared by another change, such as of a filter's field.
  const first = latest.findIndex((row) => !isNew(row));
  const fresh = first === -1 ? latest : latest.slice(0, first);
  const current = new Map(latest.map((row) => [idOf(row), row]));
  return {
    query,
    rows: shown.length === 0 ? latest : shown.map((row) => current.get(idOf(row)) ?? row),
    total: query.data?.pages[0]?.total ?? (query.hasNextPage ? null : shown.length),
    newRows: shown.length === 0 ? 0 : fresh.length,
    showNew: () => void client.resetQueries({ queryKey: [...name] }),
  };
}

/** Says below a list that it is cut, and how to see other rows. */
export function ListEnd({ children }: { readonly children: ReactNode }) {
  return (
    <Text size="sm" className="quiet" mt="xs">
      {children}
    </Text>
  );
}

/** What a list without rows shows: what to do to get a first row or to clear its filters, or a text of its own. */
type NothingText =
  | {
      readonly isFiltered: boolean;
      /** What to do to get a first row. */
      readonly nothingYet: ReactNode;
      readonly onClearFilters: () => void;
    }
  | { readonly nothing: ReactNode };

function NothingFound({
  what,
  hasMore,
  ...text
}: { readonly what: string; readonly hasMore: boolean } & NothingText) {
  if ('nothing' in text) return hasMore ? null : text.nothing;
  const { isFiltered, nothingYet, onClearFilters } = text;
  if (!isFiltered) return <Nothing title={`No ${what} yet`}>{nothingYet}</Nothing>;
  return (
    <Nothing title={hasMore ? `No ${what} found so far` : `No ${what} match these filters`}>
      <Button variant="default" size="compact-sm" mt={4} onClick={onClearFilters}>
        Clear the filters
      </Button>
    </Nothing>
  );
}

const hasTotal = (page: ListPage<unknown> | undefined): boolean => page?.total !== undefined;

/** A list with its states: loading, an error, nothing yet, nothing that matches, rows, and more rows. */
export function ListView<T>({
  list,
  what,
  children,
  ...nothing
}: {
  readonly list: List<T>;
  /** The rows in the plural: "events". */
  readonly what: string;
  readonly children: (rows: readonly T[]) => ReactNode;
} & NothingText) {
  const { query, rows, newRows, showNew } = list;
  if (query.data === undefined) {
    return query.error === null ? (
      <Waiting what={what} shape="rows" />
    ) : (
      <ErrorBox error={query.error} retry={() => void query.refetch()} />
    );
  }
  const more = query.hasNextPage && !query.isPlaceholderData && (
    <Button
      variant="default"
      size="compact-sm"
      loading={query.isFetchingNextPage}
      onClick={() => void query.fetchNextPage()}
    >
      {rows.length === 0 && 'nothingYet' in nothing ? 'Search further back' : 'Show more'}
    </Button>
  );
  // A short list needs no count of its rows.
  const isCounted =
    rows.length > 0 && (query.hasNextPage || query.data.pages.length > 1 || hasTotal(query.data.pages[0]));
  return (
    <>
      {/* Always there, so that screen readers announce its changes. */}
      <div role="status">
        {newRows > 0 && (
          <Group justify="center" mb="sm">
            <Button variant="light" size="compact-sm" onClick={showNew}>
              {newRows} new
            </Button>
          </Group>
        )}
      </div>
      <div className="surface" aria-busy={query.isPlaceholderData}>
        {rows.length === 0 ? (
          <NothingFound what={what} hasMore={query.hasNextPage} {...nothing} />
        ) : (
          children(rows)
        )}
        {(isCounted || more) && (
          <Group justify={isCounted ? 'space-between' : 'center'} px="md" py="xs" className="list-end">
            {isCounted && (
              <Text size="sm" className="quiet">
                1 to {formatCount(rows.length)}
                {list.total !== null && ` of ${formatCount(Math.max(list.total, rows.length))}`}
              </Text>
            )}
            {more}
          </Group>
        )}
      </div>
      {query.isFetchNextPageError && (
        <Box mt="sm">
          <ErrorBox error={query.error} retry={() => void query.fetchNextPage()} />
        </Box>
      )}
    </>
  );
}
