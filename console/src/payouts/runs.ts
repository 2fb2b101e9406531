import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, Problem, read } from '../api/client.ts';
import { LIVE_MS, OVERVIEW_MS } from '../api/query-client.ts';
import { PAYOUT_KEYS } from './keys.ts';
import { UNPAID } from './words.ts';
import type { Run, RunItem } from './words.ts';

/** How often a run is read again: often while it is being paid. Another tab may approve or replace a draft. */
function intervalOf(run: Run | null | undefined): number | false {
  if (run?.status === 'approved') return LIVE_MS;
  return run === undefined || run === null || run.status === 'draft' ? OVERVIEW_MS : false;
}

/** Reads a payout run. */
export const useRun = (appId: string, runId: string, enabled: boolean) =>
  useQuery({
    queryKey: PAYOUT_KEYS.run(appId, runId),
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/payout-runs/{runId}', { params: { path: { appId, runId } } })),
    enabled,
    refetchInterval: ({ state }) => (state.error instanceof Problem ? false : intervalOf(state.data)),
  });

/** Reads the run of an app that is a draft or is being paid. Null if there is none: only the latest run can be. Undefined until it is
 * known. */
export function useOpenRun(appId: string): Run | null | undefined {
  const { data } = useQuery({
    queryKey: PAYOUT_KEYS.latestRun(appId),
    queryFn: async () => {
      const query = { limit: 1 };
      const page = await read(api.GET('/apps/{appId}/payout-runs', { params: { path: { appId }, query } }));
      return page.items[0] ?? null;
    },
    refetchInterval: ({ state }) => intervalOf(state.data) || OVERVIEW_MS,
  });
  if (data === undefined) return undefined;
  return data?.status === 'draft' || data?.status === 'approved' ? data : null;
}

/** Returns what reads all answers about an app anew, after money of it has changed. */
export function useMoneyChanged(appId: string): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey.includes(appId) });
  };
}

/** An item of a run that was not paid, and why. */
interface UnpaidItem extends RunItem {
  readonly why: string;
}

/** How many items that were not paid are listed at most, and in how many pages of items they are looked for. */
const MOST_UNPAID = 50;
const MOST_PAGES = 30;

function whyUnpaid({ outcome }: RunItem): string | null {
  return outcome === null || outcome === 'paid' || outcome === 'resent' || outcome === 'waiting'
    ? null
    : UNPAID[outcome];
}

/** Reads the first 50 items of a settled run that were not paid. The API lists items by amount, so they may be anywhere. */
async function readUnpaid(appId: string, { id: runId, itemCount, paidCount }: Run): Promise<UnpaidItem[]> {
  const unpaid: UnpaidItem[] = [];
  const wanted = Math.min(itemCount - paidCount, MOST_UNPAID);
  let cursor: string | null = null;
  for (let turn = 0; turn < MOST_PAGES && unpaid.length < wanted; turn += 1) {
    const query: { limit: number; cursor?: string } = { limit: 100, ...(cursor === null ? {} : { cursor }) };
    // One page after the other: each has the cursor of the next one.
    // oxlint-disable-next-line no-await-in-loop
    const page = await read(
      api.GET('/apps/{appId}/payout-runs/{runId}/items', { params: { path: { appId, runId }, query } }),
    );
    for (const item of page.items) {
      const why = whyUnpaid(item);
      if (why !== null && unpaid.length < wanted) unpaid.push({ ...item, why });
    }
    cursor = page.nextCursor;
    if (cursor === null) break;
  }
  return unpaid;
}

/** Reads who was not paid by a settled run, and why: at most 50. */
export const useUnpaid = (appId: string, run: Run) =>
  useQuery({
    queryKey: PAYOUT_KEYS.runUnpaid(appId, run.id),
    queryFn: async () => await readUnpaid(appId, run),
    enabled: run.status === 'settled' && run.paidCount < run.itemCount,
    // Nothing changes after the end.
    staleTime: Infinity,
  });

/** The files of a settled run. */
export function useRunFiles(appId: string, runId: string) {
  return useQuery({
    queryKey: PAYOUT_KEYS.runFiles(appId, runId),
    queryFn: async () =>
      await read(api.GET('/apps/{appId}/payout-runs/{runId}/files', { params: { path: { appId, runId } } })),
  });
}
