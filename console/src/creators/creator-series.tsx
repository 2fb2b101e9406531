import { Text } from '@mantine/core';
import { useState } from 'react';
import { Section } from '../lists.tsx';
import { ComparedWith, MeasureCard } from '../overview/measure-card.tsx';
import type { Measure } from '../overview/measures.ts';
import { PeriodFields, usePeriod } from '../overview/period-fields.tsx';
import { useSeries } from '../overview/series.ts';
import { ErrorBox, Waiting } from '../parts.tsx';

/** What a creator brought in a range, with a chart, compared with the period before. */
export function CreatorSeries({
  appId,
  affiliateId,
}: {
  readonly appId: string;
  readonly affiliateId: string;
}) {
  const period = usePeriod();
  const series = useSeries(appId, period.period, { affiliateId });
  const [measure, setMeasure] = useState<Measure>('revenue');
  return (
    <Section id="brought" title="What the creator brought" aside={<PeriodFields {...period} />}>
      {series.error !== null && <ErrorBox error={series.error} retry={() => void series.refetch()} />}
      {series.data !== undefined && (
        <div>
          <MeasureCard series={series.data} measure={measure} onChoose={setMeasure} />
          <Text size="xs" className="quiet" mt={6}>
            <ComparedWith {...series.data} />
          </Text>
        </div>
      )}
      {series.isPending && (
        <div style={{ minHeight: 480 }}>
          <Waiting what="the figures" />
        </div>
      )}
    </Section>
  );
}
