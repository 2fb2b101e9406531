import { Group, NativeSelect } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useSearchParams } from 'react-router';
import { api, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { formatCount, formatMoney, timeZone } from '../format.ts';
import { Nothing, Section } from '../lists.tsx';
import { ErrorBox, Waiting } from '../parts.tsx';
import { OVERVIEW_MS } from './queries.ts';

const Chart = lazy(async () => await import('../chart.tsx'));

type Point = Schemas['CreatorTimeseries']['points'][number];

const DAYS_OF_WEEK = 7;

/** Returns the local midnight that begins a day, `days` before the day of `now`, epoch ms. */
const dayBefore = (now: Date, days: number): number =>
  new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).getTime();

/** Ranges of whole bars: the first one begins with its local day, week (on Monday) or month. */
const RANGES = {
  '30d': { name: 'Last 30 days', interval: 'day', from: (now: Date) => dayBefore(now, 29) },
  '90d': {
    name: 'Last 13 weeks',
    interval: 'week',
    from: (now: Date) => dayBefore(now, ((now.getDay() + 6) % DAYS_OF_WEEK) + 12 * DAYS_OF_WEEK),
  },
  '12m': {
    name: 'Last 12 months',
    interval: 'month',
    from: (now: Date) => new Date(now.getFullYear(), now.getMonth() - 11, 1).getTime(),
  },
} as const;

const MEASURES = {
  earned: { name: 'Earned', of: (point: Point) => point.commissionCents, format: formatMoney },
  clicks: { name: 'Clicks', of: (point: Point) => point.clicks, format: formatCount },
  installs: { name: 'Installs', of: (point: Point) => point.installs, format: formatCount },
} as const;

const shortDate = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const monthName = new Intl.DateTimeFormat(undefined, { month: 'short', year: 'numeric' });

/** A select whose value lives in the address. */
function Choice<T extends Readonly<Record<string, { readonly name: string }>>>({
  label,
  options,
  value,
  onChange,
}: {
  readonly label: string;
  readonly options: T;
  readonly value: keyof T & string;
  readonly onChange: (value: string) => void;
}) {
  return (
    <NativeSelect
      size="xs"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {Object.entries(options).map(([key, { name }]) => (
        <option key={key} value={key}>
          {name}
        </option>
      ))}
    </NativeSelect>
  );
}

/** Returns the value of a query parameter if it is one of these names. */
function chosen<T extends object>(names: T, value: string | null, otherwise: keyof T & string) {
  return value !== null && Object.hasOwn(names, value) ? (value as keyof T & string) : otherwise;
}

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
  const { name, of, format } = MEASURES[measure];
  const dates = series.data?.interval === 'month' ? monthName : shortDate;
  const points = (series.data?.points ?? []).map((point) => ({
    name: dates.format(point.at),
    value: of(point),
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
              <Chart points={points} measure={name} format={format} />
            </Suspense>
          ))}
      </div>
    </Section>
  );
}
