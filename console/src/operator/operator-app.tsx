import { Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { timeZone } from '../format.ts';
import { LinkPageHeader, LinkSignInPage } from '../link-sign-in.tsx';
import { CodeBlock, ErrorBox, PageHead, Waiting } from '../parts.tsx';
import { useSignInLink } from '../sign-in-link.ts';
import { Accounts } from './accounts.tsx';
import { LedgerCheck } from './ledger-check.tsx';
import { PasteLink } from './paste-link.tsx';
import { queryClient, useOperatorSession } from './queries.ts';
import { ReprocessRuns } from './reprocess-runs.tsx';
import { State } from './state.tsx';
import { StuckDeliveries } from './stuck-deliveries.tsx';

const COMMAND = 'npm run -s admin -- console --operator';

/** Forgets every answer, so that nothing of the last session remains. */
async function signOut(): Promise<void> {
  await api.POST('/operator/session/end', {}).catch(() => {});
  location.assign('operator/');
}

const BUTTON = 'Sign in as the operator';

const signInWith = async (token: string) => await read(api.POST('/operator/session', { body: { token } }));

function OperatorPage() {
  return (
    <>
      <LinkPageHeader title="Tributary" subtitle="Operator" signOut={signOut} />
      <main className="creator-main">
        <PageHead title="Installation">
          What the service depends on, what waits, and who uses it. Of customers and creators, only ids are
          shown.
        </PageHead>
        <Stack gap="xl">
          <State />
          <StuckDeliveries />
          <ReprocessRuns />
          <LedgerCheck />
          <Accounts />
        </Stack>
      </main>
      <footer className="creator-foot quiet">Times are in {timeZone}.</footer>
    </>
  );
}

export function OperatorApp() {
  const current = useOperatorSession();
  const [link, closeLink] = useSignInLink(current.data?.session != null);
  const [hasBegun, setHasBegun] = useState(false);
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
  if (session !== null && !hasBegun) setHasBegun(true);
  if (session === null || link !== null)
    return (
      <LinkSignInPage
        title="The operator's page"
        tab="Sign in"
        withoutLink={
          <Stack gap="xs">
            <Text size="sm" className="quiet">
              {hasBegun
                ? 'A session lasts 12 hours. This command prints a new sign-in link where the service runs:'
                : 'This page is for the operator of the installation. This command prints a sign-in link where the service runs:'}
            </Text>
            <CodeBlock code={COMMAND} what="the command" />
            <Text size="sm" className="quiet">
              Open the link in this browser, or paste it here. It works once, and for 15 minutes.
            </Text>
            <PasteLink button={BUTTON} signIn={signInWith} />
          </Stack>
        }
        titleWithoutLink={hasBegun ? 'Your session has ended' : 'You are not signed in'}
        terms="This browser stays signed in for 12 hours. The link works once."
        button={BUTTON}
        token={link?.token ?? null}
        hasSession={session !== null}
        signIn={signInWith}
        onLinkClosed={closeLink}
      />
    );
  // A page of another session begins anew.
  return <OperatorPage key={session.id} />;
}
