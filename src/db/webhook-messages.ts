import type { AppId, WebhookEndpointId, WebhookMessageId } from '../domain/ids.ts';
import { TEST_TYPE } from '../domain/outgoing-webhooks.ts';
import type { MessageStatus, MessageType } from '../domain/outgoing-webhooks.ts';
import { matchesOf, PAGE_EXAMINES, pageOf, pageOfExamined, positionInstant } from './page.ts';
import type { Examined, Page, Position } from './page.ts';
import type { Sql } from './sql.ts';

/** A message to an endpoint. */
export interface WebhookMessage {
  readonly id: WebhookMessageId;
  readonly endpointId: WebhookEndpointId;
  readonly type: MessageType;
  /** The id of the commission, payout, delivery or alert. Null for a test. */
  readonly subjectId: string | null;
  readonly data: Readonly<Record<string, unknown>>;
  readonly status: MessageStatus;
  readonly attempts: number;
  /** When the next attempt is due. Null after the last one. */
  readonly nextAttemptAt: number | null;
  /** Why the last attempt failed. Null if it did not. */
  readonly lastProblem: string | null;
  readonly createdAt: number;
  readonly completedAt: number | null;
}

/** One attempt at a message. */
export interface WebhookAttempt {
  readonly number: number;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly problem: string | null;
  readonly response: string | null;
}

const columns = (sql: Sql) => sql.fragment`
  id, endpoint_id, type, subject_id, data, status, attempts, next_attempt_at, last_problem, created_at, completed_at`;

/** The filters of a list of messages. Null selects all rows. */
export interface WebhookMessageFilter {
  readonly endpointId: WebhookEndpointId | null;
  readonly status: MessageStatus | null;
  readonly type: MessageType | null;
}

/**
 * Returns a page of an app's messages, latest first. The filter by endpoint, or else by a status other than `delivered`, has an
 * index. A page with another filter examines at most `examines` rows and may have fewer than `limit`.
 */
export async function listWebhookMessages(
  sql: Sql,
  appId: AppId,
  { endpointId, status, type }: WebhookMessageFilter,
  after: Position<number> | null,
  limit: number,
  examines = PAGE_EXAMINES,
): Promise<Page<WebhookMessage, number>> {
  const ofEndpoint = endpointId === null ? sql.fragment`` : sql.fragment`and m.endpoint_id = ${endpointId}`;
  const hasStatusIndex = endpointId === null && status !== null && status !== 'delivered';
  const ofStatus = hasStatusIndex
    ? sql.fragment`and m.status = ${status} and m.status <> 'delivered'`
    : sql.fragment``;
  const statusIsOther = status !== null && !hasStatusIndex;
  const hasOthers = statusIsOther || type !== null;
  const others = sql.fragment`
    true ${statusIsOther ? sql.fragment`and w.status = ${status}` : sql.fragment``}
         ${type === null ? sql.fragment`` : sql.fragment`and w.type = ${type}`}`;
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (m.created_at, m.id) < (${positionInstant(sql, after.sortKey)}, ${after.id})`;
  const rows = await sql<WebhookMessage & Position<number> & Examined>`
    with walked as (
      select m.*, row_number() over (order by m.created_at desc, m.id desc) as examined
        from webhook_messages m
       where m.app_id = ${appId} ${ofEndpoint} ${ofStatus} ${from}
       order by m.created_at desc, m.id desc
       limit ${hasOthers ? examines : limit + 1}
    ), p as (
      ${matchesOf(sql, sql.fragment`walked w`, others, sql.fragment`created_at desc, id desc`, { limit, examines })}
    )
    select ${columns(sql)}, (extract(epoch from created_at) * 1000000)::bigint as sort_key, is_match, examined
      from p order by examined`;
  return hasOthers ? pageOfExamined(rows, limit, examines) : pageOf(rows, limit);
}

/** Returns a message of an app. Undefined for an unknown one, and for one of another app. */
export async function findWebhookMessage(
  sql: Sql,
  appId: AppId,
  id: WebhookMessageId,
): Promise<WebhookMessage | undefined> {
  return await sql.maybe<WebhookMessage>`
    select ${columns(sql)} from webhook_messages where app_id = ${appId} and id = ${id}`;
}

/** Returns a page of the attempts at a message, latest first. */
export async function listWebhookAttempts(
  sql: Sql,
  messageId: WebhookMessageId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<WebhookAttempt & Position<number>, number>> {
  const rows = await sql<WebhookAttempt & Position<number>>`
    select number, started_at, duration_ms, status_code, problem, response, message_id as id, number as sort_key
      from webhook_attempts
     where message_id = ${messageId} ${after === null ? sql.fragment`` : sql.fragment`and number < ${after.sortKey}::int`}
     order by number desc limit ${limit + 1}`;
  return pageOf(rows, limit);
}

/** Writes a test message to an endpoint. Returns undefined for an endpoint that is unknown or not active. */
export async function createTestMessage(
  sql: Sql,
  appId: AppId,
  endpointId: WebhookEndpointId,
  id: WebhookMessageId,
): Promise<WebhookMessage | undefined> {
  const made = await sql.maybe<WebhookMessage>`
    with added as (
      insert into webhook_messages (id, app_id, endpoint_id, type, data)
      select ${id}::text, e.app_id, e.id, ${TEST_TYPE}::text, jsonb_build_object('endpointId', e.id)
        from webhook_endpoints e where e.app_id = ${appId} and e.id = ${endpointId} and e.deactivated_at is null
      on conflict (id) do nothing
      returning *
    ), hurried as (
      -- A person wants to see an attempt, also at an endpoint that fails.
      update webhook_endpoints e set next_probe_at = now() from added where e.id = added.endpoint_id and e.failing_since is not null
    )
    select ${columns(sql)}
      from (select * from added union all select * from webhook_messages where id = ${id} and app_id = ${appId}) m`;
  // A statement that is sent again does not see what the first one was still committing.
  return made ?? (await findWebhookMessage(sql, appId, id));
}

/**
 * Makes an attempt at a message due now, also at one that has ended. As many attempts follow as at a new message: a person who
 * tries again and again uses none of them up, and does not end the endpoint with the last one. Returns undefined for an unknown message,
 * and for one whose endpoint is not active.
 */
export async function sendMessageAgain(
  sql: Sql,
  appId: AppId,
  id: WebhookMessageId,
): Promise<WebhookMessage | undefined> {
  return await sql.maybe<WebhookMessage>`
    with endpoint as materialized (
      -- Its row is locked before that of the message, as by what ends the endpoint.
      select e.id from webhook_endpoints e
       where e.id = (select endpoint_id from webhook_messages where app_id = ${appId} and id = ${id}) and e.deactivated_at is null
         for no key update
    ), message as (
      update webhook_messages m
         set status = 'pending', completed_at = null, next_attempt_at = now(), relay_at = now(), earlier_attempts = m.attempts
        from endpoint
       where m.app_id = ${appId} and m.id = ${id} and m.endpoint_id = endpoint.id
      returning m.*
    ), hurried as (
      update webhook_endpoints e set next_probe_at = now() from message where e.id = message.endpoint_id and e.failing_since is not null
    )
    select ${columns(sql)} from message`;
}
