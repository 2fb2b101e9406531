import { TypeID } from 'typeid-js';
import { RETENTION_KINDS } from '../domain/retention.ts';
import type { RetentionKind, RetentionSettings } from '../domain/retention.ts';
import { ID_PREFIXES } from '../domain/ids.ts';
import type { IdKind } from '../domain/ids.ts';
import { DAY_MS } from '../domain/time.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** What one statement removed. */
export interface RemovedBatch {
  readonly removed: number;
  /** Where the next batch begins. Null when nothing is left to remove. */
  readonly next: string | null;
}

interface BatchRow {
  readonly seen: number;
  readonly removed: number;
  readonly last: string | null;
}

/** Returns an id below all ids of that kind that were created at `at` (epoch ms) or later. */
function firstIdAt(kind: IdKind, at: number): string {
  const bytes = new Uint8Array(16);
  Buffer.from(bytes.buffer).writeUIntBE(Math.max(0, at), 0, 6);
  return TypeID.fromUUIDBytes(ID_PREFIXES[kind], bytes).toString();
}

/** Adds the number of rows of `gone` to the total of a kind. */
const counted = (sql: Sql, kind: RetentionKind) => sql.fragment`
  insert into retention_progress as p (kind, removed) select ${kind}::text, count(*) from gone
  on conflict (kind) do update set removed = p.removed + excluded.removed`;

/**
 * A pair of device and user is examined once, at the end of its time: it is deleted if its device has no attribution by
 * then, and otherwise loses the hash of its address.
 */
async function removeIdentities(sql: Sql, before: number, limit: number): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with due as (
      select app_id, device_id, customer_user_id,
             exists (select from attributions a where a.app_id = i.app_id and a.device_id = i.device_id) as is_bound
        from identities i
       where retained_at is null and created_at < ${instant(before)}
       order by created_at limit ${limit}
         for update skip locked
    ), gone as (
      delete from identities i using due d
       where not d.is_bound and i.app_id = d.app_id and i.device_id = d.device_id and i.customer_user_id = d.customer_user_id
      returning 1
    ), kept as (
      update identities i set retained_at = now(), address_hash = null from due d
       where d.is_bound and i.app_id = d.app_id and i.device_id = d.device_id and i.customer_user_id = d.customer_user_id
    ), counted as (${counted(sql, 'identities')})
    select (select count(*) from due)::int as seen, (select count(*) from gone)::int as removed, '' as last`;
}

/** What a test key reported is deleted after the same time, attributed or not. */
async function removeTestRows(sql: Sql, before: number, limit: number): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with users as materialized (
      select app_id, device_id, customer_user_id from test_identities where created_at < ${instant(before)}
       order by created_at limit ${limit} for update skip locked
    ), devices as materialized (
      select id from test_attributions where created_at < ${instant(before)}
       order by created_at limit ${limit} for update skip locked
    ), gone_users as (
      delete from test_identities i using users u
       where i.app_id = u.app_id and i.device_id = u.device_id and i.customer_user_id = u.customer_user_id
      returning 1
    ), gone_devices as (
      delete from test_attributions a using devices d where a.id = d.id returning 1
    ), gone as (
      select from gone_users union all select from gone_devices
    ), counted as (${counted(sql, 'identities')})
    select greatest((select count(*) from users), (select count(*) from devices))::int as seen,
           (select count(*) from gone)::int as removed, '' as last`;
}

/**
 * Clicks are in the order of their ids, and the stored position says up to which click the User-Agents and the hashes of
 * addresses that callers sent were removed. So
 * each click is examined once, without an index for it.
 */
async function removeUserAgents(sql: Sql, before: number, limit: number): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with due as (
      select id, num_nonnulls(user_agent, ip_hash) > 0 as has_traces from clicks
       where id > coalesce((select position::text from retention_progress where kind = 'user_agents'), '')
         and id < ${firstIdAt('click', before)}
       order by id limit ${limit}
    ), gone as (
      update clicks c set user_agent = null, ip_hash = null from due d where c.id = d.id and d.has_traces returning 1
    ), counted as (
      insert into retention_progress as p (kind, removed, position)
      select 'user_agents', (select count(*) from gone), max(id) from due having count(*) > 0
      on conflict (kind) do update set removed = p.removed + excluded.removed, position = excluded.position
    )
    select (select count(*) from due)::int as seen, (select count(*) from gone)::int as removed,
           (select max(id) from due) as last`;
}

async function removeRefusedCounters(sql: Sql, before: number, limit: number): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with gone as (
      delete from deliveries where id in (
        select id from deliveries where refused_hour < ${instant(before)} order by refused_hour limit ${limit}
           for update skip locked)
      returning 1
    ), counted as (${counted(sql, 'refused_counters')})
    select (select count(*) from gone)::int as seen, (select count(*) from gone)::int as removed, '' as last`;
}

async function removeIdempotencyKeys(sql: Sql, before: number, limit: number): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with gone as (
      delete from idempotency_keys where (account_id, idempotency_key) in (
        select account_id, idempotency_key from idempotency_keys where expires_at <= ${instant(before)}
         order by expires_at limit ${limit} for update skip locked)
      returning 1
    ), counted as (${counted(sql, 'idempotency_keys')})
    select (select count(*) from gone)::int as seen, (select count(*) from gone)::int as removed, '' as last`;
}

/**
 * Bodies are in the order of the ids of their deliveries. The body of a delivery that has no outcome, or that could not be
 * read, is kept: it may still become money. Such bodies are examined again when a run has seen all. A body that names an erased
 * person is encrypted, and is removed also if it could not be read.
 */
async function removeBodies(sql: Sql, before: number, limit: number, after: string): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with due as (
      select b.delivery_id, d.completed_at is not null and (d.processing_status <> 'failed' or b.encryption_key_id is not null) as is_done
        from (select delivery_id, encryption_key_id from delivery_bodies
               where delivery_id > ${after} and delivery_id < ${firstIdAt('delivery', before)}
               order by delivery_id limit ${limit}) b
        join deliveries d on d.id = b.delivery_id
    ), gone as (
      delete from delivery_bodies b using due d where d.is_done and b.delivery_id = d.delivery_id returning 1
    ), counted as (${counted(sql, 'bodies')})
    select (select count(*) from due)::int as seen, (select count(*) from gone)::int as removed,
           (select max(delivery_id) from due) as last`;
}

/**
 * Messages to endpoints are in the order of their ids. One that waits for an attempt is kept. Its attempts go with it, and after the
 * last one the row of an endpoint that was deleted.
 */
async function removeMessages(sql: Sql, before: number, limit: number, after: string): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with due as (
      select id, completed_at is not null as is_done from webhook_messages
       where id > ${after} and id < ${firstIdAt('webhookMessage', before)}
       order by id limit ${limit}
    ), gone as (
      delete from webhook_messages m using due d where d.is_done and m.id = d.id returning 1
    ), deleted as (
      delete from webhook_endpoints where id in (
        select e.id from webhook_endpoints e
         where e.slot is null and e.deactivated_at < ${instant(before)}
           and not exists (select from webhook_messages m where m.app_id = e.app_id and m.endpoint_id = e.id)
         order by e.deactivated_at limit ${limit} for update skip locked)
    ), counted as (${counted(sql, 'webhook_messages')})
    select (select count(*) from due)::int as seen, (select count(*) from gone)::int as removed,
           (select max(id) from due) as last`;
}

/** The limits of how many mails somebody gets count those of the last day. */
const LEAST_EMAIL_MS = 2 * DAY_MS;

/** Mails are in the order of their ids. One that waits for an attempt is kept. */
async function removeEmails(
  sql: Sql,
  { before, limit, after }: { readonly before: number; readonly limit: number; readonly after: string },
): Promise<BatchRow> {
  return await sql.one<BatchRow>`
    with due as (
      select id, ended_at is not null as is_done from emails
       where id > ${after} and id < ${firstIdAt('email', before)}
       order by id limit ${limit}
    ), gone as (
      delete from emails e using due d where d.is_done and e.id = d.id returning 1
    ), counted as (${counted(sql, 'emails')})
    select (select count(*) from due)::int as seen, (select count(*) from gone)::int as removed,
           (select max(id) from due) as last`;
}

/**
 * Removes one batch of expired data of a kind, at most `limit` rows, by one statement. `after` is the `next` of the batch
 * before, empty for the first. It may run in several processes at once, and again after a failure.
 */
export async function removeExpired(
  sql: Sql,
  kind: RetentionKind,
  settings: RetentionSettings,
  { now, limit, after }: { readonly now: number; readonly limit: number; readonly after: string },
): Promise<RemovedBatch> {
  const days = settings[kind];
  // The time of an idempotency key is stored with it. 0 days are no limit for the other kinds.
  if (days === 0 && kind !== 'idempotency_keys') return { removed: 0, next: null };
  const before = now - days * DAY_MS;
  const remove = {
    identities: async () => {
      const live = await removeIdentities(sql, before, limit);
      const test = await removeTestRows(sql, before, limit);
      return { seen: Math.max(live.seen, test.seen), removed: live.removed + test.removed, last: '' };
    },
    user_agents: () => removeUserAgents(sql, before, limit),
    refused_counters: () => removeRefusedCounters(sql, before, limit),
    idempotency_keys: () => removeIdempotencyKeys(sql, now, limit),
    bodies: () => removeBodies(sql, before, limit, after),
    webhook_messages: () => removeMessages(sql, before, limit, after),
    emails: () => removeEmails(sql, { before: Math.min(before, now - LEAST_EMAIL_MS), limit, after }),
  } satisfies Record<RetentionKind, () => Promise<BatchRow>>;
  const { seen, removed, last } = await remove[kind]();
  return { removed, next: seen === limit ? (last ?? '') : null };
}

/**
 * Returns where a run begins with a kind: where the run before ended, if it did not see all rows. Rows that are kept would otherwise take
 * up every run, however many there are, and no run would reach what is behind them.
 */
export async function findRetentionStart(sql: Sql, kind: RetentionKind): Promise<string> {
  const row = await sql.maybe<{ resumeAfter: string | null }>`
    select resume_after from retention_progress where kind = ${kind}`;
  return row?.resumeAfter ?? '';
}

/** Records how far a run is with a kind: where the next batch begins, or null if all expired data was removed. */
export async function recordRetention(sql: Sql, kind: RetentionKind, next: string | null): Promise<void> {
  await sql`
    insert into retention_progress as p (kind, finished_at, resume_after)
    values (${kind}, case when ${next === null}::boolean then now() end, nullif(${next}::text, ''))
    on conflict (kind) do update
      set finished_at = coalesce(excluded.finished_at, p.finished_at), resume_after = excluded.resume_after`;
}

export interface RetentionProgress {
  readonly kind: RetentionKind;
  /** Rows removed or cleared since the installation. */
  readonly removed: number;
  /** When the last run found nothing left to remove, epoch ms. Null before the first. */
  readonly finishedAt: number | null;
}

/** Returns the progress of every kind. */
export async function readRetentionProgress(sql: Sql): Promise<RetentionProgress[]> {
  return await sql<RetentionProgress>`
    select k.kind, coalesce(p.removed, 0) as removed, p.finished_at
      from unnest(${[...RETENTION_KINDS]}::text[]) k (kind) left join retention_progress p using (kind)`;
}
