import { notify } from './notifications.ts';
import type { Channel } from './notifications.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

/** What an operator calls each kind of stored work without an outcome that the relay starts. */
export const RELAYED = {
  deliveries: 'deliveries without an outcome',
  bindings: 'users whose earlier payments wait',
  reprocessRuns: 'reprocess runs',
  erasures: 'erasures of persons',
  payoutRuns: 'payout runs',
  messages: 'messages to endpoints of webhooks',
  emails: 'mails',
} as const;

/** How many of each kind have no outcome yet, and how many payments are marked for another evaluation. */
export type OpenWork = Readonly<Record<keyof typeof RELAYED | 'payments', number>>;

/**
 * Makes work overdue that the relay has claimed or that has arrived within `withinMs`, so that the relay starts it in its next
 * round instead of waiting. A workflow that still runs is left alone, so this is safe at any time. Work keeps its order.
 */
export async function makeOverdue(sql: Sql, withinMs: number): Promise<void> {
  const recent = (claimedAt: Fragment) =>
    sql.fragment`${claimedAt} >= now() - ${withinMs} * interval '1 millisecond'`;
  const before = sql.fragment`now() - 2 * ${withinMs} * interval '1 millisecond'`;
  await sql.forManyRows()`
    with page as materialized (
      select id from deliveries
       where completed_at is null and ${recent(sql.fragment`coalesce(relayed_at, received_at)`)}
       for update skip locked
    )
    update deliveries d set relayed_at = least(d.accepted_at, ${before})
      from page where d.id = page.id and d.completed_at is null`;
  await sql.forManyRows()`
    with page as materialized (
      select id from bindings
       where healed_at is null and ${recent(sql.fragment`coalesce(relayed_at, created_at)`)}
       for update skip locked
    )
    update bindings b set relayed_at = least(b.created_at, ${before})
      from page where b.id = page.id and b.healed_at is null`;
  await sql`
    update reprocess_runs set relayed_at = '-infinity' where finished_at is null and ${recent(sql.fragment`relayed_at`)}`;
  await sql`update webhook_messages set relay_at = now() where completed_at is null and relay_at > now()`;
  await sql`update emails set relay_at = now() where ended_at is null and relay_at > now()`;
  await sql`update erasures set relayed_at = '-infinity' where finished_at is null and ${recent(sql.fragment`relayed_at`)}`;
  await sql`update payout_runs set relayed_at = '-infinity' where status = 'approved' and ${recent(sql.fragment`relayed_at`)}`;
}

/**
 * Counts the work without an outcome. With `since`, epoch ms: only what the relay has not claimed since then, and payments that were not
 * evaluated again since then.
 */
export async function countOpenWork(sql: Sql, since: number | null = null): Promise<OpenWork> {
  const unclaimed = (claimedAt: Fragment) =>
    since === null ? sql.fragment`true` : sql.fragment`${claimedAt} < ${instant(since)}::timestamptz`;
  return await sql.forManyRows().one<OpenWork>`
    select (select count(*)::int from deliveries
             where completed_at is null and ${unclaimed(sql.fragment`coalesce(relayed_at, received_at)`)}) as deliveries,
           (select count(*)::int from bindings
             where healed_at is null and ${unclaimed(sql.fragment`coalesce(relayed_at, created_at)`)}) as bindings,
           (select count(*)::int from reprocess_runs
             where finished_at is null and ${unclaimed(sql.fragment`coalesce(relayed_at, '-infinity')`)}) as reprocess_runs,
           (select count(*)::int from erasures
             where finished_at is null and ${unclaimed(sql.fragment`coalesce(relayed_at, '-infinity')`)}) as erasures,
           (select count(*)::int from payout_runs
             where status = 'approved' and ${unclaimed(sql.fragment`coalesce(relayed_at, '-infinity')`)}) as payout_runs,
           (select count(*)::int from webhook_messages
             where completed_at is null and ${since === null ? sql.fragment`true` : sql.fragment`relay_at <= now()`}) as messages,
           (select count(*)::int from emails
             where ended_at is null and ${since === null ? sql.fragment`true` : sql.fragment`relay_at <= now()`}) as emails,
           (select count(*)::int from payments
             where recheck_since is not null and ${unclaimed(sql.fragment`recheck_since`)}) as payments`;
}

/** What waits without being work for the relay. */
export interface Waiting {
  /** Commissions whose hold period is not over. */
  readonly pending: number;
  /** When the first of them is due, epoch ms. */
  readonly nextDueAt: number | null;
  /** Exports whose callers still wait, or whose process died less than 20 s ago. */
  readonly openPayoutRequests: number;
  /** The database's clock, epoch ms. */
  readonly now: number;
}

export async function readWaiting(sql: Sql): Promise<Waiting> {
  return await sql.forManyRows().one<Waiting>`
    select count(*)::int as pending, epoch_ms(min(due_at)) as next_due_at, epoch_ms(clock_timestamp()) as now,
           (select count(*)::int from payout_requests where status = 'open' and expires_at > now()) as open_payout_requests
      from commissions where status = 'pending'`;
}

/** The channel and the payload that tell every process to set up the Temporal server and to relay what is overdue now. */
const CHANNEL: Channel = 'tributary_results';
const RECOVER = { recover: true } as const;

/** Tells every process that listens to start overdue work now, and to restore what the Temporal server lacks. */
export async function askToRecover(sql: Sql): Promise<void> {
  await notify(sql, CHANNEL, JSON.stringify(RECOVER));
}

/** Whether a notification is the one of `askToRecover`. */
export function isRecover(payload: unknown): boolean {
  return typeof payload === 'object' && payload !== null && 'recover' in payload && payload.recover === true;
}
