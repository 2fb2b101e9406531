import { randomUUID } from 'node:crypto';
import type { AppEmailKind, EmailKind, EmailStatus } from '../domain/email.ts';
import type { AccountId, AffiliateId, AppId, EmailId } from '../domain/ids.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined, createdBefore } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import type { Sql } from './sql.ts';

/** A mail. */
interface StoredEmail {
  readonly id: EmailId;
  /** The creator whom it is to or about. Null for a mail to the people who run the app, or to a member of the account. */
  readonly affiliateId: AffiliateId | null;
  /** Where it goes: the present address of the creator or member, or that of a reader of its own, masked once the mail has ended. Null without one. */
  readonly address: string | null;
  readonly status: EmailStatus;
  /** Those that were begun. */
  readonly attempts: number;
  /** Why it was not sent, in one sentence without an address. Null if nothing is known. */
  readonly lastProblem: string | null;
  readonly createdAt: number;
  /** Null after the last attempt. */
  readonly nextAttemptAt: number | null;
  readonly endedAt: number | null;
}

/** A mail to a creator, or to one of the people who run an app. */
export interface Email extends StoredEmail {
  readonly kind: AppEmailKind;
}

/** The filters of the list. Null selects all rows. */
export interface EmailFilter {
  readonly affiliateId: AffiliateId | null;
  readonly status: EmailStatus | null;
}

/** Returns a page of an app's mails, latest first. A page with a filter examines at most `examines` rows and may have fewer than `limit`. */
export async function listEmails(
  sql: Sql,
  appId: AppId,
  { affiliateId, status }: EmailFilter,
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<Email, number>> {
  const isFiltered = affiliateId !== null || status !== null;
  const ofCreator = affiliateId === null ? sql.fragment`` : sql.fragment`and w.affiliate_id = ${affiliateId}`;
  const ofStatus = status === null ? sql.fragment`` : sql.fragment`and w.status = ${status}`;
  const rows = await sql<Email & Position<number> & Examined>`
    with walked as (
      select e.*, row_number() over (order by e.created_at desc, e.id desc) as examined
        from emails e
       where e.app_id = ${appId} ${createdBefore(sql, after)}
       order by e.created_at desc, e.id desc limit ${isFiltered ? examines : limit + 1}
    ), page as (
      ${matchesOf(sql, sql.fragment`walked w`, sql.fragment`true ${ofCreator} ${ofStatus}`, sql.fragment`created_at desc, id desc`, { limit, examines })}
    )
    select p.id, p.kind, p.affiliate_id, coalesce(p.recipient, f.email) as address, p.status, p.attempts, p.last_problem, p.created_at, p.next_attempt_at,
           p.ended_at, p.is_match, p.examined, (extract(epoch from p.created_at) * 1000000)::bigint as sort_key
      from page p
      left join lateral (select email from affiliates x where x.id = p.affiliate_id offset 0) f on true
     order by p.examined`;
  return isFiltered ? pageOfExamined(rows, limit, examines) : pageOf(rows, limit);
}

/** A mail with what an attempt at it needs. */
export interface EmailToSend extends StoredEmail {
  readonly kind: EmailKind;
  readonly accountId: AccountId;
  /** Null for a mail to a member of an account. */
  readonly appId: AppId | null;
  /** The name of the app, or of the account. */
  readonly senderName: string;
  /** The name of the creator or member. Null for a mail to the people who run the app. */
  readonly readerName: string | null;
  readonly subjectId: string;
  /** How long until the next attempt is due, ms; 0 or less if it is due. Null for a mail that has ended. */
  readonly dueInMs: number | null;
  readonly isExpired: boolean;
  /** Whether its reader waits for it, or it is a notice of a new passkey. */
  readonly isUrgent: boolean;
  readonly expiresAt: number | null;
  readonly ciphertext: Buffer | null;
  readonly encryptionKeyId: string | null;
}

/**
 * Returns a mail with its app and the creator, if it is to one, or with its account and the member. Undefined for an unknown one. An address
 * that the settings of the app do not have any more is null.
 */
export async function loadEmail(sql: Sql, id: EmailId): Promise<EmailToSend | undefined> {
  return await sql.maybe<EmailToSend>`
    select e.id, e.kind, e.affiliate_id,
           case when e.recipient is null then coalesce(f.email, m.email)
                when e.affiliate_id is not null or lower(e.recipient) = any(array(select lower(n) from unnest(a.notification_emails) n)) then e.recipient end as address, e.status, e.attempts, e.last_problem, e.created_at, e.next_attempt_at,
           e.ended_at, c.id as account_id, e.app_id, coalesce(a.name, c.name) as sender_name, coalesce(f.name, m.name) as reader_name, e.subject_id,
           e.expires_at, e.ciphertext, e.encryption_key_id,
           ceil(extract(epoch from e.next_attempt_at - clock_timestamp()) * 1000)::float8 as due_in_ms,
           coalesce(e.expires_at <= clock_timestamp(), false) as is_expired,
           coalesce(e.expires_at - e.created_at <= interval '1 hour', e.kind = 'passkey_added') as is_urgent
      from emails e
      left join affiliates f on f.app_id = e.app_id and f.id = e.affiliate_id
      left join apps a on a.id = e.app_id
      left join members m on m.id = e.member_id
      join accounts c on c.id = coalesce(a.account_id, e.account_id)
     where e.id = ${id}`;
}

/**
 * Counts the next attempt at a mail before it is made, and moves the one after it by `waitMs`. Returns whether the caller makes it: of
 * several at the same time, one does, also if its statement is sent again.
 */
export async function beginEmailAttempt(
  sql: Sql,
  id: EmailId,
  { attempts, waitMs }: { readonly attempts: number; readonly waitMs: number },
): Promise<boolean> {
  const attemptId = randomUUID();
  const row = await sql.maybe`
    update emails
       set attempts = ${attempts}::int + 1, attempt_id = ${attemptId}::uuid, next_attempt_at = now() + ${waitMs} * interval '1 millisecond',
           relay_at = now() + ${waitMs} * interval '1 millisecond' + interval '1 minute'
     where id = ${id} and ended_at is null
       and (attempts = ${attempts}::int and next_attempt_at <= now() or attempts = ${attempts}::int + 1 and attempt_id = ${attemptId}::uuid)
    returning id`;
  return row !== undefined;
}

/** Notes why an attempt failed that another one follows. */
export async function noteEmailProblem(sql: Sql, id: EmailId, problem: string): Promise<void> {
  await sql`update emails set last_problem = ${problem} where id = ${id} and ended_at is null`;
}

/** Ends a mail, unless it has ended. Its token or code is removed. */
export async function endEmail(
  sql: Sql,
  id: EmailId,
  status: Exclude<EmailStatus, 'queued'>,
  problem: string | null,
): Promise<void> {
  await sql`
    update emails
       set status = ${status}, last_problem = ${problem}::text, ended_at = now(), next_attempt_at = null, relay_at = null,
           ciphertext = null, encryption_key_id = null
     where id = ${id} and ended_at is null`;
}
