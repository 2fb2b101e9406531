import { Stack, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useOverview } from '../api/queries.ts';
import { OVERVIEW_MS } from '../api/query-client.ts';
import { formatCount, formatMoney, formatShare, timeZone } from '../format.ts';
import { Nothing, Section } from '../lists.tsx';
import { ErrorBox, NoPermission, PageHead, Waiting } from '../parts.tsx';
import { chosen, Choice } from '../parts/choice.tsx';
import { Figures } from '../parts/figures.tsx';
import { nameOfBar, RANGES } from '../ranges.ts';
import { usePermission } from '../session.ts';
import { TopLists } from './leaders.tsx';
import { MEASURES, sumOf } from './measures.ts';
import type { Measure, Point, Sums } from './measures.ts';
import { ToDo, useToDo } from './to-do.tsx';

const Chart = lazy(async () => await import('../chart.tsx'));

type Overview = Schemas['AppOverview'];

/** Says what the previous period had, on one line. */
const beforeHint = (before: string) => `${before}\u00A0before`;

/** Says which part of the step before came this far, and what the previous period had. */
function stepHint(part: number, of: number | null, step: string, before: string): string {
  // Purchase codes and people bring payers who are no users of the step before.
  const rate = of === null || of === 0 || part > of ? '' : `${formatShare(part / of)} of ${step} · `;
  return `${rate}${beforeHint(before)}`;
}

function Funnel({ now, before }: { readonly now: Sums; readonly before: Sums }) {
  return (
    <Figures
      figures={[
        {
          name: 'Clicks',
          value: formatCount(now.clicks),
          hint: stepHint(now.clicks, null, '', formatCount(before.clicks)),
        },
        {
          name: 'Installs',
          value: formatCount(now.installs),
          hint: stepHint(now.installs, now.clicks, 'clicks', formatCount(before.installs)),
        },
        {
          name: 'Users',
          value: formatCount(now.identified),
          hint: stepHint(now.identified, now.installs, 'installs', formatCount(before.identified)),
        },
        {
          name: 'Paying users',
          value: formatCount(now.paid),
          hint: stepHint(now.paid, now.identified, 'users', formatCount(before.paid)),
        },
        {
          name: 'Revenue',
          value: formatMoney(now.revenueCents),
          hint: `net of refunds · ${beforeHint(formatMoney(before.revenueCents))}`,
        },
        {
          name: 'Earned',
          value: formatMoney(now.commissionCents),
          hint: `by creators · ${beforeHint(formatMoney(before.commissionCents))}`,
        },
      ]}
    />
  );
}

/** What creators are owed at present, whatever the range. */
function Balances({
  appId,
  overview: { commissions, due },
}: {
  readonly appId: string;
  readonly overview: Overview;
}) {
  return (
    <Figures
      figures={[
        { name: 'Held', value: formatMoney(commissions.pending), hint: 'in the hold period' },
        {
          name: 'Due',
          value: formatMoney(due.payableCents),
          hint: <Link to={`/apps/${appId}/payouts`}>Pay creators</Link>,
        },
        ...(due.negativeCents < 0
          ? [
              {
                name: 'Negative balances',
                value: formatMoney(due.negativeCents),
                hint: 'refunds after a payout; later commissions outweigh them',
              },
            ]
          : []),
        { name: 'Paid', value: formatMoney(commissions.paid), hint: 'in payouts, since the beginning' },
      ]}
    />
  );
}

/** Joins the points of two periods by their place: the third day with the third day before. */
function chartPoints(now: readonly Point[], before: readonly Point[], interval: string, measure: Measure) {
  const { of } = MEASURES[measure];
  return now.map((point, index) => {
    const earlier = before[index];
    return {
      name: nameOfBar(point.at, interval),
      value: of(point),
      ...(earlier === undefined ? {} : { before: of(earlier) }),
    };
  });
}

/** The points of a range, and of as much of the period before it. */
function useSeries(appId: string, range: keyof typeof RANGES, enabled: boolean) {
  const { from, beforeFrom, before, name, interval } = RANGES[range];
  return useQuery({
    queryKey: ['overview-series', appId, range],
    queryFn: async () => {
      const now = new Date();
      const readRange = async (start: number, to: number) =>
        await read(
          api.GET('/apps/{appId}/timeseries', {
            params: { path: { appId }, query: { from: start, to, interval, timezone: timeZone } },
          }),
        );
      // The period before ends as long after its beginning as this one has lasted.
      const [start, beforeStart] = [from(now), beforeFrom(now)];
      const beforeEnd = Math.min(start, beforeStart + now.getTime() - start);
      const [current, earlier] = await Promise.all([
        readRange(start, now.getTime()),
        readRange(beforeStart, beforeEnd),
      ]);
      return { current: current.points, earlier: earlier.points, interval, before, name };
    },
    placeholderData: keepPreviousData,
    enabled,
    refetchInterval: OVERVIEW_MS,
  });
}

function Range({
  appId,
  range,
  series,
}: {
  readonly appId: string;
  readonly range: keyof typeof RANGES;
  readonly series: ReturnType<typeof useSeries>;
}) {
  const [search, setSearch] = useSearchParams();
  const measure = chosen(MEASURES, search.get('measure'), 'revenue');
  const choose = (name: string) => (value: string) =>
    setSearch((before) => ({ ...Object.fromEntries(before), [name]: value }), { replace: true });
  const failure = series.error !== null && (
    <ErrorBox error={series.error} retry={() => void series.refetch()} />
  );
  if (series.data === undefined) return failure || <Waiting what="the figures" />;
  const { current, earlier, ...shown } = series.data;
  const points = chartPoints(current, earlier, shown.interval, measure);
  return (
    <Stack gap="xl">
      {failure}
      <Section
        id="funnel"
        title={shown.name}
        aside={<Choice label="Range" options={RANGES} value={range} onChange={choose('range')} />}
      >
        <Funnel now={sumOf(current)} before={sumOf(earlier)} />
      </Section>
      <Section
        id="chart"
        title="Over time"
        hint={`The dashed line: ${shown.before.toLowerCase()}. Days are those of ${timeZone}.`}
        aside={<Choice label="Measure" options={MEASURES} value={measure} onChange={choose('measure')} />}
      >
        <div className="surface chart-surface">
          {points.every((point) => point.value === 0 && (point.before ?? 0) === 0) ? (
            <Nothing title="Nothing in this range" />
          ) : (
            <Suspense fallback={<Waiting what="the chart" />}>
              <Chart
                points={points}
                measure={MEASURES[measure].name}
                before={shown.before}
                format={MEASURES[measure].format}
              />
            </Suspense>
          )}
        </div>
      </Section>
      <TopLists appId={appId} measure={measure} range={range} from={RANGES[range].from} />
    </Stack>
  );
}

export function OverviewPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const overview = useOverview(appId, canRead);
  const toDo = useToDo(appId, canRead);
  const [search] = useSearchParams();
  const range = chosen(RANGES, search.get('range'), '30d');
  const series = useSeries(appId, range, canRead);
  const content = () => {
    if (!canRead) return <NoPermission permission="read" what="the overview" />;
    if (overview.error instanceof Problem && overview.error.status === 404)
      return <Text size="sm">There is no such app in your account.</Text>;
    const failure = overview.error !== null && (
      <ErrorBox error={overview.error} retry={() => void overview.refetch()} />
    );
    if (overview.data === undefined) return failure || <Waiting what="the overview" />;
    if (toDo.isPending) return <Waiting what="the overview" />;
    const { funnel, due } = overview.data;
    return (
      <Stack gap="xl">
        {failure}
        {funnel.clicks === 0 && funnel.installs === 0 && funnel.paid === 0 && (
          <Text size="sm">
            Nothing was counted yet. <Link to={`/apps/${appId}/setup`}>Go on with the set-up</Link>
          </Text>
        )}
        <ToDo appId={appId} due={due} found={toDo} />
        <Section id="balances" title="Owed to creators now">
          <Balances appId={appId} overview={overview.data} />
        </Section>
        <Range appId={appId} range={range} series={series} />
      </Stack>
    );
  };
  return (
    <>
      <PageHead title="Overview">What creators brought, and what they are owed.</PageHead>
      {content()}
    </>
  );
}
