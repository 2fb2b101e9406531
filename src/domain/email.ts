import type { AppId, EmailId } from './ids.ts';
import type { PayeeMethod } from './payee.ts';
import { HOUR_MS, MINUTE_MS } from './time.ts';

/** What a mail to a creator tells. See `EMAIL_KINDS`. */
export const CREATOR_EMAIL_KINDS = ['invitation', 'payee_code', 'payee_changed', 'payout_sent'] as const;
export type CreatorEmailKind = (typeof CREATOR_EMAIL_KINDS)[number];

/**
 * What a mail tells. `invitation`: the link to the creator's page. `payee_code`: the code with which a creator sets the own payee.
 * `payee_changed`: a version of the payee was set. `payout_sent`: the money of a payout is on its way.
 * `member_invitation`: the link with which a new member of an account signs in. `member_sign_in`: the one that a member asked for.
 */
export const EMAIL_KINDS = [...CREATOR_EMAIL_KINDS, 'member_invitation', 'member_sign_in'] as const;
export type EmailKind = (typeof EMAIL_KINDS)[number];

/**
 * Where a mail is. `queued`: an attempt follows. `sent`: the mail server has accepted it. `failed`: no attempt follows. `skipped`: there
 * was nobody to send it to, or no mail server.
 */
export const EMAIL_STATUSES = ['queued', 'sent', 'failed', 'skipped'] as const;
export type EmailStatus = (typeof EMAIL_STATUSES)[number];

/** What the workflow of a mail needs. */
export interface EmailKeys {
  readonly emailId: EmailId;
  /** Null for a mail to a member of an account. */
  readonly appId: AppId | null;
}

/** The waits between the attempts at a mail, ms. Each is longer than an attempt may take. */
export const EMAIL_RETRY_MS: readonly number[] = [
  30_000,
  MINUTE_MS,
  2 * MINUTE_MS,
  5 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  3 * HOUR_MS,
  6 * HOUR_MS,
];

/** The result of an attempt at a mail, for metrics. */
export const EMAIL_RESULTS = ['sent', 'retried', 'failed'] as const;
export type EmailResult = (typeof EMAIL_RESULTS)[number];

/** What every mail tells: whom it is from, and whom it is to. Instants are epoch ms. */
export interface MailReader {
  /** The name of the app, or of the account. */
  readonly senderName: string;
  /** The name of the creator, or of the member. */
  readonly readerName: string;
}

interface Invitation extends MailReader {
  readonly kind: 'invitation';
  /** The link that signs the creator in. */
  readonly url: string;
  readonly expiresAt: number;
  /** How many browsers the link signs in. */
  readonly uses: number;
}

/** How money is sent, and to whom: masked; null for `none`, and if it cannot be read. */
interface ShownPayee extends MailReader {
  readonly method: PayeeMethod;
  readonly maskedRecipient: string | null;
}

interface ChangedPayee extends ShownPayee {
  readonly kind: 'payee_changed';
  readonly countsFrom: number;
  /** Whether the creator has set it. */
  readonly isOwn: boolean;
  /** The address of the creator's page. */
  readonly pageUrl: string;
}

interface PayeeCode extends ShownPayee {
  readonly kind: 'payee_code';
  readonly code: string;
  readonly expiresAt: number;
}

interface SentPayout extends MailReader {
  readonly kind: 'payout_sent';
  readonly amountCents: number;
  /** When the payout was made, and when it was stated that its money was sent. */
  readonly createdAt: number;
  readonly sentAt: number;
  /** The address of the creator's page. */
  readonly pageUrl: string;
}

interface MemberLink extends MailReader {
  readonly kind: 'member_invitation' | 'member_sign_in';
  /** The link that signs the member in once. */
  readonly url: string;
  readonly expiresAt: number;
}

/** What a mail of each kind tells. */
export type MailFacts = Invitation | ChangedPayee | PayeeCode | SentPayout | MemberLink;
