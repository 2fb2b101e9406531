import type { AppId } from '../domain/ids.ts';
import { reportDueAt } from '../domain/weekly-report.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** What one page of reports did. */
export interface WrittenReports {
  readonly mails: number;
  /** Null if no app is left. */
  readonly lastAppId: AppId | null;
  readonly isLast: boolean;
}

/**
 * Writes the report of a Monday (its begin, epoch ms) for the next apps after one that want it: a mail for each address. Each app has it
 * once: its row is written by the same statement. An app that had no address on that Monday has none.
 */
export async function writeWeeklyReports(
  sql: Sql,
  { after, monday, limit }: { readonly after: string; readonly monday: number; readonly limit: number },
): Promise<WrittenReports> {
  const date = new Date(monday).toISOString().slice(0, 10);
  const { apps, lastAppId, mails } = await sql.one<{ apps: number; lastAppId: AppId | null; mails: number }>`
    with page as materialized (
      select id, notifications_since, weekly_report from apps
       where notification_emails is not null and id > ${after} order by id limit ${limit}
    ), written as (
      insert into weekly_reports (app_id, monday)
      select id, ${date}::date from page
       where weekly_report is null and notifications_since <= ${instant(reportDueAt(monday))}
      on conflict (app_id, monday) do nothing
      returning app_id
    ), mailed as (
      select queue_notification(app_id, 'weekly_report', ${date}) as mails from written
    )
    select (select count(*) from page)::int as apps, (select max(id) from page) as last_app_id, 
           (select coalesce(sum(mails), 0) from mailed)::int as mails`;
  return { mails, lastAppId, isLast: apps < limit };
}
