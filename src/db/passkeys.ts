import { createHash } from 'node:crypto';
import type { KeyId, MemberId, PasskeyId } from '../domain/ids.ts';
import { MOST_PASSKEYS } from '../domain/passkeys.ts';
import { RAISED_MS, SESSION_MAX_MS } from '../domain/sessions.ts';
import { DAY_MS, HOUR_MS } from '../domain/time.ts';
import { acting } from './audit.ts';
import { isRefusedByTrigger } from './errors.ts';
import { newId } from './new-id.ts';
import { EXPIRED_BATCH, findSession, isValid, tokenSha256 } from './sessions.ts';
import type { NewSession, Session } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** A passkey in the list of its member. */
export interface Passkey {
  readonly id: PasskeyId;
  readonly name: string;
  /** Whether it lets a session pay, if the role of the member does. */
  readonly raises: boolean;
  readonly createdAt: number;
  /** Null before the first use. */
  readonly lastUsedAt: number | null;
}

/** A passkey with what its answers are verified with. */
export interface StoredPasskey extends Passkey {
  readonly memberId: MemberId;
  readonly keyId: KeyId;
  readonly credentialId: Buffer;
  readonly publicKey: Buffer;
  readonly signCount: number;
}

/** A challenge that was answered with a right signature. */
export interface AnsweredChallenge {
  readonly challenge: string;
  /** Until when it can be answered. */
  readonly expiresAt: number;
}

/** The answer of a passkey, after its signature was verified. */
export interface PasskeyUse extends AnsweredChallenge {
  readonly passkey: StoredPasskey;
  /** How often the authenticator has signed. */
  readonly signCount: number;
}

const challengeSha256 = ({ challenge }: AnsweredChallenge): Buffer =>
  createHash('sha256').update(challenge).digest();

/** Returns until when a used challenge is kept: longer than it can be answered, for a clock that is set in between. */
const keptUntil = ({ expiresAt }: AnsweredChallenge) => instant(expiresAt + DAY_MS);

/** Returns the valid passkeys of a member, oldest first. */
export async function listPasskeys(
  sql: Sql,
  memberId: MemberId,
): Promise<(Passkey & { readonly credentialId: Buffer })[]> {
  return await sql<Passkey & { readonly credentialId: Buffer }>`
    select id, name, raises, created_at, last_used_at, credential_id from passkeys
     where member_id = ${memberId} and revoked_at is null order by created_at, id limit ${MOST_PASSKEYS * 2}`;
}

/** Returns the passkey of a credential. Undefined if it is unknown or revoked, or if its member cannot sign in. */
export async function findPasskey(
  sql: Sql,
  credentialId: Buffer,
  now: number,
): Promise<StoredPasskey | undefined> {
  return await sql.maybe<StoredPasskey>`
    select p.id, p.name, p.raises, p.created_at, p.last_used_at, p.member_id, m.key_id, p.credential_id, p.public_key, p.sign_count
      from passkeys p
      join members m on m.id = p.member_id and m.removed_at is null
      join account_keys k on k.account_id = m.account_id and k.id = m.key_id and k.is_member
     where p.credential_id = ${credentialId}::bytea and p.revoked_at is null and ${isValid(sql, now)}`;
}

/** A passkey to add. */
export interface NewPasskey {
  readonly id: PasskeyId;
  readonly memberId: MemberId;
  readonly name: string;
  readonly credentialId: Buffer;
  readonly publicKey: Buffer;
  readonly signCount: number;
  readonly raises: boolean;
}

/** Why a passkey was not added. `no_member`: the member was removed meanwhile. */
export type PasskeyRefusal = 'too_many_passkeys' | 'passkey_exists' | 'challenge_used' | 'no_member';

/**
 * Adds a passkey to a member, and spends the challenge that it answers. One statement, so that of two answers to one challenge at most
 * one adds a passkey. A member has 20, and adds 20 within an hour, since each is a mail; a few more if calls come at once.
 */
export async function addPasskey(
  sql: Sql,
  { id, memberId, name, credentialId, publicKey, signCount, raises }: NewPasskey,
  answered: AnsweredChallenge,
  now: number,
): Promise<Passkey | PasskeyRefusal> {
  const before = await sql.maybe<{ isFull: boolean; isKnown: boolean }>`
    with member as materialized (
      select m.id, m.account_id,
             (select count(*) from (select from passkeys p where p.member_id = m.id and p.revoked_at is null
                                     limit ${MOST_PASSKEYS}) own) >= ${MOST_PASSKEYS}
             or (select count(*) from (select from passkeys p
                                        where p.member_id = m.id and p.created_at > ${instant(now - HOUR_MS)}::timestamptz
                                        limit ${MOST_PASSKEYS}) added) >= ${MOST_PASSKEYS} as is_full,
             exists (select from passkeys p where p.credential_id = ${credentialId}::bytea) as is_known
        from members m
       where m.id = ${memberId} and m.removed_at is null and ${acting(sql)}
    ), spent as (
      insert into used_passkey_challenges (challenge_sha256, expires_at)
      select ${challengeSha256(answered)}::bytea, ${keptUntil(answered)}::timestamptz
        from member where not is_full and not is_known
      on conflict (challenge_sha256) do nothing
      returning 1
    ), made as (
      insert into passkeys (id, account_id, member_id, name, credential_id, public_key, sign_count, raises, created_at)
      select ${id}::text, member.account_id, member.id, ${name}::text, ${credentialId}::bytea, ${publicKey}::bytea,
             ${signCount}::bigint, ${raises}::boolean, ${instant(now)}::timestamptz
        from member, spent
      on conflict (credential_id) do nothing
    )
    select is_full, is_known from member`.catch((error: unknown) => {
    // The statement has waited for the removal of the member, which it had not seen when it began.
    if (isRefusedByTrigger(error)) return undefined;
    throw error;
  });
  // A statement whose answer was lost is sent again, and then finds its own row.
  const added = await sql.maybe<Passkey>`
    select id, name, raises, created_at, last_used_at from passkeys where id = ${id}`;
  if (added !== undefined) return added;
  if (before === undefined) return 'no_member';
  if (before.isKnown) return 'passkey_exists';
  return before.isFull ? 'too_many_passkeys' : 'challenge_used';
}

/** Revokes a passkey of a member and erases its key. Revoking twice changes nothing. Returns false for an unknown one. */
export async function revokePasskey(
  sql: Sql,
  memberId: MemberId,
  id: PasskeyId,
  now: number,
): Promise<boolean> {
  await sql`
    update passkeys set revoked_at = ${instant(now)}, credential_id = null, public_key = null
     where member_id = ${memberId} and id = ${id} and revoked_at is null and ${acting(sql)}`;
  const row = await sql.maybe`select id from passkeys where member_id = ${memberId} and id = ${id}`;
  return row !== undefined;
}

/**
 * The parts of a statement that use a passkey: `used` has a row if the passkey is valid and its count has not gone back, and `spent` if
 * its challenge was not answered before. The update makes two answers of a passkey wait for each other.
 */
const useOf = (sql: Sql, { passkey, signCount, ...answered }: PasskeyUse, now: number) => sql.fragment`
  used as (
    update passkeys p set sign_count = ${signCount}::bigint, last_used_at = ${instant(now)}::timestamptz
      from members m, account_keys k
     where p.id = ${passkey.id} and p.revoked_at is null and m.id = p.member_id and m.removed_at is null
       and k.account_id = m.account_id and k.id = m.key_id and k.is_member and ${isValid(sql, now)}
       and (p.sign_count < ${signCount}::bigint or p.sign_count = 0 and ${signCount}::bigint = 0)
       and not exists (select from used_passkey_challenges c where c.challenge_sha256 = ${challengeSha256(answered)}::bytea)
       and ${acting(sql)}
    returning k.account_id, k.id as key_id, p.raises and 'payout' = any (k.permissions) as may_pay
  ), spent as (
    insert into used_passkey_challenges (challenge_sha256, expires_at)
    select ${challengeSha256(answered)}::bytea, ${keptUntil(answered)}::timestamptz from used
    on conflict (challenge_sha256) do nothing
    returning 1
  )`;

/**
 * Starts a session of the member of a passkey, which may pay for 15 minutes if the passkey and the role let it. Returns undefined for a
 * passkey that was revoked or whose count went back, and for a challenge that was answered before.
 */
export async function startSessionWithPasskey(
  sql: Sql,
  answer: PasskeyUse,
  { token, userAgent, now }: NewSession,
): Promise<Session | undefined> {
  await sql`
    with ${useOf(sql, answer, now)}
    insert into sessions (id, token_sha256, account_id, key_id, user_agent, created_at, last_used_at, expires_at, raised_key_id, raised_until)
    select ${newId('session')}::text, ${tokenSha256(token)}::bytea, account_id, key_id, ${userAgent}::text,
           ${instant(now)}::timestamptz, ${instant(now)}::timestamptz, ${instant(now + SESSION_MAX_MS)}::timestamptz,
           case when may_pay then key_id end, case when may_pay then ${instant(now + RAISED_MS)}::timestamptz end
      from used, spent`;
  return await findSession(sql, token, now);
}

/**
 * Lets the session of the member of a passkey pay for 15 minutes. Returns undefined as `startSessionWithPasskey` does, and for a passkey
 * or a role that does not let it pay.
 */
export async function raiseWithPasskey(
  sql: Sql,
  session: Session,
  answer: PasskeyUse,
  now: number,
): Promise<{ readonly raisedKeyId: KeyId; readonly raisedUntil: number } | undefined> {
  const until = instant(now + RAISED_MS);
  return await sql.maybe<{ raisedKeyId: KeyId; raisedUntil: number }>`
    with ${useOf(sql, answer, now)}, raised as (
      update sessions s set raised_key_id = used.key_id, raised_until = ${until}
        from used, spent
       where s.id = ${session.id} and s.key_id = used.key_id and used.may_pay and s.ended_at is null
      returning s.raised_key_id, s.raised_until
    )
    select raised_key_id, raised_until from raised
    union all
    -- A statement whose answer was lost is sent again.
    select raised_key_id, raised_until from sessions
     where id = ${session.id} and raised_until = ${until} and raised_key_id = key_id and not exists (select from raised)`;
}

/** Deletes used challenges whose time is long over. */
export async function deleteExpiredChallenges(sql: Sql, now: number): Promise<void> {
  await sql`
    delete from used_passkey_challenges where challenge_sha256 in (
      select challenge_sha256 from used_passkey_challenges where expires_at <= ${instant(now)}
       order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
}
