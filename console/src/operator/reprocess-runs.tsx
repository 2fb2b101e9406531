import { Text } from '@mantine/core';
import { api, read } from '../api/client.ts';
import { formatAgo, formatCount, formatInstant } from '../format.ts';
import { Tag } from '../parts/badges.tsx';
import { ListView, useList } from '../parts/list.tsx';
import { RUN_STATES } from '../words.ts';
import { Section } from './section.tsx';

export function ReprocessRuns() {
  const list = useList(
    ['reprocess-runs'],
    async (cursor) =>
      await read(api.GET('/operator/reprocess-runs', { params: { query: { limit: 10, ...cursor } } })),
    { idOf: ({ id }) => id, isLive: true },
  );
  return (
    <Section title="Reprocessing">
      <ListView
        list={list}
        what="reprocess runs"
        isFiltered={false}
        nothingYet="A run appears here when deliveries are processed again, in the console or on the command line."
        onClearFilters={() => {}}
      >
        {(rows) => (
          <table className="rows">
            <caption className="spoken">Reprocess runs of all apps</caption>
            <thead>
              <tr>
                <th scope="col">Requested</th>
                <th scope="col">App</th>
                <th scope="col">State</th>
                <th scope="col">Progress</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id}>
                  <td>
                    <Text size="sm" title={formatInstant(row.createdAt)}>
                      {formatAgo(row.createdAt)}
                    </Text>
                    <Text size="xs" className="quiet">
                      {row.requestedBy === 'api' ? 'API' : 'command line'}
                    </Text>
                  </td>
                  <td style={{ overflowWrap: 'anywhere' }}>{row.appId}</td>
                  <td>
                    <Tag tone={RUN_STATES[row.status][0]}>{RUN_STATES[row.status][1]}</Tag>
                    <Text size="xs" className="quiet">
                      {row.dryRun ? 'Dry run' : 'Run'}
                    </Text>
                  </td>
                  <td>
                    <Text size="sm">
                      {formatCount(row.seen)} of {formatCount(row.deliveries)} read,{' '}
                      {formatCount(row.changed)} differ, {formatCount(row.applied)} added to
                    </Text>
                    {row.lastError !== null && <Text size="sm">{row.lastError}</Text>}
                    {row.workflowUrl !== null && (
                      <Text size="xs">
                        <a href={row.workflowUrl} target="_blank" rel="noreferrer">
                          Temporal
                        </a>
                      </Text>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListView>
    </Section>
  );
}
