import type { MailFacts } from '../domain/email.ts';
import { layOut } from './layout.ts';
import type { Block, Foreign, MailText, Part } from './layout.ts';

const foreign = (text: string): Foreign => ({ foreign: text });
const paragraph = (...parts: Part[]): Block => ({ type: 'paragraph', parts });

const DATE = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
});

/** Returns an instant for people, such as `26 November 2026, 14:05 UTC`. */
function dateText(at: number): string {
  return `${DATE.format(at).replace(' at ', ', ')} UTC`;
}

/** Returns the text of a mail. */
export function writeMail(facts: MailFacts): MailText {
  const app = foreign(facts.appName);
  const hello = paragraph('Hello ', foreign(facts.creatorName), ',');
  const becauseCreator: readonly Part[] = [
    'You get this mail because ',
    app,
    ' has your address as that of one of its creators. If you do not know ',
    app,
    ', ignore it.',
  ];
  switch (facts.kind) {
    case 'invitation':
      return layOut(facts.appName, {
        subject: ['Your page at ', app],
        blocks: [
          hello,
          paragraph(
            app,
            ' has a page for you. It shows your links and codes, what you have earned, what is still held, and your payouts with their statements.',
          ),
          { type: 'button', label: 'Open your page', url: facts.url },
          paragraph(
            `The link works until ${dateText(facts.expiresAt)}, in up to ${facts.uses} browsers. Keep it to yourself: whoever opens it sees your earnings.`,
          ),
        ],
        footer: becauseCreator,
      });
  }
}
