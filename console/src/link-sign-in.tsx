import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import type { ReactNode } from 'react';
import { SESSION_KEY, useChange } from './api/query-client.ts';
import { ErrorBox, Logo } from './parts.tsx';

/** What differs between the pages whose visitors sign in with a link alone. */
interface Texts {
  /** The title of the page, with a link and in the tab of the browser. */
  readonly title: string;
  readonly tab: string;
  /** What the page says to a visitor without a link. */
  readonly withoutLink: ReactNode;
  /** How long the session lasts and how often the link works. */
  readonly terms: string;
  readonly button: string;
}

interface Props extends Texts {
  /** The token of the link that was opened. Null without one. */
  readonly token: string | null;
  readonly hasSession: boolean;
  readonly signIn: (token: string) => Promise<unknown>;
  readonly onLinkClosed: () => void;
}

/** Signs the browser in when its button is pressed: programs that only open links spend nothing. */
function LinkForm({
  token,
  hasSession,
  terms,
  button,
  signIn,
  onLinkClosed,
}: Props & { readonly token: string }) {
  const change = useChange(async () => await signIn(token), SESSION_KEY);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(undefined, { onSuccess: onLinkClosed });
      }}
    >
      <Stack>
        <Text size="sm" className="quiet">
          {terms}
        </Text>
        {change.error !== null && <ErrorBox error={change.error} />}
        <Button type="submit" loading={change.isPending} size="md">
          {button}
        </Button>
        {change.error !== null && hasSession && (
          <Button variant="subtle" onClick={onLinkClosed}>
            Stay in the present session
          </Button>
        )}
      </Stack>
    </form>
  );
}

/** The page of a browser without a session, or with a sign-in link. */
export function LinkSignInPage(props: Props) {
  const { token, title, tab, withoutLink } = props;
  useEffect(() => {
    document.title = `${tab} · Tributary`;
  }, [tab]);
  return (
    <main style={{ maxWidth: 480, margin: '0 auto', padding: '9vh 16px 32px' }}>
      <div className="brand" style={{ justifyContent: 'center', fontSize: 18, marginBottom: 28 }}>
        <Logo /> Tributary
      </div>
      <div className="surface" style={{ padding: 28 }}>
        <Stack gap="lg">
          <Title order={1} size="h3">
            {token === null ? 'You are not signed in' : title}
          </Title>
          {token === null ? withoutLink : <LinkForm key={token} {...props} token={token} />}
        </Stack>
      </div>
    </main>
  );
}

/** The header of a page that is signed in by a link. Without `signOut` it has no button for it. */
export function LinkPageHeader({
  title,
  subtitle,
  signOut,
  className,
  children,
}: {
  readonly title: string;
  readonly subtitle: string;
  readonly signOut: (() => Promise<void>) | null;
  readonly className?: string;
  readonly children?: ReactNode;
}) {
  return (
    <header className={className === undefined ? 'creator-head' : `creator-head ${className}`}>
      <Group justify="space-between" gap="sm" wrap="nowrap">
        <div className="brand">
          <Logo />
          <span>
            {title}
            <Text component="span" size="sm" className="quiet" display="block" fw={400}>
              {subtitle}
            </Text>
          </span>
        </div>
        {signOut !== null && (
          <Button
            variant="default"
            size="compact-sm"
            style={{ flexShrink: 0 }}
            onClick={() => void signOut()}
          >
            Sign out
          </Button>
        )}
      </Group>
      {children}
    </header>
  );
}
