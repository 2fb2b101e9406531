import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { freePort } from '../../src/embedded/processes.ts';
import { newId } from '../../src/db/new-id.ts';
import { instant } from '../../src/db/sql.ts';
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts';
import { mondayOfReport, WEEK_MS } from '../../src/domain/weekly-report.ts';
import { eventually } from '../support/eventually.ts';
import { setUpFounder } from '../support/founder.ts';
import type { Founder } from '../support/founder.ts';
import { insertEarning } from '../support/ledger.ts';
import { startMailServer } from '../support/mail-server.ts';
import type { MailServer, ReceivedMail } from '../support/mail-server.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;
let founder: Founder;
let server: MailServer;
let port: number;

const ANN = 'ann@lantern.example';
const BEN = 'ben@lantern.example';

beforeAll(async () => {
  port = await freePort();
  const mail = {
    smtpUrl: `smtp://127.0.0.1:${port}`,
    from: 'Tributary <tributary@lantern.example>',
    publicUrl: 'https://partners.example.com',
  };
  service = await startTestService({
    settings: { mail, emailRetryMs: [100, 100, 100], relay: { overdueMs: 30_000, pauseMs: 100 } },
  });
});
afterAll(async () => {
  await service.close();
});
beforeEach(async () => {
  founder = await setUpFounder(service);
  server = await startMailServer({ port });
});
afterEach(async () => {
  await server.close();
});

interface Mail {
  readonly kind: string;
  readonly status: string;
  readonly affiliateId: string | null;
  readonly maskedRecipient: string | null;
  readonly lastProblem: string | null;
}

const path = (rest: string) => `/apps/${founder.app.id}${rest}`;
const settings = async (change: object) => await founder.ok('PATCH', path('/settings'), change);
const mails = async () => (await founder.ok<{ items: Mail[] }>('GET', path('/emails'))).items;
const runWorkflow = async (name: 'alerts' | 'calendar') =>
  await service.temporal.workflow.execute(name, {
    workflowId: `${name}:${randomUUID()}`,
    taskQueue: service.taskQueue,
  });
/** Waits until no mail of the app is queued, and returns all of them by their kinds. */
async function settled(): Promise<Mail[]> {
  await eventually('no mail waits', async () => (await mails()).every(({ status }) => status !== 'queued'));
  return await mails();
}
const byRecipient = (a: Mail, b: Mail) => (String(a.maskedRecipient) < String(b.maskedRecipient) ? -1 : 1);
const kinds = (list: readonly { readonly kind: string }[]) => list.map(({ kind }) => kind).toSorted();

/** The mails about the app of this test: the calendar is that of all apps. */
const received = () => server.received.filter(({ text = '' }) => text.includes(founder.app.id));

const recipientsOf = (list: readonly ReceivedMail[]) =>
  list.map(({ recipients }) => recipients[0] ?? '').toSorted((a, b) => (a < b ? -1 : 1));

/** Opens the alert that an endpoint does not answer, by its facts. */
async function failingEndpoint(): Promise<string> {
  const { id } = await founder.ok<{ id: string }>('POST', path('/webhook-endpoints'), {
    url: 'https://hooks.example.com/tributary',
    eventTypes: ['commission.created'],
  });
  return id;
}
const fails = async (endpointId: string, isFailing: boolean) =>
  await service.sql`
    update webhook_endpoints set failing_since = ${isFailing ? instant(Date.now() - 2 * HOUR_MS) : null}::timestamptz where id = ${endpointId}`;

describe('mails to the people who run an app', () => {
  // @promise notify-alerts
  test('tell each of them once that an alert has opened, however often it is evaluated, and once that it has closed', async () => {
    await settings({ notificationEmails: [ANN, BEN, 'ANN@lantern.example'] });
    const endpointId = await failingEndpoint();
    await fails(endpointId, true);
    await Promise.all([runWorkflow('alerts'), runWorkflow('alerts'), runWorkflow('alerts')]);
    await runWorkflow('alerts');
    const opened = { kind: 'alert_opened', status: 'sent', affiliateId: null };
    expect((await settled()).toSorted(byRecipient)).toMatchObject([
      { ...opened, maskedRecipient: 'a•••@lantern.example' },
      { ...opened, maskedRecipient: 'b•••@lantern.example' },
    ]);
    expect(recipientsOf(server.received)).toEqual([ANN, BEN]);
    const [mail] = server.received;
    expect(mail?.subject).toMatch(/: Your endpoint does not answer$/);
    expect(mail?.text).toContain(
      'An endpoint of your webhooks does not accept messages. Look at the attempts.',
    );
    expect(mail?.text).toContain(`https://partners.example.com/console/apps/${founder.app.id}/alerts`);
    expect(mail?.text).toContain('can be removed');

    await fails(endpointId, false);
    await runWorkflow('alerts');
    await runWorkflow('alerts');
    expect(kinds(await settled())).toEqual(['alert_closed', 'alert_closed', 'alert_opened', 'alert_opened']);
    expect(server.received.at(-1)?.text).toContain(
      'It accepts messages again, or somebody changed or deleted it.',
    );
    // No address is kept.
    const stored = await service.sql`select recipient from emails where app_id = ${founder.app.id}`;
    expect(JSON.stringify(stored)).not.toContain('ann@');
  });

  // @promise notify-bounded
  test('stop at the third opening within a day for a rule that flaps, which the third mail says, and begin again a day later', async () => {
    await settings({ notificationEmails: [ANN] });
    const endpointId = await failingEndpoint();
    for (let n = 0; n < 6; n += 1) {
      await fails(endpointId, true);
      await runWorkflow('alerts');
      await fails(endpointId, false);
      await runWorkflow('alerts');
    }
    expect(kinds(await settled())).toEqual([
      'alert_closed',
      'alert_closed',
      'alert_opened',
      'alert_opened',
      'alert_opened',
    ]);
    const third = server.received.filter(({ text = '' }) => text.includes('third time within a day'));
    expect(third).toHaveLength(1);
    expect(third[0]?.subject).not.toContain('resolved');
  });

  // @promise notify-draft, schedule-alert
  test('tell that the payout schedule has drafted a run, whose alert opens at once, and without a mail of its own', async () => {
    await settings({ notificationEmails: [ANN] });
    await founder.ok('POST', path(`/affiliates/${founder.affiliateId}/entries`), {
      amountCents: 1_234_56,
      category: 'bonus',
      reason: 'A test',
      externalId: 'bonus-1',
    });
    // Set so long ago that its last day is over, whatever day of the month it is.
    await settings({ payoutSchedule: { day: 1, timezone: 'UTC', withoutPayee: 'include' } });
    await service.sql`update apps set payout_schedule_since = now() - interval '40 days' where id = ${founder.app.id}`;
    await eventually('the run is drafted', async () => {
      await runWorkflow('calendar');
      return (await founder.ok<{ items: object[] }>('GET', path('/payout-runs'))).items.length > 0;
    });
    await runWorkflow('calendar');
    const { items } = await founder.ok<{ items: { id: string }[] }>('GET', path('/payout-runs'));
    expect(items).toHaveLength(1);
    await runWorkflow('alerts');
    const { items: alerts } = await founder.ok<{ items: object[] }>('GET', path('/alerts'));
    expect(alerts).toMatchObject([
      { rule: 'draft_waiting', subject: items[0]?.id, facts: { scheduledMonth: expect.any(String) } },
    ]);
    expect(await settled()).toMatchObject([{ kind: 'run_drafted', status: 'sent' }]);
    const [mail] = server.received;
    expect(mail?.subject).toContain('waits for you: $1,234.56');
    expect(mail?.text).toContain(
      `https://partners.example.com/console/apps/${founder.app.id}/payouts/runs/${items[0]?.id}`,
    );
    expect(mail?.text).toContain('Pays: 1 creator, $1,234.56 (USD)');
  });

  // @promise weekly-report
  test('report on the week before, once for each address and week, with the week before that', async () => {
    const monday = mondayOfReport(Date.now());
    await settings({ notificationEmails: [ANN, BEN], name: 'Lantern Notes' });
    // Who sets an address today gets no report of the week that is over.
    await runWorkflow('calendar');
    expect(await mails()).toEqual([]);
    await service.sql`update apps set notifications_since = ${instant(monday)} where id = ${founder.app.id}`;
    const earn = async (amountCents: number, occurredAt: number) =>
      await insertEarning(
        service,
        { appId: founder.app.id },
        {
          affiliateId: founder.affiliateId,
          amountCents,
          occurredAt,
          dueAt: Date.now() + DAY_MS,
        },
      );
    await earn(2_000, monday - DAY_MS);
    await earn(1_000, monday - WEEK_MS);
    await earn(1_500, monday - WEEK_MS - 1_000);
    await earn(9_900, monday - 2 * WEEK_MS - 1_000);
    await Promise.all([runWorkflow('calendar'), runWorkflow('calendar')]);
    await runWorkflow('calendar');
    expect(kinds(await settled())).toEqual(['weekly_report', 'weekly_report']);
    expect(recipientsOf(received())).toEqual([ANN, BEN]);
    const { text = '', html = '', subject = '' } = received()[0] ?? {};
    expect(subject).toBe('Lantern Notes: your week, $0.00 revenue');
    expect(text).toMatch(/^Commissions +\$30\.00 +\$15\.00 +\+100 %$/m);
    expect(text).toMatch(/^Creator +Revenue +Commissions$/m);
    expect(text).toContain('No alert is open.');
    expect(html).toContain('<table>');
    // An address that is added later gets the next one.
    await settings({ notificationEmails: [ANN, BEN, 'cleo@lantern.example'] });
    await runWorkflow('calendar');
    expect(await mails()).toHaveLength(2);
  });

  // @promise duties-independent
  test('report on the week before although the drafts of payout schedules fail, and the workflow says what failed', async () => {
    await settings({ notificationEmails: [ANN] });
    await service.sql`
      update apps set notifications_since = ${instant(mondayOfReport(Date.now()))} where id = ${founder.app.id}`;
    await service.sql`alter table payout_schedule_months rename to test_away`;
    try {
      await expect(runWorkflow('calendar')).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/^draftScheduledRuns: /), type: 'CalendarIncomplete' },
      });
    } finally {
      await service.sql`alter table test_away rename to payout_schedule_months`;
    }
    expect(kinds(await settled())).toEqual(['weekly_report']);
  });

  // @promise weekly-report-off
  test('report nothing while the report is turned off, and nothing about the weeks before when it is turned on again', async () => {
    const monday = mondayOfReport(Date.now());
    await settings({ notificationEmails: [ANN], weeklyReport: false });
    await service.sql`update apps set notifications_since = ${instant(monday)} where id = ${founder.app.id}`;
    await runWorkflow('calendar');
    await settings({ weeklyReport: true });
    await runWorkflow('calendar');
    expect(await mails()).toEqual([]);
  });

  /** Writes a mail to an address of the settings, which the mail server does not take yet. */
  const refusedMail = async () => {
    await settings({ notificationEmails: [ANN] });
    server.refusesRecipients = 450;
    const endpointId = await failingEndpoint();
    await fails(endpointId, true);
    await runWorkflow('alerts');
    await eventually('an attempt has failed', async () => (await mails())[0]?.lastProblem != null);
  };

  test('go to an address whose upper and lower case was changed before they were sent', async () => {
    await refusedMail();
    await settings({ notificationEmails: [ANN.toUpperCase()] });
    server.refusesRecipients = null;
    expect(await settled()).toMatchObject([{ status: 'sent' }]);
  });

  test('go to nobody whose address was removed before they were sent', async () => {
    await refusedMail();
    await settings({ notificationEmails: [] });
    expect(await settled()).toMatchObject([
      {
        status: 'skipped',
        lastProblem: 'The settings of the app do not have the address any more.',
        maskedRecipient: 'a•••@lantern.example',
      },
    ]);
    expect(server.received).toEqual([]);
  });
});

describe('a creator whose address changes', () => {
  const creator = () => path(`/affiliates/${founder.affiliateId}`);
  const setAddress = async (email: string | null) => await founder.ok('PATCH', creator(), { email });

  // @promise email-address-changed
  test('gets a mail at the former address, and not at the new one, which the mail does not name', async () => {
    await setAddress('old@example.com');
    await setAddress('OLD@example.com');
    await setAddress('new@example.com');
    await setAddress('new@example.com');
    expect(await settled()).toMatchObject([{ kind: 'address_changed', status: 'sent' }]);
    expect(server.received.map(({ recipients }) => recipients)).toEqual([['OLD@example.com']]);
    const { text = '', html = '' } = server.received[0] ?? {};
    expect(text).toContain('Another e-mail address was set for your page');
    expect(`${text}${String(html)}`).not.toContain('new@');
    const stored = await service.sql`select recipient from emails where app_id = ${founder.app.id}`;
    expect(stored).toEqual([{ recipient: 'O•••@example.com' }]);
  });

  test('gets a mail at the address that was removed before, within a week, and not by the removal', async () => {
    await setAddress('old@example.com');
    await setAddress(null);
    await setAddress('OLD@example.com');
    await setAddress(null);
    expect(await mails()).toEqual([]);
    await setAddress('new@example.com');
    expect(await settled()).toMatchObject([{ kind: 'address_changed', status: 'sent' }]);
    expect(server.received.map(({ recipients }) => recipients)).toEqual([['OLD@example.com']]);
    await setAddress(null);
    await service.sql.transaction(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`
        update former_addresses set replaced_at = replaced_at - interval '7 days'
         where affiliate_id = ${founder.affiliateId}`;
    });
    await setAddress('newest@example.com');
    expect(await mails()).toHaveLength(1);
  });

  test('gets at most five such mails a day', async () => {
    for (let n = 0; n < 8; n += 1) await setAddress(`address-${n}@example.com`);
    expect(await settled()).toHaveLength(5);
  });
});

test('without a mail server, what an alert writes is skipped and nothing else changes', async () => {
  const plain = await startTestService({ settings: { relay: { overdueMs: 30_000, pauseMs: 100 } } });
  try {
    const other = await setUpFounder(plain);
    const base = `/apps/${other.app.id}`;
    await other.ok('PATCH', `${base}/settings`, { notificationEmails: [ANN] });
    await plain.sql`
      insert into alerts (id, app_id, rule, subject, facts, opened_at)
      values (${newId('alert')}, ${other.app.id}, 'provider_silent', 'stripe', '{"lastAcceptedAt": 0}', now())`;
    const read = async () => (await other.ok<{ items: Mail[] }>('GET', `${base}/emails`)).items[0];
    await eventually('the mail is skipped', async () => (await read())?.status === 'skipped');
    expect(await read()).toMatchObject({ lastProblem: 'No mail server is configured.' });
  } finally {
    await plain.close();
  }
});
