import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, given, read } from '../api/client.ts';
import { OVERVIEW_MS } from '../api/query-client.ts';
import { timeZone } from '../format.ts';
import type { Point } from './measures.ts';
import type { Period } from './period.ts';

/** The points of a range, and of as much of the period before it. */
export interface Series {
  readonly current: readonly Point[];
  readonly earlier: readonly Point[];
  readonly interval: Period['interval'];
  /** The name of the range, and that of the period before it. */
  readonly name: string;
  readonly before: string;
  /** Whether the range ends now, in the middle of its last bar. */
  readonly isRunning: boolean;
}

/** Reads what an app or one creator brought in a range and in the period before it. */
export function useSeries(
  appId: string,
  period: Period,
  { affiliateId, enabled = true }: { readonly affiliateId?: string; readonly enabled?: boolean } = {},
) {
  const { key, from, to, beforeFrom, before, name, interval } = period;
  return useQuery({
    queryKey: ['overview-series', appId, key, affiliateId],
    queryFn: async (): Promise<Series> => {
      const now = new Date();
      const readRange = async (start: number, end: number) =>
        await read(
          api.GET('/apps/{appId}/timeseries', {
            params: {
              path: { appId },
              query: { from: start, to: end, interval, timezone: timeZone, ...given({ affiliateId }) },
            },
          }),
        );
      // The period before ends as long after its beginning as this one has lasted.
      const [start, end, beforeStart] = [from(now), to(now), beforeFrom(now)];
      const beforeEnd = Math.min(start, beforeStart + end - start);
      const [current, earlier] = await Promise.all([
        readRange(start, end),
        readRange(beforeStart, beforeEnd),
      ]);
      const isRunning = end === now.getTime();
      return { current: current.points, earlier: earlier.points, interval, before, name, isRunning };
    },
    placeholderData: keepPreviousData,
    enabled,
    refetchInterval: OVERVIEW_MS,
  });
}
