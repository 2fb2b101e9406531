import type { AppId, CommissionId, DeliveryId, EventId, PaymentId, SecretId } from '../domain/ids.ts';
import type { Environment } from '../domain/events.ts';
import { RECONCILED_EVENT_PREFIX } from '../domain/reconcile-findings.ts';
import type { RecordedGroup, RecordedPayment } from '../domain/reconcile-findings.ts';
import type { Proof } from '../providers/proof.ts';
import type { ProcessingStatus } from '../domain/delivery.ts';
import { givenBackSince, isInRunningTotal, isRunningTotal } from './running-totals.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

/** A payment of an export: its store and all names that the export has for it. */
export interface WantedPayment {
  readonly store: string;
  readonly refs: readonly string[];
}

/** What is stored about a payment, with the ids of its rows: one per reference that was reported as a payment. */
export interface FoundGroup extends RecordedGroup {
  readonly paymentIds: readonly PaymentId[];
}

/** The columns of a `RecordedPayment`, for a payment `p` and its event `e`. */
function paymentObject(sql: Sql): Fragment {
  return sql.fragment`
    jsonb_build_object(
      'store', p.store, 'ref', p.ref, 'currency', p.currency, 'amountMinor', p.amount_minor, 'usdCents', p.usd_cents,
      'occurredAt', epoch_ms(p.occurred_at), 'eventId', p.event_id, 'customerUserId', e.customer_user_id,
      'isAttributed', p.binding_id is not null, 'earnedCents', p.earned_cents, 'likelyCause', p.likely_cause)`;
}

/**
 * Returns what is stored about production payments, in the order of `wanted`, under any of their references. Of several rows
 * of one payment, the one that counts is returned, and of the whole rather than of a part.
 */
export async function findRecorded(
  sql: Sql,
  appId: AppId,
  wanted: readonly WantedPayment[],
): Promise<FoundGroup[]> {
  const rows = wanted.map(({ store, refs }, n) => ({ n, store, refs }));
  return await sql<FoundGroup>`
    with wanted as materialized (
      select n, store, refs from jsonb_to_recordset(${sql.json(rows)}) w (n int, store text, refs text[])
    ), names as materialized (
      select w.n, w.store, r.ref
        from wanted w cross join lateral same_payment_refs(${appId}, 'production', w.store, w.refs) r
    ), found as (
      select x.n, jsonb_agg(p.id) as payment_ids,
             (array_agg(${paymentObject(sql)}
                        order by p.duplicate_of is not null, p.is_part, p.binding_id is null, p.id))[1] as payment
        from names x
       cross join lateral (
         select y.*, is_part_of(y, w) as is_part
           from payments y left join lateral whole_payment(y) w on true
          where y.app_id = ${appId} and y.environment = 'production' and y.store = x.store collate "default"
            and y.ref = x.ref collate "default" offset 0) p
       cross join lateral (select * from events y where y.id = p.event_id offset 0) e
       group by x.n
    ), refunds as (
      select x.n, jsonb_agg(jsonb_build_object(
               'ref', a.ref, 'kind', a.kind, 'state', a.state, 'reversesAll', a.reverses_all, 'currency', a.currency,
               'amountMinor', greatest(0, a.amount_minor - ${givenBackSince(sql, sql.fragment`a`)}), 'usdCents', a.usd_cents,
               'occurredAt', epoch_ms(a.occurred_at), 'eventId', a.event_id) order by a.occurred_at, a.id) as adjustments
        from names x
       cross join lateral (
         select * from adjustments y
          where y.app_id = ${appId} and y.environment = 'production' and y.store = x.store collate "default"
            and y.payment_ref = x.ref collate "default" offset 0) a
       where not ${isInRunningTotal(sql, sql.fragment`a`)}
       group by x.n
    )
    select found.payment, coalesce(found.payment_ids, '[]') as payment_ids,
           coalesce(refunds.adjustments, '[]') as adjustments
      from wanted w
      left join found on found.n = w.n
      left join refunds on refunds.n = w.n
     order by w.n`;
}

/** The condition that a code `of` (`namespace`, `value`) is or was one of a creator of the app. Of some namespaces events state the id. */
const isOfCreator = (sql: Sql, appId: AppId, of: Fragment): Fragment => sql.fragment`
  (exists (select from codes y where y.app_id = ${appId} and y.namespace = ${of}.namespace and y.external_id = ${of}.value collate "C")
   or exists (select from codes y where y.app_id = ${appId} and y.namespace = ${of}.namespace and y.external_id is null
                and lower(y.value) collate "C" = lower(${of}.value) collate "C"))`;

/** Returns those of the values of codes that are or were codes of creators of the app. */
export async function findCodesOfCreators(
  sql: Sql,
  appId: AppId,
  codes: readonly { readonly namespace: string; readonly value: string }[],
): Promise<ReadonlySet<string>> {
  const stated = codes.map(({ namespace, value }) => ({ namespace, value }));
  const rows = await sql<{ value: string }>`
    select s.value from jsonb_to_recordset(${sql.json(stated)}) s (namespace text, value text)
     where ${isOfCreator(sql, appId, sql.fragment`s`)}`;
  return new Set(rows.map(({ value }) => value));
}

/**
 * Returns those of a provider's keys (a subscription, a customer) that lead to a creator of the app: a webhook has tied them to a user or to a
 * creator's code, or a code has bound them.
 */
export async function findKnownUserKeys(
  sql: Sql,
  appId: AppId,
  source: string,
  keys: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await sql<{ userKey: string }>`
    select user_key from user_links
     where app_id = ${appId} and environment = 'production' and source = ${source}
       and user_key = any(${[...keys]}::text[])
    union
    select s.user_key from subscription_codes s
     where s.app_id = ${appId} and s.environment = 'production' and s.source = ${source}
       and s.user_key = any(${[...keys]}::text[]) and ${isOfCreator(sql, appId, sql.fragment`s`)}
    union
    select customer_user_id from bindings
     where app_id = ${appId} and key_source = ${source} and customer_user_id = any(${[...keys]}::text[])`;
  return new Set(rows.map(({ userKey }) => userKey));
}

/** Where a page of an app's payments ended. */
export interface PaymentPosition {
  readonly store: string;
  readonly ref: string;
}

/** A payment of the app, with whether the provider of an export reported it first. */
export interface OtherPayment extends RecordedPayment {
  readonly paymentId: PaymentId;
  readonly isOwn: boolean;
}

/** A page of payments, with the position of the next one; null after the last. */
export interface PaymentsPage {
  readonly payments: readonly OtherPayment[];
  readonly next: PaymentPosition | null;
}

/**
 * Returns those production payments of a page that occurred in a range (epoch ms, both ends included), with whether a provider
 * reported them first. A page examines `limit` payments of the app, in the order of their references.
 */
export async function listPaymentsOf(
  sql: Sql,
  { appId, source, from, to }: { appId: AppId; source: string; from: number; to: number },
  after: PaymentPosition | null,
  limit: number,
): Promise<PaymentsPage> {
  const rows = await sql<{
    id: PaymentId;
    store: string;
    ref: string;
    isOwn: boolean;
    payment: RecordedPayment | null;
  }>`
    with page as materialized (
      select * from payments p
       where p.app_id = ${appId} and p.environment = 'production'
         and (p.store, p.ref) > (${after?.store ?? ''}, ${after?.ref ?? ''})
       order by p.store, p.ref limit ${limit}
    )
    select p.id, p.store, p.ref, e.source = ${source} as is_own,
           case when p.duplicate_of is null
                 and p.occurred_at between ${instant(from)} and ${instant(to)} then ${paymentObject(sql)} end as payment
      from page p
     cross join lateral (select * from events x where x.id = p.event_id offset 0) e
     order by p.store, p.ref`;
  const last = rows.at(-1);
  return {
    payments: rows.flatMap(({ id, isOwn, payment }) =>
      payment === null ? [] : [{ ...payment, paymentId: id, isOwn }],
    ),
    next: last === undefined || rows.length < limit ? null : { store: last.store, ref: last.ref },
  };
}

/** How an app's Stripe endpoint reports refunds. `unknown` until a webhook shows it. */
export type RefundReporting = 'single' | 'running_totals' | 'unknown';

/**
 * Returns how the app's Stripe endpoint reports refunds: each with an id of its own, or as the running total of a charge. A
 * refund of a payment without a charge has an id with both, and what was fed back shows nothing about the endpoint.
 */
export async function findRefundReporting(sql: Sql, appId: AppId): Promise<RefundReporting> {
  const { hasTotals, hasSingle } = await sql.one<{ hasTotals: boolean; hasSingle: boolean }>`
    select exists (
             select from adjustments a
              where a.app_id = ${appId} and a.environment = 'production' and ${isRunningTotal(sql, sql.fragment`a`)}) as has_totals,
           exists (
             select from adjustments a
               join events e on e.app_id = a.app_id and e.id = a.event_id
              where a.app_id = ${appId} and a.environment = 'production' and a.store = 'stripe' and a.kind = 'refund'
                and a.state = 'applied' and (starts_with(a.ref, 're_') or starts_with(a.ref, 'pyr_'))
                and e.source = 'stripe' and not starts_with(e.source_event_id, ${RECONCILED_EVENT_PREFIX})
                and exists (
                  select from same_payment_refs(a.app_id, a.environment, a.store, array[a.payment_ref]) n
                   where starts_with(n.ref, 'ch_') or starts_with(n.ref, 'py_'))) as has_single`;
  if (hasTotals) return 'running_totals';
  return hasSingle ? 'single' : 'unknown';
}

/** The webhook secret under which events of an export are stored. */
export interface ReconciliationSecret {
  readonly id: SecretId;
  readonly environment: Environment;
}

/** Returns the app's valid webhook secret of a provider, one for production first. Undefined without any. */
export async function findReconciliationSecret(
  sql: Sql,
  appId: AppId,
  provider: string,
): Promise<ReconciliationSecret | undefined> {
  const [secret] = await sql<ReconciliationSecret>`
    select id, environment from webhook_secrets
     where app_id = ${appId} and provider = ${provider} and live_slot is not null
       and (expires_at is null or expires_at > now())
     order by environment = 'production' desc, created_at desc`;
  return secret;
}

/** A delivery that was made from an export. */
export interface ReconciledDelivery {
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly proof: Proof;
  readonly bodySha256: Buffer;
  readonly body: Buffer;
  /** The key that the body is encrypted with, because it names an erased person. Null for a body in clear. */
  readonly bodyKeyId: string | null;
}

/** Returns which of several lists of hashes have one of an erased identifier of the app, by their index. */
export async function findErasedBodies(
  sql: Sql,
  appId: AppId,
  bodies: readonly (readonly Buffer[])[],
): Promise<ReadonlySet<number>> {
  const rows = bodies.map((hashes, n) => ({ n, hashes: hashes.map((hash) => hash.toString('hex')) }));
  const erased = await sql<{ n: number }>`
    select r.n from jsonb_to_recordset(${sql.json(rows)}) r (n int, hashes text[])
     where exists (select from erased_identifiers x
                    where x.app_id = ${appId}
                      and x.hash = any(array(select decode(h, 'hex') from unnest(r.hashes) h)))`;
  return new Set(erased.map(({ n }) => n));
}

/**
 * Stores deliveries that were made from an export, received now. The relay of a running service starts their workflows with
 * its next round. Storing them twice changes nothing.
 */
export async function acceptReconciled(
  sql: Sql,
  { appId, provider, secretId }: { appId: AppId; provider: string; secretId: SecretId },
  deliveries: readonly ReconciledDelivery[],
): Promise<void> {
  const rows = deliveries.map(({ bodySha256, body, ...row }) => ({
    ...row,
    bodySha256: bodySha256.toString('hex'),
    body: body.toString('hex'),
  }));
  await sql`
    with rows as (
      select * from jsonb_to_recordset(${sql.json(rows)})
        r ("deliveryId" text, "eventId" text, proof jsonb, "bodySha256" text, body text, "bodyKeyId" text)
    ), stored as (
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, proof,
                              body_sha256, event_id, relayed_at)
      select "deliveryId", ${appId}, ${provider}, date_trunc('milliseconds', now()), true, 'received', ${secretId}, proof,
             decode("bodySha256", 'hex'), "eventId", '-infinity'
        from rows
      on conflict (id) do nothing
      returning id
    )
    insert into delivery_bodies (delivery_id, body, encryption_key_id)
    select stored.id, decode(rows.body, 'hex'), rows."bodyKeyId" from stored join rows on rows."deliveryId" = stored.id`;
}

/** What became of a delivery. */
export interface ReconciledOutcome {
  readonly deliveryId: DeliveryId;
  readonly status: ProcessingStatus;
  readonly lastError: string | null;
  readonly commissionId: CommissionId | null;
  readonly isDone: boolean;
}

/** Returns what became of deliveries. */
export async function findReconciledOutcomes(
  sql: Sql,
  deliveryIds: readonly DeliveryId[],
): Promise<ReconciledOutcome[]> {
  return await sql<ReconciledOutcome>`
    select id as delivery_id, processing_status as status, last_error, commission_id, completed_at is not null as is_done
      from deliveries where id = any(${[...deliveryIds]}::text[])`;
}
