import type { MailFacts, WeekSums } from '../domain/email.ts';
import type { AppId } from '../domain/ids.ts';
import { WEEK_MS } from '../domain/weekly-report.ts';
import type { Alert } from './alerts.ts';
import { listAlerts } from './alerts.ts';
import { databaseClock } from './clock.ts';
import type { EmailToSend } from './emails.ts';
import { readLeaders } from './leaders.ts';
import { readDueTotals } from './payout-lists.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';
import { readTimeseries } from './timeseries.ts';
import type { TimeseriesPoint } from './timeseries.ts';

/** A mail to one of the people who run an app. */
export type EmailOfApp = EmailToSend & { readonly appId: AppId };

interface Deps {
  readonly sql: Sql;
  readonly publicUrl: string;
  readonly titleOf: (provider: string) => string;
}

/** The creators and the open alerts that a report names. */
const MOST_NAMED = 5;
/** New creators of a week are counted up to this. */
const MOST_NEW_CREATORS = 10_000;

/** Returns the fact of a mail to the people who run an app: its subject is the fact and a part of the hash of the address. */
const factOf = ({ subjectId }: EmailOfApp): string => subjectId.split('/', 1)[0] ?? '';

const pageOfApp = (publicUrl: string, appId: AppId, page: string) =>
  `${publicUrl}/console/apps/${appId}/${page}`;

/** Returns what the mail about an alert tells, or why there is nothing to tell any more. */
export async function readAlert(
  { sql, publicUrl, titleOf }: Deps,
  email: EmailOfApp,
  kind: 'alert_opened' | 'alert_closed',
): Promise<MailFacts | string> {
  const alert = await sql.maybe<Alert & { readonly mailNumber: number }>`
    select id, rule, subject, facts, opened_at, closed_at, mail_number
      from alerts where app_id = ${email.appId} and id = ${factOf(email)}`;
  if (alert === undefined) return 'The alert does not exist.';
  if (kind === 'alert_opened' && alert.closedAt !== null && email.attempts > 0)
    return 'The alert was closed meanwhile.';
  const { rule, subject, facts, openedAt, closedAt } = alert;
  return {
    kind,
    senderName: email.senderName,
    rule,
    subject: titleOf(subject),
    facts,
    openedAt,
    closedAt,
    isLast: alert.mailNumber >= 3,
    pageUrl: pageOfApp(publicUrl, email.appId, 'alerts'),
  };
}

/** Returns what the mail about a draft of the payout schedule tells, or why there is nothing to tell any more. */
export async function readDraft({ sql, publicUrl }: Deps, email: EmailOfApp): Promise<MailFacts | string> {
  const run = await sql.maybe<{
    id: string;
    month: string;
    itemCount: number;
    totalCents: number;
    excludedCount: number;
    expiresAt: number;
  }>`
    select r.id, r.scheduled_month as month, r.item_count, r.total_cents::float8 as total_cents, r.expires_at,
           (select count(*) from payout_run_exclusions x where x.run_id = r.id)::int as excluded_count
      from payout_runs r
     where r.app_id = ${email.appId} and r.id = ${factOf(email)} and r.status = 'draft' and r.expires_at > now()`;
  if (run === undefined) return 'The draft was approved, cancelled or replaced meanwhile.';
  const { id, ...facts } = run;
  return {
    ...facts,
    kind: 'run_drafted',
    senderName: email.senderName,
    pageUrl: pageOfApp(publicUrl, email.appId, `payouts/runs/${id}`),
  };
}

/** Returns what a weekly report tells: the sums of the week as they are now, and what is due and open at this moment. */
export async function readReport(
  { sql, publicUrl, titleOf }: Deps,
  email: EmailOfApp,
): Promise<MailFacts | string> {
  const { appId } = email;
  const to = Date.parse(factOf(email));
  const from = to - WEEK_MS;
  const points = await readTimeseries(sql, appId, {
    from: from - WEEK_MS,
    to,
    interval: 'week',
    timezone: 'UTC',
    affiliateId: null,
    linkId: null,
  });
  const sums = async (at: number): Promise<WeekSums> =>
    sumsOf(
      points?.find((point) => point.at === at),
      await countNewCreators(sql, appId, at),
    );
  const week = await sums(from);
  const before = await sums(from - WEEK_MS);
  const { rows: leaders, isComplete } = await readLeaders(sql, appId, {
    by: 'affiliate',
    measure: 'commissions',
    from,
    to,
  });
  const { payees, payableCents } = await readDueTotals(sql, appId, await databaseClock(sql));
  const alerts = await listAlerts(sql, appId, 'open', null, MOST_NAMED);
  return {
    kind: 'weekly_report',
    senderName: email.senderName,
    from,
    to,
    week,
    before,
    areAllCompared: isComplete,
    topCreators: leaders.slice(0, MOST_NAMED).map(({ affiliateName, revenueCents, commissionCents }) => ({
      name: affiliateName,
      revenueCents,
      commissionCents,
    })),
    due: { payees, payableCents },
    openAlerts: alerts.rows.map(({ rule, subject, facts, openedAt }) => ({
      rule,
      subject: titleOf(subject),
      facts,
      openedAt,
    })),
    hasMoreAlerts: alerts.next !== null,
    pageUrl: pageOfApp(publicUrl, appId, 'overview'),
  };
}

function sumsOf(point: TimeseriesPoint | undefined, newCreators: number): WeekSums {
  return {
    revenueCents: point?.revenueCents ?? 0,
    commissionCents: point?.commissionCents ?? 0,
    paidUsers: point?.paidUsers ?? 0,
    installs: point?.installs ?? 0,
    clicks: point?.clicks ?? 0,
    newCreators,
  };
}

async function countNewCreators(sql: Sql, appId: AppId, from: number): Promise<number> {
  const { count } = await sql.one<{ count: number }>`
    select count(*)::int as count
      from (select from affiliates
             where app_id = ${appId} and created_at >= ${instant(from)} and created_at < ${instant(from + WEEK_MS)}
             limit ${MOST_NEW_CREATORS}) n`;
  return count;
}
