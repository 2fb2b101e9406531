import { randomBytes } from 'node:crypto';
import { SecretUnreadable } from '../config/secret-box.ts';
import type { SecretBox } from '../config/secret-box.ts';
import type { AffiliateId, AppId, EmailId, PayeeChangeId, PayeeId } from '../domain/ids.ts';
import {
  codeFrom,
  NEW_ADDRESS_MS,
  PAYEE_CODE_ATTEMPTS,
  PAYEE_CODE_LENGTH,
  PAYEE_CODE_MS,
  PAYEE_CODES_IN_AN_HOUR,
} from '../domain/payee-code.ts';
import { textOfRecipient } from '../domain/payee.ts';
import type { Payee } from '../domain/payee.ts';
import type { CreatorScope } from './creator-sessions.ts';
import { mailSecretContext } from './email-secrets.ts';
import { appendPayee, findLatestPayee, isStoredAs } from './payees.ts';
import type { PayeeDeps, StoredPayee } from './payees.ts';
import { lockPayoutsOf } from './payout-lock.ts';
import { EXPIRED_BATCH } from './sessions.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

/** A payee that a creator wants, which waits for its code. */
export interface StoredPayeeChange {
  readonly id: PayeeChangeId;
  readonly appId: AppId;
  readonly affiliateId: AffiliateId;
  readonly method: Exclude<Payee['method'], 'none'>;
  readonly ciphertext: Uint8Array;
  readonly encryptionKeyId: string;
  readonly codeHash: string;
  readonly expiresAt: number;
}

/** Returns the encryption context of a recipient that waits for its code. */
function changeContext({
  id,
  appId,
  affiliateId,
}: Pick<StoredPayeeChange, 'id' | 'appId' | 'affiliateId'>): string {
  return `${appId}:payee change:${affiliateId}:${id}`;
}

/** Decrypts the payee of a change. Throws `SecretUnreadable` if the key is missing. */
export function openPayeeChange(secretBox: SecretBox, row: StoredPayeeChange): Payee {
  const text = secretBox.decrypt(Buffer.from(row.ciphertext), row.encryptionKeyId, changeContext(row));
  return { method: row.method, recipient: JSON.parse(text) };
}

/** What a code approves, as one text: the change, and the payee to the last character. */
function approvedText(id: PayeeChangeId, payee: Payee, code: string): string {
  return JSON.stringify(['payee change', id, payee.method, textOfRecipient(payee), code]);
}

/** Where codes for a creator go. */
export interface CodeAddress {
  readonly address: string;
  /** From when on codes are sent to it, epoch ms. */
  readonly from: number;
}

/**
 * Returns the address for codes of a creator. Undefined without one, and for one that was changed by a caller who may not pay and was not
 * confirmed since.
 */
export async function findCodeAddress(
  sql: Statements,
  { appId, affiliateId }: CreatorScope,
): Promise<CodeAddress | undefined> {
  return await sql.maybe<CodeAddress>`
    select email as address, email_set_at + ${NEW_ADDRESS_MS} * interval '1 millisecond' as "from"
      from affiliates
     where app_id = ${appId} and id = ${affiliateId} and email is not null and email_confirmed is not false`;
}

/** The condition that codes may be sent to the address of the creator `f` at this moment. */
const isUsable = (sql: Statements) => sql.fragment`
  f.email is not null and f.email_confirmed is not false and f.email_set_at <= now() - ${NEW_ADDRESS_MS} * interval '1 millisecond'`;

/** What became of the wish for another payee. */
export type PayeeChangeOutcome =
  | { readonly outcome: 'queued'; readonly address: string; readonly expiresAt: number }
  | { readonly outcome: 'no_address' }
  | {
      readonly outcome: 'too_many';
      /** When the next one is possible, in seconds: from 1 to an hour. */
      readonly retryAfterSeconds: number;
    };

/**
 * Stores the payee that a creator wants, and the mail with its code, in the place of an earlier wish. Nothing is stored while no code may be
 * sent to the creator, or after too many within an hour. Waits for a payout that is being settled.
 */
export async function requestPayeeChange(
  { sql, secretBox }: PayeeDeps,
  scope: CreatorScope,
  payee: Payee,
  { id, emailId }: { readonly id: PayeeChangeId; readonly emailId: EmailId },
): Promise<PayeeChangeOutcome> {
  const { appId, affiliateId } = scope;
  const code = codeFrom(randomBytes(PAYEE_CODE_LENGTH));
  const sealed = secretBox.encrypt(textOfRecipient(payee) ?? '', changeContext({ id, appId, affiliateId }));
  const sealedCode = secretBox.encrypt(code, mailSecretContext(emailId));
  const codeHash = secretBox.tokenHash(approvedText(id, payee, code));
  return await sql.forManyRows().transaction<PayeeChangeOutcome>(async (tx) => {
    // One request of a creator at a time: the statement after the lock sees the codes of those before.
    const creator = await tx.maybe<{ address: string }>`
      select f.email as address
        from affiliates f where f.app_id = ${appId} and f.id = ${affiliateId} and ${isUsable(tx)} for no key update`;
    if (creator === undefined) return { outcome: 'no_address' };
    const limit = await tx.maybe<{ waits: number }>`
      select extract(epoch from e.created_at + interval '1 hour' - now())::float8 as waits
        from emails e
       where e.affiliate_id = ${affiliateId} and e.kind = 'payee_code' and e.created_at > now() - interval '1 hour' and e.id <> ${emailId}
       order by e.created_at desc limit 1 offset ${PAYEE_CODES_IN_AN_HOUR - 1}`;
    if (limit !== undefined)
      return { outcome: 'too_many', retryAfterSeconds: Math.max(1, Math.ceil(limit.waits)) };
    // What a founder sets or blocks at the same time either sees this change, or is the latest version that it replaces.
    await lockPayoutsOf(tx, affiliateId);
    await tx`
      update payee_changes set ended_at = now(), ciphertext = null, encryption_key_id = null
       where affiliate_id = ${affiliateId} and ended_at is null and id <> ${id}`;
    await tx`
      insert into payee_changes (id, app_id, affiliate_id, method, ciphertext, encryption_key_id, code_hash, expires_at)
      values (${id}, ${appId}, ${affiliateId}, ${payee.method}, ${sealed.ciphertext}, ${sealed.encryptionKeyId}, ${codeHash},
              now() + ${PAYEE_CODE_MS} * interval '1 millisecond')
      on conflict (id) do nothing`;
    const { expiresAt } = await tx.one<{ expiresAt: number }>`
      select expires_at from payee_changes where id = ${id}`;
    await tx`
      insert into emails (id, app_id, affiliate_id, kind, subject_id, ciphertext, encryption_key_id, expires_at)
      values (${emailId}, ${appId}, ${affiliateId}, 'payee_code', ${id}, ${sealedCode.ciphertext}, ${sealedCode.encryptionKeyId},
              ${instant(expiresAt)}::timestamptz)
      on conflict do nothing`;
    return { outcome: 'queued', address: creator.address, expiresAt };
  });
}

/**
 * What became of a code that was entered. `ended`: it was used, replaced or entered wrong too often, its time is over, the address has changed,
 * or the founder has set a payee or blocked the payouts since.
 */
export type CodeOutcome =
  | { readonly outcome: 'set'; readonly payee: StoredPayee }
  | { readonly outcome: 'wrong'; readonly attemptsLeft: number }
  | { readonly outcome: 'ended' };

/**
 * Sets the payee that a creator wants if the code is right. An attempt is counted before the code is compared, so that of many at the same time
 * no more are made. Undefined for a change that does not exist, or of another creator. Throws `SecretUnreadable`, and counts nothing, if the key
 * of the change is missing.
 */
export async function confirmPayeeChange(
  { sql, secretBox }: PayeeDeps,
  { appId, affiliateId }: CreatorScope,
  { id, payeeId, code }: { readonly id: PayeeChangeId; readonly payeeId: PayeeId; readonly code: string },
): Promise<CodeOutcome | undefined> {
  const entered = await sql.transaction(async (tx) => {
    const row = await tx.maybe<StoredPayeeChange & { readonly attempts: number }>`
      update payee_changes set attempts = attempts + 1
       where id = ${id} and app_id = ${appId} and affiliate_id = ${affiliateId} and ended_at is null and expires_at > now()
         and attempts < ${PAYEE_CODE_ATTEMPTS}
      returning id, app_id, affiliate_id, method, ciphertext, encryption_key_id, code_hash, expires_at, attempts`;
    // Throws within the transaction: a process that lacks the key counts no attempt.
    return row === undefined ? undefined : { row, payee: openUnlessLost(secretBox, row) };
  });
  if (entered === undefined) {
    const known = await sql.maybe<{ readonly payeeId: PayeeId | null; readonly codeHash: string }>`
      select payee_id, code_hash from payee_changes where id = ${id} and app_id = ${appId} and affiliate_id = ${affiliateId}`;
    if (known === undefined) return undefined;
    // The code is entered again because the answer was lost: it has set the payee that is the latest.
    const latest =
      known.payeeId === null ? null : await findLatestPayee({ sql, secretBox }, appId, affiliateId);
    const hasSet =
      latest !== null &&
      latest.recipientProblem === null &&
      secretBox.matchesTokenHash(approvedText(id, latest as Payee, code), known.codeHash);
    return hasSet ? { outcome: 'set', payee: latest } : { outcome: 'ended' };
  }
  const { row, payee } = entered;
  if (payee === null) return { outcome: 'ended' };
  if (!secretBox.matchesTokenHash(approvedText(id, payee, code), row.codeHash)) {
    return { outcome: 'wrong', attemptsLeft: PAYEE_CODE_ATTEMPTS - row.attempts };
  }
  return await sql.forManyRows().transaction<CodeOutcome>(async (tx) => {
    await lockPayoutsOf(tx, affiliateId);
    const deps = { sql: tx, secretBox };
    const latest = await findLatestPayee(deps, appId, affiliateId);
    const latestVersion = latest?.version ?? 0;
    const ended = await tx.maybe`
      update payee_changes c
         set ended_at = now(), payee_id = ${payeeId}, ciphertext = null, encryption_key_id = null
        from affiliates f
       where c.id = ${id} and c.ended_at is null and c.expires_at > now() and coalesce(c.latest_version, ${latestVersion}::int) = ${latestVersion}::int
         and f.app_id = c.app_id and f.id = c.affiliate_id and ${isUsable(tx)}
      returning c.id`;
    // Also says so to a transaction that runs again after its answer was lost.
    if (latest !== null && isStoredAs(latest, payee)) return { outcome: 'set', payee: latest };
    if (ended === undefined) return { outcome: 'ended' };
    const place = { id: payeeId, appId, affiliateId, accountId: null, keyId: null };
    await appendPayee(deps, place, payee, latestVersion + 1);
    const stored = await findLatestPayee(deps, appId, affiliateId);
    return stored === null ? { outcome: 'ended' } : { outcome: 'set', payee: stored };
  });
}

function openUnlessLost(secretBox: SecretBox, row: StoredPayeeChange): Payee | null {
  try {
    return openPayeeChange(secretBox, row);
  } catch (error) {
    if (error instanceof SecretUnreadable && error.isLost) return null;
    throw error;
  }
}

/** Deletes what creators wanted whose codes are not valid any more. */
export async function deleteExpiredPayeeChanges(sql: Sql, now: number): Promise<void> {
  await sql`
    delete from payee_changes where id in (
      select id from payee_changes where expires_at <= ${instant(now)} order by expires_at limit ${EXPIRED_BATCH} for update skip locked)`;
}

/** Deletes the former addresses of creators that get no mails about payees any more. */
export async function deleteExpiredFormerAddresses(sql: Sql, now: number): Promise<void> {
  await sql`
    delete from former_addresses where ctid in (
      select ctid from former_addresses where replaced_at <= ${instant(now - NEW_ADDRESS_MS)} order by replaced_at limit ${EXPIRED_BATCH}
         for update skip locked)`;
}
