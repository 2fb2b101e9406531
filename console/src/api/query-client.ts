import { QueryCache, QueryClient, useMutation, useQueryClient } from '@tanstack/react-query';
import { Problem } from './client.ts';

/** How often a page asks again while it waits for something to happen, ms. */
export const LIVE_MS = 3_000;

/** How often sums are read again while the page is shown, ms. */
export const OVERVIEW_MS = 15_000;

/** The name under which the session of a page is kept. */
export const SESSION_KEY = ['session'];

const isTemporary = (error: unknown) =>
  error instanceof Problem && (error.status === 0 || error.status >= 500);

/** Creates what keeps the answers of a page. A 401 means that the session has ended, so the page asks for it again. */
export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (error instanceof Problem && error.status === 401)
          void client.invalidateQueries({ queryKey: SESSION_KEY });
      },
    }),
    defaultOptions: {
      queries: { retry: (count, error) => count < 2 && isTemporary(error), staleTime: 5_000 },
      mutations: { retry: false },
    },
  });
  return client;
}

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
