import { Stack, Text } from '@mantine/core';
import { Link, useParams, useSearchParams } from 'react-router';
import { Problem } from '../api/client.ts';
import type { Schemas } from '../api/client.ts';
import { useOverview } from '../api/queries.ts';
import { Section } from '../lists.tsx';
import { ErrorBox, NoPermission, PageHead, Waiting } from '../parts.tsx';
import { chosen } from '../parts/choice.tsx';
import { usePermission } from '../session.ts';
import { Funnel } from './funnel.tsx';
import { TopLists } from './leaders.tsx';
import { ComparedWith, MeasureCard } from './measure-card.tsx';
import { MEASURES, sumOf } from './measures.ts';
import { Owed } from './owed.tsx';
import { PeriodFields, usePeriod } from './period-fields.tsx';
import type { Period } from './period.ts';
import { useSeries } from './series.ts';
import { ToDo, useToDo } from './to-do.tsx';

/** The places of the figures. */
const Loading = () => <Waiting what="the overview" shape="figures" />;

function Range({
  appId,
  overview,
  period,
  series,
}: {
  readonly appId: string;
  readonly overview: Schemas['AppOverview'];
  readonly period: Period;
  readonly series: ReturnType<typeof useSeries>;
}) {
  const [search, setSearch] = useSearchParams();
  const measure = chosen(MEASURES, search.get('measure'), 'revenue');
  const failure = series.error !== null && (
    <ErrorBox error={series.error} retry={() => void series.refetch()} />
  );
  if (series.data === undefined) return failure || <Loading />;
  const { current, name } = series.data;
  return (
    <Stack gap="xl">
      {failure}
      <section aria-labelledby="measures">
        <h2 id="measures" className="spoken">
          {name}
        </h2>
        <MeasureCard
          series={series.data}
          measure={measure}
          onChoose={(value) =>
            setSearch((old) => ({ ...Object.fromEntries(old), measure: value }), { replace: true })
          }
        />
      </section>
      <div className="halves">
        <Section id="funnel" title="From click to payment">
          <div className="surface">
            <Funnel sums={sumOf(current)} />
          </div>
        </Section>
        <Section id="balances" title="Owed and booked">
          <div className="surface">
            <Owed appId={appId} overview={overview} />
          </div>
        </Section>
      </div>
      <TopLists appId={appId} measure={measure} period={period} />
    </Stack>
  );
}

export function OverviewPage() {
  const { appId = '' } = useParams();
  const canRead = usePermission('read');
  const overview = useOverview(appId, canRead);
  const toDo = useToDo(appId, canRead);
  const chosenPeriod = usePeriod();
  const { period } = chosenPeriod;
  const series = useSeries(appId, period, { enabled: canRead });
  const isUnknown = overview.error instanceof Problem && overview.error.status === 404;
  const content = () => {
    if (!canRead) return <NoPermission permission="read" what="the overview" />;
    if (isUnknown) return <Text size="sm">There is no such app in your account.</Text>;
    const failure = overview.error !== null && (
      <ErrorBox error={overview.error} retry={() => void overview.refetch()} />
    );
    if (overview.data === undefined) return failure || <Loading />;
    if (toDo.isPending) return <Loading />;
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
        <Range appId={appId} overview={overview.data} period={period} series={series} />
      </Stack>
    );
  };
  return (
    <>
      <PageHead title="Overview" aside={canRead && <PeriodFields {...chosenPeriod} />}>
        What creators brought, and what they are owed.{' '}
        {canRead && !isUnknown && <ComparedWith {...(series.data ?? period)} />}
      </PageHead>
      {content()}
    </>
  );
}
