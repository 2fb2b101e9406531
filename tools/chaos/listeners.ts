import { startMailServer } from '../../test/support/mail-server.ts';
import type { MailServer } from '../../test/support/mail-server.ts';
import { startReceiver } from '../../test/support/webhook-receiver.ts';
import type { WebhookReceiver } from '../../test/support/webhook-receiver.ts';
import type { Load } from './load.ts';
import { RUN_APPS } from './plan.ts';

/* Who hears of payouts and alerts: a mail server, a receiver of outgoing webhooks, and a service that takes text as Slack does. */

/** The people who run each app, who get mails about its alerts. */
export const READERS = ['ann@readers.example', 'bob@readers.example'] as const;

export interface Listeners {
  readonly mail: MailServer;
  readonly webhooks: WebhookReceiver;
  readonly slack: WebhookReceiver;
  readonly close: () => Promise<void>;
}

/** Starts the servers, on the loopback address. */
export async function startListeners(): Promise<Listeners> {
  const [mail, webhooks, slack] = await Promise.all([startMailServer(), startReceiver(), startReceiver()]);
  return {
    mail,
    webhooks,
    slack,
    close: async () => {
      await Promise.all([mail, webhooks, slack].map(async (one) => await one.close()));
    },
  };
}

/** Lets the apps that pay by runs tell the listeners of their alerts, and the receiver of their payouts. */
export async function subscribe(load: Load, { webhooks, slack }: Listeners): Promise<void> {
  for (const app of RUN_APPS) {
    await load.ask('settings', app, '/settings', { method: 'PATCH', body: { notificationEmails: READERS } });
    const eventTypes = ['payout.created', 'alert.opened', 'alert.closed'];
    const key = `endpoint-${app}`;
    await load.ask('endpoint', app, '/webhook-endpoints', { body: { url: webhooks.url, eventTypes }, key });
    await load.ask('slack', app, '/slack-url', { method: 'PUT', body: { url: slack.url } });
  }
}
