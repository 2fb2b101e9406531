import { Anchor, Stack, Text } from '@mantine/core';
import { Link, useParams } from 'react-router';
import { api, AS_CSV, given, read, readCsv } from '../api/client.ts';
import { formatAgo, formatInstant } from '../format.ts';
import { Section } from '../lists.tsx';
import { NoPermission } from '../parts.tsx';
import { Tag } from '../parts/badges.tsx';
import { CsvButton } from '../parts/csv-button.tsx';
import { FilterBar } from '../parts/filter-bar.tsx';
import { choiceFilter } from '../parts/filter-kinds.ts';
import { oneOf, useFilters } from '../parts/filters.ts';
import { ListView, useList } from '../parts/list.tsx';
import { usePermission } from '../session.ts';
import { SlackSection } from './slack.tsx';
import { ALERT_KEYS, textOf } from './words.ts';
import type { Alert } from './words.ts';

const STATUSES = { open: 'Open', closed: 'Past' } as const;
const KINDS = [choiceFilter('status', 'State', STATUSES)];

function AlertRow({ appId, alert }: { readonly appId: string; readonly alert: Alert }) {
  const { title, found, advice, action, to } = textOf(alert);
  const { openedAt, closedAt } = alert;
  return (
    <tr>
      <td>
        <Text size="sm" fw={600}>
          {title}
        </Text>
        <Text size="sm">{found}</Text>
        {closedAt === null && (
          <Text size="sm">
            {advice}{' '}
            <Anchor component={Link} to={`/apps/${appId}/${to}`} size="sm" aria-label={`${action}: ${title}`}>
              {action}
            </Anchor>
          </Text>
        )}
      </td>
      <td>
        <Tag tone={closedAt === null ? 'bad' : 'plain'}>{closedAt === null ? 'Open' : 'Past'}</Tag>
      </td>
      <td data-name="Opened">
        <span title={formatInstant(openedAt)}>{formatAgo(openedAt)}</span>
      </td>
      <td data-name="Closed">
        {closedAt === null ? (
          <span className="quiet">not yet</span>
        ) : (
          <span title={formatInstant(closedAt)}>{formatAgo(closedAt)}</span>
        )}
      </td>
    </tr>
  );
}

function List({ appId }: { readonly appId: string }) {
  const filters = useFilters('status');
  const path = { appId };
  const query = given({ status: oneOf(['open', 'closed'], filters.get('status')) });
  const list = useList(
    [...ALERT_KEYS.all(appId), query],
    async (cursor) =>
      await read(api.GET('/apps/{appId}/alerts', { params: { path, query: { ...query, ...cursor } } })),
    { idOf: ({ id }) => id, isLive: true },
  );
  return (
    <Section
      id="alerts"
      title="Open and past"
      hint="Every five minutes the service looks whether something needs you. An alert closes by itself when its cause is gone."
    >
      <FilterBar
        filters={filters}
        kinds={KINDS}
        aside={
          list.rows.length > 0 && (
            <CsvButton
              name="alerts"
              readPart={async (cursor) =>
                await readCsv(
                  api.GET('/apps/{appId}/alerts', {
                    params: { path, query: { ...query, ...cursor } },
                    ...AS_CSV,
                  }),
                )
              }
            />
          )
        }
      />
      <ListView
        list={list}
        what="alerts"
        isFiltered={!filters.isEmpty}
        onClearFilters={filters.clear}
        nothingYet="An alert appears here when a provider goes silent, webhooks fail or are refused, or a payout run waits."
      >
        {(rows) => (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col" style={{ width: '60%' }}>
                  Alert
                </th>
                <th scope="col">State</th>
                <th scope="col">Opened</th>
                <th scope="col">Closed</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((alert) => (
                <AlertRow key={alert.id} appId={appId} alert={alert} />
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </Section>
  );
}

function Alerts({ appId }: { readonly appId: string }) {
  const canChange = usePermission('setup');
  return (
    <Stack gap="xl">
      <List appId={appId} />
      <SlackSection appId={appId} canChange={canChange} />
    </Stack>
  );
}

export default function AlertsPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  return (
    <>
      {canRead ? <Alerts key={appId} appId={appId} /> : <NoPermission permission="read" what="the alerts" />}
    </>
  );
}
