import type { Schemas } from '../api/client.ts';
import {
  formatCount,
  formatCountOf,
  formatDuration,
  formatInstant,
  formatMoney,
  formatShare,
} from '../format.ts';
import { PROVIDERS } from '../words.ts';

export type Alert = Schemas['Alert'];

/** A whole in basis points. */
const WHOLE_IN_BPS = 10_000;

/** What an alert says: what was found, what to do, and the page where it is done. */
export interface AlertText {
  readonly title: string;
  readonly found: string;
  readonly advice: string;
  readonly action: string;
  /** The path of the page under the app. */
  readonly to: string;
}

/** The names under which the answers of this page are kept. */
export const ALERT_KEYS = {
  all: (appId: string) => ['alerts', appId],
  open: (appId: string) => ['alerts', appId, 'open'],
  slack: (appId: string) => ['slack-url', appId],
} as const;

const providerOf = (subject: string): string =>
  (PROVIDERS as Readonly<Record<string, string>>)[subject] ?? subject;

/** Returns the text of an alert. A fact that is missing is left out: a later version of the service may state others. */
export function textOf({ rule, subject, facts }: Alert): AlertText {
  const number = (name: string) => {
    const value = facts[name];
    return typeof value === 'number' ? value : 0;
  };
  const instant = (name: string) => formatInstant(number(name));
  const provider = providerOf(subject);
  switch (rule) {
    case 'provider_silent':
      return {
        title: `${provider} is silent`,
        found: `No webhook was accepted since ${instant('lastAcceptedAt')}. As often as it sends others, one should have come within ${formatDuration(number('allowedMs') / 1_000)}.`,
        advice: `Look at the page of webhooks in the dashboard of ${provider}: the address may have changed, or sending may be off.`,
        action: 'Run the self-test',
        to: 'setup',
      };
    case 'deliveries_failing':
      return {
        title: `Webhooks of ${provider} fail`,
        found: `${formatCountOf(number('failing'), 'webhook')} failed within an hour, or could not be processed.`,
        advice: 'Each says why. Those that only wait are repeated; those that failed can be processed again.',
        action: 'See the deliveries',
        to: `deliveries?source=${subject}`,
      };
    case 'webhooks_refused':
      return {
        title: `Requests of ${provider} are refused`,
        found: `${formatCountOf(number('refused'), 'request')} had no valid signature or token, the last one at ${instant('lastRefusedAt')}.`,
        advice: `Compare the secret here with that in the dashboard of ${provider}. While it is wrong, no purchase counts.`,
        action: 'Set the secret',
        to: 'setup',
      };
    case 'draft_waiting':
      return {
        title: `A payout run of ${formatMoney(number('totalCents'))} waits for approval`,
        found: `It was drafted ${instant('draftedAt')}, for ${formatCountOf(number('itemCount'), 'creator')}. It can be approved until ${instant('expiresAt')}.`,
        advice: 'A draft pays nobody. Approve it, or cancel it.',
        action: 'Open the payout run',
        to: `payouts/runs/${subject}`,
      };
    case 'run_stalled':
      return {
        title: `A payout run of ${formatMoney(number('totalCents'))} does not advance`,
        found: `It was approved ${instant('approvedAt')}, and nobody was paid for an hour.`,
        advice:
          'Nobody is paid twice. Tell the operator of the service: the run continues when the cause is removed.',
        action: 'Open the payout run',
        to: `payouts/runs/${subject}`,
      };
    case 'many_refunds':
      return {
        title: 'Many refunds',
        found: `${formatMoney(number('refundedCents'))} of the ${formatMoney(number('grossCents'))} of the last 7 days was refunded: ${formatShare(number('refundBps') / WHOLE_IN_BPS)}. In the last 28 days, it was ${formatShare(number('usualBps') / WHOLE_IN_BPS)}.`,
        advice:
          'Look at who brought these payments, and at what changed in your app. Commissions of refunded payments are taken back by themselves.',
        action: 'See the creators',
        to: 'creators',
      };
    case 'ledger_violated':
      return {
        title: 'The ledger breaks a rule',
        found: `A check ${formatInstant(number('foundAt'))} found ${formatCountOf(number('violations'), 'row')} that ${number('violations') === 1 ? 'breaks' : 'break'} a rule, such as ${String(facts['rule'] ?? '')}.`,
        advice:
          'Pay nobody until the operator of the service has looked at it: rows were changed without the service, a backup was restored in part, or the service has a defect.',
        action: 'Check the ledger',
        to: 'ledger',
      };
    case 'endpoint_failing':
      return facts['kind'] === 'slack'
        ? {
            title: 'Slack does not accept messages',
            found: foundOf(facts['deactivatedAt'], instant),
            advice: 'Create a new incoming webhook in Slack, and set its URL below.',
            action: 'See the attempts',
            to: `webhooks?endpoint=${subject}`,
          }
        : {
            title: 'An endpoint of your webhooks fails',
            found: foundOf(facts['deactivatedAt'], instant),
            advice: 'Repair your server. If the service deactivated the endpoint, activate it again.',
            action: 'See the attempts',
            to: `webhooks?endpoint=${subject}`,
          };
  }
}

const foundOf = (deactivatedAt: unknown, instant: (name: string) => string): string =>
  deactivatedAt === null
    ? `No attempt succeeded since ${instant('failingSince')}. After three days it is deactivated.`
    : `The service deactivated it ${instant('deactivatedAt')}, so it gets nothing.`;

/** Returns what the navigation says beside the name of the page: "3", or "100+" if not all were read. */
export const countText = ({
  count,
  hasMore,
}: {
  readonly count: number;
  readonly hasMore: boolean;
}): string => `${formatCount(count)}${hasMore ? '+' : ''}`;
