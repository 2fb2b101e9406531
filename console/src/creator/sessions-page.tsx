import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/query-client.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { formatAgo, formatBrowser, formatInstant } from '../format.ts';
import { ErrorBox, PageHead, Waiting } from '../parts.tsx';
import { api } from './api.ts';
import { KEYS } from './queries.ts';
import { SessionBrowser } from '../session-browser.tsx';

type ListedSession = Schemas['ListedCreatorSession'];

/** Signs another browser out, or all others, after a question. */
function SignOut({
  which,
  onClose,
}: {
  readonly which: ListedSession | 'others';
  readonly onClose: () => void;
}) {
  const end = useChange(
    async () =>
      await read(
        which === 'others'
          ? api.POST('/creator/sessions/end-all')
          : api.POST('/creator/sessions/{id}/end', { params: { path: { id: which.id } } }),
      ),
    KEYS.sessions,
  );
  const confirm = {
    color: 'red.9',
    change: end,
    onConfirm: () => end.mutate(undefined, { onSuccess: onClose }),
    onClose,
  } as const;
  return which === 'others' ? (
    <Confirm action="Sign all others out" {...confirm}>
      Every other browser that is signed in to your page is signed out at once. To sign in again, each needs
      your link. This one stays signed in.
    </Confirm>
  ) : (
    <Confirm action="Sign it out" {...confirm}>
      {formatBrowser(which.userAgent)}, signed in since {formatInstant(which.createdAt)}, is signed out at
      once. To sign in again, it needs your link.
    </Confirm>
  );
}

export default function SessionsPage() {
  const sessions = useQuery({
    queryKey: KEYS.sessions,
    queryFn: async () => await read(api.GET('/creator/sessions')),
  });
  const [ending, setEnding] = useState<ListedSession | 'others' | null>(null);
  const close = () => setEnding(null);
  const rows = sessions.data?.sessions ?? [];
  return (
    <>
      <PageHead
        title="Devices"
        aside={
          rows.length > 1 && (
            <Button variant="default" onClick={() => setEnding('others')}>
              Sign all others out …
            </Button>
          )
        }
      >
        Browsers that are signed in to your page. Sign out what you do not know. A browser is signed out after
        90 days without use.
      </PageHead>
      <div className="surface">
        {sessions.error !== null && <ErrorBox error={sessions.error} retry={() => void sessions.refetch()} />}
        {sessions.data === undefined && sessions.error === null && <Waiting what="your devices" />}
        {sessions.data !== undefined && (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Browser</th>
                <th scope="col">Last used</th>
                <th scope="col">
                  <span className="spoken">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td>
                    <SessionBrowser session={row} />
                  </td>
                  <td className="quiet">{formatAgo(row.lastUsedAt)}</td>
                  <td className="files">
                    {!row.isCurrent && (
                      <Button
                        variant="default"
                        size="compact-sm"
                        aria-label={`Sign out ${formatBrowser(row.userAgent)} since ${formatInstant(row.createdAt)}`}
                        onClick={() => setEnding(row)}
                      >
                        Sign out
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      <Dialog
        isOpen={ending !== null}
        onClose={close}
        title={ending === null ? '' : ending === 'others' ? 'Sign all others out?' : 'Sign the browser out?'}
      >
        {ending !== null && <SignOut which={ending} onClose={close} />}
      </Dialog>
    </>
  );
}
