import type { AccountId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import type { Sql } from './sql.ts';

export interface Account {
  readonly id: AccountId;
  readonly name: string;
  readonly createdAt: number;
}

/** Creates an account. Names need not be unique. */
export async function createAccount(sql: Sql, name: string): Promise<Account> {
  const id = newId('account');
  return await sql.one<Account>`
    with added as (
      insert into accounts (id, name) select ${id}::text, ${name}::text where ${acting(sql)}
      on conflict (id) do nothing
      returning *
    )
    select id, name, created_at from added
    union all
    select id, name, created_at from accounts where id = ${id}`;
}

/** Returns all accounts, oldest first. */
export async function listAccounts(sql: Sql): Promise<Account[]> {
  return await sql<Account>`select id, name, created_at from accounts order by created_at, id`;
}
