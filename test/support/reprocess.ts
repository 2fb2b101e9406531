import type { ReprocessActivities } from '../../activities/reprocess.ts';
import { newId } from '../../src/db/new-id.ts';
import { requestReprocessing } from '../../src/db/reprocess.ts';
import { listReprocessChanges } from '../../src/db/reprocess-changes.ts';
import type { ReprocessRequest } from '../../src/db/reprocess.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId, ReprocessRunId } from '../../src/domain/ids.ts';
import type { ReprocessProgress } from '../../activities/reprocess.ts';

export interface ReprocessResult extends ReprocessProgress {
  readonly found: Awaited<ReturnType<typeof listReprocessChanges>>;
}

/** Requests a reprocess of the deliveries of an app: all of them unless `over` selects some. */
export async function requestRun(
  sql: Sql,
  appId: string,
  over: Partial<Omit<ReprocessRequest, 'id' | 'appId'>> = {},
): Promise<ReprocessRunId> {
  const id = newId('reprocessRun');
  const request = {
    id,
    appId: appId as AppId,
    dryRun: false,
    deliveryId: null,
    from: null,
    to: null,
    ...over,
  };
  if ((await requestReprocessing(sql, request)) === undefined)
    throw new Error('the reprocess was not accepted');
  return id;
}

/** Runs a reprocess page by page, as its workflow does. Returns the progress and the changes. */
export async function runReprocess(
  sql: Sql,
  activities: ReprocessActivities,
  id: ReprocessRunId,
): Promise<ReprocessResult> {
  let progress = await activities.reprocessPage(id);
  while (!progress.done) progress = await activities.reprocessPage(id);
  return { ...progress, found: await listReprocessChanges(sql, id, null, 1_000) };
}

/** Returns the sum of the commission or revenue changes, in cents. */
export function centsFound({ found }: ReprocessResult, what: 'commission' | 'revenue'): number {
  return found
    .flatMap(({ changes }) => changes)
    .reduce((sum, change) => sum + (change.what === what ? (change.amountCents ?? 0) : 0), 0);
}
