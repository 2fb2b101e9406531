import { kindOfEntry } from '../domain/entry.ts';
import type { EntryCategory } from '../domain/entry.ts';
import type { AccountId, AffiliateId, AppId, CommissionId, EntryId, KeyId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import type { CommissionStatus } from './commissions.ts';
import type { Existing } from './existing.ts';
import { createdBefore, pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** Money that a person added or deducted, and its commission. */
export interface Entry {
  readonly id: EntryId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly category: EntryCategory;
  /** Negative for a deduction. */
  readonly amountCents: number;
  readonly reason: string;
  readonly externalId: string | null;
  /** The entry that this one undoes. */
  readonly undoesEntryId: EntryId | null;
  /** The entry that undoes this one. */
  readonly undoneByEntryId: EntryId | null;
  readonly commissionId: CommissionId;
  readonly status: CommissionStatus;
  readonly dueAt: number;
  readonly createdAt: number;
  readonly keyId: KeyId;
  readonly keyLabel: string | null;
  readonly keyDisplay: string;
}

/** The ids of an entry and of its commission, and who writes it. A call that runs again with the same ids writes nothing. */
interface EntryAuthor {
  readonly id: EntryId;
  readonly commissionId: CommissionId;
  readonly appId: AppId;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
}

export interface NewEntry extends EntryAuthor {
  readonly affiliateId: AffiliateId;
  readonly category: EntryCategory;
  /** Not 0. */
  readonly amountCents: number;
  readonly reason: string;
  readonly externalId: string;
  /** Epoch ms. Null: now. */
  readonly dueAt: number | null;
}

/**
 * Writes an entry and its commission, which nets with all others of the creator. If another entry has the external id, writes
 * nothing and returns the id of that one. Undefined for an unknown affiliate.
 */
export async function addEntry(sql: Sql, entry: NewEntry): Promise<Entry | Existing<EntryId> | undefined> {
  const { id, appId, affiliateId, accountId, keyId, category, amountCents, reason, externalId, dueAt } =
    entry;
  return await sql.transaction(async (tx) => {
    const added = await tx`
      insert into entries (id, app_id, affiliate_id, category, amount_cents, reason, external_id, due_at, account_id, key_id)
      select ${id}::text, f.app_id, f.id, ${category}::text, ${amountCents}::bigint, ${reason}::text, ${externalId}::text,
             ${dueAt === null ? tx.fragment`date_trunc('milliseconds', now())` : tx.fragment`${instant(dueAt)}::timestamptz`},
             ${accountId}::text, ${keyId}::text
        from affiliates f
       where f.app_id = ${appId} and f.id = ${affiliateId} and ${acting(tx)}
      on conflict do nothing
      returning id`;
    if (added.length > 0) await book(tx, entry, amountCents);
    const stored = await findIn(tx, appId, id);
    return stored ?? (await findExisting(tx, appId, externalId));
  });
}

/** Returns the id of the entry with an external id. */
export async function findExisting(
  sql: Statements,
  appId: AppId,
  externalId: string,
): Promise<Existing<EntryId> | undefined> {
  return await sql.maybe<Existing<EntryId>>`
    select id as existing_id from entries where app_id = ${appId} and external_id = ${externalId}`;
}

/**
 * Writes the opposite of an entry, which is due when that one is. Null if the entry was undone already, or undoes another one.
 * Undefined for an unknown entry.
 */
export async function undoEntry(
  sql: Sql,
  undo: EntryAuthor & { readonly undoes: EntryId; readonly reason: string },
): Promise<Entry | null | undefined> {
  const { id, appId, accountId, keyId, undoes, reason } = undo;
  return await sql.transaction(async (tx) => {
    const [added] = await tx<{ amountCents: number }>`
      insert into entries (id, app_id, affiliate_id, category, amount_cents, reason, undoes_entry_id, due_at, account_id, key_id)
      select ${id}::text, e.app_id, e.affiliate_id, e.category, -e.amount_cents, ${reason}::text, e.id, e.due_at,
             ${accountId}::text, ${keyId}::text
        from entries e
       where e.app_id = ${appId} and e.id = ${undoes} and e.undoes_entry_id is null and ${acting(tx)}
      on conflict do nothing
      returning amount_cents`;
    if (added !== undefined) await book(tx, undo, added.amountCents);
    const stored = await findIn(tx, appId, id);
    if (stored !== undefined) return stored;
    return (await findIn(tx, appId, undoes)) === undefined ? undefined : null;
  });
}

/** Writes the commission of a new entry. */
async function book(tx: Statements, { id, commissionId }: EntryAuthor, amountCents: number): Promise<void> {
  await tx`
    insert into commissions (id, app_id, affiliate_id, entry_id, kind, rate_bps, base_cents, amount_cents, occurred_at, due_at)
    select ${commissionId}::text, app_id, affiliate_id, id, ${kindOfEntry(amountCents)}::text, 0, 0, amount_cents,
           date_trunc('milliseconds', created_at), due_at
      from entries where id = ${id}`;
}

/** The columns of an `Entry` of a row `e`, by one index look-up for each table. */
const columns = (sql: Statements) => sql.fragment`
  e.id, e.affiliate_id, f.name as affiliate_name, e.category, e.amount_cents, e.reason, e.external_id, e.undoes_entry_id,
  (select u.id from entries u where u.undoes_entry_id = e.id) as undone_by_entry_id,
  c.id as commission_id, c.status, e.due_at, e.created_at, k.id as key_id, k.label as key_label, k.display as key_display`;

const joined = (sql: Statements) => sql.fragment`
  cross join lateral (select name from affiliates x where x.id = e.affiliate_id offset 0) f
  cross join lateral (select id, status from commissions x where x.entry_id = e.id offset 0) c
  cross join lateral (select id, label, display from account_keys x where x.id = e.key_id offset 0) k`;

async function findIn(sql: Statements, appId: AppId, id: EntryId): Promise<Entry | undefined> {
  return await sql.maybe<Entry>`
    select ${columns(sql)} from entries e ${joined(sql)} where e.app_id = ${appId} and e.id = ${id}`;
}

/** Returns an entry of an app. Undefined for an unknown one, and one of another app. */
export async function findEntry(sql: Sql, appId: AppId, id: EntryId): Promise<Entry | undefined> {
  return await findIn(sql, appId, id);
}

/** Returns a page of an app's entries, or of those of an affiliate, latest first. */
export async function listEntries(
  sql: Sql,
  appId: AppId,
  filter: { readonly affiliateId: AffiliateId | null },
  after: Position<number> | null,
  limit: number,
): Promise<Page<Entry, number>> {
  const ofAffiliate =
    filter.affiliateId === null ? sql.fragment`` : sql.fragment`and affiliate_id = ${filter.affiliateId}`;
  const rows = await sql<Entry & Position<number>>`
    select ${columns(sql)}, e.sort_key
      from (select *, (extract(epoch from created_at) * 1000000)::bigint as sort_key
              from entries
             where app_id = ${appId} ${ofAffiliate} ${createdBefore(sql, after)}
             order by created_at desc, id desc limit ${limit + 1}) e
      ${joined(sql)}
     order by e.sort_key desc, e.id desc`;
  return pageOf(rows, limit);
}
