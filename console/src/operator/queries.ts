import { useQuery } from '@tanstack/react-query';
import { api, read } from '../api/client.ts';
import { createQueryClient, SESSION_KEY } from '../api/query-client.ts';

/** The names under which answers are kept. */
export const KEYS = { session: SESSION_KEY, state: ['state'], stuck: ['stuck'] } as const;

/** How often the state is read again while the page is shown, ms. */
const STATE_MS = 15_000;

export const queryClient = createQueryClient();

let currentSessionId: string | null = null;

export const useOperatorSession = () =>
  useQuery({
    queryKey: KEYS.session,
    queryFn: async () => {
      const { session } = await read(api.GET('/operator/session'));
      // Forgets what an earlier session saw.
      if (session?.id !== currentSessionId) {
        currentSessionId = session?.id ?? null;
        queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
      }
      return { session };
    },
    staleTime: 60_000,
    refetchOnWindowFocus: 'always',
  });

export const useInstallationState = () =>
  useQuery({
    queryKey: KEYS.state,
    queryFn: async () => await read(api.GET('/operator/state')),
    refetchInterval: STATE_MS,
  });

export const useStuckDeliveries = () =>
  useQuery({
    queryKey: KEYS.stuck,
    queryFn: async () => await read(api.GET('/operator/stuck-deliveries')),
    refetchInterval: STATE_MS,
  });
