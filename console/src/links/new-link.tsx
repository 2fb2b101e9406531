import { Button, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';

type Creator = Pick<Schemas['ListedAffiliate'], 'id' | 'name'>;

function Form({
  appId,
  creators,
  onClose,
}: {
  readonly appId: string;
  readonly creators: readonly Creator[];
  readonly onClose: () => void;
}) {
  const [affiliateId, setAffiliateId] = useState(creators[0]?.id ?? '');
  const [destinationUrl, setDestinationUrl] = useState('');
  const [slug, setSlug] = useState('');
  const create = useChange(
    async () =>
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
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate(undefined, { onSuccess: onClose });
      }}
    >
      <Stack>
        {creators.length > 1 && (
          <NativeSelect
            label="Creator"
            value={affiliateId}
            onChange={(event) => setAffiliateId(event.currentTarget.value)}
            data={creators.map(({ id, name }) => ({ value: id, label: name }))}
          />
        )}
        <TextInput
          label="Where the link leads"
          placeholder="https://apps.apple.com/app/…"
          required
          withAsterisk={false}
          data-autofocus
          value={destinationUrl}
          onChange={(event) => setDestinationUrl(event.currentTarget.value)}
        />
        <TextInput
          label="Link code"
          placeholder="ada"
          description="The end of the link, and what the creator can say aloud. It never changes. A random code if you leave it empty."
          maxLength={64}
          value={slug}
          onChange={(event) => setSlug(event.currentTarget.value)}
        />
        {create.error !== null && <ErrorBox error={create.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending} disabled={affiliateId === ''}>
            Create the link
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const LISTED = 100;

function Choose({ appId, onClose }: { readonly appId: string; readonly onClose: () => void }) {
  const creators = useQuery({
    queryKey: ['creators', appId, 'by-name'],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/affiliates', {
          params: { path: { appId }, query: { sort: 'name', limit: LISTED, status: 'active' } },
        }),
      ),
  });
  if (creators.error !== null)
    return <ErrorBox error={creators.error} retry={() => void creators.refetch()} />;
  if (creators.data === undefined) return <Waiting what="creators" />;
  if (creators.data.items.length === 0)
    return <Text size="sm">Add a creator first: each link belongs to one.</Text>;
  return (
    <Stack>
      {creators.data.nextCursor !== null && (
        <Text size="sm" className="quiet">
          These are the first {LISTED} creators. For another one, open their page and create the link there.
        </Text>
      )}
      <Form appId={appId} creators={creators.data.items} onClose={onClose} />
    </Stack>
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
  readonly creator?: Creator;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title={creator === undefined ? 'New link' : `New link of ${creator.name}`}
    >
      {creator === undefined ? (
        <Choose appId={appId} onClose={onClose} />
      ) : (
        <Form appId={appId} creators={[creator]} onClose={onClose} />
      )}
    </Dialog>
  );
}
