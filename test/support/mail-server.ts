import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { simpleParser } from 'mailparser';
import type { ParsedMail } from 'mailparser';
import { SMTPServer } from 'smtp-server';
import type { SMTPServerSession } from 'smtp-server';

/** A mail as its server got it. */
export interface ReceivedMail extends ParsedMail {
  /** The recipients of its envelope. */
  readonly recipients: readonly string[];
  /** When its text had arrived, epoch ms. */
  readonly receivedAt: number;
}

/** A mail server on the loopback address. */
export interface MailServer {
  readonly url: string;
  readonly port: number;
  readonly received: ReceivedMail[];
  /** The code with which it refuses each recipient, or null. */
  refusesRecipients: number | null;
  /** The code with which it refuses each mail after its text, or null. */
  refusesMails: number | null;
  /** How long it keeps a mail before it answers, ms. */
  delayMs: number;
  readonly close: () => Promise<void>;
}

export interface MailServerOptions {
  readonly port?: number;
  /** The user and password that it asks for. */
  readonly user?: string;
  readonly password?: string;
}

function refusal(code: number): Error {
  // The text of a server names the address.
  return Object.assign(new Error('5.1.1 <ada@example.com> is unknown here'), { responseCode: code });
}

/** Starts a mail server without encryption, on a free port unless one is given. */
export async function startMailServer({
  port = 0,
  user,
  password,
}: MailServerOptions = {}): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  /** Keeps a mail. Returns why the server refuses it, or null. */
  const receive = async (stream: Readable, session: SMTPServerSession): Promise<Error | null> => {
    const mail = await simpleParser(stream);
    if (server.refusesMails !== null) return refusal(server.refusesMails);
    received.push({
      ...mail,
      recipients: session.envelope.rcptTo.map(({ address }) => address),
      receivedAt: Date.now(),
    });
    await sleep(server.delayMs);
    return null;
  };
  const smtp = new SMTPServer({
    authOptional: user === undefined,
    disabledCommands: user === undefined ? ['STARTTLS', 'AUTH'] : ['STARTTLS'],
    allowInsecureAuth: true,
    logger: false,
    onAuth: (auth, _session, callback) => {
      if (auth.username === user && auth.password === password) callback(null, { user });
      else callback(refusal(535));
    },
    onRcptTo: (_address, _session, callback) => {
      callback(server.refusesRecipients === null ? null : refusal(server.refusesRecipients));
    },
    onData: (stream, session: SMTPServerSession, callback) => {
      const answer = (error: Error | null) => callback(error);
      void receive(stream, session).then(answer, answer);
    },
  });
  // A client that was killed in the middle is no failure of the server.
  smtp.on('error', () => {});
  await new Promise<void>((resolve, reject) => {
    smtp.server.once('error', reject);
    smtp.listen(port, '127.0.0.1', resolve);
  });
  const { port: used } = smtp.server.address() as AddressInfo;
  const credentials = user === undefined ? '' : `${user}:${encodeURIComponent(password ?? '')}@`;
  const server: MailServer = {
    url: `smtp://${credentials}127.0.0.1:${used}`,
    port: used,
    received,
    refusesRecipients: null,
    refusesMails: null,
    delayMs: 0,
    close: async () => {
      await new Promise<void>((resolve) => {
        smtp.close(resolve);
      });
    },
  };
  return server;
}
