import { queryOptions, useQuery } from '@tanstack/react-query';
import type { QueryClient } from '@tanstack/react-query';
import { startAnew } from '../leave/start-anew.ts';
import { forgetSdkKeys } from '../setup/sdk-key.ts';
import { api, read } from './client.ts';
import type { Session } from './client.ts';
import { keepSession } from './kept-session.ts';
import { createQueryClient, OVERVIEW_MS, SESSION_KEY } from './query-client.ts';

/** The names under which answers are kept. */
export const KEYS = {
  session: SESSION_KEY,
  apps: ['apps'],
  keys: ['keys'],
  sessions: ['sessions'],
  setup: (appId: string) => ['setup', appId],
  identity: (appId: string) => ['identity', appId],
  links: (appId: string) => ['links', appId],
} as const;

export { LIVE_MS } from './query-client.ts';

export const queryClient: QueryClient = createQueryClient();

/** A page of founders stays when its session has ended, whether something is entered or not. */
const takeSession = keepSession<Session>({
  client: queryClient,
  path: 'session',
  personOf: ({ account, member }) => `${account.id} ${member?.id ?? ''}`,
  stays: () => true,
  startAnew,
  onFirst: forgetSdkKeys,
});

export const SESSION = queryOptions({
  queryKey: KEYS.session,
  queryFn: async () => {
    const current = await read(api.GET('/session'));
    await takeSession(current.session);
    return current;
  },
  staleTime: 60_000,
  // Another tab may have signed in with another account.
  refetchOnWindowFocus: 'always',
});

export const useSession = () => useQuery(SESSION);

export const useApps = () =>
  useQuery({ queryKey: KEYS.apps, queryFn: async () => await read(api.GET('/apps')), staleTime: 60_000 });

/** Reads the sums of all time of an app, of which the first page needs one, too. */
export const useOverview = (appId: string, enabled: boolean) =>
  useQuery({
    queryKey: ['overview', appId],
    queryFn: async () => await read(api.GET('/apps/{appId}/overview', { params: { path: { appId } } })),
    enabled,
    refetchInterval: OVERVIEW_MS,
  });

export { useChange, useStep } from './query-client.ts';
