import { Button, Stack, Text } from '@mantine/core';
import { useParams } from 'react-router';
import { useSlack } from '../alerts/queries.ts';
import { api, given, read } from '../api/client.ts';
import { Dialog } from '../dialog.tsx';
import { formatAgo, formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { SettingsParts } from '../navigation.tsx';
import { NoPermission } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter } from '../parts/filter-kinds.ts';
import { oneOf, useFilters } from '../parts/filters.ts';
import { ListView, useList } from '../parts/list.tsx';
import { ViewsButton } from '../parts/views-button.tsx';
import { usePermission } from '../session.ts';
import { Endpoints } from './endpoints.tsx';
import { MessageDetails } from './message.tsx';
import { useEndpoints } from './queries.ts';
import { MESSAGE_STATUSES, MESSAGE_TONES, MESSAGE_TYPES, WEBHOOK_KEYS } from './words.ts';
import type { Message } from './words.ts';

function MessageRow({
  row,
  url,
  onOpen,
}: {
  readonly row: Message;
  readonly url: string | undefined;
  readonly onOpen: () => void;
}) {
  return (
    <tr>
      <td>
        <Text size="sm" title={formatInstant(row.createdAt)}>
          {formatAgo(row.createdAt)}
        </Text>
      </td>
      <td>
        <Text size="sm">{row.type}</Text>
        <Text size="xs" className="quiet code-text" style={{ overflowWrap: 'anywhere' }}>
          {url ?? row.endpointId}
        </Text>
      </td>
      <td>
        <Tag tone={MESSAGE_TONES[row.status]}>{MESSAGE_STATUSES[row.status]}</Tag>
        {row.lastProblem !== null && <Text size="sm">{row.lastProblem}</Text>}
      </td>
      <td style={{ textAlign: 'right' }}>
        <Button
          variant="default"
          size="compact-sm"
          aria-label={`${row.attempts === 1 ? '1 attempt' : `${row.attempts} attempts`} at ${row.type} ${row.id}`}
          onClick={onOpen}
        >
          {row.attempts === 1 ? '1 attempt' : `${row.attempts} attempts`}
        </Button>
      </td>
    </tr>
  );
}

function Messages({ appId, canChange }: { readonly appId: string; readonly canChange: boolean }) {
  const filters = useFilters('endpoint', 'status', 'type');
  const opened = useFilters('message');
  const openId = opened.get('message');
  const endpoints = useEndpoints(appId, canChange).data?.items ?? [];
  const query = given({
    endpointId: filters.get('endpoint'),
    status: oneOf(Object.keys(MESSAGE_STATUSES) as Message['status'][], filters.get('status')),
    type: oneOf(Object.keys(MESSAGE_TYPES) as Message['type'][], filters.get('type')),
  });
  const list = useList(
    [...WEBHOOK_KEYS.messages(appId), query],
    async (cursor) =>
      await read(
        api.GET('/apps/{appId}/webhook-messages', {
          params: { path: { appId }, query: { ...query, ...cursor } },
        }),
      ),
    { idOf: ({ id }) => id, isLive: true },
  );
  const slack = useSlack(appId, canChange).data;
  const urls = new Map([
    [slack?.endpointId ?? '', 'Slack'],
    ...endpoints.map(({ id, url }) => [id, url] as const),
  ]);
  const names = [
    ...endpoints.map(
      ({ id, url, description }) => [id, description === null ? url : `${description}: ${url}`] as const,
    ),
    ...(slack?.endpointId == null ? [] : [[slack.endpointId, 'Slack'] as const]),
  ];
  return (
    <Section
      id="messages"
      title="Messages"
      hint="What was sent, or waits to be sent, and each attempt at it."
    >
      <FilterBar
        filters={filters}
        kinds={[
          ...(canChange ? [choiceFilter('endpoint', 'Endpoint', Object.fromEntries(names))] : []),
          choiceFilter('status', 'State', MESSAGE_STATUSES),
          choiceFilter('type', 'Type', MESSAGE_TYPES),
        ]}
        aside={<ViewsButton list="messages" appId={appId} filters={filters} />}
      />
      <ListView
        list={list}
        what="messages"
        isFiltered={!filters.isEmpty}
        onClearFilters={filters.clear}
        nothingYet="A message appears here with the first commission or payout after you created an endpoint, and with a test event."
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">Written</th>
                <th scope="col">Message</th>
                <th scope="col">State</th>
                <th scope="col">
                  <span className="spoken">Attempts</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <MessageRow
                  key={row.id}
                  row={row}
                  url={urls.get(row.endpointId)}
                  onOpen={() => opened.set({ message: row.id })}
                />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
      <Dialog
        isOpen={openId !== undefined}
        onClose={opened.clear}
        title={list.rows.find(({ id }) => id === openId)?.type ?? 'Message'}
        size="lg"
      >
        {openId !== undefined && (
          <MessageDetails appId={appId} messageId={openId} canSend={canChange} onClose={opened.clear} />
        )}
      </Dialog>
    </Section>
  );
}

function Webhooks({ appId }: { readonly appId: string }) {
  const canChange = usePermission('setup');
  return (
    <Stack gap="xl">
      <Endpoints appId={appId} canChange={canChange} />
      <Messages appId={appId} canChange={canChange} />
    </Stack>
  );
}

export default function WebhooksPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      <SettingsParts appId={appId} />
      {canRead ? (
        <Webhooks key={appId} appId={appId} />
      ) : (
        <NoPermission permission="read" what="the messages" />
      )}
    </>
  );
}
