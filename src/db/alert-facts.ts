import type {
  AlertInputs,
  EndpointFacts,
  LedgerFacts,
  ProviderFacts,
  Rhythm,
  RunFacts,
} from '../domain/alerts.ts';
import { mayBeSilent, MOST_ACCEPTED, RHYTHM_MS } from '../domain/alerts.ts';
import type { AppId } from '../domain/ids.ts';
import { HOUR_MS } from '../domain/time.ts';
import { loadRefunds } from './refund-rollups.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** How many failing deliveries of an app are counted at most. */
const MOST_FAILING = 200;
/** How many items of a payout run are read to find when it advanced last: its latest page of requests. */
const LATEST_ITEMS = 100;

/** A row of an app. */
type Of<T> = T & { readonly appId: AppId };

/** Returns the next apps after an id, in the order of their ids. */
export async function appsAfter(sql: Sql, after: string, limit: number): Promise<AppId[]> {
  const rows = await sql<{ id: AppId }>`select id from apps where id > ${after} order by id limit ${limit}`;
  return rows.map(({ id }) => id);
}

/**
 * Returns what the rules of alerts need to know of apps, as it is at `now`, epoch ms. It reads a few rows of indexes per app and provider,
 * and at most `MOST_ACCEPTED` of a provider that sends nothing. `hasAlert` says of which providers the silence is known already.
 */
export async function loadAlertInputs(
  sql: Sql,
  appIds: readonly AppId[],
  {
    providers,
    now,
    hasAlert,
  }: {
    readonly providers: readonly string[];
    readonly now: number;
    readonly hasAlert: (appId: AppId, provider: string) => boolean;
  },
): Promise<ReadonlyMap<AppId, AlertInputs>> {
  const ofProviders = await loadProviders(sql, appIds, providers, now);
  const withRhythm: Of<ProviderFacts>[] = [];
  for (const row of ofProviders) {
    const { appId, provider, lastAcceptedAt } = row;
    const isAsked = lastAcceptedAt !== null && mayBeSilent(row, now) && !hasAlert(appId, provider);
    withRhythm.push(
      isAsked ? { ...row, rhythm: await loadRhythm(sql, appId, provider, lastAcceptedAt) } : row,
    );
  }
  const runs = await loadRuns(sql, appIds);
  const endpoints = await loadEndpoints(sql, appIds);
  const refunds = await loadRefunds(sql, appIds, now);
  const ledgers = await loadLedgers(sql, appIds);
  const of = <T>(rows: readonly Of<T>[], id: AppId) => rows.filter(({ appId }) => appId === id);
  return new Map(
    appIds.map((id) => [
      id,
      {
        providers: of(withRhythm, id),
        runs: of(runs, id),
        endpoints: of(endpoints, id),
        refunds: of(refunds, id)[0] ?? null,
        ledger: of(ledgers, id)[0] ?? null,
      },
    ]),
  );
}

/** Returns how the webhooks of each provider arrive, without their rhythms. */
async function loadProviders(
  sql: Sql,
  appIds: readonly AppId[],
  providers: readonly string[],
  now: number,
): Promise<Of<ProviderFacts>[]> {
  return await sql<Of<ProviderFacts>>`
    select a.app_id, p.provider, s.found is not null as is_configured, last.received_at as last_accepted_at, null as rhythm,
           coalesce(f.count, 0) as failing, refused.count as refused, refused.last_at as last_refused_at
      from unnest(${[...appIds]}::text[]) a (app_id)
     cross join lateral (
       -- A delivery has this status once an attempt at it has failed.
       select jsonb_object_agg(n.provider, n.count) as counts
         from (select x.provider, count(*) as count
                 from ((select d.provider, d.is_self_test from deliveries d
                         where d.app_id = a.app_id and d.processing_status = 'failed' and d.processing_status <> 'processed'
                           and d.received_at >= ${instant(now - HOUR_MS)}
                         order by d.received_at desc, d.id desc limit ${MOST_FAILING})
                       union all
                       (select d.provider, d.is_self_test from deliveries d
                         where d.app_id = a.app_id and d.processing_status = 'processing' and d.processing_status <> 'processed'
                         order by d.received_at desc, d.id desc limit ${MOST_FAILING})) x
                where not x.is_self_test group by 1) n) failing
     cross join unnest(${[...providers]}::text[]) p (provider)
     cross join lateral (select (failing.counts->>p.provider)::bigint as count) f
     cross join lateral (
       select (select true from webhook_secrets w
                where w.app_id = a.app_id and w.provider = p.provider and w.expires_at is null limit 1) as found) s
     cross join lateral (
       select (select d.received_at from deliveries d
                where d.app_id = a.app_id and d.provider = p.provider and d.signature_valid and not d.is_self_test
                  and d.proof->>'kind' is distinct from 'reconciliation'
                order by d.received_at desc nulls last limit 1) as received_at) last
     cross join lateral (
       select coalesce(sum(d.refused_count), 0)::bigint as count,
              (select l.received_at from deliveries l
                where l.app_id = a.app_id and l.provider = p.provider and l.refused_hour is not null
                order by l.refused_hour desc limit 1) as last_at
         from deliveries d
        where d.app_id = a.app_id and d.provider = p.provider and d.refused_hour is not null
          and d.refused_hour >= date_trunc('hour', ${instant(now)}::timestamptz, 'UTC') - interval '1 hour') refused`;
}

/** Returns the rhythm of the webhooks that a provider sent in the 28 days up to its latest one. */
async function loadRhythm(sql: Sql, appId: AppId, provider: string, lastAcceptedAt: number): Promise<Rhythm> {
  return await sql.one<Rhythm>`
    select count(*) as accepted, (extract(epoch from percentile_disc(0.95) within group (order by gap)) * 1000)::bigint as usual_gap_ms
      from (select r.received_at - lag(r.received_at) over (order by r.received_at) as gap
              from (select d.received_at from deliveries d
                     where d.app_id = ${appId} and d.provider = ${provider} and d.signature_valid and not d.is_self_test
                       and d.proof->>'kind' is distinct from 'reconciliation'
                       and d.received_at >= ${instant(lastAcceptedAt - RHYTHM_MS)}
                     order by d.received_at desc nulls last limit ${MOST_ACCEPTED}) r) g`;
}

/** Returns the draft or approved payout run of each app, which has at most one. */
async function loadRuns(sql: Sql, appIds: readonly AppId[]): Promise<Of<RunFacts>[]> {
  return await sql<Of<RunFacts>>`
    select r.app_id, r.id, r.status, r.total_cents, r.item_count, r.scheduled_month, r.created_at, r.expires_at, r.approved_at, last.at as advanced_at
      from unnest(${[...appIds]}::text[]) a (app_id)
     cross join lateral (
       select * from payout_runs x where x.app_id = a.app_id and x.status in ('draft', 'approved') offset 0) r
     cross join lateral (
       select case when r.status = 'approved' then
                (select max(greatest(q.created_at, q.settled_at))
                   from (select i.request_id from payout_run_items i
                          where i.run_id = r.id
                            and i.position < coalesce((select w.position from payout_run_items w
                                                        where w.run_id = r.id and w.request_id is null
                                                        order by w.position limit 1), r.item_count + 1)
                          order by i.position desc limit ${LATEST_ITEMS}) i
                  cross join lateral (select * from payout_requests y where y.id = i.request_id offset 0) q) end as at) last`;
}

/** Returns the endpoints of each app that were not deleted, also that of Slack. */
async function loadEndpoints(sql: Sql, appIds: readonly AppId[]): Promise<Of<EndpointFacts>[]> {
  return await sql<Of<EndpointFacts>>`
    select e.app_id, e.id, e.is_slack, e.deactivated_at, e.deactivated_reason, e.failing_since
      from unnest(${[...appIds]}::text[]) a (app_id)
     cross join lateral (select * from webhook_endpoints x where x.app_id = a.app_id and x.slot is not null offset 0) e`;
}

/** Returns what the last checks of the ledger found in apps. */
async function loadLedgers(sql: Sql, appIds: readonly AppId[]): Promise<Of<LedgerFacts>[]> {
  return await sql<Of<LedgerFacts>>`
    select a.app_id, f.rules, f.violations, f.rule, f.found_at
      from unnest(${[...appIds]}::text[]) a (app_id)
     cross join lateral (
       select count(*)::int as rules, sum(violations)::int as violations, min(check_name) as rule, min(found_at) as found_at
         from ledger_findings x where x.app_id = a.app_id) f
     where f.rules > 0`;
}
