import type { EmailKind, MailFacts } from '../domain/email.ts';
import type { PayeeMethod } from '../domain/payee.ts';
import { layOut } from './layout.ts';
import type { Block, Foreign, MailContent, MailText, Part } from './layout.ts';

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

const METHODS: Readonly<Record<PayeeMethod, string>> = {
  paypal: 'PayPal',
  wise: 'Wise',
  other: 'Another way, as agreed',
  none: 'Nobody',
};

/** Says how money is sent, and to whom. */
function payeeFacts({
  method,
  maskedRecipient,
}: Pick<FactsOf<'payee_code'>, 'method' | 'maskedRecipient'>): [label: string, value: Part][] {
  const how: [string, Part] = ['How', METHODS[method]];
  return maskedRecipient === null ? [how] : [how, ['To', foreign(maskedRecipient)]];
}

const pageButton = (url: string): Block => ({ type: 'button', label: 'Open your page', url });

type FactsOf<Kind extends EmailKind> = Extract<MailFacts, { readonly kind: Kind }>;
type Message = Omit<MailContent, 'footer'>;

function invitation({ url, expiresAt, uses }: FactsOf<'invitation'>, app: Foreign): Message {
  return {
    subject: ['Your page at ', app],
    blocks: [
      paragraph(
        app,
        ' has a page for you. It shows your links and codes, what you have earned, what is still held, and your payouts with their statements.',
      ),
      pageButton(url),
      paragraph(
        `The link works until ${dateText(expiresAt)}, in up to ${uses} browsers. Keep it to yourself: anybody who opens it sees your earnings.`,
      ),
    ],
  };
}

function payeeChanged(facts: FactsOf<'payee_changed'>, app: Foreign): Message {
  const who: readonly Part[] = facts.isOwn ? ['You have'] : [app, ' has'];
  const subject = [app, ': where your payouts go has changed'];
  if (facts.method === 'none') {
    return {
      subject,
      blocks: [
        paragraph(
          ...who,
          ' removed where your payouts go. Runs of payouts leave you out until there is a new recipient.',
        ),
        paragraph('If you did not expect this, ask ', app, '.'),
        pageButton(facts.pageUrl),
      ],
    };
  }
  return {
    subject,
    blocks: [
      paragraph(...who, ' set where your payouts go:'),
      { type: 'facts', facts: [...payeeFacts(facts), ['Counts from', dateText(facts.countsFrom)]] },
      paragraph('Until then, runs of payouts leave you out, so that you have time to object.'),
      paragraph(
        'If this was not you, and you have not agreed on it with ',
        app,
        ', tell them before that time, in a way that you know. Do not answer this mail.',
      ),
      pageButton(facts.pageUrl),
    ],
  };
}

function payeeCode(facts: FactsOf<'payee_code'>, app: Foreign): Message {
  return {
    subject: [app, ': your code to change where your payouts go'],
    blocks: [
      paragraph('Somebody who is signed in to your page at ', app, ' wants your payouts to go to:'),
      { type: 'facts', facts: payeeFacts(facts) },
      paragraph(`If it was you, enter this code on the page until ${dateText(facts.expiresAt)}:`),
      { type: 'code', code: facts.code },
      paragraph(
        'It counts for this recipient only. If it was not you, do nothing, and give the code to nobody, also not to ',
        app,
        '. Ask them to sign out all browsers of your page.',
      ),
    ],
  };
}

const MONEY = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });

function payoutSent(facts: FactsOf<'payout_sent'>, app: Foreign): Message {
  const amount = MONEY.format(facts.amountCents / 100);
  return {
    subject: [app, ` has sent your payout of ${amount}`],
    blocks: [
      paragraph(
        app,
        ' has sent the money of a payout. How long it takes to arrive depends on the payment service.',
      ),
      {
        type: 'facts',
        facts: [
          ['Amount', `${amount} (USD)`],
          ['Payout of', dateText(facts.createdAt)],
          ['Sent', dateText(facts.sentAt)],
        ],
      },
      paragraph('Your page has the statement with every commission in it.'),
      pageButton(facts.pageUrl),
    ],
  };
}

type MemberFacts = FactsOf<'member_invitation' | 'member_sign_in'>;

/** What both mails with a link of a member say about it. */
const once = (expiresAt: number): Block =>
  paragraph(
    `The link works once, until ${dateText(expiresAt)}. Keep it to yourself: anybody who opens it is signed in as you.`,
  );

function memberInvitation({ url, expiresAt }: MemberFacts, account: Foreign): Message {
  return {
    subject: [account, ' has invited you to its Tributary console'],
    blocks: [
      paragraph('You are a member of ', account, ' now. Open this link in the browser that you work with:'),
      { type: 'button', label: 'Sign in', url },
      once(expiresAt),
      paragraph('Later, enter this e-mail address on the sign-in page to get another link.'),
    ],
  };
}

function memberSignIn({ url, expiresAt }: MemberFacts, account: Foreign): Message {
  return {
    subject: ['Your link to sign in to ', account],
    blocks: [
      paragraph(
        'Somebody asked for a link with your address. If it was you, open it in the browser in which you work with ',
        account,
        '. If your role may pay, that browser may then pay for 15 minutes.',
      ),
      { type: 'button', label: 'Sign in', url },
      once(expiresAt),
      paragraph('If it was not you, do nothing: without this mail, nobody can use the link.'),
    ],
  };
}

function messageOf(facts: MailFacts, app: Foreign): Message {
  switch (facts.kind) {
    case 'invitation':
      return invitation(facts, app);
    case 'payee_changed':
      return payeeChanged(facts, app);
    case 'payee_code':
      return payeeCode(facts, app);
    case 'payout_sent':
      return payoutSent(facts, app);
    case 'member_invitation':
      return memberInvitation(facts, app);
    case 'member_sign_in':
      return memberSignIn(facts, app);
  }
}

/** Returns why the reader of a mail gets it. */
function footerOf({ kind }: MailFacts, sender: Foreign): readonly Part[] {
  const isMember = kind === 'member_invitation' || kind === 'member_sign_in';
  return isMember
    ? [
        'You get this mail because you are a member of ',
        sender,
        '. If you do not know ',
        sender,
        ', ignore it.',
      ]
    : [
        'You get this mail because ',
        sender,
        ' has your address as that of one of its creators. If you do not know ',
        sender,
        ', ignore it.',
      ];
}

/** Returns the text of a mail. */
export function writeMail(facts: MailFacts): MailText {
  const sender = foreign(facts.senderName);
  const { subject, blocks } = messageOf(facts, sender);
  return layOut(facts.senderName, {
    subject,
    blocks: [paragraph('Hello ', foreign(facts.readerName), ','), ...blocks],
    footer: footerOf(facts, sender),
  });
}
