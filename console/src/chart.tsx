import './chart.css';
import { Bar, BarChart, CartesianGrid, ResponsiveContainer, Tooltip, XAxis, YAxis } from 'recharts';

/** A value of a chart and of its table. */
export interface ChartPoint {
  /** The name of the point: a date. */
  readonly name: string;
  readonly value: number;
}

const TEXT = { fontSize: 12, fill: 'var(--tri-quiet)' };

/**
 * A chart of bars over a table with the same values, for people who do not see it or want the numbers. A chunk of its own:
 * load it lazily.
 */
export default function Chart({
  points,
  measure,
  format,
}: {
  readonly points: readonly ChartPoint[];
  /** What is measured: "Clicks". */
  readonly measure: string;
  readonly format: (value: number) => string;
}) {
  return (
    <>
      <div aria-hidden="true" className="chart no-print">
        <ResponsiveContainer width="100%" height={220}>
          <BarChart
            data={[...points]}
            margin={{ top: 8, right: 8, bottom: 0, left: 0 }}
            accessibilityLayer={false}
          >
            <CartesianGrid vertical={false} stroke="var(--tri-edge)" />
            <XAxis dataKey="name" tick={TEXT} tickLine={false} axisLine={false} minTickGap={24} />
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
              cursor={{ fill: 'var(--tri-nav-hover)' }}
              formatter={(value) => [format(Number(value)), measure]}
              contentStyle={{
                background: 'var(--tri-surface)',
                border: '1px solid var(--tri-edge)',
                borderRadius: 8,
                fontSize: 13,
              }}
              labelStyle={{ color: 'var(--tri-quiet)' }}
              itemStyle={{ color: 'var(--mantine-color-text)' }}
            />
            <Bar dataKey="value" fill="var(--tri-pulse)" radius={[3, 3, 0, 0]} isAnimationActive={false} />
          </BarChart>
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
            </tr>
          </thead>
          <tbody>
            {points.map(({ name, value }) => (
              <tr key={name}>
                <td>{name}</td>
                <td className="number">{format(value)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </>
  );
}
