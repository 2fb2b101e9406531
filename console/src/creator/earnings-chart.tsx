import { Group } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useSearchParams } from 'react-router';
import { read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { OVERVIEW_MS } from '../api/query-client.ts';
import { formatCount, formatCountShort, formatMoney, formatMoneyShort, timeZone } from '../format.ts';
import { Nothing, Section } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { chosen, Choice } from '../parts/choice.tsx';
import { nameOfBar, RANGES } from '../ranges.ts';
import { api } from './api.ts';

const Chart = lazy(async () => await import('../chart.tsx'));

type Point = Schemas['CreatorTimeseries']['points'][number];

const MEASURES = {
  earned: {
    name: 'Earned',
    of: (point: Point) => point.commissionCents,
    format: formatMoney,
    formatAxis: formatMoneyShort,
  },
  clicks: {
    name: 'Clicks',
    of: (point: Point) => point.clicks,
    format: formatCount,
    formatAxis: formatCountShort,
  },
  installs: {
    name: 'Installs',
    of: (point: Point) => point.installs,
    format: formatCount,
    formatAxis: formatCountShort,
  },
} as const;

export function EarningsChart() {
  const [search, setSearch] = useSearchParams();
  const range = chosen(RANGES, search.get('range'), '30d');
  const measure = chosen(MEASURES, search.get('measure'), 'earned');
  const choose = (name: string) => (value: string) =>
    setSearch((before) => ({ ...Object.fromEntries(before), [name]: value }), { replace: true });
  const { from, interval } = RANGES[range];
  const series = useQuery({
    queryKey: ['timeseries', range],
    queryFn: async () => {
      const now = new Date();
      const query = { from: from(now), to: now.getTime(), interval, timezone: timeZone };
      return await read(api.GET('/creator/timeseries', { params: { query } }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: OVERVIEW_MS,
  });
  const { name, of, format, formatAxis } = MEASURES[measure];
  const points = (series.data?.points ?? []).map((point, index, all) => ({
    name: nameOfBar(point.at, series.data?.interval ?? interval),
    value: of(point),
    isRunning: index === all.length - 1,
  }));
  return (
    <Section
      id="chart"
      title="Over time"
      aside={
        <Group gap="xs">
          <Choice label="Measure" options={MEASURES} value={measure} onChange={choose('measure')} />
          <Choice label="Range" options={RANGES} value={range} onChange={choose('range')} />
        </Group>
      }
    >
      <div className="surface chart-surface">
        {series.error !== null && <ErrorBox error={series.error} retry={() => void series.refetch()} />}
        {series.data === undefined && series.error === null && <Waiting what="the chart" />}
        {series.data !== undefined &&
          (points.every(({ value }) => value === 0) ? (
            <Nothing title="Nothing in this range">
              Share a link or a code: what it brings appears here within a minute.
            </Nothing>
          ) : (
            <Suspense fallback={<Waiting what="the chart" />}>
              <Chart points={points} measure={name} format={format} formatAxis={formatAxis} />
            </Suspense>
          ))}
      </div>
    </Section>
  );
}
