import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { ErrorBox } from '../parts.tsx';

interface Naming<T> {
  readonly description: string;
  /** The text of the button. */
  readonly action: string;
  /** The present name. Empty for something new. */
  readonly name?: string;
  readonly stale: readonly (readonly string[])[];
  readonly save: (name: string) => Promise<T>;
  readonly onDone?: (saved: T) => void;
}

function Form<T>({
  description,
  action,
  name = '',
  stale,
  save,
  onDone,
  onClose,
}: Naming<T> & { readonly onClose: () => void }) {
  const [entered, setEntered] = useState(name);
  const change = useChange(save, ...stale);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(entered.trim(), {
          onSuccess: (saved) => {
            onClose();
            onDone?.(saved);
          },
        });
      }}
    >
      <Stack>
        <TextInput
          label="Name"
          description={description}
          required
          withAsterisk={false}
          maxLength={200}
          data-autofocus
          value={entered}
          onChange={(event) => setEntered(event.currentTarget.value)}
        />
        {change.error !== null && <ErrorBox error={change.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={change.isPending} disabled={entered.trim() === ''}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Asks for the name of something that has nothing else, to create or to rename it. */
export function NameDialog<T>({
  title,
  isOpen,
  onClose,
  ...naming
}: Naming<T> & { readonly title: string; readonly isOpen: boolean; readonly onClose: () => void }) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title={title}>
      {isOpen && <Form {...naming} onClose={onClose} />}
    </Dialog>
  );
}
