import { Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useSlack } from '../alerts/queries.ts';
import { api, read } from '../api/client.ts';
import { LIVE_MS, useChange } from '../api/queries.ts';
import { formatAgo, formatInstant } from '../format.ts';
import { CodeBlock, CopyLine, ErrorBox, Waiting } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { ListEnd } from '../parts/list.tsx';
import { useEndpoints } from './queries.ts';
import { MESSAGE_STATUSES, MESSAGE_TONES, WEBHOOK_KEYS } from './words.ts';

/** How many attempts are shown. Only a message that was sent again often has more. */
const MOST_ATTEMPTS = 100;

/** One message with its attempts, and the button that sends it again. */
export function MessageDetails({
  appId,
  messageId,
  canSend,
  onClose,
}: {
  readonly appId: string;
  readonly messageId: string;
  readonly canSend: boolean;
  readonly onClose: () => void;
}) {
  const path = { appId, messageId };
  const name = [...WEBHOOK_KEYS.messages(appId), 'one', messageId];
  const message = useQuery({
    queryKey: name,
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/webhook-messages/{messageId}', { params: { path } })),
    refetchInterval: LIVE_MS,
  });
  const attempts = useQuery({
    queryKey: [...name, 'attempts'],
    queryFn: async () =>
      await read(
        api.GET('/apps/{appId}/webhook-messages/{messageId}/attempts', {
          params: { path, query: { limit: MOST_ATTEMPTS } },
        }),
      ),
    refetchInterval: LIVE_MS,
  });
  const again = useChange(
    async () =>
      await read(api.POST('/apps/{appId}/webhook-messages/{messageId}/send-again', { params: { path } })),
    WEBHOOK_KEYS.messages(appId),
  );
  const endpoints = useEndpoints(appId, canSend).data?.items;
  const slack = useSlack(appId, canSend).data;
  const error = message.error ?? attempts.error;
  if (error !== null) return <ErrorBox error={error} retry={() => void message.refetch()} />;
  if (message.data === undefined || attempts.data === undefined) return <Waiting what="the message" />;
  const { status, nextAttemptAt, createdAt, data, endpointId } = message.data;
  const endpoint = endpoints?.find(({ id }) => id === endpointId);
  let obstacle: string | null = null;
  if (!canSend) obstacle = 'Sending again needs the permission “setup”, which you do not have.';
  else if (slack !== undefined && slack.endpointId === endpointId)
    obstacle =
      slack.deactivatedAt === null
        ? null
        : 'The service deactivated the Slack URL. Set it again on the page Alerts, then send the message again.';
  else if (endpoints !== undefined && slack !== undefined && endpoint === undefined)
    obstacle = 'Its endpoint was deleted, so it cannot be sent again.';
  else if (endpoint?.active === false)
    obstacle = 'Its endpoint is not active. Activate it, then send the message again.';
  const rows = attempts.data.items;
  return (
    <Stack>
      <Group justify="space-between">
        <Group gap="sm">
          <Tag tone={MESSAGE_TONES[status]}>{MESSAGE_STATUSES[status]}</Tag>
          <Text size="sm" className="quiet">
            {nextAttemptAt === null
              ? `Written ${formatInstant(createdAt)}`
              : nextAttemptAt > message.dataUpdatedAt
                ? `Next attempt ${formatAgo(nextAttemptAt)}`
                : 'The next attempt starts now'}
          </Text>
        </Group>
        <Button
          disabled={obstacle !== null}
          loading={again.isPending}
          onClick={() => again.mutate(undefined)}
        >
          Send again
        </Button>
      </Group>
      {obstacle !== null && (
        <Text size="sm" className="quiet">
          {obstacle}
        </Text>
      )}
      {again.error !== null && <ErrorBox error={again.error} />}
      <CopyLine text={messageId} what="the id of the message" />
      <CodeBlock code={JSON.stringify(data, null, 2)} what="the data of the message" />
      <div className="surface">
        {rows.length === 0 ? (
          <Text size="sm" p="md">
            No attempts yet.
          </Text>
        ) : (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Attempt</th>
                <th scope="col">Result</th>
                <th scope="col">Took</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.number}>
                  <td>
                    {row.number}
                    <Text size="xs" className="quiet">
                      {formatInstant(row.startedAt)}
                    </Text>
                  </td>
                  <td>
                    <Tag tone={row.problem === null ? 'good' : 'bad'}>{row.statusCode ?? 'No response'}</Tag>
                    {row.problem !== null && <Text size="sm">{row.problem}</Text>}
                    {row.response !== null && row.response !== '' && (
                      <Text size="xs" className="quiet code-text" style={{ overflowWrap: 'anywhere' }}>
                        {row.response}
                      </Text>
                    )}
                  </td>
                  <td>{row.durationMs} ms</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      {attempts.data.nextCursor !== null && <ListEnd>Only the latest {MOST_ATTEMPTS} are shown.</ListEnd>}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
      </Group>
    </Stack>
  );
}
