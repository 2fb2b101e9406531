import type { ReplayActivities } from '../../activities/replays.ts';
import { newId } from '../../src/db/new-id.ts';
import { listReplayChanges, orderReplay } from '../../src/db/replays.ts';
import type { ReplayOrder } from '../../src/db/replays.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId, ReplayId } from '../../src/domain/ids.ts';
import type { ReplayProgress } from '../../workflows/types.ts';

export interface Replayed extends ReplayProgress {
  readonly found: Awaited<ReturnType<typeof listReplayChanges>>;
}

/** Orders a replay of an app's deliveries, of all unless told otherwise. */
export async function order(
  sql: Sql,
  appId: string,
  over: Partial<Omit<ReplayOrder, 'id' | 'appId'>> = {},
): Promise<ReplayId> {
  const id = newId('replay');
  const wanted = {
    id,
    appId: appId as AppId,
    dryRun: false,
    deliveryId: null,
    from: null,
    to: null,
    ...over,
  };
  if ((await orderReplay(sql, wanted)) === undefined) throw new Error('the replay was not ordered');
  return id;
}

/** Does what the replay workflow does, page by page, and answers what was found. */
export async function carryOut(sql: Sql, activities: ReplayActivities, id: ReplayId): Promise<Replayed> {
  let progress = await activities.replayPage(id);
  while (!progress.done) progress = await activities.replayPage(id);
  return { ...progress, found: await listReplayChanges(sql, id, null, 1_000) };
}

/** The sum of what was found of commissions and of revenue, in cents. */
export function centsFound({ found }: Replayed, what: 'commission' | 'revenue'): number {
  return found
    .flatMap(({ changes }) => changes)
    .reduce((sum, change) => sum + (change.what === what ? (change.amountCents ?? 0) : 0), 0);
}
