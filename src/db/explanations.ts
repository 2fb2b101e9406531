import type { AttributableKey } from '../domain/attributable-key.ts';
import type { PolicyInputs, ShownPolicy } from '../domain/policy.ts';
import { paidAtOf, payersOf, withoutStoredPlaceholders } from '../domain/payers.ts';
import type {
  EventHistory,
  ExplainedCode,
  ExplainedCommission,
  ExplainedDelivery,
  ExplainedEvent,
  ExplainedUser,
} from '../domain/event-history.ts';
import type { AppId, EventId, PaymentId } from '../domain/ids.ts';
import type { ProviderName } from '../providers/index.ts';
import { attributableKeyOf } from './attributable-keys.ts';
import { isSimilarUserId, loadPayments } from './payments.ts';
import type { UserCandidate } from '../domain/payment-snapshot.ts';
import type { StoredPayment } from './payments.ts';
import { testAttributionOfUser } from './test-attributions.ts';
import { shownPolicyOf } from './policy-snapshot.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql } from './sql.ts';

type DeliveryWithEvent = ExplainedDelivery & {
  readonly provider: ProviderName;
  readonly event: ExplainedEvent | null;
  readonly duplicateOf: EventId | null;
};

/** Limit of lost touches per device. */
const LOST_TOUCHES = 20;
/** Limit of similar user ids per user. */
const SIMILAR_USERS = 5;

async function findDelivery(
  sql: Sql,
  appId: AppId,
  eventId: EventId,
): Promise<DeliveryWithEvent | undefined> {
  return await sql.maybe<DeliveryWithEvent>`
    select d.id as delivery_id, d.provider, d.received_at, d.processing_status,
           d.last_error, coalesce(d.proof->>'kind' = 'reconciliation', false) as is_reconciled, s.created_at as secret_set_at, s.environment as secret_environment,
           encode(d.body_sha256, 'hex') as body_sha256,
           (select length(b.body) from delivery_bodies b where b.delivery_id = d.id) as body_bytes,
           case when e.id is not null then jsonb_build_object(
             'sourceEventId', e.source_event_id, 'kind', e.kind, 'environment', e.environment,
             'occurredAt', epoch_ms(e.occurred_at), 'productId', e.product_id, 'store', e.store,
             'paymentRef', e.payment_ref, 'currency', e.currency, 'amountMinor', e.amount_minor,
             'tax', case when e.tax_minor is not null then jsonb_build_object('minor', e.tax_minor)
                         when e.tax_ppm is not null then jsonb_build_object('ppm', e.tax_ppm) end,
             'storeFee', case when e.store_fee_minor is not null then jsonb_build_object('minor', e.store_fee_minor)
                              when e.store_fee_ppm is not null then jsonb_build_object('ppm', e.store_fee_ppm) end,
             'amountCents', e.amount_cents, 'fxUnits', e.fx_units::text, 'fxWorthUsd', e.fx_worth_usd::text,
             'fxSource', e.fx_source, 'customerUserId', e.customer_user_id, 'likelyCause', e.likely_cause) end as event,
           case when e.id is null and d.processing_status = 'duplicate' then (
             select first.id from events first
              where first.app_id = d.app_id and first.source = d.provider and first.source_event_id = d.source_event_id
           ) end as duplicate_of
      from deliveries d
      left join webhook_secrets s on s.id = d.secret_id
      left join events e on e.id = d.event_id
     where d.event_id = ${eventId} and d.app_id = ${appId}`;
}

async function findCommissions(sql: Sql, paymentId: PaymentId): Promise<ExplainedCommission[]> {
  const rows = await sql<
    Omit<ExplainedCommission, 'policy' | 'policyScope' | 'policyInputs'> & {
      readonly policy: ShownPolicy | null;
      readonly policyScope: NonNullable<ExplainedCommission['policyScope']> | null;
      readonly policyInputs: PolicyInputs | null;
    }
  >`
    select c.id as commission_id, c.event_id, c.kind, c.status, c.rate_bps, c.rate_source,
           c.base_cents, c.amount_cents, c.occurred_at, c.due_at, c.payout_id, ${shownPolicyOf(sql)} as policy, c.policy_inputs,
           case when c.policy_inputs is not null
                -- An earlier version took that of the provider's time.
                then (select i.scope from (values (1, terms_at(p)), (2, c.occurred_at)) t (rank, at)
                       cross join lateral policy_in_effect(c.app_id, c.affiliate_id, t.at) i
                       where i.version_id = c.policy_version_id order by t.rank limit 1) end as policy_scope
      from commissions c join payments p on p.id = c.payment_id where c.payment_id = ${paymentId} order by c.created_at, c.id`;
  return rows.map(({ policy, policyScope, policyInputs, ...row }) => ({
    ...row,
    ...(policy === null ? {} : { policy }),
    ...(policyScope === null ? {} : { policyScope }),
    ...(policyInputs === null ? {} : { policyInputs }),
  }));
}

async function findUsers(sql: Sql, appId: AppId, payment: StoredPayment): Promise<ExplainedUser[]> {
  // A payment that was attributed through a key keeps that user, also beside a user whom a later event names.
  const candidates =
    payment.bindingId === null ? payersOf(withoutStoredPlaceholders(payment)) : payment.candidates;
  // The keys of a person whom a code has bound are named once.
  const isAgain = ({ via, binding }: UserCandidate) =>
    via === 'bound_key' &&
    binding !== null &&
    binding.bindingId !== payment.bindingId &&
    candidates.some(
      (other) =>
        other.binding?.attributionId === binding.attributionId &&
        (other.via !== 'bound_key' || other.binding.bindingId === payment.bindingId),
    );
  const users = candidates
    .filter((one) => !isAgain(one))
    .map(({ customerUserId, identified }) => ({ customerUserId, identified }));
  const rows = await sql<ExplainedUser & { readonly keySource: string | null }>`
    select u."customerUserId", u.identified, b.key_source,
           case when u.identified then '[]' else coalesce((
             select jsonb_agg(distinct s.customer_user_id)
               from (select i.customer_user_id from identities i
                      where i.app_id = ${appId} and ${isSimilarUserId(sql, sql.fragment`u."customerUserId"`)}
                      limit ${SIMILAR_USERS}) s), '[]') end as similar_user_ids,
           case when t.id is not null then jsonb_build_object(
             'attributionId', t.id, 'decided', coalesce(b.id = ${payment.bindingId}, false), 'affiliateId', f.id,
             'affiliateName', f.name, 'linkId', t.link_id, 'clickId', t.click_id, 'matchMethod', t.match_method,
             'touchedAt', epoch_ms(t.touched_at), 'firstOpenAt', epoch_ms(t.first_open_at),
             'boundAt', epoch_ms(b.created_at),
             'lostTouches', coalesce((
               select jsonb_agg(jsonb_build_object('affiliateId', l.affiliate_id, 'matchMethod', l.match_method,
                                                   'touchedAt', epoch_ms(l.touched_at)) order by l.created_at)
                 from (select * from losing_touches x where x.app_id = t.app_id and x.device_id = t.device_id
                        order by x.created_at limit ${LOST_TOUCHES}) l), '[]')) end as attribution,
           (select jsonb_build_object('attributionId', a.id, 'affiliateId', a.affiliate_id, 'affiliateName', f.name,
                                      'linkId', a.link_id, 'matchMethod', a.match_method, 'touchedAt', epoch_ms(a.touched_at))
              from (${testAttributionOfUser(sql, appId, sql.fragment`u."customerUserId"`)}) a
             cross join lateral (select * from affiliates y where y.id = a.affiliate_id offset 0) f) as test_attribution
      from (
        select * from rows from (jsonb_to_recordset(${sql.json(users)}) as ("customerUserId" text, identified boolean))
               with ordinality u ("customerUserId", identified, position)
        union all
        -- What a code bound of a payment without any key.
        select y.customer_user_id, false, 0 from bindings y
         where y.id = ${payment.bindingId} and not (y.customer_user_id = any(${users.map((user) => user.customerUserId)}::text[]))) u
      -- One index lookup per user: with a generic plan, a join would read all bindings of the app.
      left join lateral (
        select * from bindings b where b.app_id = ${appId} and b.customer_user_id = u."customerUserId" offset 0) b on true
      left join attributions t on t.id = coalesce((select x.attribution_id from payments x where x.id = ${payment.paymentId} and x.binding_id = b.id),
                                                  attribution_at(b, ${instant(paidAtOf(payment))}))
      left join affiliates f on f.id = t.affiliate_id
     order by u.position`;
  return rows.map(({ keySource, ...user }) => ({ ...user, ...(keySource === null ? {} : { keySource }) }));
}

/** An event has fewer. */
const MOST_CODES = 20;

/** Returns the codes of a payment. Of registrations of one code that in force when the customer used it counts, else the latest. */
async function findCodes(sql: Sql, paymentId: PaymentId): Promise<ExplainedCode[]> {
  const isInForce = (c: Fragment) => sql.fragment`
    (${c}.created_at <= s.used_at and coalesce(${c}.deactivated_at > s.used_at, true))`;
  const registered = (condition: Fragment) => sql.fragment`
    (select y.* from codes y where y.app_id = p.app_id and y.namespace = s.namespace and ${condition}
      order by ${isInForce(sql.fragment`y`)} desc, y.created_at desc limit 1)`;
  return await sql<ExplainedCode>`
    select distinct on (s.namespace, s.value) s.namespace, s.value, f.id as affiliate_id, f.name as affiliate_name,
           case when c.id is null then 'unregistered'
                when s.used_at < c.created_at then 'registered_later'
                when f.status = 'removed' then 'creator_removed'
                when not ${isInForce(sql.fragment`c`)} then 'deactivated'
                when app.purchase_codes is null or s.used_at < app.purchase_codes_from then 'off'
                when not s.is_free and p.binding_id is null then 'user_attributed'
                else 'in_force' end as state
      from payments p
      join apps app on app.id = p.app_id
     cross join lateral (
       select * from codes_of_payment(
         p, array(select q.id from same_payment(p.app_id, p.environment, p.store, array[p.ref]) q),
         array(select n.ref from same_payment_refs(p.app_id, p.environment, p.store, array[p.ref]) n))
        order by used_at limit ${MOST_CODES}) s
      left join lateral (
        select * from (
          ${registered(sql.fragment`y.external_id is null and lower(y.value) collate "C" = lower(s.value) collate "C"`)}
          union all
          ${registered(sql.fragment`y.external_id = s.value collate "C"`)}) o limit 1) c on true
      left join affiliates f on f.id = c.affiliate_id
     where p.id = ${paymentId}
     order by s.namespace, s.value, coalesce(${isInForce(sql.fragment`c`)}, false) desc, s.used_at`;
}

async function findAttributableKey(sql: Sql, { paymentId }: StoredPayment): Promise<AttributableKey | null> {
  const found = await sql.maybe<{ readonly key: AttributableKey | null }>`
    select ${attributableKeyOf(sql, sql.fragment`p.likely_cause`)} as key from payments p where p.id = ${paymentId}`;
  return found?.key ?? null;
}

/** An event's history and the provider that reported it. */
export interface FoundEvent extends EventHistory {
  readonly source: ProviderName;
}

/**
 * Returns everything that is stored about an event of the app, also one that could not be read. Undefined for an
 * unknown id.
 */
export async function findEventHistory(
  sql: Sql,
  appId: AppId,
  eventId: EventId,
): Promise<FoundEvent | undefined> {
  const found = await findDelivery(sql, appId, eventId);
  if (found === undefined) return undefined;
  const { event, duplicateOf, ...delivery } = found;
  const history = { eventId, source: delivery.provider, delivery, event, duplicateOf };
  const payments =
    event === null || event.store === null || event.paymentRef === null
      ? []
      : await loadPayments(sql, {
          appId,
          environment: event.environment,
          store: event.store,
          refs: [event.paymentRef],
        });
  // A payment may have several references. The one that this event reported first is meant,
  // otherwise the one that counts.
  const payment =
    payments.find((candidate) => candidate.eventId === eventId) ??
    payments.find((candidate) => candidate.bindingId !== null && candidate.duplicateOf === null) ??
    payments[0];
  if (payment === undefined) return { ...history, payment: null, commissions: [] };
  const users = await findUsers(sql, appId, payment);
  const { eventId: firstEventId, occurredAt, likelyCause, bindingId, countedElsewhere } = payment;
  return {
    ...history,
    payment: {
      firstEventId,
      occurredAt,
      attributionWindowDays: payment.app.attributionWindowDays,
      likelyCause,
      isAttributed: bindingId !== null,
      countedElsewhere,
      users,
      codes: await findCodes(sql, payment.paymentId),
      attributableKey: users.length === 0 ? await findAttributableKey(sql, payment) : null,
    },
    commissions: await findCommissions(sql, payment.paymentId),
  };
}
