import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useEffect, useState } from 'react';
import { api, read } from '../api/client.ts';
import { useChange } from '../api/query-client.ts';
import { timeZone } from '../format.ts';
import { CodeBlock, ErrorBox, Logo, PageHead, Waiting } from '../parts.tsx';
import { openedLink, takeLink } from '../sign-in-link.ts';
import { Accounts } from './accounts.tsx';
import { KEYS, queryClient, useOperatorSession } from './queries.ts';
import { ReprocessRuns } from './reprocess-runs.tsx';
import { State } from './state.tsx';
import { StuckDeliveries } from './stuck-deliveries.tsx';

const COMMAND = 'npm run -s admin -- console --operator';

/** Forgets every answer, so that nothing of the last session remains. */
async function signOut(): Promise<void> {
  await api.POST('/operator/session/end', {}).catch(() => {});
  location.assign('operator/');
}

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
    async () => await read(api.POST('/operator/session', { body: { token } })),
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
          This browser stays signed in for 12 hours. The link works once.
        </Text>
        {signIn.error !== null && <ErrorBox error={signIn.error} />}
        <Button type="submit" loading={signIn.isPending} size="md">
          Sign in as the operator
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
function SignInPage({
  hasSession,
  token,
  onLinkClosed,
}: {
  readonly hasSession: boolean;
  readonly token: string | null;
  readonly onLinkClosed: () => void;
}) {
  useEffect(() => {
    document.title = 'Sign in · Tributary';
  }, []);
  return (
    <main style={{ maxWidth: 480, margin: '0 auto', padding: '9vh 16px 32px' }}>
      <div className="brand" style={{ justifyContent: 'center', fontSize: 18, marginBottom: 28 }}>
        <Logo /> Tributary
      </div>
      <div className="surface" style={{ padding: 28 }}>
        <Stack gap="lg">
          <Title order={1} size="h3">
            {token === null ? 'You are not signed in' : "The operator's page"}
          </Title>
          {token === null ? (
            <Stack gap="xs">
              <Text size="sm" className="quiet">
                This page is for the operator of the installation. This command prints a sign-in link where
                the service runs:
              </Text>
              <CodeBlock code={COMMAND} what="the command" />
            </Stack>
          ) : (
            <LinkForm key={token} token={token} hasSession={hasSession} onClosed={onLinkClosed} />
          )}
        </Stack>
      </div>
    </main>
  );
}

function OperatorPage() {
  return (
    <>
      <header className="creator-head">
        <Group justify="space-between" gap="sm" wrap="nowrap">
          <div className="brand">
            <Logo />
            <span>
              Tributary
              <Text component="span" size="sm" className="quiet" display="block" fw={400}>
                Operator
              </Text>
            </span>
          </div>
          <Button
            variant="default"
            size="compact-sm"
            style={{ flexShrink: 0 }}
            onClick={() => void signOut()}
          >
            Sign out
          </Button>
        </Group>
      </header>
      <main className="creator-main">
        <PageHead title="Installation">
          What the service depends on, what waits, and who uses it. No data of customers or creators is shown.
        </PageHead>
        <Stack gap="xl">
          <State />
          <StuckDeliveries />
          <ReprocessRuns />
          <Accounts />
        </Stack>
      </main>
      <footer className="creator-foot quiet">Times are in {timeZone}.</footer>
    </>
  );
}

export function OperatorApp() {
  const [link, setLink] = useState(openedLink);
  // A link that is pasted where the page is shown already only changes the fragment: the page is not loaded again.
  useEffect(() => {
    const take = () => {
      const pasted = takeLink();
      if (pasted !== null) setLink(pasted);
    };
    addEventListener('hashchange', take);
    return () => removeEventListener('hashchange', take);
  }, []);
  const current = useOperatorSession();
  if (current.data === undefined) {
    return (
      <main className="creator-main">
        {current.error === null ? (
          <Waiting what="the page" />
        ) : (
          <ErrorBox error={current.error} retry={() => void queryClient.refetchQueries()} />
        )}
      </main>
    );
  }
  const { session } = current.data;
  if (session === null || link !== null)
    return (
      <SignInPage
        hasSession={session !== null}
        token={link?.token ?? null}
        onLinkClosed={() => setLink(null)}
      />
    );
  // A page of another session begins anew.
  return <OperatorPage key={session.id} />;
}
