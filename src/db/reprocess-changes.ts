import type { EventId, ReprocessRunId } from '../domain/ids.ts';
import type { ReprocessChange } from '../domain/reprocess.ts';
import type { Sql } from './sql.ts';
import type { ReprocessedDelivery } from './reprocess-deliveries.ts';

/** The plan for one delivery, with its result. */
export interface ReprocessFinding extends ReprocessedDelivery {
  /** The provider that sent it. */
  readonly source: string;
  readonly eventId: EventId;
  readonly changes: readonly ReprocessChange[];
  readonly appliedAt: number | null;
  readonly refusal: string | null;
}

/** Returns a page of a run's plans, in the order of receipt. */
export async function listReprocessChanges(
  sql: Sql,
  id: ReprocessRunId,
  after: ReprocessedDelivery | null,
  limit: number,
): Promise<ReprocessFinding[]> {
  return await sql<ReprocessFinding>`
    select c.delivery_id, c.received_at, d.provider as source, d.event_id, c.changes,
           c.applied_at, c.refusal
      from reprocess_changes c join deliveries d on d.id = c.delivery_id
     where c.reprocess_run_id = ${id}
       and (c.received_at, c.delivery_id::text)
           > (coalesce((select x.received_at from reprocess_changes x
                         where x.reprocess_run_id = ${id} and x.delivery_id = ${after?.deliveryId ?? null}), '-infinity'),
              ${after?.deliveryId ?? ''}::text)
     order by c.received_at, c.delivery_id limit ${limit}`;
}
