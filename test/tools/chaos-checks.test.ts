import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { alertProblems, mailProblems, messageProblems } from '../../tools/chaos/message-checks.ts';
import type { AlertFacts, MailFacts, MessageFacts } from '../../tools/chaos/message-checks.ts';
import type { KnownRun, ShownItem, ShownRun } from '../../tools/chaos/payout-runs.ts';
import { runProblems } from '../../tools/chaos/run-checks.ts';
import type { RunFacts } from '../../tools/chaos/run-checks.ts';
import { Rail } from '../../tools/chaos/rail.ts';

/* The checks at the end of `npm run chaos` find nothing in what is right, and something in each of these. */

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const PAID = 'pit_01jz4w2vxq8m3c5t7e9f1g3h5a';
const WISE = 'pit_01jz4w2vxq8m3c5t7e9f1g3h5b';
const UNPAID = 'pit_01jz4w2vxq8m3c5t7e9f1g3h5c';

/** A run of three creators, two of whom it has paid, by PayPal and by Wise; an export; and a draft that was cancelled. */
function runFacts(): RunFacts & { readonly known: readonly (KnownRun & { items: readonly ShownItem[] })[] } {
  const paypal = Buffer.from(`a@creators.example,5.00,USD,${PAID},Commissions,PAYPAL\r\n`);
  const wise = Buffer.from(
    `name,recipientEmail,paymentReference,receiverType,amountCurrency,amount,sourceCurrency,targetCurrency\r\n` +
      `Creator 1,b@creators.example,${WISE.slice(-16)},PERSON,target,3.00,USD,USD\r\n`,
  );
  const shown = (over: Partial<ShownRun>): ShownRun => ({
    id: 'run_1',
    kind: 'pay',
    status: 'draft',
    itemCount: 3,
    totalCents: 1_000,
    paidCount: 0,
    paidCents: 0,
    stoppedAt: null,
    ...over,
  });
  const item = (id: string, expectedCents: number, outcome: string, payoutId: string | null): ShownItem => ({
    id,
    affiliateId: `aff_${id}`,
    expectedCents,
    outcome,
    payoutId,
    transferState: null,
  });
  const items = [
    item(PAID, 500, 'paid', 'pay_1'),
    item(WISE, 300, 'paid', 'pay_2'),
    item(UNPAID, 200, 'total_changed', null),
  ];
  const fileOf = (id: string, bytes: Buffer, totalCents: number) => ({
    runId: 'run_1',
    file: { id, rowCount: 1, totalCents, sha256: sha256(bytes), downloadCount: 2 },
    downloads: [
      { bytes, stated: sha256(bytes) },
      { bytes, stated: sha256(bytes) },
    ],
  });
  const common = { app: 0, items, changed: new Set<string>(), stopped: undefined };
  return {
    runs: [
      { ...shown({ status: 'settled', paidCount: 2, paidCents: 800 }) },
      {
        ...shown({ id: 'run_2', status: 'cancelled', itemCount: 1, totalCents: 200 }),
        paidCount: null,
        paidCents: null,
      },
    ],
    items: [
      ...items.map(({ id, expectedCents, payoutId }) => ({
        id,
        runId: 'run_1',
        expectedCents,
        payoutId,
        isFiled: payoutId !== null,
      })),
      { id: 'pit_2', runId: 'run_2', expectedCents: 200, payoutId: null, isFiled: false },
    ],
    files: [
      { id: 'pfl_1', runId: 'run_1', rowCount: 1, totalCents: 500, sha256: sha256(paypal) },
      { id: 'pfl_2', runId: 'run_1', rowCount: 1, totalCents: 300, sha256: sha256(wise) },
    ],
    payouts: [
      { id: 'pay_1', totalCents: 500, itemsCents: 500, stated: 'sent' },
      { id: 'pay_2', totalCents: 300, itemsCents: 300, stated: 'returned' },
      { id: 'pay_3', totalCents: 200, itemsCents: 200, stated: null },
    ],
    known: [
      {
        ...common,
        id: 'run_1',
        drafted: shown({}),
        wasApproved: true,
        ended: shown({ status: 'settled' }),
        endItems: items,
        files: [fileOf('pfl_1', paypal, 500), fileOf('pfl_2', wise, 300)],
      },
      {
        ...common,
        id: 'run_2',
        drafted: shown({ id: 'run_2', itemCount: 1, totalCents: 200 }),
        wasApproved: false,
        ended: undefined,
        endItems: [],
        files: [],
      },
    ],
    exported: new Set(['pay_3']),
    payments: [
      { key: PAID, payoutId: 'pay_1', cents: 500, runId: 'run_1', reference: 'T1', status: 'Completed' },
      {
        key: WISE.slice(-16),
        payoutId: 'pay_2',
        cents: 300,
        runId: 'run_1',
        reference: 'T2',
        status: 'Returned',
      },
    ],
  };
}

type Runs = ReturnType<typeof runFacts>;
/** Returns a list with the element at a place changed. */
const at = <T>(list: readonly T[], place: number, over: Partial<T>): T[] =>
  list.map((one, n) => (n === place ? { ...one, ...over } : one));

describe('payout runs', () => {
  test('a run, an export and a cancelled draft that are right have no problem', () => {
    expect(runProblems(runFacts())).toEqual([]);
  });

  test.each<[string, (facts: Runs) => Partial<RunFacts>, string]>([
    [
      'a run does not end',
      ({ runs }) => ({ runs: at(runs, 0, { status: 'approved' }) }),
      'has not ended: approved',
    ],
    ['a draft stays', ({ runs }) => ({ runs: at(runs, 1, { status: 'draft' }) }), 'has not ended: draft'],
    [
      'a draft is made twice',
      ({ runs }) => ({ runs: [...runs, { ...runs[1]!, id: 'run_3' }] }),
      'nobody drafted the run run_3',
    ],
    ['an approved run is lost', ({ runs }) => ({ runs: runs.slice(1) }), 'has another end'],
    [
      'more was paid than was approved',
      ({ runs }) => ({ runs: at(runs, 0, { paidCents: 900 }) }),
      'what was paid and what is listed as not paid is 1100, not 1000',
    ],
    [
      'another total was approved',
      ({ runs }) => ({ runs: at(runs, 0, { totalCents: 999 }) }),
      'the total is 999, not 1000',
    ],
    [
      'a payout of the run is missing',
      ({ items }) => ({ items: at(items, 0, { isFiled: false }) }),
      'the payouts are 1, not 2',
    ],
    [
      'a payout has another sum',
      ({ payouts }) => ({ payouts: at(payouts, 0, { totalCents: 501, itemsCents: 501 }) }),
      'the payouts add up to 801, not 800',
    ],
    [
      'a file has fewer rows',
      ({ files }) => ({ files: at(files, 0, { rowCount: 0 }) }),
      'the rows of its files are 1, not 2',
    ],
    [
      'a file has another sum',
      ({ files }) => ({ files: at(files, 0, { totalCents: 400 }) }),
      'its files add up to 700, not 800',
    ],
    [
      'a file is missing',
      ({ files }) => ({ files: files.slice(0, 1) }),
      'the run run_1 has 1 files, and 2 were listed',
    ],
    [
      'a file has another stored hash',
      ({ files }) => ({ files: at(files, 0, { sha256: 'ab' }) }),
      'the file pfl_1 has the hash ab',
    ],
    [
      'a download has other bytes',
      ({ known }) => {
        const [file, other] = known[0]!.files;
        const downloads = at(file!.downloads, 1, { bytes: Buffer.from('other') });
        return { known: at(known, 0, { files: [{ ...file!, downloads }, other!] }) };
      },
      'a download has',
    ],
    [
      'a payout is in two files',
      ({ known, files }) => {
        const [file, other] = known[0]!.files;
        return {
          known: at(known, 0, { files: [file!, { ...file!, file: { ...file!.file, id: 'pfl_3' } }, other!] }),
          files: [...files, { ...files[0]!, id: 'pfl_3' }],
        };
      },
      `the item ${PAID} of run_1 has 2 rows`,
    ],
    [
      'a payout is in no file',
      ({ known }) => ({ known: at(known, 0, { files: known[0]!.files.slice(1) }) }),
      `the item ${PAID} of run_1 has 0 rows`,
    ],
    [
      'a payout has other commissions',
      ({ payouts }) => ({ payouts: at(payouts, 0, { itemsCents: 499 }) }),
      'the payout pay_1 of 500 cents has commissions of 499',
    ],
    [
      'a payout is of a run and of an export',
      () => ({ exported: new Set(['pay_1', 'pay_3']) }),
      'the payout pay_1 was made by 2',
    ],
    [
      'two items have one payout',
      ({ items }) => ({ items: at(items, 1, { payoutId: 'pay_1' }) }),
      'the payout pay_1 was made by 2',
    ],
    ['nobody asked for a payout', () => ({ exported: new Set() }), 'the payout pay_3 was made by 0'],
    [
      'a cancelled draft pays',
      ({ items }) => ({ items: at(items, 3, { isFiled: true, payoutId: 'pay_3' }) }),
      'has paid pay_3 by pit_2 after it was cancelled',
    ],
    [
      'a run pays after its cancellation',
      ({ known }) => ({
        known: at(known, 0, { stopped: at(known[0]!.endItems, 0, { outcome: 'cancelled' }) }),
      }),
      `has paid pay_1 by ${PAID} after it was cancelled`,
    ],
    [
      'a creator with another payee is paid',
      ({ known }) => ({ known: at(known, 0, { changed: new Set([`aff_${PAID}`]) }) }),
      `has paid the item ${PAID}, whose payee`,
    ],
    [
      'money is sent twice',
      ({ payments }) => ({ payments: [...payments, payments[0]!] }),
      'the money of pay_1 was sent 2 times',
    ],
    [
      'money is not sent',
      ({ payments }) => ({ payments: payments.slice(1) }),
      'the money of pay_1 was sent 0 times',
    ],
    [
      'another amount is sent',
      ({ payments }) => ({ payments: at(payments, 0, { cents: 5 }) }),
      'the money of pay_1 is not 500 cents',
    ],
    [
      'a report is lost',
      ({ payouts }) => ({ payouts: at(payouts, 1, { stated: 'sent' }) }),
      'the payout pay_2 is stated as sent; its payments say returned',
    ],
    [
      'an item has no end',
      ({ known }) => ({
        known: at(known, 0, { endItems: at(known[0]!.endItems, 2, { outcome: 'waiting' }) }),
      }),
      'the items without an end are 1, not 0',
    ],
  ])('it is noticed that %s', (_, change, expected) => {
    const facts = runFacts();
    expect(runProblems({ ...facts, ...change(facts) }).join('\n')).toContain(expected);
  });

  test('the payment service notices money that is sent twice, and not what came back before', () => {
    const rail = new Rail('0-');
    const row = { key: PAID, payoutId: 'pay_1', cents: 500 };
    rail.upload('run_1', [row]);
    for (const payment of rail.payments) payment.status = 'Returned';
    rail.upload('run_2', [row]);
    expect(rail.sentTwice).toEqual([]);
    rail.upload('run_3', [row]);
    expect(rail.sentTwice).toEqual(['pay_1 by run_3']);
  });
});

const mailFacts = (): MailFacts => {
  const mail = { status: 'sent', attempts: 2, lastProblem: null, endedAt: 1_000 };
  const received = { subject: 'Paid', text: 'Hello', recipients: ['a@creators.example'], receivedAt: 900 };
  return {
    domain: 'tributary.example',
    mails: [
      { ...mail, id: 'eml_1', kind: 'payout_sent', subjectId: 'trf_1' },
      { ...mail, id: 'eml_2', kind: 'alert_opened', subjectId: 'alr_1/ab' },
      { ...mail, id: 'eml_3', kind: 'alert_opened', subjectId: 'alr_1/cd' },
    ],
    received: [
      { ...received, messageId: '<eml_1@tributary.example>', receivedAt: 800 },
      { ...received, messageId: '<eml_1@tributary.example>' },
      { ...received, messageId: '<eml_2@tributary.example>' },
      { ...received, messageId: '<eml_3@tributary.example>' },
    ],
    wanted: [
      { kind: 'payout_sent', subject: 'trf_1', count: 1 },
      { kind: 'alert_opened', subject: 'alr_1', count: 2 },
    ],
  };
};

describe('mails', () => {
  test('mails that were sent, also one that an interrupted attempt repeated, have no problem', () => {
    expect(mailProblems(mailFacts())).toEqual([]);
  });

  test('a repeated mail may state another end of the wait of a payee, which the run itself ends', () => {
    const facts = mailFacts();
    const received = facts.received.map((copy, n) => ({
      ...copy,
      text: `How: PayPal\nCounts from: ${n + 1} November 2026\nHello`,
    }));
    expect(mailProblems({ ...facts, received })).toEqual([]);
  });

  test('a mail that was not sent because its alert is closed, or its money came back, has no problem', () => {
    const facts = mailFacts();
    const received = facts.received.slice(0, 0);
    const problems = [
      'It was stated meanwhile that the money was not sent, or came back.',
      'The alert was closed meanwhile.',
      'The alert was closed meanwhile.',
    ];
    const mails = facts.mails.map((mail, n) => ({
      ...mail,
      status: 'failed',
      lastProblem: problems[n] ?? null,
    }));
    expect(mailProblems({ ...facts, mails, received })).toEqual([]);
    const others = mails.map((mail, n) => ({ ...mail, lastProblem: problems[2 - n] ?? null }));
    expect(mailProblems({ ...facts, mails: others, received })).toHaveLength(2);
  });

  test.each<[string, (facts: MailFacts) => Partial<MailFacts>, string]>([
    [
      'a mail waits',
      ({ mails }) => ({ mails: at(mails, 0, { status: 'queued', endedAt: null }) }),
      'eml_1 (payout_sent) is queued',
    ],
    [
      'a mail failed',
      ({ mails }) => ({ mails: at(mails, 1, { status: 'failed', lastProblem: 'No.' }) }),
      'is failed: No.',
    ],
    [
      'a mail has not arrived',
      ({ received }) => ({ received: received.slice(0, 3) }),
      'eml_3 (alert_opened) is sent, and the mail server does not have it',
    ],
    [
      'a mail came more often than it was tried',
      ({ mails }) => ({ mails: at(mails, 0, { attempts: 1 }) }),
      'came 2 times by 1 attempts',
    ],
    [
      'a mail was sent again after its end',
      ({ received }) => ({ received: at(received, 1, { receivedAt: 2_000 }) }),
      'came again after it was noted as sent',
    ],
    [
      'a repeated mail has another text',
      ({ received }) => ({ received: at(received, 1, { text: 'Other' }) }),
      'has another text',
    ],
    [
      'a mail has no row',
      ({ received }) => ({
        received: [...received, { ...received[0]!, messageId: '<eml_9@tributary.example>' }],
      }),
      '<eml_9@tributary.example>, which no mail has',
    ],
    [
      'a payout has two mails',
      ({ mails, received }) => ({
        mails: [...mails, { ...mails[0]!, id: 'eml_4' }],
        received: [...received, { ...received[0]!, messageId: '<eml_4@tributary.example>' }],
      }),
      'payout_sent of trf_1 has 2 mails, not 1',
    ],
    [
      'a payout has no mail',
      ({ wanted }) => ({ wanted: [...wanted, { kind: 'payout_sent', subject: 'trf_2', count: 1 }] }),
      'payout_sent of trf_2 has 0 mails, not 1',
    ],
    [
      'a mail has no cause',
      ({ wanted }) => ({ wanted: wanted.slice(1) }),
      'nothing has happened of which payout_sent trf_1 is a mail',
    ],
  ])('it is noticed that %s', (_, change, expected) => {
    const facts = mailFacts();
    expect(mailProblems({ ...facts, ...change(facts) }).join('\n')).toContain(expected);
  });
});

const alertFacts = (): AlertFacts => {
  const alert = { appId: 'app_1', openedAt: 1, closedAt: 2 };
  return {
    alerts: [
      { ...alert, id: 'alr_1', rule: 'provider_silent', subject: 'stripe' },
      { ...alert, id: 'alr_2', rule: 'webhooks_refused', subject: 'adapty' },
      { ...alert, id: 'alr_3', rule: 'many_refunds', subject: 'refunds', closedAt: null },
    ],
    silences: [{ provider: 'stripe', alertId: 'alr_1' }],
    refused: [{ appId: 'app_1', provider: 'adapty' }],
  };
};

describe('alerts', () => {
  test('alerts whose causes have ended, and that are closed, have no problem', () => {
    expect(alertProblems(alertFacts())).toEqual([]);
  });

  test.each<[string, (facts: AlertFacts) => Partial<AlertFacts>, string]>([
    [
      'an alert stays open',
      ({ alerts }) => ({ alerts: at(alerts, 0, { closedAt: null }) }),
      'is open, and its cause has ended',
    ],
    [
      'a silence has two alerts',
      ({ alerts }) => ({ alerts: [...alerts, { ...alerts[0]!, id: 'alr_4' }] }),
      'alr_4 opened for no silence',
    ],
    [
      'a silence has the alert of another provider',
      ({ alerts }) => ({ alerts: at(alerts, 0, { subject: 'paddle' }) }),
      'the silence of stripe has no alert alr_1',
    ],
    [
      'refused requests have no alert',
      ({ alerts }) => ({ alerts: alerts.slice(0, 1) }),
      'the refused requests of adapty of app_1 have not one alert',
    ],
  ])('it is noticed that %s', (_, change, expected) => {
    const facts = alertFacts();
    expect(alertProblems({ ...facts, ...change(facts) }).join('\n')).toContain(expected);
  });
});

const messageFacts = (): MessageFacts => ({
  messages: [
    { id: 'msg_1', endpointId: 'wep_1', type: 'payout.created', subjectId: 'pay_1', status: 'delivered' },
    { id: 'msg_2', endpointId: 'wep_2', type: 'alert.opened', subjectId: 'alr_1', status: 'delivered' },
  ],
  receivedIds: new Set(['msg_1']),
  slackEndpoints: new Set(['wep_2']),
  wanted: [
    { endpointId: 'wep_1', type: 'payout.created', subjectId: 'pay_1' },
    { endpointId: 'wep_2', type: 'alert.opened', subjectId: 'alr_1' },
  ],
});

describe('outgoing webhooks', () => {
  test('messages that arrived have no problem', () => {
    expect(messageProblems(messageFacts())).toEqual([]);
  });

  test.each<[string, (facts: MessageFacts) => Partial<MessageFacts>, string]>([
    [
      'a message waits',
      ({ messages }) => ({ messages: at(messages, 0, { status: 'pending' }) }),
      'msg_1 (payout.created) is pending',
    ],
    [
      'a message has not arrived',
      () => ({ receivedIds: new Set() }),
      'msg_1 (payout.created) has not arrived',
    ],
    [
      'a payout has two messages',
      ({ messages }) => ({ messages: [...messages, { ...messages[0]!, id: 'msg_3' }] }),
      'pay_1 has 2 messages, not one',
    ],
    [
      'an alert has no message',
      ({ messages }) => ({ messages: messages.slice(0, 1) }),
      'alr_1 has 0 messages, not one',
    ],
    [
      'a message has no cause',
      ({ wanted }) => ({ wanted: wanted.slice(1) }),
      'nothing has happened of which wep_1 payout.created pay_1 is a message',
    ],
  ])('it is noticed that %s', (_, change, expected) => {
    const facts = messageFacts();
    expect(messageProblems({ ...facts, ...change(facts) }).join('\n')).toContain(expected);
  });
});
