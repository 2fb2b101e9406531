import type { SecretBox } from '../config/secret-box.ts';
import type { EmailId } from '../domain/ids.ts';
import { CREATOR_LINK_MS, CREATOR_LINK_USES } from '../domain/sessions.ts';
import { acting } from './audit.ts';
import type { CreatorScope } from './creator-sessions.ts';
import { mailSecretContext } from './email-secrets.ts';
import { tokenSha256 } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** The most invitations to a creator within an hour. */
const MOST_IN_AN_HOUR = 5;

/** What became of an invitation. `address` is where the mail goes. */
export type InvitationOutcome =
  | { readonly outcome: 'queued'; readonly address: string; readonly expiresAt: number }
  | { readonly outcome: 'no_address' }
  | { readonly outcome: 'too_many' };

/**
 * Stores a sign-in link of a creator and the mail with it, in one statement that is safe to send twice. Nothing is stored for a creator
 * without an address, or with too many invitations within an hour. Undefined when the app has no such affiliate.
 */
export async function inviteByMail(
  { sql, secretBox }: { readonly sql: Sql; readonly secretBox: SecretBox },
  { appId, affiliateId }: CreatorScope,
  { emailId, token, now }: { readonly emailId: EmailId; readonly token: string; readonly now: number },
): Promise<InvitationOutcome | undefined> {
  const sealed = secretBox.encrypt(token, mailSecretContext(emailId));
  const expiresAt = instant(now + CREATOR_LINK_MS);
  const row = await sql.maybe<{ address: string | null; isTooMany: boolean }>`
    with creator as materialized (
      select f.app_id, f.id, f.email,
             (select count(*) from (select from emails e
                                     where e.affiliate_id = f.id and e.kind = 'invitation' and e.created_at > now() - interval '1 hour'
                                       and e.id <> ${emailId} limit ${MOST_IN_AN_HOUR}) recent) >= ${MOST_IN_AN_HOUR} as is_too_many
        from affiliates f where f.app_id = ${appId} and f.id = ${affiliateId}
    ), made as (
      insert into creator_sign_in_links (token_sha256, app_id, affiliate_id, created_at, expires_at, uses_left)
      select ${tokenSha256(token)}::bytea, app_id, id, ${instant(now)}::timestamptz, ${expiresAt}::timestamptz, ${CREATOR_LINK_USES}::integer
        from creator where email is not null and not is_too_many and ${acting(sql)}
      on conflict (token_sha256) do nothing
    ), mailed as (
      insert into emails (id, app_id, affiliate_id, kind, subject_id, ciphertext, encryption_key_id, expires_at)
      select ${emailId}::text, app_id, id, 'invitation', ${emailId}::text, ${sealed.ciphertext}::bytea, ${sealed.encryptionKeyId}::text,
             ${expiresAt}::timestamptz
        from creator where email is not null and not is_too_many
      on conflict do nothing
    )
    select email as address, is_too_many from creator`;
  if (row === undefined) return undefined;
  if (row.address === null) return { outcome: 'no_address' };
  if (row.isTooMany) return { outcome: 'too_many' };
  return { outcome: 'queued', address: row.address, expiresAt: now + CREATOR_LINK_MS };
}
