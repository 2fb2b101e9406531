import type { AlertFacts, AlertRule } from './alerts.ts';
import type { AppId, EmailId } from './ids.ts';
import type { Payee, PayeeMethod } from './payee.ts';
import { HOUR_MS, MINUTE_MS } from './time.ts';

/**
 * What a mail to a creator tells. `invitation`: the link to the creator's page. `payee_code`: the code with which a creator sets the own
 * payee. `payee_changed`: a version of the payee was set. `payout_sent`: the money of a payout is on its way. `address_changed`, to the
 * former address: another one has taken its place.
 */
const CREATOR_EMAIL_KINDS = [
  'invitation',
  'payee_code',
  'payee_changed',
  'payout_sent',
  'address_changed',
] as const;

/**
 * What a mail to the people who run an app tells. `alert_opened`, `alert_closed`: an alert. `run_drafted`: the payout schedule has drafted a
 * run. `weekly_report`: how the week before was.
 */
const NOTIFICATION_KINDS = ['alert_opened', 'alert_closed', 'run_drafted', 'weekly_report'] as const;

/** What a mail of an app tells. */
export const APP_EMAIL_KINDS = [...CREATOR_EMAIL_KINDS, ...NOTIFICATION_KINDS] as const;
export type AppEmailKind = (typeof APP_EMAIL_KINDS)[number];

/**
 * What a mail to a member of an account tells. `member_invitation`: the link with which a new member signs in. `member_sign_in`: the one that a
 * member asked for. `passkey_added`: a passkey was added that signs in as the member.
 */
const MEMBER_EMAIL_KINDS = ['member_invitation', 'member_sign_in', 'passkey_added'] as const;

/** What a mail tells. */
export const EMAIL_KINDS = [...APP_EMAIL_KINDS, ...MEMBER_EMAIL_KINDS] as const;
export type EmailKind = (typeof EMAIL_KINDS)[number];

/**
 * Where a mail is. `queued`: an attempt follows. `sent`: the mail server has accepted it. `failed`: no attempt follows. `skipped`: there
 * was nobody to send it to, or no mail server.
 */
export const EMAIL_STATUSES = ['queued', 'sent', 'failed', 'skipped'] as const;
export type EmailStatus = (typeof EMAIL_STATUSES)[number];

/** The most addresses of people who run an app. */
export const MOST_NOTIFICATION_EMAILS = 10;

/** Returns addresses in their order, each once: upper and lower case are the same. */
export function withoutRepeats(addresses: readonly string[]): string[] {
  const known = new Set<string>();
  return addresses.filter((address) => {
    const name = address.toLowerCase();
    if (known.has(name)) return false;
    known.add(name);
    return true;
  });
}

/** What the workflow of a mail needs. */
export interface EmailKeys {
  readonly emailId: EmailId;
  /** Null for a mail to a member of an account. */
  readonly appId: AppId | null;
  /** Whether its reader waits for it, such as for a code, or it is a notice of a new passkey: it goes before others. */
  readonly isUrgent: boolean;
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

/** What every mail tells: whom it is from. Instants are epoch ms. */
interface Mail {
  /** The name of the app, or of the account. */
  readonly senderName: string;
}

/** What every mail to a creator or member tells, too. */
export interface MailReader extends Mail {
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

interface PayeeCode extends MailReader {
  readonly kind: 'payee_code';
  /** What the code approves, unmasked: who reads the mail compares it. */
  readonly payee: Payee;
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

interface ChangedAddress extends MailReader {
  readonly kind: 'address_changed';
}

interface MailedAlert extends Mail {
  readonly kind: 'alert_opened' | 'alert_closed';
  readonly rule: AlertRule;
  /** The name of a provider as people know it, or an id. */
  readonly subject: string;
  readonly facts: AlertFacts;
  readonly openedAt: number;
  readonly closedAt: number | null;
  /** Whether no further mail follows about the same within a day. */
  readonly isLast: boolean;
  /** The address of the page with the alerts. */
  readonly pageUrl: string;
}

interface DraftedRun extends Mail {
  readonly kind: 'run_drafted';
  /** Such as `2026-11`. */
  readonly month: string;
  readonly itemCount: number;
  readonly totalCents: number;
  readonly excludedCount: number;
  /** Until when it can be approved. */
  readonly expiresAt: number;
  /** The address of the page of the run. */
  readonly pageUrl: string;
}

/** The sums of a week. */
export interface WeekSums {
  readonly revenueCents: number;
  readonly commissionCents: number;
  readonly paidUsers: number;
  readonly installs: number;
  readonly clicks: number;
  readonly newCreators: number;
}

/** What a weekly report tells. */
export interface WeeklyReport {
  /** The begin of the week and of the next one (UTC). */
  readonly from: number;
  readonly to: number;
  readonly week: WeekSums;
  /** The week before. */
  readonly before: WeekSums;
  /** Whether all creators of the week were compared. */
  readonly areAllCompared: boolean;
  /** Those with the highest commissions of the week, the first one first. */
  readonly topCreators: readonly {
    readonly name: string;
    readonly revenueCents: number;
    readonly commissionCents: number;
  }[];
  /** What is due now, and to how many creators. */
  readonly due: { readonly payees: number; readonly payableCents: number };
  readonly openAlerts: readonly Pick<MailedAlert, 'rule' | 'subject' | 'facts' | 'openedAt'>[];
  /** Whether more alerts are open than these. */
  readonly hasMoreAlerts: boolean;
}

interface MailedReport extends Mail, WeeklyReport {
  readonly kind: 'weekly_report';
  /** The address of the overview of the app. */
  readonly pageUrl: string;
}

interface MemberLink extends MailReader {
  readonly kind: 'member_invitation' | 'member_sign_in';
  /** The link that signs the member in once. */
  readonly url: string;
  readonly expiresAt: number;
}

interface AddedPasskey extends MailReader {
  readonly kind: 'passkey_added';
  readonly passkeyName: string;
  readonly addedAt: number;
  /** Whether it lets a session pay, if the role of the member does. */
  readonly raises: boolean;
  /** Whether it was revoked meanwhile. */
  readonly isRevoked: boolean;
  /** The address of the page with the passkeys of the member. */
  readonly pageUrl: string;
}

/** What a mail of each kind tells. */
export type MailFacts =
  | Invitation
  | ChangedPayee
  | PayeeCode
  | SentPayout
  | ChangedAddress
  | MailedAlert
  | DraftedRun
  | MailedReport
  | MemberLink
  | AddedPasskey;
