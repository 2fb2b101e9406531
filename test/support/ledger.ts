import { createHash, randomUUID } from 'node:crypto';
import { openPayoutRequest, settlePayoutRequest } from '../../src/db/payout-requests.ts';
import { newId } from '../../src/db/new-id.ts';
import { instant } from '../../src/db/sql.ts';
import type { AffiliateId, AppId, KeyId, PayoutRequestId } from '../../src/domain/ids.ts';
import type { TestApi, TestApp } from './api.ts';

export interface LedgerRow {
  readonly affiliateId: string;
  readonly amountCents: number;
  readonly occurredAt: number;
  readonly dueAt: number;
  readonly matured?: boolean;
  readonly linkId?: string;
  /** The provider that reported it. Defaults to `stripe`. */
  readonly source?: string;
}

/** An earning in the ledger with all that it hangs on, written past the webhooks. Answers its id. */
export async function insertEarning(
  api: Pick<TestApi, 'sql'>,
  app: Pick<TestApp, 'appId'>,
  row: LedgerRow,
): Promise<string> {
  const { sql } = api;
  const { appId } = app;
  const { affiliateId, amountCents, linkId = null, source = 'stripe' } = row;
  const occurredAt = instant(row.occurredAt);
  const [secretId, deliveryId, eventId] = [newId('secret'), newId('delivery'), newId('event')];
  const [attributionId, bindingId, paymentId, id] = [
    newId('attribution'),
    newId('binding'),
    newId('payment'),
    newId('commission'),
  ];
  const user = randomUUID();
  await sql`
    insert into webhook_secrets (id, app_id, provider, environment, ciphertext, encryption_key_id, expires_at)
    values (${secretId}, ${appId}, ${source}, 'production', ''::bytea, 'none', now())`;
  await sql`
    insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, body_sha256,
                            event_id, completed_at)
    values (${deliveryId}, ${appId}, ${source}, ${occurredAt}, true, 'processed', ${secretId},
            ${createHash('sha256').update(id).digest()}, ${eventId}, now())`;
  await sql`
    insert into events (id, app_id, delivery_id, source, source_event_id, kind, environment, occurred_at, received_at)
    values (${eventId}, ${appId}, ${deliveryId}, ${source}, ${eventId}, 'purchase', 'production', ${occurredAt}, now())`;
  await sql`
    insert into attributions (id, app_id, device_id, affiliate_id, match_method, touched_at, first_open_at)
    values (${attributionId}, ${appId}, ${user}, ${affiliateId}, 'code', ${occurredAt}, ${occurredAt})`;
  await sql`
    insert into bindings (id, app_id, customer_user_id, attribution_id, identified_at)
    values (${bindingId}, ${appId}, ${user}, ${attributionId}, ${occurredAt})`;
  await sql`
    insert into payments (id, app_id, environment, store, ref, event_id, currency, amount_minor, occurred_at,
                          only_anonymous_user)
    values (${paymentId}, ${appId}, 'production', 'stripe', ${paymentId}, ${eventId}, 'USD', ${Math.min(amountCents * 5, Number.MAX_SAFE_INTEGER)},
            ${occurredAt}, false)`;
  await sql`
    insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, kind, rate_bps, base_cents,
                             amount_cents, source, customer_user_id, match_method, occurred_at, due_at)
    values (${id}, ${appId}, ${affiliateId}, ${linkId}, ${eventId}, ${paymentId}, ${bindingId}, 'earning', 2000, ${Math.min(amountCents * 5, Number.MAX_SAFE_INTEGER)},
            ${amountCents}, ${source}, ${user}, 'code', ${occurredAt}, ${instant(row.dueAt)})`;
  if (row.matured === true) {
    await sql`update commissions set status = 'matured', matured_at = ${instant(row.dueAt)} where id = ${id}`;
  }
  return id;
}

/** Takes part of an earning back, as a refund at `occurredAt` does. Answers the id of the reversal. */
export async function insertReversal(
  api: Pick<TestApi, 'sql'>,
  earningId: string,
  row: { readonly amountCents: number; readonly occurredAt: number },
): Promise<string> {
  const { sql } = api;
  const [adjustmentId, id] = [newId('adjustment'), newId('commission')];
  const occurredAt = instant(row.occurredAt);
  await sql`
    insert into adjustments (id, app_id, environment, store, ref, payment_ref, kind, state, rank, reverses_all, currency,
                             amount_minor, occurred_at, stated_at, event_id)
    select ${adjustmentId}, c.app_id, 'production', 'stripe', ${adjustmentId}, c.payment_id, 'refund', 'applied', 1, false,
           'USD', ${row.amountCents * 5}, ${occurredAt}, ${occurredAt}, c.event_id
      from commissions c where c.id = ${earningId}`;
  await sql`
    insert into commissions (id, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, adjustment_id, kind,
                             reverses_commission_id, rate_bps, base_cents, amount_cents, source, customer_user_id,
                             match_method, occurred_at, due_at)
    select ${id}, app_id, affiliate_id, link_id, event_id, payment_id, binding_id, ${adjustmentId}, 'reversal', id, rate_bps,
           ${-row.amountCents * 5}, ${-row.amountCents}, source, customer_user_id, match_method, ${occurredAt}, due_at
      from commissions where id = ${earningId}`;
  return id;
}

/** Opens a payout request that is valid for some time. Nobody settles it. */
export async function openRequest(
  api: Pick<TestApi, 'sql'>,
  app: Pick<TestApp, 'appId' | 'accountId'>,
  affiliateId: string,
  validForMs: number,
): Promise<PayoutRequestId> {
  const id = newId('payoutRequest');
  const { keyId } = await api.sql.one<{ keyId: KeyId }>`
    select id as key_id from account_keys where account_id = ${app.accountId} limit 1`;
  await openPayoutRequest(api.sql, {
    id,
    appId: app.appId as AppId,
    affiliateId: affiliateId as AffiliateId,
    accountId: app.accountId,
    keyId,
    idempotencyKey: null,
    expectedTotalCents: null,
    validForMs,
  });
  return id;
}

/**
 * Pays what is due to an affiliate by the clock of the database, without the workflow of an export. Returns the id of the
 * payout, or null when nothing was paid.
 */
export async function payOut(
  api: Pick<TestApi, 'sql'>,
  app: Pick<TestApp, 'appId' | 'accountId'>,
  affiliateId: string,
): Promise<string | null> {
  const id = await openRequest(api, app, affiliateId, 60_000);
  await settlePayoutRequest(api.sql, id);
  const { payoutId } = await api.sql.one<{ payoutId: string | null }>`
    select payout_id from payout_requests where id = ${id}`;
  return payoutId;
}
