import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { api, read } from '../api/client.ts';
import { useIdempotencyKey } from '../api/idempotency.ts';
import { useChange } from '../api/queries.ts';
import { Confirm, Dialog } from '../dialog.tsx';
import { formatInstant } from '../format.ts';
import { ErrorBox, Secret, Waiting } from '../parts.tsx';
import { Nothing, Section } from '../lists.tsx';
import { Tag } from '../parts/badges.tsx';
import { EndpointForm } from './endpoint-form.tsx';
import { useEndpoints } from './queries.ts';
import { stateText, WEBHOOK_KEYS } from './words.ts';
import type { Endpoint } from './words.ts';

/** Replaces the secret of an endpoint, after a question. */
function RotateSecret({
  appId,
  endpoint,
  onClose,
}: {
  readonly appId: string;
  readonly endpoint: Endpoint;
  readonly onClose: () => void;
}) {
  const body = {};
  const key = useIdempotencyKey(body);
  const rotate = useChange(
    async () =>
      await read(
        api.POST('/apps/{appId}/webhook-endpoints/{endpointId}/rotate-secret', {
          params: { path: { appId, endpointId: endpoint.id }, header: { 'Idempotency-Key': key } },
          body,
        }),
      ),
    WEBHOOK_KEYS.endpoints(appId),
  );
  if (rotate.data !== undefined) {
    const { previousSecretExpiresAt } = rotate.data;
    return (
      <Stack>
        <Secret text={rotate.data.secret} what="the new signing secret">
          {previousSecretExpiresAt === null
            ? 'The previous secret does not sign any more.'
            : `Messages also have a signature of the previous secret until ${formatInstant(previousSecretExpiresAt)}.`}
        </Secret>
        <Button onClick={onClose}>Done</Button>
      </Stack>
    );
  }
  return (
    <Confirm
      action="Create the new secret"
      change={rotate}
      onConfirm={() => rotate.mutate(undefined)}
      onClose={onClose}
    >
      The endpoint gets a new secret. For another day each message has a signature of both, so that your
      server can change over without a gap.
    </Confirm>
  );
}

/** Deactivates or deletes an endpoint, after a question. */
function EndEndpoint({
  appId,
  endpoint,
  kind,
  onClose,
}: {
  readonly appId: string;
  readonly endpoint: Endpoint;
  readonly kind: 'deactivate' | 'delete';
  readonly onClose: () => void;
}) {
  const isDelete = kind === 'delete';
  const end = useChange(
    async () => {
      const params = { path: { appId, endpointId: endpoint.id } };
      const path = '/apps/{appId}/webhook-endpoints/{endpointId}';
      return await read(
        isDelete ? api.DELETE(path, { params }) : api.PATCH(path, { params, body: { active: false } }),
      );
    },
    WEBHOOK_KEYS.endpoints(appId),
    WEBHOOK_KEYS.messages(appId),
  );
  return (
    <Confirm
      action={isDelete ? 'Delete the endpoint' : 'Deactivate the endpoint'}
      {...(isDelete ? { color: 'red.9' as const } : {})}
      change={end}
      onConfirm={() => end.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      {isDelete
        ? `${endpoint.url} is deleted with its secret, and cannot be restored. Its messages that wait fail, and cannot be sent again. All stay in the list for as long as messages are kept.`
        : `Nothing more is sent to ${endpoint.url}. Its messages that wait fail; you can send them again when the endpoint is active. What happens while it is not active is not sent later.`}
    </Confirm>
  );
}

type OpenDialog =
  | { readonly kind: 'new' }
  | { readonly kind: 'change' | 'rotate' | 'deactivate' | 'delete'; readonly endpoint: Endpoint };

const TITLES: Readonly<Record<OpenDialog['kind'], string>> = {
  new: 'New endpoint',
  change: 'Change the endpoint',
  rotate: 'Rotate the secret?',
  deactivate: 'Deactivate the endpoint?',
  delete: 'Delete the endpoint?',
};

/** The state of an endpoint, with what to do. */
function EndpointState({ endpoint }: { readonly endpoint: Endpoint }) {
  const { active, deactivatedReason, failingSince, previousSecretExpiresAt } = endpoint;
  const text = stateText(endpoint);
  return (
    <>
      {!active ? (
        <Tag tone={deactivatedReason === 'by_request' ? 'plain' : 'bad'}>Not active</Tag>
      ) : failingSince === null ? (
        <Tag tone="good">Active</Tag>
      ) : (
        <Tag tone="wait">Failing</Tag>
      )}
      {text !== null && (
        <Text size="xs" className="quiet" mt={2}>
          {text}
        </Text>
      )}
      {active && previousSecretExpiresAt !== null && (
        <Text size="xs" className="quiet" mt={2}>
          Two secrets sign until {formatInstant(previousSecretExpiresAt)}.
        </Text>
      )}
    </>
  );
}

function EndpointRow({
  appId,
  endpoint,
  canChange,
  onOpen,
}: {
  readonly appId: string;
  readonly endpoint: Endpoint;
  readonly canChange: boolean;
  readonly onOpen: (dialog: OpenDialog) => void;
}) {
  const path = { appId, endpointId: endpoint.id };
  const test = useChange(
    async () =>
      await read(api.POST('/apps/{appId}/webhook-endpoints/{endpointId}/test', { params: { path } })),
    WEBHOOK_KEYS.messages(appId),
  );
  const activate = useChange(
    async () =>
      await read(
        api.PATCH('/apps/{appId}/webhook-endpoints/{endpointId}', {
          params: { path },
          body: { active: true },
        }),
      ),
    WEBHOOK_KEYS.endpoints(appId),
  );
  const error = test.error ?? activate.error;
  const { url, active } = endpoint;
  const button = { variant: 'default', size: 'compact-sm', disabled: !canChange } as const;
  return (
    <tr>
      <td>
        <Text size="sm" className="code-text" style={{ overflowWrap: 'anywhere' }}>
          {url}
        </Text>
        {endpoint.description !== null && <Text size="sm">{endpoint.description}</Text>}
        <Text size="xs" className="quiet">
          {endpoint.eventTypes.join(', ')}
        </Text>
        {error !== null && <ErrorBox error={error} />}
      </td>
      <td>
        <EndpointState endpoint={endpoint} />
      </td>
      <td>
        <Group gap={6} justify="flex-end">
          {active && (
            <Button
              {...button}
              loading={test.isPending}
              aria-label={`Send a test event to ${url}`}
              onClick={() => test.mutate(undefined)}
            >
              Send a test event
            </Button>
          )}
          <Button
            {...button}
            aria-label={`Change ${url}`}
            onClick={() => onOpen({ kind: 'change', endpoint })}
          >
            Change
          </Button>
          <Button
            {...button}
            aria-label={`Rotate the secret of ${url}`}
            onClick={() => onOpen({ kind: 'rotate', endpoint })}
          >
            Rotate the secret
          </Button>
          <Button
            {...button}
            loading={activate.isPending}
            aria-label={`${active ? 'Deactivate' : 'Activate'} ${url}`}
            onClick={() => (active ? onOpen({ kind: 'deactivate', endpoint }) : activate.mutate(undefined))}
          >
            {active ? 'Deactivate' : 'Activate'}
          </Button>
          <Button
            {...button}
            aria-label={`Delete ${url}`}
            onClick={() => onOpen({ kind: 'delete', endpoint })}
          >
            Delete
          </Button>
        </Group>
      </td>
    </tr>
  );
}

/** The endpoints of an app. */
export function Endpoints({ appId, canChange }: { readonly appId: string; readonly canChange: boolean }) {
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const endpoints = useEndpoints(appId, canChange);
  const rows = endpoints.data?.items;
  const close = () => setDialog(null);
  return (
    <Section
      id="endpoints"
      title="Endpoints"
      hint={
        canChange
          ? undefined
          : 'Seeing and changing endpoints needs the permission “setup”, which you do not have.'
      }
      aside={
        <Button disabled={!canChange} onClick={() => setDialog({ kind: 'new' })}>
          New endpoint
        </Button>
      }
    >
      {canChange && (
        <div className="surface">
          {endpoints.error !== null && (
            <ErrorBox error={endpoints.error} retry={() => void endpoints.refetch()} />
          )}
          {rows === undefined && endpoints.error === null && <Waiting what="endpoints" />}
          {rows?.length === 0 && (
            <Nothing title="No endpoints yet">
              Create one with the address of your server. The service then tells it about commissions, payouts
              and webhooks that cannot be processed.
            </Nothing>
          )}
          {rows !== undefined && rows.length > 0 && (
            <table className="rows">
              <thead>
                <tr>
                  <th scope="col" style={{ width: '40%' }}>
                    Sends to
                  </th>
                  <th scope="col">State</th>
                  <th scope="col">
                    <span className="spoken">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map((endpoint) => (
                  <EndpointRow
                    key={endpoint.id}
                    appId={appId}
                    endpoint={endpoint}
                    canChange={canChange}
                    onOpen={setDialog}
                  />
                ))}
              </tbody>
            </table>
          )}
        </div>
      )}
      <Dialog isOpen={dialog !== null} onClose={close} title={dialog === null ? '' : TITLES[dialog.kind]}>
        {dialog?.kind === 'new' && <EndpointForm appId={appId} endpoint={null} onClose={close} />}
        {dialog?.kind === 'change' && (
          <EndpointForm appId={appId} endpoint={dialog.endpoint} onClose={close} />
        )}
        {dialog?.kind === 'rotate' && (
          <RotateSecret appId={appId} endpoint={dialog.endpoint} onClose={close} />
        )}
        {(dialog?.kind === 'deactivate' || dialog?.kind === 'delete') && (
          <EndEndpoint appId={appId} endpoint={dialog.endpoint} kind={dialog.kind} onClose={close} />
        )}
      </Dialog>
    </Section>
  );
}
