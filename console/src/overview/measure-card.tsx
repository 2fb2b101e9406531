import { lazy, Suspense } from 'react';
import { timeZone } from '../format.ts';
import { Nothing } from '../lists.tsx';
import { Waiting } from '../parts.tsx';
import { changeOf } from '../parts/change.ts';
import { nameOfBar } from '../ranges.ts';
import { MEASURES, sumOf } from './measures.ts';
import type { Measure, Point } from './measures.ts';
import type { Series } from './series.ts';

const Chart = lazy(async () => await import('../chart.tsx'));

/** The course of a measure, without numbers. */
function Sparkline({ values }: { readonly values: readonly number[] }) {
  const [low, high] = [Math.min(0, ...values), Math.max(1, ...values)];
  const at = (value: number, index: number) =>
    `${((index / Math.max(1, values.length - 1)) * 96 + 1).toFixed(1)},${(23 - ((value - low) / (high - low)) * 21).toFixed(1)}`;
  return (
    <svg className="sparkline" viewBox="0 0 98 24" preserveAspectRatio="none" aria-hidden="true">
      <polyline points={values.map(at).join(' ')} vectorEffect="non-scaling-stroke" />
    </svg>
  );
}

/** Joins the points of two periods by their place: the third day with the third day before. */
function chartPoints(
  now: readonly Point[],
  before: readonly Point[],
  interval: string,
  { measure, isRunning }: { readonly measure: Measure; readonly isRunning: boolean },
) {
  const { of } = MEASURES[measure];
  return now.map((point, index) => {
    const earlier = before[index];
    return {
      name: nameOfBar(point.at, interval),
      value: of(point),
      isRunning: isRunning && index === now.length - 1,
      ...(earlier === undefined ? {} : { before: of(earlier), beforeName: nameOfBar(earlier.at, interval) }),
    };
  });
}

/** Says which range is compared with which. */
export function ComparedWith({ name, before }: { readonly name: string; readonly before: string }) {
  return (
    <>
      {name}, compared with {before.charAt(0).toLowerCase() + before.slice(1)}. Days are those of {timeZone}.
    </>
  );
}

/** The sums of a range, each with what the previous period had; the chosen one has a chart. */
export function MeasureCard({
  series: { current, earlier, interval, before, isRunning },
  measure,
  onChoose,
}: {
  readonly series: Series;
  readonly measure: Measure;
  readonly onChoose: (measure: Measure) => void;
}) {
  const [now, then] = [sumOf(current), sumOf(earlier)];
  const points = chartPoints(current, earlier, interval, { measure, isRunning });
  return (
    <>
      <div className="surface">
        <fieldset className="measures">
          <legend className="spoken">Measure</legend>
          {(Object.keys(MEASURES) as Measure[]).map((key) => {
            const { name, of, format } = MEASURES[key];
            const change = changeOf(of(now), of(then));
            return (
              <label key={key} className="measure">
                <input
                  type="radio"
                  className="spoken"
                  name="measure"
                  value={key}
                  checked={key === measure}
                  onChange={() => onChoose(key)}
                />
                <span className="measure-name">{name}</span>
                <span className="measure-value">{format(of(now))}</span>
                <span className="measure-before">
                  {change !== null && (
                    <span title={change.words}>
                      <span aria-hidden="true">{change.short}</span>
                      <span className="spoken">
                        {change.words} {change.short.replace(/^[▲▼] /, '')}
                      </span>
                      {' · '}
                    </span>
                  )}
                  {format(of(then))}&nbsp;before
                </span>
                <Sparkline values={current.map(of)} />
              </label>
            );
          })}
        </fieldset>
        <div className="chart-surface">
          {points.every((point) => point.value === 0 && (point.before ?? 0) === 0) ? (
            <Nothing title="Nothing in this range" />
          ) : (
            <Suspense fallback={<Waiting what="the chart" />}>
              <Chart
                points={points}
                measure={MEASURES[measure].name}
                before={before}
                format={MEASURES[measure].format}
                formatAxis={MEASURES[measure].formatAxis}
              />
            </Suspense>
          )}
        </div>
      </div>
    </>
  );
}
