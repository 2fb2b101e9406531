import type { AlertDecision, AlertFacts, AlertRule, OpenAlert } from '../domain/alerts.ts';
import type { AlertId, AppId } from '../domain/ids.ts';
import { newId } from './new-id.ts';
import { pageOf, positionInstant } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

export interface Alert {
  readonly id: AlertId;
  readonly rule: AlertRule;
  readonly subject: string;
  readonly facts: AlertFacts;
  readonly openedAt: number;
  /** Null while it is open. */
  readonly closedAt: number | null;
}

/** The states of an alert, as a filter. */
export const ALERT_STATUSES = ['open', 'closed'] as const;
export type AlertStatus = (typeof ALERT_STATUSES)[number];

/** The sort key of a list of alerts: `o` for an open one or `c`, and when it was opened, microseconds. */
export const ALERT_KEY = /^[oc]\d{1,17}$/;

/** Returns a page of an app's alerts: open ones first, then those that were opened last. A null status selects all. */
export async function listAlerts(
  sql: Sql,
  appId: AppId,
  status: AlertStatus | null,
  after: Position<string> | null,
  limit: number,
): Promise<Page<Alert, string>> {
  const none = sql.fragment``;
  const ofStatus = status === null ? none : sql.fragment`and (closed_at is null) = ${status === 'open'}`;
  const from =
    after === null
      ? none
      : sql.fragment`
          and ((closed_at is null), opened_at, id)
              < (${after.sortKey.startsWith('o')}, ${positionInstant(sql, Number(after.sortKey.slice(1)))}, ${after.id})`;
  const rows = await sql<Alert & Position<string>>`
    select id, rule, subject, facts, opened_at, closed_at,
           case when closed_at is null then 'o' else 'c' end || (extract(epoch from opened_at) * 1000000)::bigint as sort_key
      from alerts
     where app_id = ${appId} ${ofStatus} ${from}
     order by (closed_at is null) desc, opened_at desc, id desc limit ${limit + 1}`;
  return pageOf(rows, limit);
}

/** Returns the open alerts of apps. */
export async function findOpenAlerts(
  sql: Sql,
  appIds: readonly AppId[],
): Promise<(OpenAlert & { readonly appId: AppId })[]> {
  return await sql`
    select o.app_id, o.id, o.rule, o.subject, o.facts
      from unnest(${[...appIds]}::text[]) a (app_id)
     cross join lateral (select * from alerts x where x.app_id = a.app_id and x.closed_at is null offset 0) o`;
}

/** How many alerts an evaluation changed. */
export interface ChangedAlerts {
  readonly opened: number;
  readonly closed: number;
}

/**
 * Opens and closes the alerts of apps, as it was decided with what was so at `now`, epoch ms. Returns how many it changed. An alert that is
 * open already, was closed since, or was opened since stays as it is, so that a repetition and a late process change nothing.
 */
export async function applyAlertDecisions(
  sql: Sql,
  decisions: ReadonlyMap<AppId, AlertDecision>,
  now: number,
): Promise<ChangedAlerts> {
  const open = [...decisions].flatMap(([appId, decision]) =>
    decision.open.map((finding) => ({ id: newId('alert'), appId, ...finding })),
  );
  const close = [...decisions.values()].flatMap((decision) => decision.close);
  const closed =
    close.length === 0
      ? []
      : await sql`
          update alerts set closed_at = ${instant(now)}
           where id = any(${close}::text[]) and closed_at is null and opened_at <= ${instant(now)}
          returning id`;
  const opened =
    open.length === 0
      ? []
      : await sql`
          insert into alerts (id, app_id, rule, subject, facts, opened_at)
          select x.id, x."appId", x.rule, x.subject, x.facts, ${instant(now)}::timestamptz
            from jsonb_to_recordset(${sql.json(open)}) x (id text, "appId" text, rule text, subject text, facts jsonb)
           where not exists (select from alerts c
                              where c.app_id = x."appId" and c.rule = x.rule and c.subject = x.subject and c.closed_at >= ${instant(now)})
          on conflict do nothing
          returning id`;
  return { opened: opened.length, closed: closed.length };
}
