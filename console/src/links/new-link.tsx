import { Button, Group, Stack } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { useRetryKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { CreatorSelect } from '../parts/creator-select.tsx';
import type { ChosenCreator } from '../parts/creator-select.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { sayDone } from '../parts/toast.tsx';
import { lastDestination, rememberDestination } from './last-destination.ts';
import { linkBody, LinkFields } from './link-fields.tsx';
import type { LinkInput } from './link-fields.tsx';
import { LINK_LABELS, SLUG_TAKEN } from './words.ts';

function Form({
  appId,
  fixedCreator,
  onClose,
}: {
  readonly appId: string;
  /** Whose link it is. Undefined: it is chosen. */
  readonly fixedCreator: ChosenCreator | undefined;
  readonly onClose: () => void;
}) {
  const [creator, setCreator] = useState<ChosenCreator | null>(fixedCreator ?? null);
  const [link, setLink] = useState<LinkInput>({ destinationUrl: lastDestination(appId), slug: '' });
  const body = linkBody(link);
  const { key, onError } = useRetryKey({ creator: creator?.id, ...body });
  const create = useChange(
    async (affiliateId: string) =>
      await read(
        api.POST('/apps/{appId}/links', {
          params: { path: { appId }, header: { 'Idempotency-Key': key } },
          body: { affiliateId, ...body },
        }),
      ),
    ['links', appId],
  );
  const errors = useFieldErrors(create.error, LINK_LABELS, SLUG_TAKEN);
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        if (creator === null) return;
        create.mutate(creator.id, {
          onError,
          onSuccess: (created) => {
            rememberDestination(appId, created.destinationUrl);
            sayDone(`The link ${created.slug} of ${creator.name} works.`, {
              to: `/apps/${appId}/links?q=${encodeURIComponent(created.slug)}`,
              text: 'Open',
            });
            onClose();
          },
        });
      }}
    >
      <Stack>
        {fixedCreator === undefined && <CreatorSelect appId={appId} value={creator} onChange={setCreator} />}
        <LinkFields
          value={link}
          errors={errors}
          hasFocus={fixedCreator !== undefined}
          onChange={(changed) => setLink({ ...link, ...changed })}
        />
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending} disabled={creator === null}>
            Create the link
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Creates a link of one creator, or of one who is chosen. */
export function NewLinkDialog({
  appId,
  creator,
  isOpen,
  onClose,
}: {
  readonly appId: string;
  readonly creator?: ChosenCreator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={creator === undefined ? 'New link' : `New link of ${creator.name}`}
    >
      <Form appId={appId} fixedCreator={creator} onClose={onClose} />
    </Dialog>
  );
}
