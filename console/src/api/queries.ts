import { useQuery } from '@tanstack/react-query';
import type { QueryClient } from '@tanstack/react-query';
import { startAnew } from '../leave/start-anew.ts';
import { forgetSdkKeys } from '../setup/sdk-key.ts';
import { api, onSessionEnded, otherTabs, read } from './client.ts';
import type { Session } from './client.ts';
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

let currentSessionId: string | null = null;

const isOfSession = ({ queryKey }: { readonly queryKey: readonly unknown[] }) =>
  queryKey[0] !== KEYS.session[0];

/** Forgets what an earlier session saw: it may have other permissions. A page that is shown reads again what it shows. */
function forgetOtherThan(sessionId: string, isFirst: boolean): void {
  if (sessionId === currentSessionId) return;
  currentSessionId = sessionId;
  if (isFirst) forgetSdkKeys();
  queryClient.removeQueries({ predicate: isOfSession, ...(isFirst ? {} : { type: 'inactive' }) });
  if (!isFirst) void queryClient.invalidateQueries({ predicate: isOfSession }, { cancelRefetch: false });
}

/** Who uses the page: an account, and one of its members or nobody. Null before the first session. */
let person: string | null = null;

/** The calls that wait until `person` is signed in again. */
const waiting: ((isRenewed: boolean) => void)[] = [];

function endWaiting(isRenewed: boolean): void {
  for (const end of waiting.splice(0)) end(isRenewed);
}

/** Reads the session again: the page asks to sign in once it knows that there is none. If it cannot know, the calls have failed. */
async function checkSession(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: KEYS.session });
  if (queryClient.getQueryState(KEYS.session)?.status === 'error') endWaiting(false);
}

onSessionEnded(
  async () =>
    await new Promise((resolve) => {
      waiting.push(resolve);
      void checkSession();
    }),
);

// Nothing that is entered here may be sent in the session of somebody who has signed in there.
otherTabs.addEventListener('message', ({ data }) => {
  // Who signs out of one tab leaves all of them.
  if (data === 'ended') startAnew();
  else void checkSession();
});

/** Lets the calls of before go on in a session of the same person. Nothing that was entered is sent in that of another one. */
async function takeSession(session: Session | null): Promise<void> {
  if (session === null) {
    if (person === null) endWaiting(false);
    return;
  }
  const next = `${session.account.id} ${session.member?.id ?? ''}`;
  if (person !== null && person !== next) {
    startAnew();
    // The page ends here.
    await new Promise(() => {});
  }
  forgetOtherThan(session.id, person === null);
  person = next;
  endWaiting(true);
}

export const useSession = () =>
  useQuery({
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
