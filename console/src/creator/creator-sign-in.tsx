import { Button, Stack, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import { api, read } from '../api/client.ts';
import { useChange } from '../api/query-client.ts';
import { ErrorBox, Logo } from '../parts.tsx';
import { KEYS } from './queries.ts';

/** Signs the browser in when its button is pressed: programs that only open links spend nothing. */
function LinkForm({
  token,
  hasSession,
  onClosed,
}: {
  readonly token: string;
  readonly hasSession: boolean;
  readonly onClosed: () => void;
}) {
  const signIn = useChange(
    async () => await read(api.POST('/creator/session', { body: { token } })),
    KEYS.session,
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        signIn.mutate(undefined, { onSuccess: onClosed });
      }}
    >
      <Stack>
        <Text size="sm" className="quiet">
          This browser stays signed in. The link works in five browsers; keep it to yourself.
        </Text>
        {signIn.error !== null && <ErrorBox error={signIn.error} />}
        <Button type="submit" loading={signIn.isPending} size="md">
          Show my earnings
        </Button>
        {signIn.error !== null && hasSession && (
          <Button variant="subtle" onClick={onClosed}>
            Stay in the present session
          </Button>
        )}
      </Stack>
    </form>
  );
}

/** The page of a browser without a session, or with a sign-in link. */
export function CreatorSignInPage({
  hasSession,
  token,
  onLinkClosed,
}: {
  readonly hasSession: boolean;
  readonly token: string | null;
  readonly onLinkClosed: () => void;
}) {
  useEffect(() => {
    document.title = 'Your earnings · Tributary';
  }, []);
  return (
    <main style={{ maxWidth: 440, margin: '0 auto', padding: '9vh 16px 32px' }}>
      <div className="brand" style={{ justifyContent: 'center', fontSize: 18, marginBottom: 28 }}>
        <Logo /> Tributary
      </div>
      <div className="surface" style={{ padding: 28 }}>
        <Stack gap="lg">
          <Title order={1} size="h3">
            {token === null ? 'You are not signed in' : 'Your earnings'}
          </Title>
          {token === null ? (
            <Text size="sm" className="quiet">
              Open the sign-in link that you received. If it no longer works, ask the people whose app you
              promote for a new one.
            </Text>
          ) : (
            <LinkForm key={token} token={token} hasSession={hasSession} onClosed={onLinkClosed} />
          )}
        </Stack>
      </div>
    </main>
  );
}
