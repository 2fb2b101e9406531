import { Button, Group, Stack, TagsInput, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useChange } from '../api/queries.ts';
import { Dialog } from '../dialog.tsx';
import { Section } from '../lists.tsx';
import { Tag } from '../parts/badges.tsx';
import { useChanges } from '../parts/changes.ts';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { sayDone } from '../parts/toast.tsx';
import { usePermission } from '../session.ts';

type Creator = Schemas['ListedAffiliate'];

/** What the service takes. */
const MOST_TAGS = 20;
const LONGEST_NOTE = 2_000;

interface Fields {
  readonly tags: string[];
  readonly note: string | null;
}

function NotesForm({
  appId,
  creator,
  onClose,
}: {
  readonly appId: string;
  readonly creator: Creator;
  readonly onClose: () => void;
}) {
  // What the form began with. The creator may be read again meanwhile.
  const [before] = useState<Fields>(() => ({ tags: [...(creator.tags ?? [])], note: creator.note ?? null }));
  const [tags, setTags] = useState(before.tags);
  const [note, setNote] = useState(before.note ?? '');
  const { changesTo, onError } = useChanges(before);
  const save = useChange(
    async (body: Partial<Fields>) =>
      await read(
        api.PATCH('/apps/{appId}/affiliates/{affiliateId}', {
          params: { path: { appId, affiliateId: creator.id } },
          body,
        }),
      ),
    ['creators', appId],
    ['creator', appId],
  );
  const errors = useFieldErrors(save.error, { tags: 'Tags', note: 'Note' });
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate(changesTo({ tags, note: note.trim() || null }), {
          onSuccess: ({ name }) => {
            sayDone(`The note and tags of ${name} are saved.`);
            onClose();
          },
          onError,
        });
      }}
    >
      <Stack>
        <TagsInput
          label="Tags"
          description="Your own words, to find creators by. Enter or a comma ends one."
          maxTags={MOST_TAGS}
          data-autofocus
          value={tags}
          {...errors.at('tags')}
          onChange={setTags}
        />
        <Textarea
          label="Note"
          autosize
          minRows={3}
          maxRows={12}
          maxLength={LONGEST_NOTE}
          value={note}
          {...errors.at('note')}
          onChange={(event) => setNote(event.currentTarget.value)}
        />
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** What founders note about a creator, for themselves, and the tags, which lead to the creators that have them, too. */
export function CreatorNotes({ appId, creator }: { readonly appId: string; readonly creator: Creator }) {
  const canWrite = usePermission('write');
  const [isOpen, setIsOpen] = useState(false);
  const { note, tags = [] } = creator;
  const isEmpty = note === undefined && tags.length === 0;
  const close = () => setIsOpen(false);
  return (
    <Section
      id="notes"
      title="Note and tags"
      hint="For you and your colleagues. Creators do not see them."
      aside={
        <Button
          variant="default"
          size="xs"
          disabled={!canWrite}
          aria-label={isEmpty ? 'Add a note and tags' : 'Edit the note and tags'}
          onClick={() => setIsOpen(true)}
        >
          {isEmpty ? 'Add' : 'Edit'}
        </Button>
      }
    >
      {tags.length > 0 && (
        <Group gap={6} mb="xs">
          {tags.map((tag) => (
            <Tag key={tag} tone="plain" to={`/apps/${appId}/creators?tag=${encodeURIComponent(tag)}`}>
              <bdi>{tag}</bdi>
            </Tag>
          ))}
        </Group>
      )}
      {note === undefined ? (
        tags.length === 0 && (
          <Text size="sm" className="quiet">
            None yet.
          </Text>
        )
      ) : (
        <Text size="sm" style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
          {note}
        </Text>
      )}
      <Dialog isOpen={isOpen} onClose={close} title={`Note and tags of ${creator.name}`}>
        {isOpen && <NotesForm appId={appId} creator={creator} onClose={close} />}
      </Dialog>
    </Section>
  );
}
