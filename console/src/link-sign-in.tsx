import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import type { ReactNode } from 'react';
import { SESSION_KEY, useStep } from './api/query-client.ts';
import { askToLeave } from './leave/entries.ts';
import { ErrorBox, Logo } from './parts.tsx';

/** The page of a browser that is not signed in: a title and a form. `tab` is its title in the tab of the browser. */
export function SignInFrame({
  title,
  tab,
  children,
}: {
  readonly title: string;
  readonly tab: string;
  readonly children: ReactNode;
}) {
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
            {title}
          </Title>
          {children}
        </Stack>
      </div>
    </main>
  );
}

interface LinkFormProps {
  /** How long the session lasts and how often the link works. */
  readonly terms: string;
  readonly button: string;
  readonly signIn: () => Promise<unknown>;
  /** What the button says that leaves a link that was refused. Null for none: there is nothing else to show. */
  readonly leave: string | null;
  /** Called when the link is spent, or left. */
  readonly onLinkClosed: () => void;
  /** What is asked besides. */
  readonly children?: ReactNode;
}

/** Signs the browser in when its button is pressed: programs that only open links spend nothing. */
export function LinkForm({ terms, button, signIn, leave, onLinkClosed, children }: LinkFormProps) {
  const change = useStep(signIn, SESSION_KEY);
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
        {children}
        {change.error !== null && <ErrorBox error={change.error} />}
        <Button type="submit" loading={change.isPending} size="md">
          {button}
        </Button>
        {change.error !== null && leave !== null && (
          <Button variant="subtle" onClick={onLinkClosed}>
            {leave}
          </Button>
        )}
      </Stack>
    </form>
  );
}

/** What the button says that leaves a refused link for the session that the browser has. */
export const STAY = 'Stay signed in';

/** The page of a browser whose visitors sign in with a link alone: without a session, or with a link. */
export function LinkSignInPage({
  token,
  title,
  tab,
  titleWithoutLink = 'You are not signed in',
  withoutLink,
  hasSession,
  signIn,
  ...form
}: Pick<LinkFormProps, 'terms' | 'button' | 'onLinkClosed'> & {
  /** The token of the link that was opened. Null without one. */
  readonly token: string | null;
  /** The title of the page, with a link and in the tab of the browser. */
  readonly title: string;
  readonly tab: string;
  /** The title of the page without a link. */
  readonly titleWithoutLink?: string;
  /** What the page says to a visitor without a link. */
  readonly withoutLink: ReactNode;
  readonly hasSession: boolean;
  readonly signIn: (token: string) => Promise<unknown>;
}) {
  return (
    <SignInFrame title={token === null ? titleWithoutLink : title} tab={tab}>
      {token === null ? (
        withoutLink
      ) : (
        <LinkForm
          key={token}
          {...form}
          signIn={async () => await signIn(token)}
          leave={hasSession ? STAY : null}
        />
      )}
    </SignInFrame>
  );
}

/** The header of a page that is signed in by a link. Without `signOut` it has no button for it. */
export function LinkPageHeader({
  title,
  mark = <Logo />,
  subtitle,
  signOut,
  className,
  children,
}: {
  readonly title: string;
  /** What stands for whose page it is. */
  readonly mark?: ReactNode;
  readonly subtitle: string;
  readonly signOut: (() => Promise<void>) | null;
  readonly className?: string;
  readonly children?: ReactNode;
}) {
  return (
    <header className={className === undefined ? 'creator-head' : `creator-head ${className}`}>
      <Group justify="space-between" gap="sm" wrap="nowrap">
        <div className="brand">
          {mark}
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
            onClick={() => askToLeave(() => void signOut())}
          >
            Sign out
          </Button>
        )}
      </Group>
      {children}
    </header>
  );
}
