import { Button, Code, Divider, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core';
import { useEffect, useState } from 'react';
import { api, read } from './api/client.ts';
import { KEYS, useChange } from './api/queries.ts';
import { ErrorBox, Logo } from './parts.tsx';
import type { SignInLink } from './sign-in-link.ts';

function LinkForm({
  token,
  isNew,
  hasSession,
  onClosed,
}: SignInLink & { readonly hasSession: boolean; readonly onClosed: () => void }) {
  const [accountName, setAccountName] = useState('');
  const name = accountName.trim();
  const signIn = useChange(
    async () =>
      await read(
        api.POST('/session', { body: { token, ...(isNew && name !== '' ? { accountName: name } : {}) } }),
      ),
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
          {isNew
            ? 'This link creates your account and signs this browser in. Nothing else is needed.'
            : 'This link signs this browser in. It works once.'}
        </Text>
        {isNew && (
          <TextInput
            label="Company name"
            placeholder="My company"
            description="Only you see it. You can leave it empty."
            value={accountName}
            maxLength={200}
            onChange={(event) => setAccountName(event.currentTarget.value)}
          />
        )}
        {signIn.error !== null && <ErrorBox error={signIn.error} />}
        <Button type="submit" loading={signIn.isPending} size="md">
          {isNew ? 'Create the account' : 'Sign in'}
        </Button>
        {signIn.error !== null && (
          <Button variant="subtle" onClick={onClosed}>
            {hasSession ? 'Stay in the present session' : 'Sign in with a key instead'}
          </Button>
        )}
      </Stack>
    </form>
  );
}

function KeyForm() {
  const [key, setKey] = useState('');
  const signIn = useChange(
    async () => await read(api.POST('/session', { body: { key: key.trim() } })),
    KEYS.session,
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        signIn.mutate(undefined);
      }}
    >
      <Stack>
        <PasswordInput
          label="Account key"
          placeholder="tri_sk_live_…"
          description="It is sent once and not kept in this browser."
          autoComplete="off"
          required
          withAsterisk={false}
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
        />
        {signIn.error !== null && <ErrorBox error={signIn.error} />}
        <Button type="submit" loading={signIn.isPending} size="md">
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

/** The page of a browser without a session, or with a sign-in link. `onLinkClosed` leaves the link: it is spent or refused. */
export function SignInPage({
  hasAccounts,
  hasSession,
  link,
  onLinkClosed,
}: {
  readonly hasAccounts: boolean;
  readonly hasSession: boolean;
  readonly link: SignInLink | null;
  readonly onLinkClosed: () => void;
}) {
  useEffect(() => {
    document.title = 'Sign in · Tributary';
  }, []);
  const isNew = link?.isNew === true;
  return (
    <main style={{ maxWidth: 440, margin: '0 auto', padding: '9vh 16px 32px' }}>
      <div className="brand" style={{ justifyContent: 'center', fontSize: 18, marginBottom: 28 }}>
        <Logo /> Tributary
      </div>
      <div className="surface" style={{ padding: 28 }}>
        <Stack gap="lg">
          <Title order={1} size="h3">
            {isNew ? 'Welcome' : hasAccounts || link !== null ? 'Sign in' : 'No account yet'}
          </Title>
          {link !== null ? (
            <LinkForm key={link.token} {...link} hasSession={hasSession} onClosed={onLinkClosed} />
          ) : (
            <>
              {hasAccounts && (
                <>
                  <KeyForm />
                  <Divider />
                </>
              )}
              <Stack gap={8}>
                <Text size="sm" className="quiet">
                  {hasAccounts
                    ? 'Without a key: on the machine of the service, this prints a link that signs a browser in.'
                    : 'On the machine of the service, this prints a link that creates the account and signs you in.'}
                </Text>
                <Code className="line" style={{ padding: '8px 10px' }}>
                  npm run -s admin -- console
                </Code>
              </Stack>
            </>
          )}
        </Stack>
      </div>
    </main>
  );
}
