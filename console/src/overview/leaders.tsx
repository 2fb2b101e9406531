import { Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { CSSProperties } from 'react';
import { Link } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { ErrorBox, Waiting } from '../parts.tsx';
import { Section } from '../lists.tsx';
import { ListEnd } from '../parts/list.tsx';
import { LEADERS_MS, MEASURES } from './measures.ts';
import type { Measure } from './measures.ts';
import type { Period } from './period.ts';

type Leader = Schemas['Leader'];

function Name({ appId, row }: { readonly appId: string; readonly row: Leader }) {
  if (row.linkId === null || row.slug === null)
    return <Link to={`/apps/${appId}/creators/${row.affiliateId}`}>{row.affiliateName}</Link>;
  return (
    <>
      <Link to={`/apps/${appId}/links?q=${encodeURIComponent(row.slug)}`}>{row.slug}</Link>{' '}
      <Text component="span" size="xs" className="quiet">
        {row.affiliateName}
      </Text>
    </>
  );
}

/** Returns the style of a cell with a bar behind its text: as long as the part that `value` is of `most`. */
function barOf(value: number, most: number): CSSProperties {
  const percent = most > 0 ? Math.max(0, Math.round((value / most) * 100)) : 0;
  return {
    backgroundImage: 'linear-gradient(var(--tri-accent-soft), var(--tri-accent-soft))',
    backgroundRepeat: 'no-repeat',
    backgroundSize: `${percent}% 100%`,
  };
}

/** The creators or links with the most of a measure in a range. */
function Leaders({
  appId,
  by,
  measure,
  period: { key, from, to },
}: {
  readonly appId: string;
  readonly by: 'affiliate' | 'link';
  readonly measure: Measure;
  readonly period: Period;
}) {
  const leaders = useQuery({
    queryKey: ['leaders', appId, by, measure, key],
    queryFn: async () => {
      const now = new Date();
      const query = { by, measure, from: from(now), to: to(now) };
      return await read(api.GET('/apps/{appId}/leaders', { params: { path: { appId }, query } }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: LEADERS_MS,
  });
  const what = by === 'affiliate' ? 'Creators' : 'Links';
  const { data } = leaders;
  const shown = data === undefined ? measure : data.measure;
  const { name, of, format } = MEASURES[shown];
  const most = Math.max(0, ...(data?.leaders.map(of) ?? []));
  return (
    <Section id={`top-${by}`} title={`${what}: ${name.toLowerCase()}`}>
      <div className="surface">
        {leaders.error !== null && <ErrorBox error={leaders.error} retry={() => void leaders.refetch()} />}
        {data === undefined && leaders.error === null && <Waiting what={what.toLowerCase()} />}
        {data?.leaders.length === 0 && (
          <Text size="sm" className="quiet" p="lg">
            None in this range.
          </Text>
        )}
        {data !== undefined && data.leaders.length > 0 && (
          <table className="rows">
            <thead>
              <tr>
                <th scope="col">{by === 'affiliate' ? 'Creator' : 'Link'}</th>
                <th scope="col" className="number">
                  {name}
                </th>
              </tr>
            </thead>
            <tbody>
              {data.leaders.map((row) => (
                <tr key={row.linkId ?? row.affiliateId}>
                  <td style={barOf(of(row), most)}>
                    <Name appId={appId} row={row} />
                  </td>
                  <td className="number lead">{format(of(row))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      {data?.complete === false && (
        <ListEnd>
          Only the most active ones were compared. One that was active only at the beginning of the range may
          be missing.
        </ListEnd>
      )}
    </Section>
  );
}

/** The creators and the links with the most of a measure, side by side. */
export function TopLists(props: Omit<Parameters<typeof Leaders>[0], 'by'>) {
  return (
    <div className="halves">
      <Leaders {...props} by="affiliate" />
      <Leaders {...props} by="link" />
    </div>
  );
}
