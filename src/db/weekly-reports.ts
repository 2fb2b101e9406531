import type { AppId } from '../domain/ids.ts';
import { reportDueAt } from '../domain/weekly-report.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Returns the next apps after an id that have addresses for reports, in the order of their ids. */
export async function appsWithReportsAfter(sql: Sql, after: string, limit: number): Promise<AppId[]> {
  const rows = await sql<{ id: AppId }>`
    select id from apps where notification_emails is not null and id > ${after} order by id limit ${limit}`;
  return rows.map(({ id }) => id);
}

/**
 * Writes the report of a Monday (its begin, epoch ms) for those of the apps that want it: a mail for each address. Returns the number of
 * mails. Each app has it once: its row is written by the same statement. An app that had no address on that Monday has none.
 */
export async function writeWeeklyReports(
  sql: Sql,
  appIds: readonly AppId[],
  monday: number,
): Promise<number> {
  const date = new Date(monday).toISOString().slice(0, 10);
  const { mails } = await sql.one<{ mails: number }>`
    with written as (
      insert into weekly_reports (app_id, monday)
      select id, ${date}::date from apps
       where id = any(${[...appIds]}::text[]) and notification_emails is not null
         and weekly_report is null and notifications_since <= ${instant(reportDueAt(monday))}
       order by id
      on conflict (app_id, monday) do nothing
      returning app_id
    ), mailed as (
      select queue_notification(app_id, 'weekly_report', ${date}) as mails from written
    )
    select coalesce(sum(mails), 0)::int as mails from mailed`;
  return mails;
}
