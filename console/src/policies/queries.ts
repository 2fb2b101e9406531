import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { api, given, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useList } from '../parts/list.tsx';
import { isAhead } from './effective.tsx';

export type Policy = Schemas['Policy'];
export type Version = Schemas['PolicyVersion'];
export type Assignment = Schemas['PolicyAssignment'];
export type AffiliateGroup = Schemas['AffiliateGroup'];

/** The queries whose answers a change of policies or groups makes stale. */
export const staleAfterTerms = (appId: string) =>
  [
    ['policies', appId],
    ['policy-versions', appId],
    ['policy-assignments', appId],
    ['groups', appId],
    ['group-members', appId],
    ['terms', appId],
  ] as const;

const PAGE = 100;
/** How many pages are read at most where all rows are needed. */
const MOST_PAGES = 10;

interface ListPage<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** All rows of a list, up to a thousand. */
interface AllRows<T> {
  readonly rows: readonly T[];
  /** Whether there are more. */
  readonly isCut: boolean;
}

async function readAll<T>(
  readPage: (query: { readonly limit: number; readonly cursor?: string }) => Promise<ListPage<T>>,
): Promise<AllRows<T>> {
  const rows: T[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await readPage({ limit: PAGE, ...given({ cursor }) });
    rows.push(...page.items);
    if (page.nextCursor === null) return { rows, isCut: false };
    cursor = page.nextCursor;
  }
  return { rows, isCut: true };
}

/** Reads the policies page by page, as a list shows them. */
export const usePolicyList = (appId: string, isArchived: boolean) =>
  useList(
    ['policies', appId, 'list', isArchived],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/policies', {
          params: { path: { appId }, query: { ...cursor, ...(isArchived && { archived: true }) } },
        }),
      ),
  );

/** Reads the policies to choose one. */
export const usePolicies = (appId: string) =>
  useQuery({
    queryKey: ['policies', appId, 'all'],
    queryFn: async () =>
      await readAll(
        async (query) =>
          await read(api.GET('/apps/{appId}/policies', { params: { path: { appId }, query } })),
      ),
  });

export const usePolicy = (appId: string, policyId: string, enabled: boolean) =>
  useQuery({
    queryKey: ['policies', appId, policyId],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/policies/{policyId}', { params: { path: { appId, policyId } } })),
    enabled,
  });

/** Reads the groups. There are few. */
export const useGroups = (appId: string) =>
  useQuery({
    queryKey: ['groups', appId],
    queryFn: async () =>
      await readAll(
        async (query) => await read(api.GET('/apps/{appId}/groups', { params: { path: { appId }, query } })),
      ),
  });

/** Reads a group. */
export const useGroup = (appId: string, groupId: string, enabled = true) =>
  useQuery({
    queryKey: ['groups', appId, groupId],
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/groups/{groupId}', { params: { path: { appId, groupId } } })),
    enabled,
  });

/** Reads what is assigned now and later, the latest first: of the app with all its groups and creators, or of one group. */
export const useAssignments = (appId: string, groupId?: string) =>
  useQuery({
    queryKey: ['policy-assignments', appId, groupId ?? ''],
    queryFn: async () => {
      const { rows, isCut } = await readAll(
        async (query) =>
          await read(
            api.GET('/apps/{appId}/policy-assignments', {
              params: { path: { appId }, query: { ...query, ...given({ groupId }) } },
            }),
          ),
      );
      return { rows: rows.filter(({ state }) => state !== 'past'), isCut };
    },
  });

/** The longest time that a page waits to read again what has changed, ms. */
const LONGEST_WAIT_MS = 3_600_000;

/** Reads the terms again when the next of some instants has come, so that what takes effect in two minutes is shown then. */
export function useRefreshAt(appId: string, instants: readonly number[]): void {
  const client = useQueryClient();
  const next = Math.min(...instants.filter(isAhead));
  useEffect(() => {
    const wait = next - Date.now() + 1_000;
    if (wait > LONGEST_WAIT_MS) return;
    const timer = setTimeout(() => {
      for (const queryKey of staleAfterTerms(appId)) void client.invalidateQueries({ queryKey });
    }, wait);
    return () => clearTimeout(timer);
  }, [client, appId, next]);
}
