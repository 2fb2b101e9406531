import { newId } from '../../src/db/new-id.ts';
import { settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { endRun, openRunRequests } from '../../src/db/payout-run-requests.ts';
import type { PayoutRunId } from '../../src/domain/ids.ts';
import type { Sql } from '../../src/db/sql.ts';

const MOST = 1_000;

/** Pays the creators of an approved run without Temporal, and ends it. The bytes of its file count as erased. */
export async function settleRun(sql: Sql, runId: PayoutRunId): Promise<void> {
  const requests = await openRunRequests(sql, runId, MOST);
  for (const { id } of requests?.open ?? []) await settlePayoutRequest(sql, id);
  await sql`
    insert into payout_run_files (id, app_id, run_id, method, part, row_count, total_cents, sha256)
    select ${newId('payoutFile')}, i.app_id, i.run_id, 'other', 1, count(*), sum(i.expected_cents), sha256('erased')
      from payout_run_items i join payout_requests q on q.id = i.request_id and q.status = 'paid'
     where i.run_id = ${runId} group by i.app_id, i.run_id`;
  if (!(await endRun(sql, runId))) throw new Error(`the run ${runId} is not settled`);
}
