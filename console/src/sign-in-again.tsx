import { Text } from '@mantine/core';
import type { Session } from './api/client.ts';
import { startAnew } from './leave/start-anew.ts';
import { SessionEnded } from './session-ended.tsx';
import { FounderLinkForm, SignInForms } from './sign-in.tsx';
import type { SignInMeans } from './sign-in.tsx';
import type { SignInLink } from './sign-in-link.ts';

/**
 * Asks to sign in over the page whose session has ended. The page keeps what was entered, and its calls go on once the same person is
 * signed in, here or in another tab.
 */
export function SignInAgain({
  last: { account, member },
  isOpen,
  means,
  link,
  onLinkClosed,
}: {
  /** The session that has ended. */
  readonly last: Session;
  readonly isOpen: boolean;
  readonly means: SignInMeans;
  /** The link that was opened in this tab. Null without one. */
  readonly link: SignInLink | null;
  readonly onLinkClosed: () => void;
}) {
  return (
    <SessionEnded isOpen={isOpen} onLeave={() => startAnew()}>
      <Text size="sm">
        Your session has ended. Sign in to {account.name}
        {member !== null && ` as ${member.email}`}: what you entered is kept, and requests that were
        interrupted are sent. You can open a sign-in link in another tab. Signing in to another account, or as
        somebody else, discards what you entered.
      </Text>
      {link === null ? (
        <SignInForms means={means} />
      ) : (
        <FounderLinkForm key={link.token} {...link} hasSession={false} onClosed={onLinkClosed} />
      )}
    </SessionEnded>
  );
}
