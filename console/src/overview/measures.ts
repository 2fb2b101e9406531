import type { Schemas } from '../api/client.ts';
import { formatCount, formatCountShort, formatMoney, formatMoneyShort } from '../format.ts';

export type Point = Schemas['Timeseries']['points'][number];

/** What the chart and the leaders of the overview can show. The names are those of `measure` in the API. */
export const MEASURES = {
  revenue: {
    name: 'Revenue',
    of: ({ revenueCents }: Sums) => revenueCents,
    format: formatMoney,
    formatAxis: formatMoneyShort,
  },
  commissions: {
    name: 'Earned',
    of: ({ commissionCents }: Sums) => commissionCents,
    format: formatMoney,
    formatAxis: formatMoneyShort,
  },
  clicks: {
    name: 'Clicks',
    of: ({ clicks }: Sums) => clicks,
    format: formatCount,
    formatAxis: formatCountShort,
  },
  installs: {
    name: 'Installs',
    of: ({ installs }: Sums) => installs,
    format: formatCount,
    formatAxis: formatCountShort,
  },
  paid: {
    name: 'Paying users',
    of: ({ paid }: Sums) => paid,
    format: formatCount,
    formatAxis: formatCountShort,
  },
} as const;
export type Measure = keyof typeof MEASURES;

/** The sums that a point of a time series, a range and a leader have. */
export type Sums = Pick<
  Point,
  'clicks' | 'installs' | 'identified' | 'paid' | 'revenueCents' | 'commissionCents'
>;

/** Adds the points of a range. */
export function sumOf(points: readonly Point[]): Sums {
  const total = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0);
  return {
    clicks: total(({ clicks }) => clicks),
    installs: total(({ installs }) => installs),
    identified: total(({ identified }) => identified),
    paid: total(({ paid }) => paid),
    revenueCents: total(({ revenueCents }) => revenueCents),
    commissionCents: total(({ commissionCents }) => commissionCents),
  };
}

/** How often leaders are read again while the page is shown, ms. They cost the database more than sums. */
export const LEADERS_MS = 60_000;
