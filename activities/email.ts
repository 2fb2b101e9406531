import { asyncLocalStorage } from '@temporalio/activity';
import type { Logger } from 'pino';
import type { MailSettings } from '../src/config/config.ts';
import { SecretUnreadable } from '../src/config/secret-box.ts';
import type { SecretBox } from '../src/config/secret-box.ts';
import { readMailFacts } from '../src/db/email-facts.ts';
import { beginEmailAttempt, endEmail, loadEmail, noteEmailProblem } from '../src/db/emails.ts';
import type { EmailToSend } from '../src/db/emails.ts';
import type { Sql } from '../src/db/sql.ts';
import { EMAIL_RETRY_MS } from '../src/domain/email.ts';
import type { EmailResult, EmailStatus } from '../src/domain/email.ts';
import { titleOf } from '../src/providers/index.ts';
import { writeMail } from '../src/mail/messages.ts';
import { createMailSender } from '../src/mail/smtp.ts';
import { throwIfCancelled } from './cancellation.ts';
import { MailConnections } from './mail-connections.ts';
import { parseId } from './parse-id.ts';

export interface EmailActivityDeps {
  readonly sql: Sql;
  readonly secretBox: SecretBox;
  readonly logger: Logger;
  /** The mail server and the sender; null or absent: no mail is sent. */
  readonly mail?: MailSettings | null | undefined;
  /** The waits between attempts, ms; those of the domain by default. */
  readonly emailRetryMs?: readonly number[] | undefined;
  readonly observeEmail?: ((result: EmailResult) => void) | undefined;
}

/** How far a mail is. `retry`: the attempt failed, and another one follows. `later`: no attempt was made, since it is too early. */
export interface EmailProgress {
  readonly state: Exclude<EmailStatus, 'queued'> | 'retry' | 'later';
  /** The attempts that were begun. */
  readonly attempts: number;
  /** Why the mail was not sent, in one sentence without an address. Null without a problem. */
  readonly problem: string | null;
  /** How long to wait before the next attempt, ms. */
  readonly waitMs: number;
}

export interface EmailActivities {
  sendEmail(emailId: string): Promise<EmailProgress>;
}

/** Connections of a process to the mail server at a time: those of mails whose reader waits are their own. */
const IN_FLIGHT = { urgent: 2, others: 4 };
const KEY_MISSING = 'SECRETS_KEY lacks the key that the mail needs.';
/** The shortest wait of a workflow, ms: another process makes the attempt that is due. */
const SHORTEST_WAIT_MS = 500;

/** Creates the activity of the email workflow. */
export function createEmailActivities({
  sql,
  secretBox,
  logger,
  mail = null,
  emailRetryMs = EMAIL_RETRY_MS,
  observeEmail,
}: EmailActivityDeps): EmailActivities {
  const sender = mail === null ? null : createMailSender(mail);
  const connections = {
    urgent: new MailConnections(IN_FLIGHT.urgent),
    others: new MailConnections(IN_FLIGHT.others),
  };

  /** Ends a mail without an attempt. */
  async function end(
    { id, attempts }: EmailToSend,
    status: 'failed' | 'skipped',
    problem: string,
  ): Promise<EmailProgress> {
    await endEmail(sql, id, status, problem);
    return { state: status, attempts, problem, waitMs: 0 };
  }

  /**
   * Returns the text of a mail, or why there is none to send. Throws `SecretUnreadable`, after it has noted why the mail waits, if this
   * process lacks a key that the mail needs.
   */
  async function write(email: EmailToSend, publicUrl: string) {
    try {
      const facts = await readMailFacts({ sql, secretBox, publicUrl, titleOf }, email);
      return typeof facts === 'string' ? facts : writeMail(facts);
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      if (error.isLost) return KEY_MISSING;
      await noteEmailProblem(sql, email.id, KEY_MISSING);
      throw error;
    }
  }

  /** Makes the next attempt at a mail, unless another process makes it. */
  async function attempt(email: EmailToSend, address: string): Promise<EmailProgress> {
    if (sender === null || mail === null) return await end(email, 'skipped', 'No mail server is configured.');
    const text = await write(email, mail.publicUrl);
    if (typeof text === 'string') return await end(email, 'failed', text);
    const isLast = email.attempts >= emailRetryMs.length;
    const waitMs = emailRetryMs[email.attempts] ?? emailRetryMs.at(-1) ?? 0;
    if (!(await beginEmailAttempt(sql, email.id, { attempts: email.attempts, waitMs }))) {
      return {
        state: 'later',
        attempts: email.attempts,
        problem: email.lastProblem,
        waitMs: SHORTEST_WAIT_MS,
      };
    }
    const attempts = email.attempts + 1;
    const { id, createdAt: date } = email;
    const signal = asyncLocalStorage.getStore()?.cancellationSignal;
    const { problem, isFinal } = await sender.send({ ...text, to: address, id, date }, signal);
    if (problem === null) {
      await endEmail(sql, id, 'sent', null);
      observeEmail?.('sent');
      return { state: 'sent', attempts, problem, waitMs: 0 };
    }
    // A shutdown has cut the attempt off, which says nothing about the server.
    throwIfCancelled();
    if (isFinal || isLast) {
      logger.warn({ emailId: id, kind: email.kind, attempts, problem, msg: 'a mail was not sent' });
      observeEmail?.('failed');
      return await end({ ...email, attempts }, 'failed', problem);
    }
    await noteEmailProblem(sql, id, problem);
    observeEmail?.('retried');
    return { state: 'retry', attempts, problem, waitMs };
  }

  return {
    /**
     * Makes the next attempt at a mail if it is due. A failed attempt is a result, no failure: the database counts an attempt before it is
     * made, and holds when the next one is due.
     */
    sendEmail: async (argument) => {
      const id = parseId('email', argument);
      const email = await loadEmail(sql, id);
      if (email === undefined)
        return { state: 'failed', attempts: 0, problem: 'The mail does not exist.', waitMs: 0 };
      const { status, attempts, lastProblem: problem, dueInMs, address } = email;
      if (status !== 'queued' || dueInMs === null) {
        return { state: status === 'queued' ? 'failed' : status, attempts, problem, waitMs: 0 };
      }
      if (address === null) {
        const reason =
          email.affiliateId !== null
            ? 'The creator has no e-mail address.'
            : email.appId === null
              ? 'The member was removed.'
              : 'The settings of the app do not have the address any more.';
        return await end(email, 'skipped', reason);
      }
      if (email.isExpired)
        return await end(email, 'failed', problem ?? 'What it contained is not valid any more.');
      if (dueInMs > 0) {
        return { state: 'later', attempts, problem, waitMs: Math.max(SHORTEST_WAIT_MS, dueInMs) };
      }
      if (attempts > emailRetryMs.length) {
        return await end(
          email,
          'failed',
          problem ?? 'The last attempt was interrupted: the server may have the mail.',
        );
      }
      const available = connections[email.isUrgent ? 'urgent' : 'others'];
      const busyMs = available.take(email.accountId);
      if (busyMs > 0) return { state: 'later', attempts, problem, waitMs: busyMs };
      try {
        return await attempt(email, address);
      } finally {
        available.release(email.accountId);
      }
    },
  };
}
