import './chart.css';
import {
  Area,
  Bar,
  CartesianGrid,
  ComposedChart,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';

/** A value of a chart and of its table. */
export interface ChartPoint {
  /** The name of the point: a date. */
  readonly name: string;
  readonly value: number;
  /** The value at the same place of the previous period. */
  readonly before?: number;
}

const TEXT = { fontSize: 12, fill: 'var(--tri-quiet)' };

/**
 * A chart of bars over a table with the same values, for people who do not see it or want the numbers. With `before`, an area
 * behind them shows the previous period. A chunk of its own: load it lazily.
 */
export default function Chart({
  points,
  measure,
  before,
  format,
}: {
  readonly points: readonly ChartPoint[];
  /** What is measured: "Clicks". */
  readonly measure: string;
  /** The name of the previous period: "The 30 days before". */
  readonly before?: string;
  readonly format: (value: number) => string;
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
              tickFormatter={(value: number) => format(value)}
            />
            <Tooltip
              isAnimationActive={false}
              cursor={{ fill: 'var(--tri-hover)' }}
              formatter={(value) => format(Number(value))}
              contentStyle={{
                background: 'var(--tri-surface)',
                border: '1px solid var(--tri-edge)',
                borderRadius: 8,
                fontSize: 13,
              }}
              labelStyle={{ color: 'var(--tri-quiet)' }}
              itemStyle={{ color: 'var(--mantine-color-text)' }}
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
            />
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
