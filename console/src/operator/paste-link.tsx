import { Button, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { SESSION_KEY, useStep } from '../api/query-client.ts';
import { ErrorBox } from '../parts.tsx';

/** Returns the token of a sign-in link, or of what was copied of one. Null for anything else. */
const tokenOf = (text: string): string | null =>
  /(?:^|[#&]token=)([\w-]{43})$/.exec(text.trim())?.[1] ?? null;

/** Signs in with a link that is pasted, such as one that another machine has printed. */
export function PasteLink({
  button,
  signIn,
}: {
  readonly button: string;
  readonly signIn: (token: string) => Promise<unknown>;
}) {
  const [text, setText] = useState('');
  const [isWrong, setIsWrong] = useState(false);
  const change = useStep(signIn, SESSION_KEY);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const token = tokenOf(text);
        setIsWrong(token === null);
        if (token !== null) change.mutate(token);
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Sign-in link"
          description="The whole link, or its token."
          autoComplete="off"
          spellCheck={false}
          value={text}
          error={isWrong && 'This is no sign-in link. It ends with #token= and 43 characters.'}
          onChange={(event) => {
            setText(event.currentTarget.value);
            setIsWrong(false);
          }}
        />
        {change.error !== null && <ErrorBox error={change.error} />}
        <Button type="submit" loading={change.isPending} disabled={text.trim() === ''}>
          {button}
        </Button>
      </Stack>
    </form>
  );
}
