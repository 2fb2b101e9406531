import type { EmailKind, MailFacts } from '../domain/email.ts';
import type { Payee, PayeeMethod, ReceiverType } from '../domain/payee.ts';
import { layOut } from './layout.ts';
import type { Block, MailText, Part } from './layout.ts';
import { alertClosed, alertOpened, runDrafted, weeklyReport } from './notifications.ts';
import { dateText, foreign, MONEY, paragraph } from './parts.ts';
import type { Foreign, Message } from './parts.ts';

const METHODS: Readonly<Record<PayeeMethod, string>> = {
  paypal: 'PayPal',
  wise: 'Wise',
  other: 'Another way, as agreed',
  none: 'Nobody',
};

/** Says how money is sent, and enough of to whom to recognize it. */
function payeeFacts({
  method,
  maskedRecipient,
}: Pick<FactsOf<'payee_changed'>, 'method' | 'maskedRecipient'>): [label: string, value: Part][] {
  const how: [string, Part] = ['How', METHODS[method]];
  return maskedRecipient === null ? [how] : [how, ['To', foreign(maskedRecipient)]];
}

const RECEIVERS: Readonly<Record<ReceiverType, string>> = { PERSON: 'A person', INSTITUTION: 'A company' };

/** Says how money is sent, and to whom, to the last character. */
function wholePayeeFacts(payee: Payee): [label: string, value: Part][] {
  const how: [string, Part] = ['How', METHODS[payee.method]];
  switch (payee.method) {
    case 'paypal':
      return [how, ['To', foreign(payee.recipient.email)]];
    case 'wise': {
      const { email, name, receiverType } = payee.recipient;
      return [how, ['To', foreign(email)], ['Name', foreign(name)], ['Receiver', RECEIVERS[receiverType]]];
    }
    case 'other':
      return [how, ['To', foreign(payee.recipient.name)], ['Reference', foreign(payee.recipient.reference)]];
    case 'none':
      return [how];
  }
}

const pageButton = (url: string): Block => ({ type: 'button', label: 'Open your page', url });

type FactsOf<Kind extends EmailKind> = Extract<MailFacts, { readonly kind: Kind }>;

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
          ' removed where your payouts go. Payout runs can leave you out until there is a new recipient.',
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
      { type: 'facts', facts: wholePayeeFacts(facts.payee) },
      paragraph(
        `If it was you, and this is your account to the last letter, enter this code on the page until ${dateText(facts.expiresAt)}:`,
      ),
      { type: 'code', code: facts.code },
      paragraph(
        'It counts for this recipient only. If it was not you, do nothing, and give the code to nobody, also not to ',
        app,
        '. Ask them to sign out all browsers of your page.',
      ),
    ],
  };
}

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

function addressChanged(app: Foreign): Message {
  return {
    subject: [app, ': another address was set for you'],
    blocks: [
      paragraph(
        'Another e-mail address was set for your page at ',
        app,
        '. Mails about your payouts go there from now on, and no longer to this address.',
      ),
      paragraph(
        'If you did not ask for this, tell ',
        app,
        ' in a way that you know. Do not answer this mail.',
      ),
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

function passkeyAdded(facts: FactsOf<'passkey_added'>, account: Foreign): Message {
  const { passkeyName, addedAt, raises, isRevoked, pageUrl } = facts;
  const also = raises ? ', and lets the browser pay if your role may' : '';
  return {
    subject: ['A passkey was added to your access to ', account],
    blocks: [
      paragraph('A passkey was added with which one signs in to ', account, ` as you${also}:`),
      {
        type: 'facts',
        facts: [
          ['Name', foreign(passkeyName)],
          ['Added', dateText(addedAt)],
          ...(isRevoked ? ([['Now', 'Revoked: it does nothing any more']] as const) : []),
        ],
      },
      paragraph(
        'If it was you, there is nothing to do. If not, revoke it and end the other sessions on the page Access, and tell an owner of ',
        account,
        '.',
      ),
      { type: 'button', label: 'Open the page Access', url: pageUrl },
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
    case 'address_changed':
      return addressChanged(app);
    case 'alert_opened':
      return alertOpened(facts, app);
    case 'alert_closed':
      return alertClosed(facts, app);
    case 'run_drafted':
      return runDrafted(facts, app);
    case 'weekly_report':
      return weeklyReport(facts, app);
    case 'member_invitation':
      return memberInvitation(facts, app);
    case 'member_sign_in':
      return memberSignIn(facts, app);
    case 'passkey_added':
      return passkeyAdded(facts, app);
  }
}

/** Returns why the reader of a mail gets it. */
function footerOf(facts: MailFacts, sender: Foreign): readonly Part[] {
  if (!('readerName' in facts)) {
    return [
      'You get this mail because your address is in the settings of ',
      sender,
      ', where it can be removed.',
      ...(facts.kind === 'weekly_report'
        ? [' There, the weekly report can also be turned off by itself.']
        : []),
    ];
  }
  const isKnown = [' If you do not know ', sender, ', ignore it.'] as const;
  switch (facts.kind) {
    case 'member_invitation':
    case 'member_sign_in':
    case 'passkey_added':
      return ['You get this mail because you are a member of ', sender, '.', ...isKnown];
    case 'address_changed':
      return [
        'You get this mail because ',
        sender,
        ' had your address as that of one of its creators.',
        ...isKnown,
      ];
    default:
      return [
        'You get this mail because ',
        sender,
        ' has your address as that of one of its creators.',
        ...isKnown,
      ];
  }
}

/** Returns the text of a mail. */
export function writeMail(facts: MailFacts): MailText {
  const sender = foreign(facts.senderName);
  const { subject, blocks } = messageOf(facts, sender);
  const greeting = 'readerName' in facts ? [paragraph('Hello ', foreign(facts.readerName), ',')] : [];
  return layOut(facts.senderName, {
    subject,
    blocks: [...greeting, ...blocks],
    footer: footerOf(facts, sender),
  });
}
