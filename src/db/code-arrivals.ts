import type { AffiliateStatus } from '../domain/attribution.ts';
import type { Environment } from '../domain/events.ts';
import type { AffiliateId, AppId, CodeId } from '../domain/ids.ts';
import { CODE_NAMESPACES } from '../domain/purchase-codes.ts';
import type { CodeNamespace, PurchaseCode } from '../domain/purchase-codes.ts';
import type { Fragment, Sql } from './sql.ts';

/** When a purchase came with a code, or the free beginning of a subscription. */
interface Arrival {
  /** Epoch ms. */
  readonly at: number;
  readonly environment: Environment;
}

/** A code that works, and when a purchase last came with it. */
export interface CodeInUse {
  readonly codeId: CodeId;
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly namespace: CodeNamespace;
  readonly value: string;
  /** What events of the provider state instead of the value. */
  readonly externalId: string | null;
  readonly createdAt: number;
  /** Null: none has. Purchases of self-tests do not count. */
  readonly lastArrival: Arrival | null;
}

/** Whom a code belongs to. */
interface CodeOwner {
  readonly affiliateId: AffiliateId;
  readonly affiliateName: string;
  readonly affiliateStatus: AffiliateStatus;
}

/** A code of a purchase. */
export interface ArrivedCode extends PurchaseCode {
  readonly arrivedAt: number;
  /** Null: nobody has a code that works. */
  readonly owner: CodeOwner | null;
}

/** A code of purchases that no creator has or had. */
export interface UnregisteredCode extends PurchaseCode {
  readonly lastArrival: Arrival;
}

/** Whether a purchase came with one of the codes of a namespace. */
export function hasArrived(namespace: CodeNamespace, codes: readonly CodeInUse[]): boolean {
  return codes.some((code) => code.namespace === namespace && code.lastArrival !== null);
}

/** Number of codes of a namespace that are shown, the latest. */
const CODES_OF_NAMESPACE = 10;
/** Number of the latest codes of purchases among which unregistered ones are looked for, and of those that are shown. */
const LATEST_ARRIVALS = 500;
const UNREGISTERED = 10;

/** Leaves out purchases of self-tests, whose references begin so. The indexes of arrivals leave them out, too. */
const isReal = (sql: Sql, payment: Fragment) => sql.fragment`
  not starts_with(${payment}.payment_ref, 'tributary_self_test_')`;

/**
 * The latest codes with which customers paid, or began a subscription for free, the latest first. Each part reads its own index.
 */
const latestArrivals = (sql: Sql, appId: AppId, limit: number) => sql.fragment`
  (select * from (
     (select app_id, namespace, value, environment, created_at from payment_codes y
       where y.app_id = ${appId} and ${isReal(sql, sql.fragment`y`)} order by y.created_at desc limit ${limit})
     union all
     (select app_id, namespace, value, environment, created_at from subscription_codes y
       where y.app_id = ${appId} order by y.created_at desc limit ${limit})) x
    order by created_at desc limit ${limit})`;

/** The arrivals of a row `c` of `codes`, in a table `y` of arrivals. */
const arrivedWith = (sql: Sql) => sql.fragment`
  y.app_id = c.app_id and y.namespace = c.namespace
  and lower(y.value) collate "C" = lower(coalesce(c.external_id, c.value)) collate "C"
  and (c.external_id is null or y.value = c.external_id collate "C")`;

/** Whether a row of `codes` is the code that an event states. */
const isCodeOf = (sql: Sql, code: Fragment, stated: Fragment) => sql.fragment`
  (${code}.external_id = ${stated}.value collate "C"
   or ${code}.external_id is null and lower(${code}.value) collate "C" = lower(${stated}.value) collate "C")`;

/** The `CodeOwner` of a code `p` that arrived. */
const ownerOf = (sql: Sql) => sql.fragment`
  (select jsonb_build_object('affiliateId', f.id, 'affiliateName', f.name, 'affiliateStatus', f.status)
     from codes c join affiliates f on f.id = c.affiliate_id
    where c.app_id = p.app_id and c.namespace = p.namespace and c.deactivated_at is null
      and ${isCodeOf(sql, sql.fragment`c`, sql.fragment`p`)}
    limit 1)`;

/** Returns the latest code that came with a purchase, also with a free beginning, of an app whose setting lets codes attribute. Undefined for another app. */
export async function findLatestCode(
  sql: Sql,
  appId: AppId,
): Promise<{ latest: ArrivedCode | null } | undefined> {
  return await sql.maybe<{ latest: ArrivedCode | null }>`
    select (select jsonb_build_object('namespace', p.namespace, 'value', p.value, 'arrivedAt', epoch_ms(p.created_at),
                                      'owner', ${ownerOf(sql)})
              from ${latestArrivals(sql, appId, 1)} p) as latest
      from apps where id = ${appId} and purchase_codes is not null`;
}

/** Returns the code that was read of the purchase of a self-test. Undefined if none was. */
export async function findTestedCode(
  sql: Sql,
  {
    appId,
    provider,
    sourceEventId,
  }: { readonly appId: AppId; readonly provider: string; readonly sourceEventId: string },
): Promise<ArrivedCode | undefined> {
  return await sql.maybe<ArrivedCode>`
    select p.namespace, p.value, p.created_at as arrived_at, ${ownerOf(sql)} as owner
      from events e
      join payment_codes p on p.app_id = e.app_id and p.environment = e.environment and p.store = e.store and p.payment_ref = e.payment_ref
     where e.app_id = ${appId} and e.source = ${provider} and e.source_event_id = ${sourceEventId}
     limit 1`;
}

/**
 * Returns the latest codes that work of each namespace, the latest first. Empty if codes attribute nothing in the app. A range
 * of namespaces and their order leave one index to the planner: by `=`, it would look for a rare namespace among all codes.
 */
export async function listCodesInUse(sql: Sql, appId: AppId): Promise<CodeInUse[]> {
  return await sql<CodeInUse>`
    select c.id as code_id, c.affiliate_id, (select f.name from affiliates f where f.id = c.affiliate_id) as affiliate_name,
           c.namespace, c.value, c.external_id, c.created_at,
           (select jsonb_build_object('at', epoch_ms(created_at), 'environment', environment)
              from (
                (select created_at, environment from payment_codes y
                  where ${arrivedWith(sql)} and ${isReal(sql, sql.fragment`y`)} order by created_at desc limit 1)
                union all
                (select created_at, environment from subscription_codes y
                  where ${arrivedWith(sql)} order by created_at desc limit 1)) x
             order by created_at desc limit 1) as last_arrival
      from apps
     cross join unnest(${CODE_NAMESPACES}::text[]) with ordinality n (namespace, position)
     cross join lateral (
       select * from codes x
        where x.app_id = ${appId} and x.namespace between n.namespace and n.namespace and x.deactivated_at is null
        order by x.namespace, x.created_at desc, x.id desc limit ${CODES_OF_NAMESPACE}) c
     where apps.id = ${appId} and apps.purchase_codes is not null
     order by n.position, c.created_at desc, c.id desc`;
}

/**
 * Returns codes with which the latest purchases came, and which no creator has or had, the latest first. A `campaign` is one only
 * where creators have such codes, which are among those in use: measurement tools name each of their campaigns.
 */
export async function listUnregisteredCodes(
  sql: Sql,
  appId: AppId,
  inUse: readonly CodeInUse[],
): Promise<UnregisteredCode[]> {
  const hasCampaigns = inUse.some(({ namespace }) => namespace === 'campaign');
  return await sql<UnregisteredCode>`
    select p.namespace, p.value, jsonb_build_object('at', epoch_ms(p.created_at), 'environment', p.environment) as last_arrival
      from (select distinct on (namespace, lower(value) collate "C") *
              from ${latestArrivals(sql, appId, LATEST_ARRIVALS)} latest
             order by namespace, lower(value) collate "C", created_at desc) p
     where not exists (
             select from codes c
              where c.app_id = ${appId} and c.namespace = p.namespace and c.external_id is null
                and lower(c.value) collate "C" = lower(p.value) collate "C")
       and not exists (
             select from codes c
              where c.app_id = ${appId} and c.namespace = p.namespace and c.external_id = p.value collate "C")
       and (p.namespace <> 'campaign' or ${hasCampaigns})
     order by p.created_at desc limit ${UNREGISTERED}`;
}
