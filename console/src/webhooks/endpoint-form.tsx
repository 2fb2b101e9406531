import { Button, Checkbox, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { useIdempotencyKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Secret } from '../parts.tsx';
import { useChanges } from '../parts/changes.ts';
import { useFieldErrors } from '../parts/field-errors.tsx';
import { EVENT_TYPES, WEBHOOK_KEYS } from './words.ts';
import type { Endpoint, EventType } from './words.ts';
import { sayDone } from '../parts/toast.tsx';

const ALL_TYPES = Object.keys(EVENT_TYPES) as EventType[];

interface Fields {
  readonly url: string;
  readonly eventTypes: EventType[];
  readonly description: string | null;
}

/** Creates an endpoint, or changes one. Shows the secret of a new one. */
export function EndpointForm({
  appId,
  endpoint,
  onClose,
}: {
  readonly appId: string;
  /** The endpoint to change. Null for a new one. */
  readonly endpoint: Endpoint | null;
  readonly onClose: () => void;
}) {
  const [url, setUrl] = useState(endpoint?.url ?? '');
  const [description, setDescription] = useState(endpoint?.description ?? '');
  const [types, setTypes] = useState<readonly EventType[]>(endpoint?.eventTypes ?? ALL_TYPES);
  const fields = { url: url.trim(), eventTypes: ALL_TYPES.filter((type) => types.includes(type)) };
  const created = {
    ...fields,
    ...(description.trim() === '' ? {} : { description: description.trim() }),
  };
  const key = useIdempotencyKey(created);
  const create = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/webhook-endpoints', {
          params: { path: { appId }, header: { 'Idempotency-Key': key } },
          body: created,
        }),
      ),
    WEBHOOK_KEYS.endpoints(appId),
  );
  // What the form began with. The endpoint may be read again meanwhile.
  const [before] = useState<Fields>(() => endpoint ?? { url: '', eventTypes: ALL_TYPES, description: null });
  const { changesTo, onError } = useChanges(before);
  const change = useChange(
    async ({ endpointId, changes }: { readonly endpointId: string; readonly changes: Partial<Fields> }) =>
      await read(
        api.PATCH('/apps/{appId}/webhook-endpoints/{endpointId}', {
          params: { path: { appId, endpointId } },
          body: changes,
        }),
      ),
    WEBHOOK_KEYS.endpoints(appId),
    WEBHOOK_KEYS.messages(appId),
  );
  const errors = useFieldErrors(create.error ?? change.error, {
    url: 'URL',
    description: 'What it is for',
    eventTypes: 'What is sent',
  });
  if (create.data !== undefined) {
    return (
      <Stack>
        <Secret text={create.data.secret} what="the signing secret">
          Your server checks the signature of each message with it. Send a test event to see that it does.
        </Secret>
        <Button onClick={onClose}>Done</Button>
      </Stack>
    );
  }
  return (
    <form
      {...errors.root}
      onSubmit={(event) => {
        event.preventDefault();
        if (endpoint === null) create.mutate(undefined);
        else {
          const changes = changesTo({ ...fields, description: description.trim() || null });
          change.mutate(
            { endpointId: endpoint.id, changes },
            {
              onSuccess: () => {
                sayDone('The endpoint is changed.');
                onClose();
              },
              onError: (error) => onError(error, changes),
            },
          );
        }
      }}
    >
      <Stack>
        <TextInput
          label="URL"
          description={
            endpoint === null
              ? 'Messages are sent to it by POST.'
              : 'Messages are sent to it by POST. Those that wait are sent to another URL at once.'
          }
          placeholder="https://example.com/webhooks"
          required
          withAsterisk={false}
          maxLength={2000}
          spellCheck={false}
          data-autofocus
          value={url}
          {...errors.at('url')}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
        <TextInput
          label="What it is for"
          placeholder="Notifies the CRM"
          maxLength={200}
          value={description}
          {...errors.at('description')}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <Checkbox.Group
          label="What is sent"
          value={[...types]}
          {...errors.at('eventTypes')}
          onChange={(chosen) => setTypes(chosen as EventType[])}
        >
          <Stack gap="xs" mt={6}>
            {ALL_TYPES.map((type) => (
              <Checkbox key={type} value={type} label={type} description={EVENT_TYPES[type]} />
            ))}
          </Stack>
        </Checkbox.Group>
        {errors.rest}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending || change.isPending} disabled={types.length === 0}>
            {endpoint === null ? 'Create the endpoint' : 'Save'}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
