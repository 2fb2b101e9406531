import { queryOptions, useQuery } from '@tanstack/react-query';
// oxlint-disable-next-line no-restricted-imports -- the session of the founder has no path of a creator
import { api as founderApi, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { keepSession } from '../api/kept-session.ts';
import { createQueryClient, SESSION_KEY } from '../api/query-client.ts';
import { holdsEntries } from '../leave/entries.ts';
import { startAnew } from '../leave/start-anew.ts';
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

/** Who uses the page, and whether it stays while nobody is signed in, so that nothing that is entered is lost. */
interface PageSession {
  readonly person: string | null;
  readonly stays: boolean;
}

/** Loads the page of the creator anew, from its start. */
export const startCreatorAnew = (): void => startAnew('creator/');

/**
 * Returns what reads the session of a creator. The page stays without one only while something is entered: otherwise an access that
 * was revoked takes away what the page shows.
 */
function readCreatorSession(): () => Promise<PageSession> {
  const take = keepSession<Schemas['CreatorSession']>({
    client: queryClient,
    path: 'creator/session',
    personOf: ({ affiliateId }) => affiliateId,
    stays: holdsEntries,
    startAnew: startCreatorAnew,
  });
  return async () => {
    const { session } = await read(api.GET('/creator/session'));
    return { stays: await take(session), person: session?.affiliateId ?? null };
  };
}

/** Returns what reads the session of the founder who sees the page as a creator. Nothing is entered there. */
function readFounderSession(): () => Promise<PageSession> {
  let currentId: string | null = null;
  return async () => {
    const { session } = await read(founderApi.GET('/session'));
    const id = session?.id ?? null;
    // Another session may be of another account.
    if (id !== currentId)
      queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
    currentId = id;
    return { stays: false, person: id };
  };
}

const readSession = seenAs === null ? readCreatorSession() : readFounderSession();

/** The session of the page: that of the creator, or that of the founder who sees the page. */
export const SESSION = queryOptions({
  queryKey: KEYS.session,
  queryFn: readSession,
  staleTime: 60_000,
  // Another tab may have signed in as somebody else.
  refetchOnWindowFocus: 'always',
});

export const usePageSession = () => useQuery(SESSION);

export const CREATOR = queryOptions({
  queryKey: KEYS.creator,
  queryFn: async () => await read(api.GET('/creator')),
  staleTime: 60_000,
});

export const useCreator = () => useQuery(CREATOR);
