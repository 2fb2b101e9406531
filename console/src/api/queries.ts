import { QueryCache, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { forgetSdkKeys } from '../setup/sdk-key.ts';
import { api, Problem, read } from './client.ts';

/** The names under which answers are kept. */
export const KEYS = {
  session: ['session'],
  apps: ['apps'],
  keys: ['keys'],
  sessions: ['sessions'],
  setup: (appId: string) => ['setup', appId],
  identity: (appId: string) => ['identity', appId],
  links: (appId: string) => ['links', appId],
} as const;

/** How often a page asks again while it waits for something to happen, ms. */
export const LIVE_MS = 3_000;

const isTemporary = (error: unknown) =>
  error instanceof Problem && (error.status === 0 || error.status >= 500);

export const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      // The session has ended, so the page asks for a new one.
      if (error instanceof Problem && error.status === 401) {
        void queryClient.invalidateQueries({ queryKey: KEYS.session });
      }
    },
  }),
  defaultOptions: {
    queries: { retry: (count, error) => count < 2 && isTemporary(error), staleTime: 5_000 },
    mutations: { retry: false },
  },
});

let currentSessionId: string | null = null;

/** Forgets what an earlier session saw: it may belong to another account, or have other permissions. */
function forgetOtherThan(sessionId: string | null): void {
  if (sessionId === currentSessionId) return;
  currentSessionId = sessionId;
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== KEYS.session[0] });
  forgetSdkKeys();
}

export const useSession = () =>
  useQuery({
    queryKey: KEYS.session,
    queryFn: async () => {
      const current = await read(api.GET('/session'));
      forgetOtherThan(current.session?.id ?? null);
      return current;
    },
    staleTime: 60_000,
    // Another tab may have signed in with another account.
    refetchOnWindowFocus: 'always',
  });

export const useApps = () =>
  useQuery({ queryKey: KEYS.apps, queryFn: async () => await read(api.GET('/apps')), staleTime: 60_000 });

/** Returns a mutation that makes some answers stale. */
export function useChange<I, O>(change: (input: I) => Promise<O>, ...stale: readonly (readonly string[])[]) {
  const client = useQueryClient();
  return useMutation<O, Error, I>({
    mutationFn: change,
    onSuccess: async () => {
      await Promise.all(stale.map(async (queryKey) => await client.invalidateQueries({ queryKey })));
    },
  });
}
