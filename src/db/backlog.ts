import type { Sql } from './sql.ts';

/** Upper bound of each count. The exact number of a larger backlog is not needed. */
const COUNT_LIMIT = 10_000;

/** Work that is due and not done yet. An age is 0 when there is none. */
export interface Backlog {
  readonly unfinishedDeliveries: number;
  readonly oldestUnfinishedSeconds: number;
  /** Unfinished deliveries of which a step has failed. */
  readonly stuckDeliveries: number;
  readonly overdueCommissions: number;
  /** How long ago the oldest of them was due. */
  readonly oldestOverdueSeconds: number;
  readonly openPayoutRequests: number;
  readonly oldestPayoutRequestSeconds: number;
  /** Users whose earlier payments have not been evaluated. */
  readonly unhealedBindings: number;
  readonly oldestUnhealedSeconds: number;
  /** Erasures of persons that are not complete. */
  readonly openErasures: number;
  readonly oldestErasureSeconds: number;
  /** Messages to endpoints whose next attempt is due. */
  readonly dueWebhooks: number;
  readonly oldestDueWebhookSeconds: number;
  /** Mails whose next attempt is due. */
  readonly dueEmails: number;
  readonly oldestDueEmailSeconds: number;
}

/** Returns the number and age of what the service has accepted and not finished. Reads from partial indexes only. */
export async function readBacklog(sql: Sql): Promise<Backlog> {
  return await sql.one<Backlog>`
    select *
      from (select count(*)::int as unfinished_deliveries,
                   coalesce(extract(epoch from now() - min(accepted_at)), 0)::float8 as oldest_unfinished_seconds,
                   count(last_error)::int as stuck_deliveries
              from (select accepted_at, last_error from deliveries where completed_at is null
                     order by coalesce(relayed_at, received_at) limit ${COUNT_LIMIT}) d) deliveries,
           (select count(*)::int as overdue_commissions,
                   coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as oldest_overdue_seconds
              from (select due_at from commissions where status = 'pending' and due_at <= now()
                     order by due_at limit ${COUNT_LIMIT}) c) commissions,
           (select count(*)::int as open_payout_requests,
                   -- A request of a payout run is valid for an hour: until then it is not late.
                   coalesce(extract(epoch from now() - min(created_at) filter (
                     where expires_at <= now() or expires_at - created_at <= interval '1 minute')), 0)::float8 as oldest_payout_request_seconds
              from (select created_at, expires_at from payout_requests where status = 'open'
                     order by expires_at limit ${COUNT_LIMIT}) p) payout_requests,
           (select count(*)::int as unhealed_bindings,
                   coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest_unhealed_seconds
              from (select created_at from bindings where healed_at is null
                     order by coalesce(relayed_at, created_at) limit ${COUNT_LIMIT}) b) bindings,
           (select count(*)::int as open_erasures,
                   coalesce(extract(epoch from now() - min(coalesce(reopened_at, requested_at))), 0)::float8 as oldest_erasure_seconds
              from (select requested_at, reopened_at from erasures where finished_at is null
                     order by coalesce(relayed_at, requested_at) limit ${COUNT_LIMIT}) e) erasures,
           (select count(*)::int as due_webhooks,
                   coalesce(extract(epoch from now() - min(next_attempt_at)), 0)::float8 as oldest_due_webhook_seconds
              from (select next_attempt_at from webhook_messages where completed_at is null and next_attempt_at <= now()
                     order by next_attempt_at limit ${COUNT_LIMIT}) m) webhooks,
           (select count(*)::int as due_emails,
                   coalesce(extract(epoch from now() - min(next_attempt_at)), 0)::float8 as oldest_due_email_seconds
              from (select next_attempt_at from emails where ended_at is null and next_attempt_at <= now()
                     order by next_attempt_at limit ${COUNT_LIMIT}) e) emails`;
}
