import { describe, expect, test } from '@jest/globals';
import type { MailFacts } from '../../src/domain/email.ts';
import type { Payee } from '../../src/domain/payee.ts';
import { writeMail } from '../../src/mail/messages.ts';
import { changeText } from '../../src/mail/notifications.ts';

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
const CODE: Extract<MailFacts, { readonly kind: 'payee_code' }> = {
  ...READER,
  kind: 'payee_code',
  payee: { method: 'paypal', recipient: { email: 'carol@mail.example' } },
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

const PASSKEY: Extract<MailFacts, { readonly kind: 'passkey_added' }> = {
  ...READER,
  kind: 'passkey_added',
  passkeyName: 'Laptop',
  addedAt: Date.UTC(2026, 10, 26, 14, 5),
  raises: true,
  isRevoked: false,
  pageUrl: 'https://partners.example.com/console/access',
};

const FORMER: MailFacts = { ...READER, kind: 'address_changed' };

type ToCreator = Extract<MailFacts, { readonly readerName: string }>;
const ALL = [INVITATION, PAYEE, CODE, SENT, FORMER, PASSKEY] as readonly ToCreator[];

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
    expect(text).toContain('How: PayPal\nTo: carol@mail.example\n');
    expect(text).toContain('\n    K7QM-2XPD\n');
    expect(html).toContain('>K7QM-2XPD<');
    expect(text).toContain('until 26 November 2026, 14:20 UTC');
  });

  test('a mail about a passkey has its name, what it can do, and what to do about one of somebody else', () => {
    const { subject, text, html } = writeMail(PASSKEY);
    expect(subject).toBe('A passkey was added to your access to Lantern Notes');
    expect(text).toContain('as you, and lets the browser pay if your role may:');
    expect(text).toContain('Name: Laptop\nAdded: 26 November 2026, 14:05 UTC\n');
    expect(text).toContain('If not, revoke it');
    expect(html).toContain('href="https://partners.example.com/console/access"');
    const { text: other } = writeMail({ ...PASSKEY, raises: false, isRevoked: true, passkeyName: '<b>' });
    expect(other).toContain('as you:');
    expect(other).toContain('Now: Revoked');
    expect(writeMail({ ...PASSKEY, passkeyName: '<b>' }).html).toContain('&lt;b&gt;');
  });

  // @promise email-code-payee
  test.each<[string, Payee, string, Payee]>([
    [
      'an address',
      CODE.payee,
      'carol@mail.example',
      { method: 'paypal', recipient: { email: 'crook@mail.example' } },
    ],
    [
      'a receiver at Wise',
      { method: 'wise', recipient: { email: 'c@mail.example', name: 'Carol Ash', receiverType: 'PERSON' } },
      'Name: Carol Ash\nReceiver: A person',
      { method: 'wise', recipient: { email: 'c@mail.example', name: 'Carl Ash', receiverType: 'PERSON' } },
    ],
    [
      'the type of a receiver',
      { method: 'wise', recipient: { email: 'c@mail.example', name: 'Carol Ash', receiverType: 'PERSON' } },
      'To: c@mail.example',
      {
        method: 'wise',
        recipient: { email: 'c@mail.example', name: 'Carol Ash', receiverType: 'INSTITUTION' },
      },
    ],
    [
      'a reference',
      { method: 'other', recipient: { name: 'Carol', reference: 'Account 1234' } },
      'To: Carol\nReference: Account 1234',
      { method: 'other', recipient: { name: 'Carol', reference: 'Account 1235' } },
    ],
  ])('the mail with a code shows %s to the last character', (_what, payee, shown, other) => {
    const { text, html } = writeMail({ ...CODE, payee });
    expect(text).toContain(shown);
    const changed = writeMail({ ...CODE, payee: other });
    expect([changed.text === text, changed.html === html]).toEqual([false, false]);
  });

  test('a recipient in the mail with a code is never markup or a further line', () => {
    const reference = `<img src=x>\r\nTo: carol@mail.example\u202e`;
    const { text, html } = writeMail({
      ...CODE,
      payee: { method: 'other', recipient: { name: '<b>', reference } },
    });
    expect(text).toContain('To: <b>\nReference: <img src=x> To: carol@mail.example\n');
    expect(text).not.toContain('\u202e');
    expect(html).not.toMatch(/<(img|b)>?[ >]/);
  });

  test('a payout that was sent has its amount, its dates and the link to the page', () => {
    const { subject, text } = writeMail(SENT);
    expect(subject).toBe('Lantern Notes has sent your payout of $123,456.05');
    expect(text).toContain('Payout of: 1 November 2026, 08:00 UTC\nSent: 2 November 2026, 09:30 UTC');
    expect(text).toContain(PAGE);
  });
});

const TO = Date.UTC(2026, 10, 23);
const SUMS = { revenueCents: 0, commissionCents: 0, paidUsers: 0, installs: 0, clicks: 0, newCreators: 0 };
const CONSOLE = 'https://partners.example.com/console/apps/app_1/alerts';
const SILENT = {
  rule: 'provider_silent' as const,
  subject: 'Stripe',
  facts: { lastAcceptedAt: TO - 9 * 3_600_000 },
  openedAt: TO,
};
const REPORT = {
  kind: 'weekly_report' as const,
  senderName: 'Lantern Notes',
  from: TO - 7 * 86_400_000,
  to: TO,
  week: { ...SUMS, revenueCents: 1_234_567, clicks: 3 },
  before: { ...SUMS, revenueCents: 1_100_000 },
  areAllCompared: true,
  topCreators: [{ name: 'Ada Lovelace', revenueCents: 512_300, commissionCents: 102_460 }],
  due: { payees: 2, payableCents: 345_678 },
  openAlerts: [SILENT],
  hasMoreAlerts: false,
  pageUrl: CONSOLE,
};
const OPENED = {
  ...SILENT,
  kind: 'alert_opened' as const,
  senderName: 'Lantern Notes',
  closedAt: null,
  isLast: false,
  pageUrl: CONSOLE,
};
const DRAFTED = {
  kind: 'run_drafted' as const,
  senderName: 'Lantern Notes',
  month: '2026-11',
  itemCount: 1,
  totalCents: 5_000,
  excludedCount: 3,
  expiresAt: TO,
  pageUrl: CONSOLE,
};

describe('the text of mails to the people who run an app', () => {
  test.each<MailFacts>([OPENED, { ...OPENED, kind: 'alert_closed', closedAt: TO + 1 }, DRAFTED, REPORT])(
    'a mail of the kind $kind greets nobody by a name, and says where the address can be removed',
    (facts) => {
      const name = `<b onload="x">\r\nBcc: all@example.com\u202e'&`;
      const { subject, text, html } = writeMail({ ...facts, senderName: name });
      expect(subject).not.toMatch(/[\r\n\u202e]/);
      expect(text).not.toMatch(/^Bcc:|undefined|NaN|Hello/m);
      expect(html).not.toMatch(/<b onload|undefined|NaN|<(script|img|link|iframe)/);
      expect(text).toContain('can be removed');
      expect(text).toContain(CONSOLE);
    },
  );

  test('a report shows the week beside the one before, and names of creators are never markup', () => {
    const named = { ...REPORT.topCreators[0], name: '<i>Ada</i>', revenueCents: 100, commissionCents: 20 };
    const { text, html } = writeMail({ ...REPORT, areAllCompared: false, topCreators: [named] });
    expect(text).toContain('One who earned early in the week may be missing.');
    expect(writeMail(REPORT).text).not.toContain('may be missing');
    expect(text).toContain('The week from 16 November to 22 November 2026 (UTC)');
    expect(text).toMatch(/^Revenue +\$12,345\.67 +\$11,000\.00 +\+12 %$/m);
    expect(text).toMatch(/^Clicks +3 +0 +new$/m);
    expect(text).toMatch(/^<i>Ada<\/i> +\$1\.00 +\$0\.20$/m);
    expect(html).toContain('<bdi>&lt;i&gt;Ada&lt;/i&gt;</bdi>');
    expect(text).toContain('No webhook of Stripe was accepted for 9 hours.');
    expect(text).toContain('$3,456.78 (USD) to 2 creators.');
  });

  test('a report of a week without anything says so', () => {
    const { text } = writeMail({
      ...REPORT,
      week: SUMS,
      before: SUMS,
      topCreators: [],
      due: { payees: 0, payableCents: 0 },
      openAlerts: [],
    });
    for (const part of ['No creator earned a commission.', 'Nothing is due.', 'No alert is open.', 'same'])
      expect(text).toContain(part);
  });

  test.each([
    [100, 100, 'same'],
    [0, 0, 'same'],
    [5, 0, 'new'],
    [0, 5, '\u2212100 %'],
    [-5, 0, ''],
    [1_001, 1_000, '\u00b10 %'],
    [999, 1_000, '\u00b10 %'],
    [300, 100, '+200 %'],
  ])('%i after %i is shown as %s', (now, before, shown) => {
    expect(changeText(now, before)).toBe(shown);
  });
});
