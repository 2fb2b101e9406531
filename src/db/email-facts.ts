import type { SecretBox } from '../config/secret-box.ts';
import type { MailFacts, MailReader } from '../domain/email.ts';
import { shownCode } from '../domain/payee-code.ts';
import { maskRecipient } from '../domain/payee.ts';
import {
  accessPageUrl,
  CREATOR_LINK_USES,
  creatorPageUrl,
  creatorSignInUrl,
  signInUrl,
} from '../domain/sessions.ts';
import { mailSecretContext } from './email-secrets.ts';
import type { EmailToSend } from './emails.ts';
import { readAlert, readDraft, readReport } from './notification-facts.ts';
import type { EmailOfApp } from './notification-facts.ts';
import { openPayeeChange } from './payee-changes.ts';
import type { StoredPayeeChange } from './payee-changes.ts';
import { openRecipient } from './payees.ts';
import type { SealedRecipient, StoredPayee } from './payees.ts';
import { tokenSha256 } from './sessions.ts';
import type { Sql } from './sql.ts';

/** What reading the facts of mails needs. */
export interface MailFactsDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  /** Base address of links, without a trailing slash. */
  readonly publicUrl: string;
  /** Returns the name of a provider as people know it. */
  readonly titleOf: (provider: string) => string;
}

/**
 * Returns what a mail tells, as it is at this moment, or in one sentence why there is nothing to tell any more. Throws
 * `SecretUnreadable` if the key that its token or code needs is missing.
 */
export async function readMailFacts(deps: MailFactsDeps, email: EmailToSend): Promise<MailFacts | string> {
  const reader = { senderName: email.senderName, readerName: email.readerName ?? '' };
  switch (email.kind) {
    case 'invitation':
      return await readInvitation(deps, email, reader);
    case 'payee_code':
      return await readPayeeCode(deps, email, reader);
    case 'payee_changed':
      return await readChangedPayee(deps, email, reader);
    case 'payout_sent':
      return await readSentPayout(deps, email, reader);
    case 'address_changed':
      return { ...reader, kind: 'address_changed' };
    case 'alert_opened':
    case 'alert_closed':
      return await readAlert(deps, ofApp(email), email.kind);
    case 'run_drafted':
      return await readDraft(deps, ofApp(email));
    case 'weekly_report':
      return await readReport(deps, ofApp(email));
    case 'member_invitation':
    case 'member_sign_in':
      return await readMemberLink(deps, email, email.kind, reader);
    case 'passkey_added':
      return await readAddedPasskey(deps, email, reader);
  }
}

function ofApp(email: EmailToSend): EmailOfApp {
  if (email.appId === null) throw new Error(`mail ${email.id} is of no app`);
  return { ...email, appId: email.appId };
}

function secretOf({ secretBox }: MailFactsDeps, { id, ciphertext, encryptionKeyId }: EmailToSend): string {
  return secretBox.decrypt(Buffer.from(ciphertext ?? []), encryptionKeyId ?? '', mailSecretContext(id));
}

async function readInvitation(
  deps: MailFactsDeps,
  email: EmailToSend,
  reader: MailReader,
): Promise<MailFacts | string> {
  const token = secretOf(deps, email);
  const link = await deps.sql.maybe<{ expiresAt: number }>`
    select expires_at from creator_sign_in_links where token_sha256 = ${tokenSha256(token)} and revoked_at is null`;
  if (link === undefined) return 'The link was revoked.';
  const url = creatorSignInUrl(deps.publicUrl, token);
  return { ...reader, kind: 'invitation', url, expiresAt: link.expiresAt, uses: CREATOR_LINK_USES };
}

async function readMemberLink(
  deps: MailFactsDeps,
  email: EmailToSend,
  kind: 'member_invitation' | 'member_sign_in',
  reader: MailReader,
): Promise<MailFacts | string> {
  const token = secretOf(deps, email);
  const link = await deps.sql.maybe<{ expiresAt: number }>`
    select expires_at from sign_in_links where token_sha256 = ${tokenSha256(token)} and session_id is null`;
  if (link === undefined) return 'The link was used or removed.';
  return {
    ...reader,
    kind,
    url: signInUrl(deps.publicUrl, token, { isNew: false }),
    expiresAt: link.expiresAt,
  };
}

async function readAddedPasskey(
  { sql, publicUrl }: MailFactsDeps,
  { subjectId }: EmailToSend,
  reader: MailReader,
): Promise<MailFacts | string> {
  const row = await sql.maybe<{
    passkeyName: string;
    addedAt: number;
    raises: boolean;
    isRevoked: boolean;
  }>`
    select name as passkey_name, created_at as added_at, raises, revoked_at is not null as is_revoked
      from passkeys where id = ${subjectId}`;
  if (row === undefined) return 'The passkey does not exist.';
  return { ...reader, ...row, kind: 'passkey_added', pageUrl: accessPageUrl(publicUrl) };
}

async function readChangedPayee(
  { sql, secretBox, publicUrl }: MailFactsDeps,
  { appId, subjectId }: EmailToSend,
  reader: MailReader,
): Promise<MailFacts | string> {
  // Behind the id, the subject of a mail to a former address has a part of the hash of the address.
  const [payeeId = ''] = subjectId.split('/');
  const row = await sql.maybe<
    SealedRecipient & Pick<StoredPayee, 'affiliateId' | 'version' | 'method' | 'countsFrom' | 'keyId'>
  >`
    select affiliate_id, version, method, counts_from, set_by as key_id, ciphertext, encryption_key_id
      from payees where app_id = ${appId} and id = ${payeeId}`;
  if (row === undefined || appId === null) return 'The payee does not exist.';
  const recipient = openRecipient(secretBox, appId, row)?.recipient ?? null;
  return {
    ...reader,
    kind: 'payee_changed',
    method: row.method,
    maskedRecipient: recipient === null ? null : maskRecipient(recipient),
    countsFrom: row.countsFrom,
    isOwn: row.keyId === null,
    pageUrl: creatorPageUrl(publicUrl),
  };
}

async function readPayeeCode(
  deps: MailFactsDeps,
  email: EmailToSend,
  reader: MailReader,
): Promise<MailFacts | string> {
  const row = await deps.sql.maybe<StoredPayeeChange>`
    select id, app_id, affiliate_id, method, ciphertext, encryption_key_id, code_hash, expires_at
      from payee_changes where app_id = ${email.appId} and id = ${email.subjectId} and ended_at is null`;
  if (row === undefined)
    return 'The code was used or replaced, or the founder has set a payee or blocked the payouts.';
  return {
    ...reader,
    kind: 'payee_code',
    payee: openPayeeChange(deps.secretBox, row),
    code: shownCode(secretOf(deps, email)),
    expiresAt: row.expiresAt,
  };
}

async function readSentPayout(
  { sql, publicUrl }: MailFactsDeps,
  { appId, subjectId }: EmailToSend,
  reader: MailReader,
): Promise<MailFacts | string> {
  const row = await sql.maybe<{ amountCents: number; createdAt: number; sentAt: number; isSent: boolean }>`
    select p.total_cents::float8 as amount_cents, p.created_at, t.created_at as sent_at,
           (select n.state from payout_transfers n where n.payout_id = t.payout_id order by n.position desc limit 1)
             in ('sent', 'return_withdrawn') as is_sent
      from payout_transfers t join payouts p on p.app_id = t.app_id and p.id = t.payout_id
     where t.app_id = ${appId} and t.id = ${subjectId}`;
  if (row === undefined || !row.isSent)
    return 'It was stated meanwhile that the money was not sent, or came back.';
  const { amountCents, createdAt, sentAt } = row;
  return {
    ...reader,
    kind: 'payout_sent',
    amountCents,
    createdAt,
    sentAt,
    pageUrl: creatorPageUrl(publicUrl),
  };
}
