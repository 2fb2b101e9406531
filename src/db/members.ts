import { randomBytes } from 'node:crypto';
import type { EmailStatus } from '../domain/email.ts';
import type { AccountId, AppId, KeyId, MemberId } from '../domain/ids.ts';
import { KEY_RANDOM_BYTES } from '../domain/keys.ts';
import { ROLE_PERMISSIONS } from '../domain/members.ts';
import type { MemberAccess, MemberRole } from '../domain/members.ts';
import { acting } from './audit.ts';
import { violatedConstraint } from './errors.ts';
import { newId } from './new-id.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A member of an account. */
export interface Member {
  readonly id: MemberId;
  readonly keyId: KeyId;
  /** Null for a member who was removed. */
  readonly email: string | null;
  readonly name: string;
  readonly role: MemberRole;
  /** The apps that the member sees. Null: all. */
  readonly appIds: readonly AppId[] | null;
  readonly createdAt: number;
  readonly removedAt: number | null;
  /** When one of the member's sessions was last used, to the minute. Null before the first sign-in. */
  readonly lastActiveAt: number | null;
  /** What became of the last mail with an invitation. Null if none was sent. */
  readonly invitation: { readonly status: EmailStatus; readonly lastProblem: string | null } | null;
}

/** Why a member is not changed that way. */
export type MemberRefusal = 'member_exists' | 'unknown_app' | 'last_owner' | 'owner_of_all_apps';

const REFUSALS: Readonly<Record<string, MemberRefusal>> = {
  members_one_address: 'member_exists',
  member_apps_of_account: 'unknown_app',
  members_last_owner: 'last_owner',
  member_owner_of_all_apps: 'owner_of_all_apps',
};

/** Runs a statement that changes members. Returns why the database refused it. Throws every other error. */
async function refusable<T>(change: () => Promise<T>): Promise<T | MemberRefusal> {
  try {
    return await change();
  } catch (error) {
    const refusal = REFUSALS[violatedConstraint(error) ?? ''];
    if (refusal === undefined) throw error;
    return refusal;
  }
}

const columns = (sql: Sql) => sql.fragment`
  m.id, m.key_id, m.email, m.name, m.role, m.app_ids, m.created_at, m.removed_at,
  (select k.last_used_at from account_keys k where k.id = m.key_id) as last_active_at,
  (select jsonb_build_object('status', e.status, 'lastProblem', e.last_problem)
     from emails e where e.member_id = m.id and e.kind = 'member_invitation' order by e.created_at desc limit 1) as invitation`;

/** Returns a page of the members of an account who were not removed, oldest first. */
export async function listMembers(
  sql: Sql,
  accountId: AccountId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<Member, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (m.created_at, m.id) > (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<Member & Position<number>>`
    select ${columns(sql)}, (extract(epoch from m.created_at) * 1000000)::bigint as sort_key
      from members m
     where m.account_id = ${accountId} and m.removed_at is null ${from}
     order by m.created_at, m.id limit ${limit + 1}`;
  return pageOf(rows, limit);
}

/** Returns a member of an account, also one who was removed. Undefined for an unknown one. */
export async function findMember(sql: Sql, accountId: AccountId, id: MemberId): Promise<Member | undefined> {
  return await sql.maybe<Member>`
    select ${columns(sql)} from members m where m.account_id = ${accountId} and m.id = ${id}`;
}

/** A member to add. */
export interface NewMember {
  readonly id: MemberId;
  readonly email: string;
  readonly name: string;
  readonly role: MemberRole;
  readonly appIds: readonly AppId[] | null;
}

/** Adds a member and the key that the member's sessions hold, which nobody has as text. */
export async function addMember(
  sql: Sql,
  accountId: AccountId,
  { id, email, name, role, appIds }: NewMember,
  now: number,
): Promise<Member | MemberRefusal> {
  const keyId = newId('key');
  const random = randomBytes(KEY_RANDOM_BYTES);
  return await refusable(async () => {
    await sql`
      with made_key as (
        insert into account_keys (id, account_id, key_sha256, display, label, permissions, is_member, expires_at)
        select ${keyId}::text, a.id, ${random}::bytea, 'member', ${name}::text, ${ROLE_PERMISSIONS[role]}::text[], true, 'epoch'
          from accounts a
         where a.id = ${accountId} and not exists (select from members where id = ${id}) and ${acting(sql)}
        on conflict (id) do nothing
        returning account_id, id
      )
      insert into members (id, account_id, key_id, email, name, role, app_ids, created_at)
      select ${id}::text, account_id, id, ${email}::text, ${name}::text, ${role}::text, ${appIds === null ? null : [...appIds]}::text[],
             ${instant(now)}::timestamptz
        from made_key where ${acting(sql)}`;
    return await foundMember(sql, accountId, id);
  });
}

async function foundMember(sql: Sql, accountId: AccountId, id: MemberId): Promise<Member> {
  const member = await findMember(sql, accountId, id);
  if (member === undefined) throw new Error(`there is no member ${id}`);
  return member;
}

/** What changes of a member. Undefined leaves a field as it is. */
export interface MemberChange {
  readonly name?: string | undefined;
  readonly role?: MemberRole | undefined;
  /** Null: all apps. */
  readonly appIds?: readonly AppId[] | null | undefined;
}

/**
 * Changes a member, from the next call on. `check` throws where the caller may not make the change: what it compares stays so until the
 * change is written. Undefined for an unknown member, and for one who was removed.
 */
export async function changeMember(
  sql: Sql,
  accountId: AccountId,
  id: MemberId,
  { name, role: newRole, appIds: newAppIds }: MemberChange,
  check: (before: MemberAccess, after: MemberAccess) => void,
): Promise<Member | MemberRefusal | undefined> {
  return await refusable(async () => {
    const isFound = await sql.transaction(async (tx) => {
      const before = await tx.maybe<MemberAccess>`
        select role, app_ids from members
         where account_id = ${accountId} and id = ${id} and removed_at is null for update`;
      if (before === undefined) return false;
      const { role, appIds } = {
        role: newRole ?? before.role,
        appIds: newAppIds === undefined ? before.appIds : newAppIds,
      };
      check(before, { role, appIds });
      await tx`
        update members
           set name = coalesce(${name ?? null}::text, name), role = ${role}::text,
               app_ids = ${appIds === null ? null : [...appIds]}::text[]
         where id = ${id} and ${acting(tx)}`;
      return true;
    });
    return isFound ? await findMember(sql, accountId, id) : undefined;
  });
}

/**
 * Removes a member: erases the address, and ends the key with its sessions and links at once. Removing twice changes nothing. Undefined
 * for an unknown member.
 */
export async function removeMember(
  sql: Sql,
  accountId: AccountId,
  id: MemberId,
  now: number,
): Promise<Member | MemberRefusal | undefined> {
  return await refusable(async () => {
    await sql`
      update members set removed_at = ${instant(now)}, email = null
       where account_id = ${accountId} and id = ${id} and removed_at is null and ${acting(sql)}`;
    return await findMember(sql, accountId, id);
  });
}
