import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createMailSender } from '../../src/mail/smtp.ts';
import { startMailServer } from '../support/mail-server.ts';
import type { MailServer } from '../support/mail-server.ts';

const MAIL = {
  id: 'eml_01kbf2z4x8e0rvq1n3m5t7w9yc',
  to: 'ada@example.com',
  date: Date.UTC(2026, 10, 26, 14, 5, 7),
  subject: 'Your page at Læntern – 光',
  text: 'Hello Ada,\n\n.a line that begins with a dot\n',
  html: '<p>Hello Ada – 光</p>',
};
const FROM = 'Lantern <partners@lantern.example>';

let server: MailServer;
beforeEach(async () => {
  server = await startMailServer();
});
afterEach(async () => {
  await server.close();
});

const send = async (smtpUrl = server.url, timeoutMs = 5_000) =>
  await createMailSender({ smtpUrl, from: FROM, timeoutMs }).send(MAIL);

describe('the delivery of mails to a mail server', () => {
  // @promise email-message-id
  test('a mail arrives as it was written, and a repetition has the same Message-ID and date', async () => {
    expect(await send()).toEqual({ problem: null, isFinal: false });
    expect(await send()).toEqual({ problem: null, isFinal: false });
    const [first, second] = server.received;
    expect(first).toMatchObject({
      recipients: [MAIL.to],
      subject: MAIL.subject,
      html: expect.stringContaining('Hello Ada – 光'),
      text: expect.stringContaining('\n.a line that begins with a dot'),
      messageId: `<${MAIL.id}@lantern.example>`,
      date: new Date(MAIL.date),
    });
    expect(first?.from?.text).toBe('"Lantern" <partners@lantern.example>');
    expect(first?.headers.get('auto-submitted')).toBe('auto-generated');
    expect(second?.messageId).toBe(first?.messageId);
    expect(second?.date).toEqual(first?.date);
  });

  test('a comma in an address adds no recipient', async () => {
    await createMailSender({ smtpUrl: server.url, from: FROM }).send({
      ...MAIL,
      to: 'a@example.com, b@example.com',
    });
    expect(server.received.flatMap(({ recipients }) => recipients)).not.toContain('b@example.com');
  });

  test.each([
    [550, true, 'The mail server refused the recipient (550).'],
    [450, false, 'The mail server refused the recipient for now (450).'],
  ])('a recipient that is refused with %d: final is %s', async (code, isFinal, problem) => {
    server.refusesRecipients = code;
    expect(await send()).toEqual({ problem, isFinal });
  });

  test.each([
    [554, true, 'The mail server refused the mail (554).'],
    [451, false, 'The mail server refused the mail for now (451).'],
  ])('a mail that is refused with %d: final is %s', async (code, isFinal, problem) => {
    server.refusesMails = code;
    expect(await send()).toEqual({ problem, isFinal });
  });

  test('a password is sent to the server, and a wrong one is not final, since the operator repairs it', async () => {
    const login = { user: 'mailer', password: 'p@ss/word%' };
    const guarded = await startMailServer(login);
    try {
      expect(await send(guarded.url)).toEqual({ problem: null, isFinal: false });
      expect(await send(`smtp://mailer:wrong@127.0.0.1:${guarded.port}`)).toEqual({
        problem: 'The mail server refused the user or the password of SMTP_URL.',
        isFinal: false,
      });
    } finally {
      await guarded.close();
    }
  });

  test('a password is never sent over a network without encryption', async () => {
    // A name for this machine that the service does not take for it.
    expect(await send(`smtp://mailer:secret@[::ffff:127.0.0.1]:${server.port}`)).toEqual({
      problem: 'The mail server offers no encrypted connection that can be trusted.',
      isFinal: false,
    });
    expect(server.received).toEqual([]);
  });

  test('a server that is away is not final', async () => {
    const { url } = server;
    await server.close();
    expect(await send(url)).toEqual({ problem: 'The mail server refused the connection.', isFinal: false });
    server = await startMailServer();
  });
});

describe('a server that does not behave', () => {
  const sockets = new Set<Socket>();
  let bad: Server;
  const listen = async (onConnection: (socket: Socket) => void): Promise<string> => {
    bad = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      onConnection(socket);
    });
    await new Promise<void>((resolve) => {
      bad.listen(0, '127.0.0.1', resolve);
    });
    return `smtp://127.0.0.1:${(bad.address() as AddressInfo).port}`;
  };
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => {
      bad.close(resolve);
    });
  });

  test.each([
    ['says nothing', () => {}],
    [
      'sends a byte from time to time',
      (socket: Socket) => {
        const timer = setInterval(() => socket.write('2'), 50);
        socket.on('close', () => clearInterval(timer));
      },
    ],
  ])('a server that %s is given up on in time', async (_name, behave) => {
    const url = await listen(behave);
    const startedAt = performance.now();
    expect(await send(url, 500)).toEqual({
      problem: 'The mail server did not answer in time.',
      isFinal: false,
    });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  test('a server that speaks another protocol gets nothing', async () => {
    const url = await listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const { problem, isFinal } = await send(url);
    expect(problem).toMatch(/^The mail server .*\.$/);
    expect(isFinal).toBe(false);
  });
});
