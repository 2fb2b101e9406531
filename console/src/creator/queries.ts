import { useQuery } from '@tanstack/react-query';
// oxlint-disable-next-line no-restricted-imports -- the session of the founder has no path of a creator
import { api as founderApi, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { createQueryClient, SESSION_KEY } from '../api/query-client.ts';
import { api, seenAs } from './api.ts';

/** The names under which answers are kept. */
export const KEYS = {
  session: SESSION_KEY,
  creator: ['creator'],
  overview: ['overview'],
  links: ['links'],
  sessions: ['sessions'],
  payouts: ['payouts'],
} as const;

export type Creator = Schemas['Creator'];

export const queryClient = createQueryClient();

let currentSessionId: string | null = null;

/** Forgets what an earlier session saw: it may belong to another creator. */
function forgetOtherThan(sessionId: string | null): void {
  if (sessionId === currentSessionId) return;
  currentSessionId = sessionId;
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
}

/** Reads the session of the page: that of the creator, or that of the founder who sees the page. */
export const usePageSession = () =>
  useQuery({
    queryKey: KEYS.session,
    queryFn: async () => {
      const { session } =
        seenAs === null ? await read(api.GET('/creator/session')) : await read(founderApi.GET('/session'));
      forgetOtherThan(session?.id ?? null);
      return { session };
    },
    staleTime: 60_000,
    // Another tab may have signed in as somebody else.
    refetchOnWindowFocus: 'always',
  });

export const useCreator = () =>
  useQuery({
    queryKey: KEYS.creator,
    queryFn: async () => await read(api.GET('/creator')),
    staleTime: 60_000,
  });
