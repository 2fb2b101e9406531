import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatAgo, formatBrowser, formatInstant } from '../format.ts';
import { ErrorBox, PageHead, Waiting } from '../parts.tsx';
import { api } from './api.ts';
import { KEYS } from './queries.ts';
import { ConfirmEnd, SessionBrowser } from '../session-browser.tsx';

type ListedSession = Schemas['ListedCreatorSession'];

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
        {ending === 'others' && (
          <ConfirmEnd
            action="Sign all others out"
            end={async () => await read(api.POST('/creator/sessions/end-all'))}
            listKey={KEYS.sessions}
            onClose={close}
          >
            Every other browser that is signed in to your page is signed out at once. To sign in again, each
            needs your link. This one stays signed in.
          </ConfirmEnd>
        )}
        {ending !== null && ending !== 'others' && (
          <ConfirmEnd
            action="Sign it out"
            end={async () =>
              await read(api.POST('/creator/sessions/{id}/end', { params: { path: { id: ending.id } } }))
            }
            listKey={KEYS.sessions}
            onClose={close}
          >
            {formatBrowser(ending.userAgent)}, signed in since {formatInstant(ending.createdAt)}, is signed
            out at once. To sign in again, it needs your link.
          </ConfirmEnd>
        )}
      </Dialog>
    </>
  );
}
