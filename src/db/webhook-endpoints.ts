import type { AppId, Id, WebhookEndpointId } from '../domain/ids.ts';
import { MAX_ENDPOINTS } from '../domain/outgoing-webhooks.ts';
import type { DeactivationReason, WebhookType } from '../domain/outgoing-webhooks.ts';
import type { SecretBox } from '../config/secret-box.ts';
import { acting } from './audit.ts';
import { retryAfterConflict } from './conflict-retries.ts';
import { withFormer } from './identity-secrets.ts';
import { isLostKey } from './reencryption.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** The most messages that a change of the URL makes due. */
const MAX_HURRIED = 20_000;

/** Returns the encryption context of a signing secret, which binds the ciphertext to its endpoint. */
export function signingSecretContext(endpointId: WebhookEndpointId): string {
  return `${endpointId}:signing`;
}

/** An endpoint of an app, without its secrets. */
export interface WebhookEndpoint {
  readonly id: WebhookEndpointId;
  readonly appId: AppId;
  readonly url: string;
  readonly description: string | null;
  readonly eventTypes: readonly WebhookType[];
  /** When it was deactivated, and why. Null while it is active. */
  readonly deactivatedAt: number | null;
  readonly deactivatedReason: DeactivationReason | null;
  /** Since when every attempt has failed. Null after a success, and before the first attempt. */
  readonly failingSince: number | null;
  readonly secretCreatedAt: number;
  /** Until when the previous secret also signs. Null if there is none. */
  readonly previousSecretExpiresAt: number | null;
  readonly createdAt: number;
}

/** A secret, encrypted, and its id: a statement that is sent again stores it once. */
interface NewSigningSecret {
  readonly secretId: Id<'secret'>;
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
}

export interface NewWebhookEndpoint extends NewSigningSecret {
  readonly id: WebhookEndpointId;
  readonly appId: AppId;
  readonly url: string;
  readonly description: string | null;
  readonly eventTypes: readonly WebhookType[];
}

/** The columns of a `WebhookEndpoint`. */
const columns = (sql: Sql) => sql.fragment`
  id, app_id, url, description, event_types, deactivated_at, deactivated_reason, failing_since, secret_created_at,
  case when previous_expires_at > now() then previous_expires_at end as previous_secret_expires_at, created_at`;

/** Creates an endpoint. Returns undefined if the app has `MAX_ENDPOINTS` already. */
export async function createWebhookEndpoint(
  sql: Sql,
  endpoint: NewWebhookEndpoint,
): Promise<WebhookEndpoint | undefined> {
  const { id, appId, url, description, eventTypes, secretId, ciphertext, encryptionKeyId } = endpoint;
  // Another call may take the chosen slot meanwhile. A call can lose each slot once.
  const created = await retryAfterConflict(
    ['webhook_endpoints_slot'],
    async () =>
      await sql.maybe<WebhookEndpoint>`
      with added as (
        insert into webhook_endpoints (id, app_id, url, description, event_types, secret_id, ciphertext, encryption_key_id, slot)
        select ${id}::text, ${appId}::text, ${url}::text, ${description}::text, ${[...eventTypes]}::text[], ${secretId}::text,
               ${ciphertext}::bytea, ${encryptionKeyId}::text, free.slot
          from (select min(n)::smallint as slot from generate_series(1, ${MAX_ENDPOINTS}::int) n
                 where not exists (select from webhook_endpoints o where o.app_id = ${appId} and o.slot = n)) free
         where free.slot is not null and ${acting(sql)}
        on conflict (id) do nothing
        returning *
      )
      select ${columns(sql)}
        from (select * from added union all select * from webhook_endpoints where id = ${id}) e`,
    MAX_ENDPOINTS + 1,
  );
  // A statement that is sent again does not see what the first one was still committing.
  return created ?? (await findWebhookEndpoint(sql, appId, id));
}

/** Returns the endpoints of an app without that of Slack, oldest first. */
export async function listWebhookEndpoints(sql: Sql, appId: AppId): Promise<WebhookEndpoint[]> {
  return await sql<WebhookEndpoint>`
    select ${columns(sql)} from webhook_endpoints where app_id = ${appId} and slot >= 1 order by created_at, id`;
}

/** Returns an endpoint of an app. Undefined for an unknown one, one of another app, one that was deleted, and that of Slack. */
export async function findWebhookEndpoint(
  sql: Sql,
  appId: AppId,
  id: WebhookEndpointId,
): Promise<WebhookEndpoint | undefined> {
  return await sql.maybe<WebhookEndpoint>`
    select ${columns(sql)} from webhook_endpoints where app_id = ${appId} and id = ${id} and slot >= 1`;
}

/** The fields that a change can have. A missing one stays. */
export interface WebhookEndpointChange {
  readonly url?: string;
  readonly description?: string | null;
  readonly eventTypes?: readonly WebhookType[];
  readonly isActive?: boolean;
}

/**
 * Changes an endpoint. Returns undefined for an unknown one. Another URL, and activating it again, forget its failures. With another URL,
 * messages that wait for a later attempt become due now, as if a person sent each again, and the relay passes them on as it does new ones:
 * at most `mostHurried` of them, those that the relay would look at last.
 */
export async function changeWebhookEndpoint(
  sql: Sql,
  appId: AppId,
  id: WebhookEndpointId,
  { url, description, eventTypes, isActive }: WebhookEndpointChange,
  mostHurried = MAX_HURRIED,
): Promise<WebhookEndpoint | undefined> {
  const activity =
    isActive === undefined
      ? sql.fragment``
      : isActive
        ? sql.fragment`, deactivated_at = null, deactivated_reason = null`
        : sql.fragment`, deactivated_at = coalesce(deactivated_at, now()),
                         deactivated_reason = coalesce(deactivated_reason, 'by_request')`;
  const begins = sql.fragment`
    (coalesce(${url ?? null}, url) <> url or ${isActive === true}::boolean and deactivated_at is not null)`;
  // The messages that wait fail with an endpoint that is deactivated, or become due with another URL, and they may be many.
  const patient = isActive === false || url !== undefined ? sql.forManyRows() : sql;
  return await patient.maybe<WebhookEndpoint>`
    with former as materialized (
      select id as endpoint_id, url as former_url
        from webhook_endpoints where app_id = ${appId} and id = ${id} and slot >= 1
         for no key update
    ), changed as (
      update webhook_endpoints e
         set url = coalesce(${url ?? null}, url),
             failing_since = case when not ${begins} then failing_since end,
             failures = case when not ${begins} then failures else 0 end,
             next_probe_at = case when not ${begins} then next_probe_at end,
             event_types = coalesce(${eventTypes === undefined ? null : [...eventTypes]}::text[], event_types),
             description = case when ${description === undefined}::boolean then description else ${description ?? null} end
             ${activity}
        from former
       where id = endpoint_id and ${acting(sql)}
      returning e.*, url <> former_url as has_other_url
    ), waiting as materialized (
      select m.id
        from changed c
       cross join lateral (
         select m.id from webhook_messages m
          where m.endpoint_id = c.id and c.has_other_url and m.completed_at is null
            -- The relay may be about to look at a message that waits, after tributary recover.
            and (m.relay_at > now() or m.next_attempt_at > now())
          order by m.relay_at desc limit ${mostHurried}) m
    ), hurried as (
      update webhook_messages m
         set next_attempt_at = now(), relay_at = now(), earlier_attempts = m.attempts
        from waiting w
       where m.id = w.id and m.completed_at is null
    )
    select ${columns(sql)} from changed`;
}

/**
 * Deletes an endpoint with its secrets. Messages that wait fail, and all stay for as long as messages are kept. Repeated, it changes
 * nothing. Returns undefined for an unknown endpoint.
 */
export async function deleteWebhookEndpoint(
  sql: Sql,
  appId: AppId,
  id: WebhookEndpointId,
): Promise<WebhookEndpoint | undefined> {
  return await sql.forManyRows().maybe<WebhookEndpoint>`
    update webhook_endpoints
       set deactivated_at = case when slot is null then deactivated_at else now() end, deactivated_reason = 'deleted', slot = null,
           ciphertext = '', previous_ciphertext = case when previous_ciphertext is not null then ''::bytea end
     where app_id = ${appId} and id = ${id} and not is_slack and ${acting(sql)}
    returning ${columns(sql)}`;
}

/**
 * Makes a secret the current one. The one before it also signs until `previousEndsAt`, epoch ms; the one before that ends at
 * once, and so does one whose key is lost. A secret that was the current one before changes nothing: the call is sent again. Returns undefined
 * for an unknown endpoint.
 */
export async function rotateSigningSecret(
  sql: Sql,
  appId: AppId,
  id: WebhookEndpointId,
  secret: NewSigningSecret & { readonly previousEndsAt: number },
  secretBox: Pick<SecretBox, 'keyIds' | 'acceptsLostKeys'>,
): Promise<WebhookEndpoint | undefined> {
  const isKept = sql.fragment`not ${isLostKey(sql, secretBox, sql.fragment`encryption_key_id`)}`;
  await sql`
    update webhook_endpoints
       set secret_id = ${secret.secretId}, ciphertext = ${secret.ciphertext}, encryption_key_id = ${secret.encryptionKeyId},
           secret_created_at = now(), previous_ciphertext = case when ${isKept} then ciphertext end,
           previous_encryption_key_id = case when ${isKept} then encryption_key_id end,
           previous_expires_at = case when ${isKept} then ${instant(secret.previousEndsAt)}::timestamptz end,
           former_secret_ids = ${withFormer(sql, sql.fragment`former_secret_ids`, sql.fragment`secret_id`)}
     where app_id = ${appId} and id = ${id} and slot >= 1 and secret_id <> ${secret.secretId}
       and ${secret.secretId}::text <> all (former_secret_ids) and ${acting(sql)}`;
  return await findWebhookEndpoint(sql, appId, id);
}
