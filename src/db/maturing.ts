import type { AppId, CommissionId } from '../domain/ids.ts';
import type { Sql } from './sql.ts';

/** A commission that matures when it is due. */
export interface HeldCommission {
  readonly commissionId: CommissionId;
  readonly appId: AppId;
  /** Epoch ms. */
  readonly dueAt: number;
}

/** Matures one commission whose hold period is over. Returns false if it was not pending or is not due yet. */
export async function matureCommission(sql: Sql, commissionId: CommissionId): Promise<boolean> {
  const row = await sql.maybe`
    update commissions set status = 'matured', matured_at = now()
     where id = ${commissionId} and status = 'pending' and due_at <= now()
    returning id`;
  return row !== undefined;
}

/** Matures at most `limit` overdue commissions, oldest due first, and returns how many. */
export async function matureOverdue(sql: Sql, limit: number): Promise<number> {
  const rows = await sql.forManyRows()`
    with page as materialized (
      select id from commissions where status = 'pending' and due_at <= now()
       order by due_at limit ${limit} for update skip locked
    )
    update commissions c set status = 'matured', matured_at = now()
      from page
     where c.id = page.id and c.status = 'pending'
    returning c.id`;
  return rows.length;
}
