/* What must hold of mails, alerts and outgoing webhooks at the end. Pure functions of the rows, and of what was received. */

export interface StoredMail {
  readonly id: string;
  readonly kind: string;
  readonly subjectId: string;
  readonly status: string;
  readonly attempts: number;
  readonly lastProblem: string | null;
  /** Epoch ms. Null: it has not ended. */
  readonly endedAt: number | null;
}

/** A mail as the server got it. */
export interface MailAtServer {
  readonly messageId?: string | undefined;
  readonly subject?: string | undefined;
  readonly text?: string | undefined;
  readonly recipients: readonly string[];
  readonly receivedAt: number;
}

export interface MailFacts {
  readonly mails: readonly StoredMail[];
  readonly received: readonly MailAtServer[];
  /** What the domain of each `Message-ID` is. */
  readonly domain: string;
  /** What each fact must have: a kind and the beginning of the subject, with how many mails. */
  readonly wanted: readonly { readonly kind: string; readonly subject: string; readonly count: number }[];
}

/** The clocks of the database and of the mail server are the same. */
const CLOCKS_MS = 50;
/** Why a mail may not be sent, by its kind: what it says is not so any more. */
const OUTDATED: Readonly<Record<string, string>> = {
  payout_sent: 'It was stated meanwhile that the money was not sent, or came back.',
  alert_opened: 'The alert was closed meanwhile.',
};

/** What a mail says of a payee's wait, which the run itself ends at once, maybe while the mail is repeated. */
const WAIT_OF_PAYEE = /^Counts from: .*$/m;

function grouped<T>(rows: readonly T[], key: (row: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) ?? []), row]);
  return groups;
}

/** Returns what does not hold of mails: each has an end, was sent once, and repeated only by an attempt before its end. */
export function mailProblems({ mails, received, domain, wanted }: MailFacts): string[] {
  const problems: string[] = [];
  const atServer = grouped(received, ({ messageId = '' }) => messageId);
  const known = new Set(mails.map(({ id }) => `<${id}@${domain}>`));
  for (const messageId of atServer.keys())
    if (!known.has(messageId)) problems.push(`the mail server has ${messageId}, which no mail has`);
  for (const mail of mails) {
    const { id, kind, status, attempts, lastProblem, endedAt } = mail;
    const name = `the mail ${id} (${kind})`;
    const copies = atServer.get(`<${id}@${domain}>`) ?? [];
    const isOutdated = status === 'failed' && lastProblem === OUTDATED[kind];
    if (status !== 'sent' && !isOutdated) problems.push(`${name} is ${status}: ${lastProblem}`);
    if (status === 'sent' && copies.length === 0)
      problems.push(`${name} is sent, and the mail server does not have it`);
    if (copies.length > attempts)
      problems.push(`${name} came ${copies.length} times by ${attempts} attempts`);
    const late = copies.filter(({ receivedAt }) => receivedAt > (endedAt ?? Infinity) + CLOCKS_MS);
    if (late.length > 0) problems.push(`${name} came again after it was noted as ${status}`);
    const texts = new Set(
      copies.map(({ subject, text, recipients }) =>
        JSON.stringify([subject, text?.replace(WAIT_OF_PAYEE, ''), recipients]),
      ),
    );
    if (texts.size > 1) problems.push(`${name} has another text or recipient when it is repeated`);
    if (copies.some(({ recipients }) => recipients.length !== 1))
      problems.push(`${name} has not one recipient`);
  }
  const named = grouped(mails, ({ kind, subjectId }) => `${kind} ${subjectId.split('/')[0]}`);
  const unexplained = new Set(named.keys());
  for (const { kind, subject, count } of wanted) {
    const is = named.get(`${kind} ${subject}`)?.length ?? 0;
    unexplained.delete(`${kind} ${subject}`);
    if (is !== count) problems.push(`${kind} of ${subject} has ${is} mails, not ${count}`);
  }
  for (const name of unexplained) problems.push(`nothing has happened of which ${name} is a mail`);
  return problems;
}

export interface StoredAlert {
  readonly id: string;
  readonly appId: string;
  readonly rule: string;
  readonly subject: string;
  readonly openedAt: number;
  readonly closedAt: number | null;
}

export interface StoredMessage {
  readonly id: string;
  readonly endpointId: string;
  readonly type: string;
  readonly subjectId: string | null;
  readonly status: string;
}

export interface AlertFacts {
  readonly alerts: readonly StoredAlert[];
  /** The silences of providers that have ended, by the app and the id of their alerts. */
  readonly silences: readonly { readonly provider: string; readonly alertId: string }[];
  /** Apps and providers of which at least three requests were refused, while the refusals counted and no longer. */
  readonly refused: readonly { readonly appId: string; readonly provider: string }[];
}

/** Rules whose causes this load has made and ended, or never makes. */
const MUST_BE_CLOSED = [
  'provider_silent',
  'webhooks_refused',
  'draft_waiting',
  'run_stalled',
  'endpoint_failing',
  'ledger_violated',
];

/** Returns what does not hold of alerts: each cause had one, and one whose cause has ended is closed. */
export function alertProblems({ alerts, silences, refused }: AlertFacts): string[] {
  const silent = alerts.filter(({ rule }) => rule === 'provider_silent');
  const ofSilences = grouped(silences, ({ alertId }) => alertId);
  return [
    ...alerts
      .filter(({ rule, closedAt }) => closedAt === null && MUST_BE_CLOSED.includes(rule))
      .map(
        ({ id, rule, subject }) => `the alert ${id} (${rule} ${subject}) is open, and its cause has ended`,
      ),
    ...silent
      .filter(({ id }) => ofSilences.get(id)?.length !== 1)
      .map(({ id }) => `the alert ${id} opened for no silence, or for several`),
    ...silences
      .filter(({ alertId, provider }) => silent.find(({ id }) => id === alertId)?.subject !== provider)
      .map(({ alertId, provider }) => `the silence of ${provider} has no alert ${alertId}`),
    ...refused
      .filter(
        ({ appId, provider }) =>
          alerts.filter(
            (one) => one.appId === appId && one.rule === 'webhooks_refused' && one.subject === provider,
          ).length !== 1,
      )
      .map(({ appId, provider }) => `the refused requests of ${provider} of ${appId} have not one alert`),
  ];
}

export interface MessageFacts {
  readonly messages: readonly StoredMessage[];
  /** The ids that receivers got. Messages of Slack have none. */
  readonly receivedIds: ReadonlySet<string>;
  readonly slackEndpoints: ReadonlySet<string>;
  /** What every endpoint of an app must have got once. */
  readonly wanted: readonly {
    readonly endpointId: string;
    readonly type: string;
    readonly subjectId: string;
  }[];
}

/** Names what a message tells whom. */
const nameOf = ({ endpointId, type, subjectId }: Pick<StoredMessage, 'endpointId' | 'type' | 'subjectId'>) =>
  `${endpointId} ${type} ${subjectId}`;

/** Returns what does not hold of outgoing webhooks: each fact has one message for an endpoint, which arrived. */
export function messageProblems({ messages, receivedIds, slackEndpoints, wanted }: MessageFacts): string[] {
  const found = grouped(messages, nameOf);
  const expected = new Set(wanted.map(nameOf));
  return [
    ...messages
      .filter(({ status }) => status !== 'delivered')
      .map(({ id, type, status }) => `the message ${id} (${type}) is ${status}`),
    ...messages
      .filter(({ id, endpointId }) => !slackEndpoints.has(endpointId) && !receivedIds.has(id))
      .map(({ id, type }) => `the message ${id} (${type}) has not arrived`),
    ...[...expected]
      .filter((name) => found.get(name)?.length !== 1)
      .map((name) => `${name} has ${found.get(name)?.length ?? 0} messages, not one`),
    ...[...found.keys()]
      .filter((name) => !expected.has(name))
      .map((name) => `nothing has happened of which ${name} is a message`),
  ];
}
