import { closedText, openedText } from '../domain/alert-text.ts';
import type { MailFacts, WeeklyReport, WeekSums } from '../domain/email.ts';
import { DAY_MS } from '../domain/time.ts';
import type { Block, Part } from './layout.ts';
import { dateText, foreign, MONEY, paragraph } from './parts.ts';
import type { Foreign, Message } from './parts.ts';

type FactsOf<Kind extends MailFacts['kind']> = Extract<MailFacts, { readonly kind: Kind }>;
type AlertFactsOf = Extract<MailFacts, { readonly kind: 'alert_opened' | 'alert_closed' }>;

const button = (label: string, url: string): Block => ({ type: 'button', label, url });
const cents = (amount: number): string => MONEY.format(amount / 100);
const counted = (count: number, one: string, many = `${one}s`): string =>
  `${NUMBER.format(count)} ${count === 1 ? one : many}`;

const NUMBER = new Intl.NumberFormat('en-US');
const number = (value: number): string => NUMBER.format(value);
const MONTH = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' });
const DAY_OF_YEAR = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  timeZone: 'UTC',
});

/** What each rule is called, in a subject. */
const RULES: Readonly<Record<AlertFactsOf['rule'], string>> = {
  provider_silent: 'No webhooks arrive',
  deliveries_failing: 'Webhooks fail',
  webhooks_refused: 'Webhooks are refused',
  draft_waiting: 'A payout run waits',
  run_stalled: 'A payout run has stopped',
  endpoint_failing: 'Your endpoint does not answer',
  many_refunds: 'Many refunds',
  ledger_violated: 'The ledger breaks a rule',
};

export function alertOpened(facts: AlertFactsOf, app: Foreign): Message {
  return {
    subject: [app, `: ${RULES[facts.rule]}`],
    blocks: [
      paragraph(openedText(facts, facts.openedAt)),
      { type: 'facts', facts: [['Since', dateText(facts.openedAt)]] },
      ...(facts.isLast
        ? [
            paragraph(
              'This is the third time within a day. You get no further mail about it until a day has passed: the page of alerts shows how it is.',
            ),
          ]
        : []),
      button('Open the alerts', facts.pageUrl),
    ],
  };
}

export function alertClosed(facts: AlertFactsOf, app: Foreign): Message {
  return {
    subject: [app, `: resolved: ${RULES[facts.rule]}`],
    blocks: [
      paragraph(closedText(facts)),
      {
        type: 'facts',
        facts: [
          ['Since', dateText(facts.openedAt)],
          ['Until', dateText(facts.closedAt ?? facts.openedAt)],
        ],
      },
      button('Open the alerts', facts.pageUrl),
    ],
  };
}

export function runDrafted(facts: FactsOf<'run_drafted'>, app: Foreign): Message {
  const month = MONTH.format(Date.parse(`${facts.month}-01`));
  const total = cents(facts.totalCents);
  const leftOut: [label: string, value: Part][] =
    facts.excludedCount === 0 ? [] : [['Left out', counted(facts.excludedCount, 'creator')]];
  return {
    subject: [app, `: the payout run of ${month} waits for you: ${total}`],
    blocks: [
      paragraph(
        'The payout schedule has drafted the run of this month. It pays nobody until somebody who may pay approves it.',
      ),
      {
        type: 'facts',
        facts: [
          ['Run of', month],
          ['Pays', `${counted(facts.itemCount, 'creator')}, ${total} (USD)`],
          ...leftOut,
          ['Can be approved until', dateText(facts.expiresAt)],
        ],
      },
      button('Look at the draft', facts.pageUrl),
    ],
  };
}

/** Says how a number has changed: `+12 %`, `-3 %`, `same`, or `new`. */
export function changeText(now: number, before: number): string {
  if (now === before) return 'same';
  if (before <= 0) return now > 0 ? 'new' : '';
  const percent = Math.round(((now - before) / before) * 100);
  return `${percent > 0 ? '+' : percent < 0 ? '\u2212' : '\u00b1'}${NUMBER.format(Math.abs(percent))} %`;
}

/** The numbers of a week, with how they are written. */
const ROWS: readonly (readonly [label: string, of: keyof WeekSums, text: (value: number) => string])[] = [
  ['Revenue', 'revenueCents', cents],
  ['Commissions', 'commissionCents', cents],
  ['New paying users', 'paidUsers', number],
  ['Installs', 'installs', number],
  ['Clicks', 'clicks', number],
  ['New creators', 'newCreators', number],
];

/** Returns the days of the week: `16 to 22 November 2026`, with the months and years that are needed. */
function weekText({ from, to }: Pick<WeeklyReport, 'from' | 'to'>): string {
  return `${DAY.format(from)} to ${DAY_OF_YEAR.format(to - DAY_MS)}`;
}

export function weeklyReport(facts: FactsOf<'weekly_report'>, app: Foreign): Message {
  const { week, before, topCreators, due, openAlerts } = facts;
  const days = weekText(facts);
  const creators: Block =
    topCreators.length === 0
      ? paragraph('No creator earned a commission.')
      : {
          type: 'table',
          head: ['Creator', 'Revenue', 'Commissions'],
          rows: topCreators.map(({ name, revenueCents, commissionCents }) => [
            foreign(name),
            cents(revenueCents),
            cents(commissionCents),
          ]),
        };
  const alerts: Block =
    openAlerts.length === 0
      ? paragraph('No alert is open.')
      : {
          type: 'list',
          items: [
            ...openAlerts.map((alert) => [openedText(alert, alert.openedAt)]),
            ...(facts.hasMoreAlerts ? [['More alerts are open.']] : []),
          ],
        };
  return {
    subject: [app, `: your week, ${cents(week.revenueCents)} revenue`],
    blocks: [
      paragraph(
        `The week from ${days} (UTC), compared with the week before. Revenue is what creators brought.`,
      ),
      {
        type: 'table',
        head: ['', 'The week', 'Before', 'Change'],
        rows: ROWS.map(([label, of, text]) => [
          label,
          text(week[of]),
          text(before[of]),
          changeText(week[of], before[of]),
        ]),
      },
      { type: 'heading', text: 'Top creators' },
      creators,
      ...(facts.areAllCompared
        ? []
        : [
            paragraph(
              'Not all creators were compared, only those who were most active in the last days and those with the most of all time. One who earned early in the week may be missing.',
            ),
          ]),
      { type: 'heading', text: 'Due now' },
      paragraph(
        due.payees === 0
          ? 'Nothing is due.'
          : `${cents(due.payableCents)} (USD) to ${counted(due.payees, 'creator')}.`,
      ),
      { type: 'heading', text: 'Open alerts' },
      alerts,
      button('Open the overview', facts.pageUrl),
    ],
  };
}
