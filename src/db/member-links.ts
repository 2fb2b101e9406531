import type { SecretBox } from '../config/secret-box.ts';
import type { AccountId, EmailId, KeyId, MemberId } from '../domain/ids.ts';
import { MEMBER_LINK_MS, MOST_OPEN_LINKS, SIGN_IN_LINK_MS } from '../domain/sessions.ts';
import { acting } from './audit.ts';
import { mailSecretContext } from './email-secrets.ts';
import { newId } from './new-id.ts';
import { newToken, tokenSha256 } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** The most mails with a link that an account sends within an hour: to one address, for whichever member, and invitations to all. */
export const MEMBER_MAILS_IN_AN_HOUR = {
  toAddress: { member_invitation: 5, member_sign_in: 30 },
  invitations: 1_000,
} as const;
/** The most accounts of which one call mails links to an address: those that its member used last. */
const MOST_ACCOUNTS = 10;

interface MailDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
}

/**
 * Stores a link to copy, which signs a member in once and never lets the session pay. It ends with the right of its maker to manage members,
 * and so does its session. Returns its token and its end; undefined for an unknown member and for one who was removed.
 */
export async function createMemberLink(
  sql: Sql,
  accountId: AccountId,
  id: MemberId,
  { makerKeyId, now }: { readonly makerKeyId: KeyId; readonly now: number },
): Promise<{ readonly token: string; readonly expiresAt: number } | undefined> {
  const token = newToken();
  const row = await sql.maybe`
    with member as (
      select account_id, key_id from members where account_id = ${accountId} and id = ${id} and removed_at is null
    ), made as (
      insert into sign_in_links (token_sha256, account_id, key_id, created_at, expires_at, made_by)
      select ${tokenSha256(token)}::bytea, account_id, key_id, ${instant(now)}::timestamptz, ${instant(now + MEMBER_LINK_MS)}::timestamptz,
             ${makerKeyId}::text
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
  | {
      readonly outcome: 'too_many';
      /** Whether the account has sent as many, not only to this address. */
      readonly isOfAccount: boolean;
      /** When the next one is possible, in seconds: from 1 to an hour. */
      readonly retryAfterSeconds: number;
    };

/**
 * Stores a link of a member and the mail with it, in one statement that is safe to send twice. An invitation signs in within a day. A link that
 * the member asks for signs in within 15 minutes, and then the session may pay; three of these are open at a time. Of either kind, an
 * account mails a number within an hour to one address, in upper or lower case, also if it was removed and added again, and a number of
 * invitations to all. Calls at the same time may exceed the limits by their number. Undefined for an unknown member, and for one who was
 * removed.
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
  // The address of a member is erased with the removal. Without `SECRETS_KEY`, nobody can try addresses against the hash.
  const salt = secretBox.tokenHash(`mails to members of ${accountId}`);
  const row = await sql.maybe<{ address: string; waits: number | null; accountWaits: number | null }>`
    with member as materialized (
      select l.id, l.account_id, l.key_id, l.email, h.address_hash, a.waits as account_waits, greatest(o.waits, t.waits, a.waits) as waits
        from members l
       cross join lateral (
         select left(encode(sha256(convert_to(${salt}::text || lower(l.email), 'UTF8')), 'hex'), 32) as address_hash) h
        left join lateral (
          select extract(epoch from k.expires_at - ${instant(now)}::timestamptz)::float8 as waits
            from sign_in_links k
           where ${raises}::boolean and k.key_id = l.key_id and k.raises and k.session_id is null and k.expires_at > ${instant(now)}::timestamptz
             and k.token_sha256 <> ${tokenSha256(token)}::bytea
           order by k.expires_at desc limit 1 offset ${MOST_OPEN_LINKS - 1}) o on true
        left join lateral (
          select extract(epoch from e.created_at + interval '1 hour' - now())::float8 as waits
            from emails e
           where e.account_id = l.account_id and e.member_id is not null and split_part(e.subject_id, '/', 2) = h.address_hash
             and e.kind = ${kind}::text and e.created_at > now() - interval '1 hour' and e.id <> ${emailId}::text
           order by e.created_at desc limit 1 offset ${MEMBER_MAILS_IN_AN_HOUR.toAddress[kind] - 1}) t on true
        left join lateral (
          select extract(epoch from e.created_at + interval '1 hour' - now())::float8 as waits
            from emails e
           where not ${raises}::boolean and e.account_id = l.account_id and e.kind = 'member_invitation'
             and e.created_at > now() - interval '1 hour' and e.id <> ${emailId}::text
           order by e.created_at desc limit 1 offset ${MEMBER_MAILS_IN_AN_HOUR.invitations - 1}) a on true
       where l.account_id = ${accountId} and l.id = ${id} and l.removed_at is null
    ), made as (
      insert into sign_in_links (token_sha256, account_id, key_id, created_at, expires_at, raises)
      select ${tokenSha256(token)}::bytea, account_id, key_id, ${instant(now)}::timestamptz, ${instant(expiresAt)}::timestamptz, ${raises}::boolean
        from member where waits is null and ${acting(sql)}
      on conflict (token_sha256) do nothing
    ), mailed as (
      insert into emails (id, account_id, member_id, kind, subject_id, ciphertext, encryption_key_id, expires_at)
      select ${emailId}::text, account_id, id, ${kind}::text, ${emailId}::text || '/' || address_hash, ${sealed.ciphertext}::bytea,
             ${sealed.encryptionKeyId}::text, ${instant(expiresAt)}::timestamptz
        from member where waits is null
      on conflict do nothing
    )
    select email as address, waits, account_waits from member`;
  if (row === undefined) return undefined;
  const { address, waits, accountWaits } = row;
  return waits === null
    ? { outcome: 'queued', emailId, address, expiresAt }
    : {
        outcome: 'too_many',
        isOfAccount: accountWaits !== null,
        retryAfterSeconds: Math.max(1, Math.ceil(waits)),
      };
}

/** Mails a sign-in link of each account to the members who have an address, without regard to case. */
export async function mailSignInLinks(deps: MailDeps, address: string, now: number): Promise<void> {
  const members = await deps.sql<{ id: MemberId; accountId: AccountId }>`
    select m.id, m.account_id
      from members m left join account_keys k on k.id = m.key_id
     where lower(m.email) = lower(${address}) and m.removed_at is null
     order by k.last_used_at desc nulls last, m.created_at desc limit ${MOST_ACCOUNTS}`;
  // For nobody, the same statement runs: a database that cannot be written to fails for every address.
  const nobody = { id: newId('member'), accountId: newId('account') };
  for (const { id, accountId } of members.length === 0 ? [nobody] : members)
    await mailMemberLink(deps, accountId, id, { kind: 'member_sign_in', now });
}
