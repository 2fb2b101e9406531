import type { AppId, AttributionId, BindingId, EventId } from '../domain/ids.ts';
import { isPlaceholder, isSomebody } from '../domain/user-ids.ts';
import { newId } from './new-id.ts';
import type { Sql } from './sql.ts';

/** Selects transfers: the one that an event reports, or all with this giver. */
export type TransferSelector = { readonly eventId: EventId } | { readonly giver: string };

/** Number of receivers per call. No real user has more. */
const RECEIVERS_LIMIT = 200;

/**
 * Binds the receivers of transfers to the giver's attribution, if exactly one giver has a binding (or several who are one person have) and the
 * receiver has none. One whom the same attribution has bound already, and who has not paid, counts with the giver from now on. Stored placeholders are neither. Call it after the transfer was committed, and after a giver's binding was committed: the later call sees both.
 * Returns the receivers' bindings that are not healed yet.
 */
export async function bindTransfers(
  sql: Sql,
  appId: AppId,
  selector: TransferSelector,
): Promise<BindingId[]> {
  if ('giver' in selector && isPlaceholder(selector.giver)) return [];
  const which =
    'eventId' in selector
      ? sql.fragment`g.event_id = ${selector.eventId}`
      : sql.fragment`g.customer_user_id = ${selector.giver}`;
  const transfers = sql.fragment`
    transfers as (
      select distinct g.event_id from user_transfers g where g.app_id = ${appId} and g.role = 'giver' and ${which})`;
  const bound = await sql<{ customerUserId: string }>`
    with ${transfers}
    select distinct g.customer_user_id
      from transfers t
      join user_transfers g on g.event_id = t.event_id and g.role = 'giver'
      join bindings b on b.app_id = ${appId} and b.customer_user_id = g.customer_user_id`;
  const givers = bound.filter(isSomebody).map(({ customerUserId }) => customerUserId);
  if (givers.length === 0) return [];
  const withGivers = sql.fragment`
    ${transfers}, givers as (
      select t.event_id, min(a.id) as attribution_id, min(b.attribution_id) as first_attribution_id, min(coalesce(b.counts_with, b.id::text)) as root
        from transfers t
        join user_transfers g on g.event_id = t.event_id and g.role = 'giver' and g.customer_user_id = any(${givers}::text[])
        join bindings b on b.app_id = ${appId} and b.customer_user_id = g.customer_user_id
       cross join lateral (select attribution_at(b, now()) as id) a
       where a.id is not null
       group by t.event_id having count(distinct coalesce(b.counts_with, b.id::text)) = 1 and count(distinct a.id) = 1
    )`;
  await sql`
    with ${withGivers}
    update bindings b set counts_with = g.root
      from givers g join user_transfers r on r.event_id = g.event_id and r.role = 'receiver'
     where b.app_id = ${appId} and b.customer_user_id = r.customer_user_id and is_somebody(b.customer_user_id)
       and b.attribution_id in (g.attribution_id, g.first_attribution_id) and b.id <> g.root
       and b.counts_with is null and b.first_paid_at is null and b.key_source is null and b.reassigned_at is null
       and not exists (select from bindings y where y.counts_with = b.id)`;
  const found = await sql<{
    customerUserId: string;
    attributionId: AttributionId;
    root: BindingId;
    isBound: boolean;
  }>`
    with ${withGivers}
    select r.customer_user_id, g.attribution_id, g.root, b.id is not null as is_bound
      from givers g
      join user_transfers r on r.event_id = g.event_id and r.role = 'receiver'
      left join bindings b on b.app_id = ${appId} and b.customer_user_id = r.customer_user_id
     where b.id is null or b.healed_at is null
     order by g.event_id, r.customer_user_id limit ${RECEIVERS_LIMIT}`;
  const receivers = found.filter(isSomebody);
  if (receivers.length === 0) return [];
  const wanted = receivers
    .filter(({ isBound }) => !isBound)
    .map((receiver) => ({ id: newId('binding'), ...receiver }));
  // The trigger cannot say with whom they count: of a giver who also receives, it would see the binding that this statement adds.
  await sql`
    insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at, counts_with)
    select w.id, ${appId}, w."customerUserId", w."attributionId", now(), w.root
      from jsonb_to_recordset(${sql.json(wanted)}) w (id text, "customerUserId" text, "attributionId" text, root text)
     order by w."customerUserId"
    on conflict (app_id, customer_user_id) do nothing`;
  const rows = await sql<{ id: BindingId }>`
    select id from bindings
     where app_id = ${appId} and healed_at is null
       and customer_user_id = any(${receivers.map(({ customerUserId }) => customerUserId)}::text[])`;
  return rows.map((row) => row.id);
}
