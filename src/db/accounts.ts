import type { AccountId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import { newId } from './new-id.ts';
import type { Sql } from './sql.ts';

export interface Account {
  readonly id: AccountId;
  readonly name: string;
  readonly createdAt: number;
  /** The number of apps that the account can have. */
  readonly appLimit: number;
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
    select id, name, created_at, app_limit from added
    union all
    select id, name, created_at, app_limit from accounts where id = ${id}`;
}

/** Returns all accounts, oldest first. */
export async function listAccounts(sql: Sql): Promise<Account[]> {
  return await sql<Account>`select id, name, created_at, app_limit from accounts order by created_at, id`;
}

/** Changes the number of apps that an account can have. Returns undefined for an unknown account. Its apps stay, also if it has more. */
export async function setAppLimit(sql: Sql, id: AccountId, appLimit: number): Promise<Account | undefined> {
  return await sql.maybe<Account>`
    update accounts set app_limit = ${appLimit}::integer where id = ${id} and ${acting(sql)}
    returning id, name, created_at, app_limit`;
}
