import type { ReprocessActivities } from '../../activities/reprocess.ts';
import { newId } from '../../src/db/new-id.ts';
import { listReprocessChanges, requestReprocessing } from '../../src/db/reprocess.ts';
import type { ReprocessRequest } from '../../src/db/reprocess.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { AppId, ReprocessRunId } from '../../src/domain/ids.ts';
import type { ReprocessProgress } from '../../src/domain/workflow-contracts.ts';

export interface Reprocessed extends ReprocessProgress {
  readonly found: Awaited<ReturnType<typeof listReprocessChanges>>;
}

/** Orders a reprocess of an app's deliveries, of all unless told otherwise. */
export async function order(
  sql: Sql,
  appId: string,
  over: Partial<Omit<ReprocessRequest, 'id' | 'appId'>> = {},
): Promise<ReprocessRunId> {
  const id = newId('reprocessRun');
  const wanted = {
    id,
    appId: appId as AppId,
    dryRun: false,
    deliveryId: null,
    from: null,
    to: null,
    ...over,
  };
  if ((await requestReprocessing(sql, wanted)) === undefined)
    throw new Error('the reprocess was not ordered');
  return id;
}

/** Does what the reprocess workflow does, page by page, and answers what was found. */
export async function carryOut(
  sql: Sql,
  activities: ReprocessActivities,
  id: ReprocessRunId,
): Promise<Reprocessed> {
  let progress = await activities.reprocessPage(id);
  while (!progress.done) progress = await activities.reprocessPage(id);
  return { ...progress, found: await listReprocessChanges(sql, id, null, 1_000) };
}

/** The sum of what was found of commissions and of revenue, in cents. */
export function centsFound({ found }: Reprocessed, what: 'commission' | 'revenue'): number {
  return found
    .flatMap(({ changes }) => changes)
    .reduce((sum, change) => sum + (change.what === what ? (change.amountCents ?? 0) : 0), 0);
}
