import type { SecretBox } from '../config/secret-box.ts';
import type { EmailId } from '../domain/ids.ts';
import { CREATOR_LINK_MS, CREATOR_LINK_USES } from '../domain/sessions.ts';
import { acting } from './audit.ts';
import type { CreatorScope } from './creator-sessions.ts';
import { mailSecretContext } from './email-secrets.ts';
import { tokenSha256 } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** The most invitations within an hour to a creator, and of an account. */
export const INVITATIONS_IN_AN_HOUR = { ofCreator: 5, ofAccount: 1_000 };

/** What became of an invitation. `address` is where the mail goes. */
export type InvitationOutcome =
  | { readonly outcome: 'queued'; readonly address: string; readonly expiresAt: number }
  | { readonly outcome: 'no_address' }
  | {
      readonly outcome: 'too_many';
      /** Whether the account has as many, not only the creator. */
      readonly isOfAccount: boolean;
      /** When the next one is possible, in seconds: from 1 to an hour. */
      readonly retryAfterSeconds: number;
    };

/**
 * Stores a sign-in link of a creator and the mail with it, in one statement that is safe to send twice. Nothing is stored for a creator
 * without an address, or where the creator or the account has too many invitations within an hour. Calls at the same time may exceed the
 * limits by their number. Undefined when the app has no such affiliate.
 */
export async function inviteByMail(
  { sql, secretBox }: { readonly sql: Sql; readonly secretBox: SecretBox },
  { appId, affiliateId }: CreatorScope,
  { emailId, token, now }: { readonly emailId: EmailId; readonly token: string; readonly now: number },
  limits = INVITATIONS_IN_AN_HOUR,
): Promise<InvitationOutcome | undefined> {
  const sealed = secretBox.encrypt(token, mailSecretContext(emailId));
  const expiresAt = instant(now + CREATOR_LINK_MS);
  const row = await sql.maybe<{
    address: string | null;
    creatorWaits: number | null;
    accountWaits: number | null;
  }>`
    with creator as materialized (
      select f.app_id, f.id, f.email, c.waits as creator_waits, o.waits as account_waits
        from affiliates f
        join apps a on a.id = f.app_id
        left join lateral (
          select extract(epoch from e.created_at + interval '1 hour' - now())::float8 as waits from emails e
           where e.affiliate_id = f.id and e.kind = 'invitation' and e.created_at > now() - interval '1 hour' and e.id <> ${emailId}
           order by e.created_at desc limit 1 offset ${limits.ofCreator - 1}) c on true
        left join lateral (
          select extract(epoch from e.created_at + interval '1 hour' - now())::float8 as waits
            from apps x
           cross join lateral (
             select m.created_at from emails m
              where m.app_id = x.id and m.kind = 'invitation' and m.created_at > now() - interval '1 hour' and m.id <> ${emailId}
              order by m.created_at desc limit ${limits.ofAccount}) e
           where x.account_id = a.account_id
           order by e.created_at desc limit 1 offset ${limits.ofAccount - 1}) o on true
       where f.app_id = ${appId} and f.id = ${affiliateId}
    ), made as (
      insert into creator_sign_in_links (token_sha256, app_id, affiliate_id, created_at, expires_at, uses_left)
      select ${tokenSha256(token)}::bytea, app_id, id, ${instant(now)}::timestamptz, ${expiresAt}::timestamptz, ${CREATOR_LINK_USES}::integer
        from creator where email is not null and creator_waits is null and account_waits is null and ${acting(sql)}
      on conflict (token_sha256) do nothing
    ), mailed as (
      insert into emails (id, app_id, affiliate_id, kind, subject_id, ciphertext, encryption_key_id, expires_at)
      select ${emailId}::text, app_id, id, 'invitation', ${emailId}::text, ${sealed.ciphertext}::bytea, ${sealed.encryptionKeyId}::text,
             ${expiresAt}::timestamptz
        from creator where email is not null and creator_waits is null and account_waits is null
      on conflict do nothing
    )
    select email as address, creator_waits, account_waits from creator`;
  if (row === undefined) return undefined;
  if (row.address === null) return { outcome: 'no_address' };
  const { creatorWaits, accountWaits } = row;
  if (creatorWaits !== null || accountWaits !== null) {
    const waits = Math.max(creatorWaits ?? 0, accountWaits ?? 0);
    return {
      outcome: 'too_many',
      isOfAccount: accountWaits !== null,
      retryAfterSeconds: Math.max(1, Math.ceil(waits)),
    };
  }
  return { outcome: 'queued', address: row.address, expiresAt: now + CREATOR_LINK_MS };
}
