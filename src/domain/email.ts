import type { AppId, EmailId } from './ids.ts';
import { HOUR_MS, MINUTE_MS } from './time.ts';

/**
 * What a mail tells. `invitation`: the link to the creator's page. `payee_code`: the code with which a creator sets the own payee.
 * `payee_changed`: a version of the payee was set. `payout_sent`: the money of a payout is on its way.
 */
export const EMAIL_KINDS = ['invitation', 'payee_code', 'payee_changed', 'payout_sent'] as const;
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
  readonly appId: AppId;
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

/** Who a mail is to, and what app it is about. */
interface MailReader {
  readonly appName: string;
  readonly creatorName: string;
}

/** What a mail of each kind tells. Instants are epoch ms. */
export type MailFacts = MailReader & {
  readonly kind: 'invitation';
  /** The link that signs the creator in. */
  readonly url: string;
  readonly expiresAt: number;
  /** How many browsers the link signs in. */
  readonly uses: number;
};
