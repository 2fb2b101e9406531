import { describe, expect, test } from '@jest/globals';
import type { MailFacts } from '../../src/domain/email.ts';
import { writeMail } from '../../src/mail/messages.ts';

const URL = 'https://partners.example.com/console/creator/#token=abc';
const INVITATION: MailFacts = {
  kind: 'invitation',
  senderName: 'Lantern Notes',
  readerName: 'Ada Lovelace',
  url: URL,
  expiresAt: Date.UTC(2026, 10, 26, 14, 5),
  uses: 5,
};

const READER = { senderName: 'Lantern Notes', readerName: 'Ada Lovelace' };
const PAGE = 'https://partners.example.com/console/creator/';
const PAYEE: MailFacts = {
  ...READER,
  kind: 'payee_changed',
  method: 'wise',
  maskedRecipient: 'a•••@example.com',
  countsFrom: Date.UTC(2026, 10, 29, 9),
  isOwn: false,
  pageUrl: PAGE,
};
const CODE: MailFacts = {
  ...READER,
  kind: 'payee_code',
  method: 'paypal',
  maskedRecipient: 'a•••@example.com',
  code: 'K7QM-2XPD',
  expiresAt: Date.UTC(2026, 10, 26, 14, 20),
};
const SENT: MailFacts = {
  ...READER,
  kind: 'payout_sent',
  amountCents: 123_456_05,
  createdAt: Date.UTC(2026, 10, 1, 8),
  sentAt: Date.UTC(2026, 10, 2, 9, 30),
  pageUrl: PAGE,
};

const ALL: readonly MailFacts[] = [INVITATION, PAYEE, CODE, SENT];

describe('the text of mails', () => {
  test.each(ALL)('a mail of the kind $kind names the app, greets the creator and has both forms', (facts) => {
    const { subject, text, html } = writeMail(facts);
    expect(subject).toContain('Lantern Notes');
    for (const form of [text, html]) {
      expect(form).toContain('Hello ');
      expect(form).toContain('Ada Lovelace');
      expect(form).toContain('Lantern Notes');
    }
    expect(html).not.toMatch(/<(script|img|link|iframe)/);
  });

  test.each(ALL)(
    'names in a mail of the kind $kind are never markup, further lines or changed directions',
    (facts) => {
      const name = `<b onload="x">\r\nBcc: all@example.com\u202e'&`;
      const { subject, text, html } = writeMail({ ...facts, senderName: name, readerName: name });
      expect(subject).not.toMatch(/[\r\n\u202e]/);
      expect(text).not.toMatch(/^Bcc:/m);
      expect(text + html).not.toContain('\u202e');
      expect(html).not.toContain('<b onload');
      expect(html).toContain('&lt;b onload=&quot;x&quot;&gt; Bcc: all@example.com &#39;&amp;');
    },
  );

  test('a name that reads from right to left keeps its direction to itself', () => {
    const { text, html } = writeMail({ ...INVITATION, readerName: 'مريم (1)' });
    expect(text).toContain('Hello \u2068مريم (1)\u2069,');
    expect(html).toContain('Hello <bdi>مريم (1)</bdi>,');
  });

  test('a long name is shortened in the subject, between characters, and whole in the text', () => {
    const appName = '👩‍👩‍👧'.repeat(100);
    const { subject, text } = writeMail({ ...INVITATION, senderName: appName });
    expect(subject).toBe(`Your page at ${'👩‍👩‍👧'.repeat(59)}…`);
    expect(text).toContain(appName);
  });

  test('an invitation has the link, until when it works, and a warning', () => {
    const { text, html } = writeMail(INVITATION);
    expect(text).toContain(`Open your page:\n${URL}\n`);
    expect(html).toContain(`href="${URL}"`);
    expect(text).toContain('until 26 November 2026, 14:05 UTC, in up to 5 browsers');
  });

  test('a changed payee says who set it, from when it counts, the masked recipient, and what to do', () => {
    const { text } = writeMail(PAYEE);
    expect(text).toContain('Lantern Notes has set where your payouts go:');
    expect(text).toContain('How: Wise\nTo: a•••@example.com\nCounts from: 29 November 2026, 09:00 UTC');
    expect(text).toContain(
      'If this was not you, and you have not agreed on it with Lantern Notes, tell them',
    );
    expect(writeMail({ ...PAYEE, isOwn: true }).text).toContain('You have set where your payouts go:');
    const none = writeMail({ ...PAYEE, method: 'none', maskedRecipient: null }).text;
    expect(none).toContain('Lantern Notes has removed where your payouts go');
    expect(none).not.toContain('Counts from');
  });

  test('a code stands alone beside the recipient that it counts for, and is not in the subject', () => {
    const { subject, text, html } = writeMail(CODE);
    expect(subject).not.toContain('K7QM');
    expect(text).toContain('How: PayPal\nTo: a•••@example.com\n');
    expect(text).toContain('\n    K7QM-2XPD\n');
    expect(html).toContain('>K7QM-2XPD<');
    expect(text).toContain('until 26 November 2026, 14:20 UTC');
  });

  test('a payout that was sent has its amount, its dates and the link to the page', () => {
    const { subject, text } = writeMail(SENT);
    expect(subject).toBe('Lantern Notes has sent your payout of $123,456.05');
    expect(text).toContain('Payout of: 1 November 2026, 08:00 UTC\nSent: 2 November 2026, 09:30 UTC');
    expect(text).toContain(PAGE);
  });
});
