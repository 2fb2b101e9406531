import type { QueryClient } from '@tanstack/react-query';
import { keepSessionWith } from './client.ts';
import { SESSION_KEY } from './query-client.ts';

interface Keeping<S> {
  /** What has the answers of the page. */
  readonly client: QueryClient;
  /** The path of the session in the API, such as `creator/session`. */
  readonly path: string;
  /** Returns who the session is of. Another session of the same person goes on with what was entered. */
  readonly personOf: (session: S) => string;
  /** Whether the page stays, with a sign-in over it, when its session has ended. */
  readonly stays: () => boolean;
  /** Loads the page anew, without anything that was entered. */
  readonly startAnew: () => void;
  /** Called before the first session of the page is taken. */
  readonly onFirst?: () => void;
}

const isOfSession = ({ queryKey }: { readonly queryKey: readonly unknown[] }) =>
  queryKey[0] !== SESSION_KEY[0];

/**
 * Keeps what is entered in a page while its session has ended: calls wait until the same person is signed in again, in this tab or
 * another one, and are then sent. What was entered is never sent in the session of somebody else. Returns a function that takes each
 * session that the page reads, null for none, and says whether the page stays.
 */
export function keepSession<S extends { readonly id: string }>({
  client,
  path,
  personOf,
  stays,
  startAnew,
  onFirst,
}: Keeping<S>): (session: S | null) => Promise<boolean> {
  /** The session that was taken last. It stays when it has ended. */
  let currentId: string | null = null;
  /** Who uses the page. Null before the first session. */
  let person: string | null = null;
  /** The calls that wait until `person` is signed in again. */
  const waiting: ((isRenewed: boolean) => void)[] = [];
  const endWaiting = (isRenewed: boolean) => {
    for (const end of waiting.splice(0)) end(isRenewed);
  };

  /** Reads the session again: the page asks to sign in once it knows that there is none. If it cannot know, the calls have failed. */
  const check = async () => {
    // Also before the page is shown.
    await client.invalidateQueries({ queryKey: SESSION_KEY, refetchType: 'all' });
    if (client.getQueryState(SESSION_KEY)?.status === 'error') endWaiting(false);
  };

  /** Forgets what an earlier session saw: it may have other permissions. A page that is shown reads again what it shows. */
  const forget = (isAll: boolean) => {
    client.removeQueries({ predicate: isOfSession, ...(isAll ? {} : { type: 'inactive' }) });
    if (!isAll) void client.invalidateQueries({ predicate: isOfSession }, { cancelRefetch: false });
  };

  /** The other tabs of the page, which have the same session. Each tab says when it has begun one or ended it. */
  const otherTabs = new BroadcastChannel(`tributary-${path.replaceAll('/', '-')}`);
  otherTabs.addEventListener('message', ({ data }) => {
    // Who signs out of one tab leaves all of them.
    if (data === 'ended') startAnew();
    // Nothing that is entered here may be sent in the session of somebody who has signed in there.
    else void check();
  });

  keepSessionWith({
    path,
    renew: async () =>
      await new Promise((resolve) => {
        waiting.push(resolve);
        void check();
      }),
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has only tabs of this origin
    onChanged: (what) => otherTabs.postMessage(what),
  });

  return async (session) => {
    if (session === null) {
      if (person !== null && stays()) return true;
      if (person !== null) forget(true);
      [person, currentId] = [null, null];
      endWaiting(false);
      return false;
    }
    const next = personOf(session);
    if (person !== null && person !== next) {
      if (stays()) {
        startAnew();
        // The page ends here.
        await new Promise(() => {});
      }
      person = null;
      endWaiting(false);
    }
    if (person === null) onFirst?.();
    if (session.id !== currentId) forget(person === null);
    [person, currentId] = [next, session.id];
    endWaiting(true);
    return true;
  };
}
