import { Button, Stack, Text } from '@mantine/core';
import type { Session } from './api/client.ts';
import { Dialog } from './dialog.tsx';
import { startAnew } from './leave/start-anew.ts';
import { SignInForms } from './sign-in.tsx';

/**
 * Asks to sign in over the page whose session has ended. The page keeps what was entered, and its calls go on once the same person is
 * signed in, here or in another tab.
 */
export function SignInAgain({
  last: { account, member },
  isOpen,
  sendsMail,
}: {
  /** The session that has ended. */
  readonly last: Session;
  readonly isOpen: boolean;
  readonly sendsMail: boolean;
}) {
  return (
    <Dialog isOpen={isOpen} isHeld isPageHidden onClose={startAnew} title="Sign in again">
      <Stack>
        <Text size="sm">
          Your session has ended. Sign in to {account.name}
          {member !== null && ` as ${member.email}`}: what you entered is kept, and requests that were
          interrupted are sent. You can open a sign-in link in another tab. Signing in to another account, or
          as somebody else, discards what you entered.
        </Text>
        <SignInForms sendsMail={sendsMail} />
        <Button variant="subtle" onClick={startAnew}>
          Leave the page
        </Button>
      </Stack>
    </Dialog>
  );
}
