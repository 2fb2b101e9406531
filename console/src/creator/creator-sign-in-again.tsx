import { Text } from '@mantine/core';
import { LinkForm } from '../link-sign-in.tsx';
import { SessionEnded } from '../session-ended.tsx';
import { startCreatorAnew } from './queries.ts';
import { LINK_TERMS, signInWith } from './sign-in.ts';

/** Asks a creator to sign in over the page whose session has ended. The page keeps what was entered. */
export default function CreatorSignInAgain({
  isOpen,
  token,
  onLinkClosed,
}: {
  readonly isOpen: boolean;
  /** The token of the link that was opened in this tab. Null without one. */
  readonly token: string | null;
  readonly onLinkClosed: () => void;
}) {
  return (
    <SessionEnded isOpen={isOpen} onLeave={startCreatorAnew}>
      <Text size="sm">
        Your session has ended. Open your sign-in link in another tab of this browser: this page then goes on
        by itself, and what you entered is kept. If the link no longer works, ask the people whose app you
        promote for a new one.
      </Text>
      {token !== null && (
        <LinkForm
          key={token}
          terms={LINK_TERMS}
          button="Sign in"
          signIn={async () => await signInWith(token)}
          leave={null}
          onLinkClosed={onLinkClosed}
        />
      )}
    </SessionEnded>
  );
}
