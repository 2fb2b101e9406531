import { Button, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { CreatorSelect } from '../parts/creator-select.tsx';
import type { ChosenCreator } from '../parts/creator-select.tsx';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { sayDone } from '../parts/toast.tsx';
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
  const [destinationUrl, setDestinationUrl] = useState('');
  const [slug, setSlug] = useState('');
  const create = useChange(
    async (affiliateId: string) =>
      await read(
        api.POST('/apps/{appId}/links', {
          params: { path: { appId } },
          body: {
            affiliateId,
            destinationUrl: destinationUrl.trim(),
            ...(slug.trim() === '' ? {} : { slug: slug.trim() }),
          },
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
          onSuccess: (link) => {
            sayDone(`The link ${link.slug} of ${creator.name} works.`, {
              to: `/apps/${appId}/links?q=${encodeURIComponent(link.slug)}`,
              text: 'Open',
            });
            onClose();
          },
        });
      }}
    >
      <Stack>
        {fixedCreator === undefined && <CreatorSelect appId={appId} value={creator} onChange={setCreator} />}
        <TextInput
          label="Where the link leads"
          placeholder="https://apps.apple.com/app/…"
          required
          withAsterisk={false}
          {...(fixedCreator === undefined ? {} : { 'data-autofocus': true })}
          value={destinationUrl}
          {...errors.at('destinationUrl')}
          onChange={(event) => setDestinationUrl(event.currentTarget.value)}
        />
        <TextInput
          label="Link code"
          placeholder="ada"
          description="The end of the link, and what the creator can say aloud. It never changes. A random code if you leave it empty."
          maxLength={64}
          value={slug}
          {...errors.at('slug')}
          onChange={(event) => setSlug(event.currentTarget.value)}
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
