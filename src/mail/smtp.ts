import { getSystemErrorName } from 'node:util';
import { createTransport } from 'nodemailer';
import { startDeadline } from '../lib/deadline.ts';
import type { MailText } from './layout.ts';

/** How long an attempt may take, ms: less than the shortest wait for the next one. */
const TIMEOUT_MS = 20_000;
/** How long a server has for one answer, ms. */
const ANSWER_MS = 12_000;
/** The most that a server may answer at once, bytes. */
const ANSWER_BYTES = 64 * 1024;
/** The ports where `SMTP_URL` names none. */
const PORTS = { 'smtp:': 587, 'smtps:': 465 } as const;

/** A mail as it goes to the server. */
export interface OutgoingMail extends MailText {
  readonly to: string;
  /** Makes the `Message-ID`, so that a repetition is the same mail. */
  readonly id: string;
  /** When it was written, epoch ms. */
  readonly date: number;
}

/** What became of an attempt. */
export interface SendResult {
  /** Why it failed, in one sentence without any text of the server. Null if the server has accepted the mail. */
  readonly problem: string | null;
  /** Whether another attempt at the same mail would fail as well. */
  readonly isFinal: boolean;
}

/** Sends mails. */
export interface MailSender {
  /** Makes one attempt. Never throws. An aborted signal ends it. */
  send(mail: OutgoingMail, signal?: AbortSignal): Promise<SendResult>;
}

interface SmtpFailure {
  readonly code?: unknown;
  readonly command?: unknown;
  readonly responseCode?: unknown;
}

/** The problems of the connection by their codes; of nodemailer and of the system. */
const PROBLEMS: Readonly<Record<string, string>> = {
  EDNS: 'The mail server was not found.',
  ENOTFOUND: 'The mail server was not found.',
  ECONNREFUSED: 'The mail server refused the connection.',
  ECONNECTION: 'The mail server closed the connection.',
  ECONNRESET: 'The mail server closed the connection.',
  ETIMEDOUT: 'The mail server did not answer in time.',
  EABORT: 'The mail server did not answer in time.',
  ESOCKET: 'The connection to the mail server failed. Check its address, port and certificate.',
  ETLS: 'The mail server offers no encrypted connection that can be trusted.',
  EAUTH: 'The mail server refused the user or the password of SMTP_URL.',
  ENOAUTH: 'The mail server refused the user or the password of SMTP_URL.',
  EPROTOCOL: 'The mail server answered something that is not SMTP.',
};

/**
 * Returns what an error of an attempt means. Only a 5xx about the recipient or the mail itself is final: one about the sender or the
 * password is repaired by the operator, and the mail then goes out.
 */
function resultOf(error: unknown): SendResult {
  const { code, command, responseCode } = error as SmtpFailure;
  if (typeof responseCode === 'number' && (code === 'EENVELOPE' || code === 'EMESSAGE')) {
    const isFinal =
      responseCode >= 500 && responseCode < 600 && (command === 'RCPT TO' || command === 'DATA');
    const what =
      command === 'RCPT TO'
        ? 'the recipient'
        : command === 'MAIL FROM'
          ? 'the sender, MAIL_FROM'
          : 'the mail';
    const later = responseCode >= 400 && responseCode < 500 ? ' for now' : '';
    return { problem: `The mail server refused ${what}${later} (${responseCode}).`, isFinal };
  }
  const known = [systemCode(error), code].find((name) => typeof name === 'string' && name in PROBLEMS);
  const problem = PROBLEMS[String(known)] ?? 'The attempt to send the mail failed.';
  return { problem, isFinal: false };
}

/** Returns the name of a system's error, which nodemailer replaces by its own. Null without one. */
function systemCode(error: unknown): string | null {
  const { errno, errors } = error as { readonly errno?: unknown; readonly errors?: unknown };
  // Several addresses failed, each with its own error.
  if (Array.isArray(errors) && errors.length > 0) return systemCode(errors[0]);
  return typeof errno === 'number' && errno < 0 ? getSystemErrorName(errno) : null;
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Returns the address of a sender that may have a name before it. */
function addressOf(from: string): string {
  return /<([^<>]+)>$/.exec(from)?.[1] ?? from;
}

/** Creates a sender of mails. Each attempt has a connection of its own. */
export function createMailSender({
  smtpUrl,
  from,
  timeoutMs = TIMEOUT_MS,
}: {
  readonly smtpUrl: string;
  readonly from: string;
  readonly timeoutMs?: number;
}): MailSender {
  const { protocol, hostname, port, username, password } = new URL(smtpUrl);
  const isTls = protocol.toLowerCase() === 'smtps:';
  const hasPassword = username !== '';
  const transport = createTransport({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? PORTS[isTls ? 'smtps:' : 'smtp:'] : Number(port),
    secure: isTls,
    // A password never crosses a network in the clear.
    requireTLS: !isTls && hasPassword && !LOOPBACK.test(hostname),
    connectionTimeout: ANSWER_MS,
    greetingTimeout: ANSWER_MS,
    socketTimeout: ANSWER_MS,
    dnsTimeout: ANSWER_MS,
    socketCloseTimeout: 0,
    maxResponseSize: ANSWER_BYTES,
    allowInternalNetworkInterfaces: true,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(hasPassword
      ? { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }
      : {}),
  });
  const domain = addressOf(from).split('@').at(-1) ?? 'localhost';
  return {
    send: async ({ to, id, date, subject, text, html }, signal) => {
      const deadline = startDeadline(timeoutMs, signal);
      try {
        await transport.sendMail({
          from,
          to: { name: '', address: to },
          subject,
          text,
          html,
          date: new Date(date),
          messageId: `<${id}@${domain}>`,
          // Tells programs that answer mails, such as those of an absence, not to answer this one.
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: deadline.signal,
        });
        return { problem: null, isFinal: false };
      } catch (error) {
        return resultOf(error);
      } finally {
        deadline.end();
      }
    },
  };
}
