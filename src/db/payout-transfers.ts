import type { AccountId, AppId, KeyId, PayoutId, TransferId } from '../domain/ids.ts';
import { MOST_TRANSFERS } from '../domain/payout-transfer.ts';
import type { MoneyState, TransferState } from '../domain/payout-transfer.ts';
import { acting } from './audit.ts';
import { violatedConstraint } from './errors.ts';
import type { Fragment, Sql, Statements } from './sql.ts';

/** The statements that each one can follow. */
const FOLLOWS: Readonly<Record<TransferState, readonly (TransferState | 'none')[]>> = {
  sent: ['none', 'returned', 'withdrawn'],
  returned: ['sent', 'return_withdrawn'],
  withdrawn: ['sent', 'return_withdrawn'],
  return_withdrawn: ['returned'],
};

/** What somebody stated about the money of a payout outside of the service. */
export interface PayoutTransfer {
  readonly id: TransferId;
  readonly state: TransferState;
  readonly method: string | null;
  readonly reference: string | null;
  readonly note: string | null;
  readonly createdAt: number;
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
}

const selectTransfers = (sql: Sql, appId: AppId, payoutId: PayoutId) => sql.fragment`
  select t.id, t.state, t.method, t.reference, t.note, t.created_at, k.id as key_id, k.label as key_label, k.display as key_display
    from payout_transfers t cross join lateral (select * from account_keys x where x.id = t.key_id offset 0) k
   where t.payout_id = ${payoutId} and t.app_id = ${appId}`;

/** Returns what was stated about a payout, the latest first. At most a hundred: the database takes no more. */
export async function listTransfers(
  sql: Sql,
  appId: AppId,
  payoutId: PayoutId,
): Promise<readonly PayoutTransfer[]> {
  return await sql<PayoutTransfer>`${selectTransfers(sql, appId, payoutId)} order by t.position desc`;
}

/** Where the money of a payout is, and since when that is stated. */
export interface Money {
  readonly state: MoneyState;
  readonly statedAt: number;
}

/** Whether a run has sent the money again whose return a statement about a payout is. */
export const isSentAgain = (
  sql: Statements,
  payoutId: Fragment,
  position: Fragment,
): Fragment => sql.fragment`
  exists (select from payout_run_items x where x.payout_id = ${payoutId} and x.return_position = ${position})`;

/**
 * Returns where the money of each payout is about which something is stated that holds. A return whose money a run has sent again is
 * answered: until something is stated about that, nobody has to send it.
 */
export async function findMoney(
  sql: Sql,
  payoutIds: readonly PayoutId[],
): Promise<ReadonlyMap<PayoutId, Money>> {
  const rows = await sql<Money & { readonly payoutId: PayoutId }>`
    select p as payout_id, m.transfer_state as state, m.stated_at
      from unnest(${payoutIds}::text[]) p cross join lateral money_of_payout(p) m
     where not ${isSentAgain(sql, sql.fragment`p`, sql.fragment`m.transfer_position`)}`;
  return new Map(rows.map(({ payoutId, ...money }) => [payoutId, money]));
}

/** Returns what `findMoney` does for the payouts of some rows of the ledger, of which most may have none. */
export async function findMoneyOfRows(
  sql: Sql,
  rows: readonly { readonly payoutId: PayoutId | null }[],
): ReturnType<typeof findMoney> {
  const payoutIds = [...new Set(rows.flatMap(({ payoutId }) => payoutId ?? []))];
  return payoutIds.length === 0 ? new Map() : await findMoney(sql, payoutIds);
}

/**
 * Appends a statement to a payout. Returns it; null if it cannot follow the latest one, withdraws a return whose money is sent again, or if
 * another call has just appended one; undefined for an unknown payout. A second run with the same id changes nothing and returns the same.
 */
export async function appendTransfer(
  sql: Sql,
  transfer: {
    readonly id: TransferId;
    readonly appId: AppId;
    readonly payoutId: PayoutId;
    readonly accountId: AccountId;
    readonly keyId: KeyId;
    readonly state: TransferState;
    readonly method: string | null;
    readonly reference: string | null;
    readonly note: string | null;
  },
): Promise<PayoutTransfer | null | undefined> {
  const { id, appId, payoutId, accountId, keyId, state, method, reference, note } = transfer;
  const insert = async () =>
    await sql`
    insert into payout_transfers (id, app_id, payout_id, position, state, previous_position, previous_state, method, reference,
                                  note, account_id, key_id)
    select ${id}::text, p.app_id, p.id, coalesce(l.position, 0) + 1, ${state}::text, l.position, l.state, ${method}::text,
           ${reference}::text, ${note}::text, ${accountId}::text, ${keyId}::text
      from payouts p
      left join lateral (select position, state from payout_transfers where payout_id = p.id order by position desc limit 1) l
             on true
     where p.app_id = ${appId} and p.id = ${payoutId} and coalesce(l.state, 'none') = any(${FOLLOWS[state]}::text[])
       and coalesce(l.position, 0) < ${MOST_TRANSFERS} and ${acting(sql)}
    on conflict do nothing`;
  await insert().catch((error: unknown) => {
    if (violatedConstraint(error) !== 'answered_return_is_kept') throw error;
  });
  const [stored] = await sql<PayoutTransfer>`${selectTransfers(sql, appId, payoutId)} and t.id = ${id}`;
  if (stored !== undefined) return stored;
  const payout = await sql.maybe`select from payouts where app_id = ${appId} and id = ${payoutId}`;
  return payout === undefined ? undefined : null;
}
