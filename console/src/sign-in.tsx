import { Button, Code, Divider, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, read } from './api/client.ts';
import { KEYS, useStep } from './api/queries.ts';
import { LinkForm, SignInFrame, STAY } from './link-sign-in.tsx';
import { ErrorBox } from './parts.tsx';
import { canUsePasskeys } from './passkeys/ceremonies.ts';
import { PasskeySignIn } from './passkeys/passkey-sign-in.tsx';
import type { SignInLink } from './sign-in-link.ts';

/** Signs a founder in with a link. */
export function FounderLinkForm({
  token,
  isNew,
  hasSession,
  onClosed,
}: SignInLink & {
  readonly hasSession: boolean;
  readonly onClosed: () => void;
}) {
  const [accountName, setAccountName] = useState('');
  const name = accountName.trim();
  return (
    <LinkForm
      terms={
        isNew
          ? 'This link creates your account and signs this browser in. Nothing else is needed.'
          : 'This link signs this browser in. It works once.'
      }
      button={isNew ? 'Create the account' : 'Sign in'}
      signIn={async () =>
        await read(
          api.POST('/session', { body: { token, ...(isNew && name !== '' ? { accountName: name } : {}) } }),
        )
      }
      leave={hasSession ? STAY : 'Sign in with a key instead'}
      onLinkClosed={onClosed}
    >
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
    </LinkForm>
  );
}

/** Asks for the address of a member. The answer is the same for every address. */
function MailForm() {
  const [email, setEmail] = useState('');
  const mail = useStep(async () => await read(api.POST('/sign-in-links', { body: { email: email.trim() } })));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        mail.mutate(undefined);
      }}
    >
      <Stack>
        <TextInput
          label="E-mail address"
          type="email"
          autoComplete="email"
          description="Members of a team get a link to sign in."
          required
          withAsterisk={false}
          maxLength={320}
          value={email}
          onChange={(event) => {
            setEmail(event.currentTarget.value);
            mail.reset();
          }}
        />
        {mail.error !== null && <ErrorBox error={mail.error} />}
        {mail.data !== undefined && (
          <Text size="sm" role="status">
            If {email.trim()} is the address of a member, a link is on its way. Open it in this browser within
            15 minutes.
          </Text>
        )}
        <Button type="submit" loading={mail.isPending} disabled={mail.data !== undefined} size="md">
          Mail me a link
        </Button>
      </Stack>
    </form>
  );
}

function KeyForm({ isSecond }: { readonly isSecond: boolean }) {
  const [key, setKey] = useState('');
  const signIn = useStep(
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
        <Button
          type="submit"
          {...(isSecond ? { variant: 'default' as const } : {})}
          loading={signIn.isPending}
          size="md"
        >
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

/** By which means people sign in, besides links and keys. */
export interface SignInMeans {
  /** Whether members can ask for a link. */
  readonly sendsMail: boolean;
  readonly takesPasskeys: boolean;
}

/** The ways to sign in without a link: a passkey, a link by mail, where the service sends mail, or a key. */
export function SignInForms({ means }: { readonly means: SignInMeans }) {
  const { sendsMail } = means;
  return (
    <>
      {canUsePasskeys(means) && (
        <>
          <PasskeySignIn />
          <Divider label="or" />
        </>
      )}
      {sendsMail && (
        <>
          <MailForm />
          <Divider label="or" />
        </>
      )}
      <KeyForm isSecond={sendsMail} />
    </>
  );
}

/** The page of a browser without a session, or with a sign-in link. `onLinkClosed` leaves the link: it is spent or refused. */
export function SignInPage({
  hasAccounts,
  hasSession,
  means,
  link,
  onLinkClosed,
}: {
  readonly hasAccounts: boolean;
  readonly hasSession: boolean;
  readonly means: SignInMeans;
  readonly link: SignInLink | null;
  readonly onLinkClosed: () => void;
}) {
  // A first link creates the first account. Where there is one, it would create another.
  const isLate = link?.isNew === true && hasAccounts;
  if (link !== null && !isLate) {
    return (
      <SignInFrame title={link.isNew ? 'Welcome' : 'Sign in'} tab="Sign in">
        <FounderLinkForm key={link.token} {...link} hasSession={hasSession} onClosed={onLinkClosed} />
      </SignInFrame>
    );
  }
  return (
    <SignInFrame title={hasAccounts ? 'Sign in' : 'No account yet'} tab="Sign in">
      {isLate && (
        <Text size="sm">
          The link that you opened creates the first account, and there already is one: the link was probably
          used. Sign in with a key, or with a new link.
        </Text>
      )}
      {hasAccounts && (
        <>
          <SignInForms means={means} />
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
        {hasAccounts && (
          <Text size="sm" className="quiet">
            If there are several accounts, add <Code style={{ whiteSpace: 'nowrap' }}>--account ID</Code>; the
            command lists them.
          </Text>
        )}
      </Stack>
    </SignInFrame>
  );
}
