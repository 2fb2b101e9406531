import { ALERT_TYPES } from '../domain/alerts.ts';
import type { AppId, SecretId, WebhookEndpointId } from '../domain/ids.ts';
import type { DeactivationReason } from '../domain/outgoing-webhooks.ts';
import { acting } from './audit.ts';
import type { Sql } from './sql.ts';

/** Returns the encryption context of a Slack URL. A new URL has a new secret id, whichever row has it. */
export function slackUrlContext(secretId: SecretId): string {
  return `${secretId}:slack`;
}

/** The endpoint of Slack of an app, without its URL. */
export interface SlackEndpoint {
  readonly id: WebhookEndpointId;
  /** The origin of the URL. */
  readonly url: string;
  readonly setAt: number;
  readonly deactivatedAt: number | null;
  readonly deactivatedReason: DeactivationReason | null;
  readonly failingSince: number | null;
}

const columns = (sql: Sql) => sql.fragment`
  id, url, secret_created_at as set_at, deactivated_at, deactivated_reason, failing_since`;

/** Returns the endpoint of Slack of an app. Undefined without one. */
export async function findSlackEndpoint(sql: Sql, appId: AppId): Promise<SlackEndpoint | undefined> {
  return await sql.maybe<SlackEndpoint>`
    select ${columns(sql)} from webhook_endpoints where app_id = ${appId} and slot = 0`;
}

/** A Slack URL, encrypted, and what may be shown of it. */
export interface NewSlackUrl {
  /** The id of the endpoint if the app has none. */
  readonly id: WebhookEndpointId;
  readonly origin: string;
  readonly secretId: SecretId;
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
}

/** Sets the Slack URL of an app, or replaces it. The endpoint is active then, its failures are forgotten, and messages that wait are sent. */
export async function setSlackUrl(
  sql: Sql,
  appId: AppId,
  { id, origin, secretId, ciphertext, encryptionKeyId }: NewSlackUrl,
): Promise<SlackEndpoint | undefined> {
  await sql`
    insert into webhook_endpoints as e
           (id, app_id, url, description, event_types, secret_id, ciphertext, encryption_key_id, slot, is_slack)
    select ${id}::text, ${appId}::text, ${origin}::text, 'Slack', ${[...ALERT_TYPES]}::text[], ${secretId}::text, ${ciphertext}::bytea,
           ${encryptionKeyId}::text, 0, true
     where ${acting(sql)}
    on conflict (app_id, slot) where slot is not null do update
       set url = excluded.url, secret_id = excluded.secret_id, ciphertext = excluded.ciphertext,
           encryption_key_id = excluded.encryption_key_id, secret_created_at = now(), deactivated_at = null, deactivated_reason = null,
           failing_since = null, failures = 0, next_probe_at = null
     where e.secret_id <> excluded.secret_id`;
  await sql`
    update webhook_messages m set next_attempt_at = now(), relay_at = now(), earlier_attempts = m.attempts
      from webhook_endpoints e
     where e.app_id = ${appId} and e.slot = 0 and m.endpoint_id = e.id and m.completed_at is null and m.next_attempt_at > now()`;
  return await findSlackEndpoint(sql, appId);
}

/** Removes the Slack URL of an app. Messages that wait fail. Repeated, it changes nothing. */
export async function removeSlackUrl(sql: Sql, appId: AppId): Promise<void> {
  await sql.forManyRows()`
    update webhook_endpoints
       set deactivated_at = now(), deactivated_reason = 'deleted', slot = null, ciphertext = ''
     where app_id = ${appId} and slot = 0 and ${acting(sql)}`;
}
