import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { read } from '../api/client.ts';
import { useChange } from '../api/query-client.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { formatAgo, formatBrowser, formatInstant } from '../format.ts';
import { ErrorBox, PageHead, Waiting } from '../parts.tsx';
import { api } from './api.ts';
import { KEYS } from './queries.ts';
import { SessionBrowser } from '../session-browser.tsx';

export default function SessionsPage() {
  const sessions = useQuery({
    queryKey: KEYS.sessions,
    queryFn: async () => await read(api.GET('/creator/sessions')),
  });
  const end = useChange(
    async (id: string) => await read(api.POST('/creator/sessions/{id}/end', { params: { path: { id } } })),
    KEYS.sessions,
  );
  const endOthers = useChange(async () => await read(api.POST('/creator/sessions/end-all')), KEYS.sessions);
  const [isAsking, setAsking] = useState(false);
  const closeQuestion = () => {
    endOthers.reset();
    setAsking(false);
  };
  const rows = sessions.data?.sessions ?? [];
  return (
    <>
      <PageHead
        title="Devices"
        aside={
          rows.length > 1 && (
            <Button variant="default" onClick={() => setAsking(true)}>
              Sign all others out …
            </Button>
          )
        }
      >
        Browsers that are signed in to your page. Sign out what you do not know. A browser is signed out after
        90 days without use.
      </PageHead>
      {end.error !== null && <ErrorBox error={end.error} />}
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
                        onClick={() => end.mutate(row.id)}
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
      <Dialog isOpen={isAsking} onClose={closeQuestion} title="Sign all others out?">
        <Confirm
          action="Sign all others out"
          color="red.9"
          change={endOthers}
          onConfirm={() => endOthers.mutate(undefined, { onSuccess: closeQuestion })}
          onClose={closeQuestion}
        >
          Every other browser that is signed in to your page is signed out at once. To sign in again, each
          needs your link. This one stays signed in.
        </Confirm>
      </Dialog>
    </>
  );
}
