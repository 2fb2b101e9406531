import { Button, Group, Modal, Stack, Text } from '@mantine/core';
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
    <Modal.Root
      opened={isOpen}
      onClose={() => {
        if (isInFront()) onStay();
      }}
    >
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Body pt="md">
          <Modal.Title mb="md" fw={600} fz={17}>
            Discard what you entered?
          </Modal.Title>
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
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
