import './chart.css';
import {
  Area,
  Bar,
  CartesianGrid,
  Cell,
  ComposedChart,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';
import { changeOf } from './parts/change.ts';

/** A value of a chart and of its table. */
export interface ChartPoint {
  /** The name of the point: a date. */
  readonly name: string;
  readonly value: number;
  /** Whether its period has not ended, so that the value still changes. */
  readonly isRunning: boolean;
  /** The value at the same place of the previous period, and the name of that. */
  readonly before?: number;
  readonly beforeName?: string;
}

const TEXT = { fontSize: 12, fill: 'var(--tri-quiet)' };

/** What a bar stands for: both dates with their values, and the difference. The chart adds what is pointed at. */
function Values({
  active = false,
  payload = [],
  format,
}: {
  readonly active?: boolean;
  readonly payload?: readonly { readonly payload: ChartPoint }[];
  readonly format: (value: number) => string;
}) {
  const point = payload[0]?.payload;
  if (!active || point === undefined) return null;
  const { name, value, isRunning, before, beforeName } = point;
  const change = before === undefined ? null : changeOf(value, before);
  return (
    <div className="surface chart-values">
      <div>
        <span>
          {name}
          {isRunning && ', so far'}
        </span>
        <b>{format(value)}</b>
      </div>
      {before !== undefined && (
        <div className="quiet">
          <span>{beforeName}</span>
          <span>{format(before)}</span>
        </div>
      )}
      {change !== null && <div className="quiet">{change.short}</div>}
    </div>
  );
}

/** The pattern of a bar whose period has not ended. */
const HATCHED = 'chart-hatched';

/**
 * A chart of bars over a table with the same values, for people who do not see it or want the numbers. With `before`, an area
 * behind them shows the previous period. A chunk of its own: load it lazily.
 */
export default function Chart({
  points,
  measure,
  before,
  format,
  formatAxis,
}: {
  readonly points: readonly ChartPoint[];
  /** What is measured: "Clicks". */
  readonly measure: string;
  /** The name of the previous period: "The 30 days before". */
  readonly before?: string;
  readonly format: (value: number) => string;
  /** Formats a mark of the axis. */
  readonly formatAxis: (value: number) => string;
}) {
  return (
    <>
      <div aria-hidden="true" className="chart no-print">
        <ResponsiveContainer width="100%" height={280}>
          <ComposedChart
            data={[...points]}
            margin={{ top: 8, right: 8, bottom: 0, left: 0 }}
            accessibilityLayer={false}
          >
            <defs>
              <pattern
                id={HATCHED}
                width="6"
                height="6"
                patternUnits="userSpaceOnUse"
                patternTransform="rotate(45)"
              >
                <rect width="6" height="6" fill="var(--tri-series)" opacity="0.35" />
                <rect width="2.5" height="6" fill="var(--tri-series)" />
              </pattern>
            </defs>
            <CartesianGrid vertical={false} stroke="var(--tri-edge)" />
            <XAxis
              dataKey="name"
              tick={TEXT}
              tickLine={false}
              axisLine={false}
              minTickGap={24}
              interval="equidistantPreserveStart"
            />
            <YAxis
              tick={TEXT}
              tickLine={false}
              axisLine={false}
              width="auto"
              allowDecimals={false}
              tickFormatter={(value: number) => formatAxis(value)}
            />
            <Tooltip
              isAnimationActive={false}
              cursor={{ fill: 'var(--tri-hover)' }}
              content={<Values format={format} />}
            />
            {before !== undefined && (
              <Area
                dataKey="before"
                name={before}
                stroke="var(--tri-series-before)"
                strokeWidth={1.5}
                fill="var(--tri-series-before)"
                fillOpacity={0.12}
                dot={false}
                activeDot={false}
                isAnimationActive={false}
              />
            )}
            <Bar
              dataKey="value"
              name={measure}
              fill="var(--tri-series)"
              radius={[3, 3, 0, 0]}
              isAnimationActive={false}
            >
              {points.map(({ name, isRunning }) => (
                <Cell key={name} fill={isRunning ? `url(#${HATCHED})` : 'var(--tri-series)'} />
              ))}
            </Bar>
          </ComposedChart>
        </ResponsiveContainer>
      </div>
      <details className="chart-table">
        <summary>As a table</summary>
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">Date</th>
              <th scope="col" className="number">
                {measure}
              </th>
              {before !== undefined && (
                <th scope="col" className="number">
                  {before}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {points.map((point) => (
              <tr key={point.name}>
                <td>{point.name}</td>
                <td className="number">{format(point.value)}</td>
                {before !== undefined && (
                  <td className="number">{point.before === undefined ? '' : format(point.before)}</td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}
