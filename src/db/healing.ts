import type { AppId, BindingId } from '../domain/ids.ts';
import type { Sql } from './sql.ts';

/** Returns the app and user of a binding, or the key of a provider that stands for a user. Undefined for an unknown binding. */
export async function findBinding(
  sql: Sql,
  bindingId: BindingId,
): Promise<{ appId: AppId; customerUserId: string; keySource: string | null } | undefined> {
  return await sql.maybe<{ appId: AppId; customerUserId: string; keySource: string | null }>`
    select app_id, customer_user_id, key_source from bindings where id = ${bindingId}`;
}

/** Records that all payments from before the binding were evaluated again. Later payments see the binding. */
export async function markHealed(sql: Sql, bindingId: BindingId): Promise<void> {
  await sql`update bindings set healed_at = now() where id = ${bindingId} and healed_at is null`;
}

/**
 * Claims at most `limit` bindings whose healing did not finish (the process died or Temporal was unavailable), oldest
 * first. A claimed binding moves to the end of the queue.
 */
export async function claimBindingsToHeal(
  sql: Sql,
  olderThanMs: number,
  limit: number,
): Promise<{ readonly id: BindingId; readonly appId: AppId }[]> {
  return await sql<{ id: BindingId; appId: AppId }>`
    with page as materialized (
      select id from bindings
       where healed_at is null and coalesce(relayed_at, created_at) < now() - ${olderThanMs} * interval '1 millisecond'
       order by coalesce(relayed_at, created_at)
       limit ${limit}
       for update skip locked
    )
    update bindings b set relayed_at = now()
      from page
     where b.id = page.id and b.healed_at is null
    returning b.id, b.app_id`;
}
