import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { AccountKeys } from './account-keys.tsx';
import { api, read } from './api/client.ts';
import type { Schemas } from './api/client.ts';
import { KEYS } from './api/queries.ts';
import { Dialog } from './dialog.tsx';
import { formatAgo, formatBrowser, formatInstant } from './format.ts';
import { ErrorBox, NoPermission, PageHead, Waiting } from './parts.tsx';
import { Passkeys } from './passkeys/passkeys.tsx';
import { useCurrentSession, usePermission, useSeesAllApps } from './session.ts';
import { ConfirmEnd, SessionBrowser } from './session-browser.tsx';

type ListedSession = Schemas['ListedSession'];

function Sessions() {
  const { member } = useCurrentSession();
  const hasSetup = usePermission('setup');
  const canSeeAll = member === null ? hasSetup : member.role === 'owner';
  const sessions = useQuery({
    queryKey: KEYS.sessions,
    queryFn: async () => await read(api.GET('/sessions')),
  });
  const [ending, setEnding] = useState<ListedSession | 'others' | null>(null);
  const close = () => setEnding(null);
  const rows = sessions.data?.sessions ?? [];
  return (
    <section aria-labelledby="sessions">
      <Group justify="space-between" mb="xs">
        <div>
          <Title order={2} size="h4" id="sessions">
            Sessions
          </Title>
          <Text size="sm" className="quiet">
            {canSeeAll
              ? 'Browsers that are signed in to this account.'
              : `Browsers that are signed in ${member === null ? 'with your key' : 'as you'}.`}{' '}
            A session ends after 7 days without use.
          </Text>
        </div>
        {rows.length > 1 && (
          <Button variant="default" onClick={() => setEnding('others')}>
            End all others …
          </Button>
        )}
      </Group>
      <div className="surface">
        {sessions.error !== null && <ErrorBox error={sessions.error} retry={() => void sessions.refetch()} />}
        {sessions.data === undefined && sessions.error === null && <Waiting what="sessions" />}
        {sessions.data !== undefined && (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Browser</th>
                <th scope="col">Key</th>
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
                  <td>{row.key.label ?? row.key.display}</td>
                  <td className="quiet">{formatAgo(row.lastUsedAt)}</td>
                  <td style={{ textAlign: 'right' }}>
                    {!row.isCurrent && (
                      <Button
                        variant="default"
                        size="compact-sm"
                        aria-label={`End the session of ${formatBrowser(row.userAgent)} since ${formatInstant(row.createdAt)}`}
                        onClick={() => setEnding(row)}
                      >
                        End
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
        title={ending === null ? '' : ending === 'others' ? 'End all other sessions?' : 'End the session?'}
      >
        {ending === 'others' && (
          <ConfirmEnd
            action="End all others"
            end={async () => await read(api.POST('/sessions/end-all'))}
            listKey={KEYS.sessions}
            onClose={close}
          >
            {canSeeAll
              ? 'Every other browser that is signed in to this account is signed out at once, also those of your team.'
              : `Every other browser that is signed in ${member === null ? 'with your key' : 'as you'} is signed out at once.`}{' '}
            To sign in again, each needs a key or a link. This browser stays signed in.
          </ConfirmEnd>
        )}
        {ending !== null && ending !== 'others' && (
          <ConfirmEnd
            action="End the session"
            end={async () =>
              await read(api.POST('/sessions/{id}/end', { params: { path: { id: ending.id } } }))
            }
            listKey={KEYS.sessions}
            onClose={close}
          >
            {formatBrowser(ending.userAgent)}, signed in with the key “
            {ending.key.label ?? ending.key.display}” since {formatInstant(ending.createdAt)}, is signed out
            at once. To sign in again, it needs a key or a link.
          </ConfirmEnd>
        )}
      </Dialog>
    </section>
  );
}

export default function AccessPage() {
  const session = useCurrentSession();
  const canRead = usePermission('read');
  const seesAll = useSeesAllApps();
  return (
    <>
      <PageHead title="Access">
        A program gets a key of its own, with a name and only the permissions it needs. Revoke one without
        touching the others. People sign in with their e-mail address or a passkey, as members of the team.
      </PageHead>
      <Stack gap="xl">
        {seesAll && (canRead ? <AccountKeys /> : <NoPermission permission="read" what="the keys" />)}
        {session.member !== null && session.takesPasskeys === true && <Passkeys />}
        <Sessions />
      </Stack>
    </>
  );
}
