import { describe, expect, test } from '@jest/globals';
import type { MailFacts } from '../../src/domain/email.ts';
import { writeMail } from '../../src/mail/messages.ts';

const URL = 'https://partners.example.com/console/creator/#token=abc';
const INVITATION: MailFacts = {
  kind: 'invitation',
  appName: 'Lantern Notes',
  creatorName: 'Ada Lovelace',
  url: URL,
  expiresAt: Date.UTC(2026, 10, 26, 14, 5),
  uses: 5,
};

const ALL: readonly MailFacts[] = [INVITATION];

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
      const { subject, text, html } = writeMail({ ...facts, appName: name, creatorName: name });
      expect(subject).not.toMatch(/[\r\n\u202e]/);
      expect(text).not.toMatch(/^Bcc:/m);
      expect(text + html).not.toContain('\u202e');
      expect(html).not.toContain('<b onload');
      expect(html).toContain('&lt;b onload=&quot;x&quot;&gt; Bcc: all@example.com &#39;&amp;');
    },
  );

  test('a name that reads from right to left keeps its direction to itself', () => {
    const { text, html } = writeMail({ ...INVITATION, creatorName: 'مريم (1)' });
    expect(text).toContain('Hello \u2068مريم (1)\u2069,');
    expect(html).toContain('Hello <bdi>مريم (1)</bdi>,');
  });

  test('a long name is shortened in the subject, between characters, and whole in the text', () => {
    const appName = '👩‍👩‍👧'.repeat(100);
    const { subject, text } = writeMail({ ...INVITATION, appName });
    expect(subject).toBe(`Your page at ${'👩‍👩‍👧'.repeat(59)}…`);
    expect(text).toContain(appName);
  });

  test('an invitation has the link, until when it works, and a warning', () => {
    const { text, html } = writeMail(INVITATION);
    expect(text).toContain(`Open your page:\n${URL}\n`);
    expect(html).toContain(`href="${URL}"`);
    expect(text).toContain('until 26 November 2026, 14:05 UTC, in up to 5 browsers');
  });
});
