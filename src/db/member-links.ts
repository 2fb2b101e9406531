import type { SecretBox } from '../config/secret-box.ts';
import type { AccountId, EmailId, MemberId } from '../domain/ids.ts';
import { MEMBER_LINK_MS, MOST_OPEN_LINKS, SIGN_IN_LINK_MS } from '../domain/sessions.ts';
import { acting } from './audit.ts';
import { mailSecretContext } from './email-secrets.ts';
import { newId } from './new-id.ts';
import { newToken, tokenSha256 } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** The most invitations to a member within an hour. */
const MOST_IN_AN_HOUR = 5;
/** The most accounts of which one call mails links to an address. */
const MOST_ACCOUNTS = 10;

interface MailDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
}

/**
 * Stores a link to copy, which signs a member in once and never lets the session pay. Returns its token and its end; undefined for an
 * unknown member and for one who was removed.
 */
export async function createMemberLink(
  sql: Sql,
  accountId: AccountId,
  id: MemberId,
  now: number,
): Promise<{ readonly token: string; readonly expiresAt: number } | undefined> {
  const token = newToken();
  const row = await sql.maybe`
    with member as (
      select account_id, key_id from members where account_id = ${accountId} and id = ${id} and removed_at is null
    ), made as (
      insert into sign_in_links (token_sha256, account_id, key_id, created_at, expires_at)
      select ${tokenSha256(token)}::bytea, account_id, key_id, ${instant(now)}::timestamptz, ${instant(now + MEMBER_LINK_MS)}::timestamptz
        from member where ${acting(sql)}
      on conflict (token_sha256) do nothing
    )
    select key_id from member`;
  return row === undefined ? undefined : { token, expiresAt: now + MEMBER_LINK_MS };
}

/** What became of a mail with a link. `expiresAt` is the end of the link. */
export type MemberMailOutcome =
  | {
      readonly outcome: 'queued';
      readonly emailId: EmailId;
      readonly address: string;
      readonly expiresAt: number;
    }
  | { readonly outcome: 'too_many' };

/**
 * Stores a link of a member and the mail with it, in one statement that is safe to send twice. An invitation signs in within a day; of
 * invitations, five are sent in an hour. A link that the member asks for signs in within 15 minutes, and then the session may pay; of
 * these, three are open at a time, and a few more if calls come at once. Undefined for an unknown member, and for one who was removed.
 */
export async function mailMemberLink(
  { sql, secretBox }: MailDeps,
  accountId: AccountId,
  id: MemberId,
  { kind, now }: { readonly kind: 'member_invitation' | 'member_sign_in'; readonly now: number },
): Promise<MemberMailOutcome | undefined> {
  const token = newToken();
  const emailId = newId('email');
  const sealed = secretBox.encrypt(token, mailSecretContext(emailId));
  const raises = kind === 'member_sign_in';
  const expiresAt = now + (raises ? SIGN_IN_LINK_MS : MEMBER_LINK_MS);
  const row = await sql.maybe<{ address: string; isTooMany: boolean }>`
    with member as materialized (
      select l.id, l.account_id, l.key_id, l.email,
             case when ${raises}
                  then (select count(*) from (select from sign_in_links o
                                               where o.key_id = l.key_id and o.raises and o.session_id is null and o.expires_at > ${instant(now)}
                                                 and o.token_sha256 <> ${tokenSha256(token)} limit ${MOST_OPEN_LINKS}) open) >= ${MOST_OPEN_LINKS}
                  else (select count(*) from (select from emails e
                                               where e.member_id = l.id and e.kind = 'member_invitation'
                                                 and e.created_at > now() - interval '1 hour' and e.id <> ${emailId}
                                               limit ${MOST_IN_AN_HOUR}) recent) >= ${MOST_IN_AN_HOUR} end as is_too_many
        from members l
       where l.account_id = ${accountId} and l.id = ${id} and l.removed_at is null
    ), made as (
      insert into sign_in_links (token_sha256, account_id, key_id, created_at, expires_at, raises)
      select ${tokenSha256(token)}::bytea, account_id, key_id, ${instant(now)}::timestamptz, ${instant(expiresAt)}::timestamptz, ${raises}::boolean
        from member where not is_too_many and ${acting(sql)}
      on conflict (token_sha256) do nothing
    ), mailed as (
      insert into emails (id, account_id, member_id, kind, subject_id, ciphertext, encryption_key_id, expires_at)
      select ${emailId}::text, account_id, id, ${kind}::text, ${emailId}::text, ${sealed.ciphertext}::bytea, ${sealed.encryptionKeyId}::text,
             ${instant(expiresAt)}::timestamptz
        from member where not is_too_many
      on conflict do nothing
    )
    select email as address, is_too_many from member`;
  if (row === undefined) return undefined;
  return row.isTooMany
    ? { outcome: 'too_many' }
    : { outcome: 'queued', emailId, address: row.address, expiresAt };
}

/** Mails a sign-in link of each account to the members who have an address, without regard to case. */
export async function mailSignInLinks(deps: MailDeps, address: string, now: number): Promise<void> {
  const members = await deps.sql<{ id: MemberId; accountId: AccountId }>`
    select id, account_id from members where lower(email) = lower(${address}) and removed_at is null
     order by created_at desc limit ${MOST_ACCOUNTS}`;
  // For nobody, the same statement runs: a database that cannot be written to fails for every address.
  const nobody = { id: newId('member'), accountId: newId('account') };
  for (const { id, accountId } of members.length === 0 ? [nobody] : members)
    await mailMemberLink(deps, accountId, id, { kind: 'member_sign_in', now });
}
