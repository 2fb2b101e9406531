import { Button, Group, Stack, Text } from '@mantine/core';
import { LazyWindow } from '../lazy-window.tsx';
import { useIsInFront } from './in-front.ts';

/** Asks before what was entered in a dialog or on a page is lost. */
export function DiscardQuestion({
  isOpen,
  onStay,
  onDiscard,
}: {
  readonly isOpen: boolean;
  readonly onStay: () => void;
  readonly onDiscard: () => void;
}) {
  const isInFront = useIsInFront(isOpen);
  return (
    <LazyWindow
      isOpen={isOpen}
      onClose={() => {
        if (isInFront()) onStay();
      }}
      title="Discard what you entered?"
    >
      <Stack>
        <Text size="sm">It was not saved.</Text>
        <Group justify="flex-end">
          <Button variant="default" data-autofocus onClick={onStay}>
            Keep editing
          </Button>
          <Button color="red.9" onClick={onDiscard}>
            Discard
          </Button>
        </Group>
      </Stack>
    </LazyWindow>
  );
}
