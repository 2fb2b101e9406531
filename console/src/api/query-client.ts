import { MutationCache, QueryCache, QueryClient, useMutation, useQueryClient } from '@tanstack/react-query';
import type { Mutation, MutationMeta } from '@tanstack/react-query';
import { noteSaved, noteSent } from '../leave/entered-fields.ts';
import { Problem } from './client.ts';

/** How often a page asks again while it waits for something to happen, ms. */
export const LIVE_MS = 3_000;

/** How often sums are read again while the page is shown, ms. */
export const OVERVIEW_MS = 15_000;

/** The name under which the session of a page is kept. */
export const SESSION_KEY = ['session'];

/** A query that is tried once, at once, before the page is shown: the page tries again and says so, also in a hidden tab. */
export const ONCE = { retry: false, networkMode: 'always' } as const;

const isTemporary = (error: unknown) =>
  error instanceof Problem && (error.status === 0 || error.status >= 500);

/** What a mutation says that saves nothing of what is entered. */
const SAVES_NOTHING = { savesNothing: true } as const;

type AnyMutation = Mutation<unknown, unknown, unknown, unknown>;

const isSaving = ({ meta }: AnyMutation): boolean => meta?.['savesNothing'] !== true;

/** Creates what keeps the answers of a page. A 401 means that the session has ended, so the page asks for it again. */
export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (error instanceof Problem && error.status === 401)
          void client.invalidateQueries({ queryKey: SESSION_KEY });
      },
    }),
    // Before the callbacks of the mutation, which may leave the page.
    mutationCache: new MutationCache({
      onMutate: (_input, mutation) => {
        if (isSaving(mutation)) noteSent(mutation);
      },
      onSuccess: (_data, _input, _context, mutation) => {
        if (isSaving(mutation)) noteSaved(mutation);
      },
    }),
    defaultOptions: {
      queries: { retry: (count, error) => count < 2 && isTemporary(error), staleTime: 5_000 },
      mutations: { retry: false },
    },
  });
  return client;
}

type Keys = readonly (readonly string[])[];

function useStaling<I, O>(run: (input: I) => Promise<O>, stale: Keys, meta: MutationMeta) {
  const client = useQueryClient();
  return useMutation<O, Error, I>({
    mutationFn: run,
    meta,
    onSuccess: async () => {
      await Promise.all(stale.map(async (queryKey) => await client.invalidateQueries({ queryKey })));
    },
  });
}

/** Returns a mutation that makes some answers stale. */
export const useChange = <I, O>(change: (input: I) => Promise<O>, ...stale: Keys) =>
  useStaling(change, stale, {});

/**
 * Returns a mutation that saves nothing of what is entered: a step on the way, such as a preview or a key, or what has nothing to do
 * with the form. What is entered still counts as not saved. Makes some answers stale.
 */
export const useStep = <I, O>(step: (input: I) => Promise<O>, ...stale: Keys) =>
  useStaling(step, stale, SAVES_NOTHING);
