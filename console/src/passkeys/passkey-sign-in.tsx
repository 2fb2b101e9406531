import { Button, Stack } from '@mantine/core';
import { KeyRound } from 'lucide-react';
import { KEYS, useStep } from '../api/queries.ts';
import { ErrorBox } from '../parts.tsx';
import { ICON } from '../parts/icon.ts';
import { signInWithPasskey } from './ceremonies.ts';

/** Signs this browser in with a passkey. */
export function PasskeySignIn() {
  const signIn = useStep(signInWithPasskey, KEYS.session);
  return (
    <Stack>
      {signIn.error !== null && <ErrorBox error={signIn.error} />}
      <Button
        variant="default"
        size="md"
        leftSection={<KeyRound {...ICON} />}
        loading={signIn.isPending}
        onClick={() => signIn.mutate(undefined)}
      >
        Sign in with a passkey
      </Button>
    </Stack>
  );
}
