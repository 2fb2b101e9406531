import { Stack, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearchParams } from 'react-router';
import { api, Problem, read } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useOverview } from '../api/queries.ts';
import { OVERVIEW_MS } from '../api/query-client.ts';
import { timeZone } from '../format.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, NoPermission, PageHead, Waiting } from '../parts.tsx';
import { chosen, Choice } from '../parts/choice.tsx';
import { RANGES } from '../ranges.ts';
import { usePermission } from '../session.ts';
import { Funnel } from './funnel.tsx';
import { TopLists } from './leaders.tsx';
import { MeasureCard } from './measure-card.tsx';
import { MEASURES, sumOf } from './measures.ts';
import { Owed } from './owed.tsx';
import { ToDo, useToDo } from './to-do.tsx';

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
  overview,
  range,
  series,
}: {
  readonly appId: string;
  readonly overview: Schemas['AppOverview'];
  readonly range: keyof typeof RANGES;
  readonly series: ReturnType<typeof useSeries>;
}) {
  const [search, setSearch] = useSearchParams();
  const measure = chosen(MEASURES, search.get('measure'), 'revenue');
  const failure = series.error !== null && (
    <ErrorBox error={series.error} retry={() => void series.refetch()} />
  );
  if (series.data === undefined) return failure || <Waiting what="the figures" />;
  const { current, earlier, name, interval, before } = series.data;
  return (
    <Stack gap="xl">
      {failure}
      <section aria-labelledby="measures">
        <h2 id="measures" className="spoken">
          {name}
        </h2>
        <MeasureCard
          current={current}
          earlier={earlier}
          interval={interval}
          before={before}
          measure={measure}
          onChoose={(value) =>
            setSearch((old) => ({ ...Object.fromEntries(old), measure: value }), { replace: true })
          }
        />
        <Text size="xs" className="quiet" mt={6}>
          {name}, compared with {before.toLowerCase()}. Days are those of {timeZone}.
        </Text>
      </section>
      <div className="halves">
        <Section id="funnel" title="From click to payment">
          <div className="surface">
            <Funnel sums={sumOf(current)} />
          </div>
        </Section>
        <Section id="balances" title="Owed to creators now">
          <div className="surface">
            <Owed appId={appId} overview={overview} />
          </div>
        </Section>
      </div>
      <TopLists appId={appId} measure={measure} range={range} from={RANGES[range].from} />
    </Stack>
  );
}

export function OverviewPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const overview = useOverview(appId, canRead);
  const toDo = useToDo(appId, canRead);
  const [search, setSearch] = useSearchParams();
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
        <Range appId={appId} overview={overview.data} range={range} series={series} />
      </Stack>
    );
  };
  return (
    <>
      <PageHead
        title="Overview"
        aside={
          canRead && (
            <Choice
              label="Range"
              options={RANGES}
              value={range}
              onChange={(value) =>
                setSearch((old) => ({ ...Object.fromEntries(old), range: value }), { replace: true })
              }
            />
          )
        }
      >
        What creators brought, and what they are owed.
      </PageHead>
      {content()}
    </>
  );
}
