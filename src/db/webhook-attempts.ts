import type { AccountId, AppId, SecretId, WebhookEndpointId, WebhookMessageId } from '../domain/ids.ts';
import { MAX_PROBE_MS, MAX_RETRY_AFTER_MS } from '../domain/outgoing-webhooks.ts';
import type {
  DeactivationReason,
  MessageStatus,
  MessageType,
  WebhookMessageKeys,
} from '../domain/outgoing-webhooks.ts';
import { acting } from './audit.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';
import type { WebhookAttempt } from './webhook-messages.ts';

/** Messages of one endpoint that are in progress at once: claimed, or with an attempt within the next minutes. */
export const OPEN_PER_ENDPOINT = 200;

/** A message whose workflow is to be started. */
export interface ClaimedMessage extends WebhookMessageKeys {
  /**
   * When its attempt is due: `now` for a new message, and for one that has become due before the time that its workflow may wait
   * for; `earlier` if it was due at a claim before, so that the end of such a wait may have been lost.
   */
  readonly due: 'now' | 'earlier' | 'later';
}

/** What a claim took. */
export interface ClaimedMessages {
  readonly messages: readonly ClaimedMessage[];
  /** The last account that the claim served, also if another process had taken its messages. Null if none waits. */
  readonly lastAccountId: AccountId | null;
  /** Whether more messages may wait: an endpoint has its whole share, or the claim served as many endpoints as it can. */
  readonly hasMore: boolean;
}

/**
 * Claims about `limit` messages, and fewer than twice as many, whose workflow is to be started: new ones, and those whose workflow
 * should have made an attempt and has not. No other process claims them for `claimMs`, counted from the next attempt if that is
 * later: `tributary recover` makes the relay look at messages that wait.
 *
 * A claim has the same share for each account that has such messages, and within an account for each endpoint: what waits for
 * one of them delays no other. Of more than `limit` accounts it serves those after `after`, the last account of the claim
 * before; of an account's endpoints that are too many, it serves some at random. An endpoint that has `perEndpoint` messages in
 * progress gets no more, so that one which fails does not fill the task queue. A message that waits for a later attempt does
 * not count: its endpoint may work again before that.
 *
 * The statement reads a few entries of an index for each endpoint with open messages, however many there are.
 */
export async function claimWebhookMessages(
  sql: Sql,
  {
    claimMs,
    limit,
    after,
    perEndpoint = OPEN_PER_ENDPOINT,
  }: {
    readonly claimMs: number;
    readonly limit: number;
    readonly after: AccountId | null;
    readonly perEndpoint?: number;
  },
): Promise<ClaimedMessages> {
  // One row per message, or one with null for no message.
  const rows = await sql<Omit<ClaimedMessages, 'messages'> & (ClaimedMessage | { readonly messageId: null })>`
    with recursive open_endpoints (id) as (
      (select m.endpoint_id::text from webhook_messages m where m.completed_at is null order by m.endpoint_id limit 1)
      union all
      select (select m.endpoint_id::text from webhook_messages m
               where m.completed_at is null and m.endpoint_id > o.id order by m.endpoint_id limit 1)
        from open_endpoints o where o.id is not null
    ), waiting as materialized (
      select o.id, a.account_id, ${perEndpoint}::bigint - p.in_progress as most,
             row_number() over (partition by a.account_id order by random()) as number
        from open_endpoints o
       cross join lateral (
         select m.app_id from webhook_messages m
          where m.endpoint_id = o.id and m.completed_at is null and m.relay_at <= now()
          order by m.relay_at limit 1) f
       cross join lateral (
         select count(*) as in_progress
           from (select from webhook_messages m
                  where m.endpoint_id = o.id and m.completed_at is null and m.relay_at > now()
                    and m.relay_at <= now() + interval '7 minutes' limit ${perEndpoint}) m) p
        join apps a on a.id = f.app_id
       where p.in_progress < ${perEndpoint}
    ), served as materialized (
      select w.*, row_number() over (order by w.number, w.account_id <= ${after ?? ''}, w.account_id) as position
        from waiting w order by position limit ${limit}
    ), shares as materialized (
      select s.id, s.most, greatest(1, ${limit}::bigint / (count(*) over (partition by s.account_id)
                                                           * (select count(distinct account_id) from served))) as share
        from served s
    ), claimed as materialized (
      -- A message that waits for an attempt, or was claimed, has a later time for the relay than for the attempt.
      select m.id, s.id as endpoint_id,
             case when m.next_attempt_at > now() then 'later' when m.relay_at = m.next_attempt_at then 'now' else 'earlier' end as due
        from shares s
       cross join lateral (
         select m.id, m.relay_at, m.next_attempt_at from webhook_messages m
          where m.endpoint_id = s.id and m.completed_at is null and m.relay_at <= now()
          order by m.relay_at limit least(s.most, s.share) for update skip locked) m
    ), updated as (
      update webhook_messages m set relay_at = greatest(now(), m.next_attempt_at) + ${claimMs} * interval '1 millisecond'
        from claimed c
       where m.id = c.id and m.completed_at is null
      returning m.id as message_id, m.app_id, c.due
    )
    select u.message_id, u.app_id, u.due, (select account_id from served order by position desc limit 1) as last_account_id,
           (select count(*) from served) = ${limit}
           or exists (select from shares s
                       where s.share < s.most and s.share = (select count(*) from claimed c where c.endpoint_id = s.id)) as has_more
      from (select) one left join updated u on true`;
  const messages = rows.flatMap((row) =>
    row.messageId === null ? [] : [{ messageId: row.messageId, appId: row.appId, due: row.due }],
  );
  return { messages, lastAccountId: rows[0]?.lastAccountId ?? null, hasMore: rows[0]?.hasMore ?? false };
}

/** A message with what an attempt at it needs. */
export interface MessageToSend {
  readonly messageId: WebhookMessageId;
  readonly endpointId: WebhookEndpointId;
  readonly accountId: AccountId;
  readonly type: MessageType;
  readonly data: Readonly<Record<string, unknown>>;
  readonly status: MessageStatus;
  readonly attempts: number;
  readonly earlierAttempts: number;
  readonly lastProblem: string | null;
  readonly createdAt: number;
  /** How long until the next attempt is due, ms; 0 or less if it is due. Null for a message that has ended. */
  readonly dueInMs: number | null;
  readonly url: string;
  /** Whether it gets text about alerts: then its secret is the whole URL, and `url` only its origin. */
  readonly isSlack: boolean;
  readonly secretId: SecretId;
  readonly appId: AppId;
  readonly appName: string;
  readonly isActive: boolean;
  /** Whether every attempt at the endpoint has failed for some time. */
  readonly isFailing: boolean;
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
  /** Null if no previous secret signs any more. */
  readonly previousCiphertext: Buffer | null;
  readonly previousEncryptionKeyId: string | null;
}

/** Returns a message with its endpoint. Undefined for an unknown one. */
export async function loadMessageToSend(sql: Sql, id: WebhookMessageId): Promise<MessageToSend | undefined> {
  return await sql.maybe<MessageToSend>`
    select m.id as message_id, m.endpoint_id, m.app_id, a.account_id, a.name as app_name, m.type, m.data,
           m.status, m.attempts, m.earlier_attempts, m.last_problem, m.created_at,
           ceil(extract(epoch from m.next_attempt_at - clock_timestamp()) * 1000)::float8 as due_in_ms,
           e.url, e.is_slack, e.secret_id, e.deactivated_at is null as is_active, e.failing_since is not null as is_failing,
           e.ciphertext, e.encryption_key_id,
           case when e.previous_expires_at > now() then e.previous_ciphertext end as previous_ciphertext,
           case when e.previous_expires_at > now() then e.previous_encryption_key_id end as previous_encryption_key_id
      from webhook_messages m
     cross join lateral (select * from webhook_endpoints x where x.id = m.endpoint_id offset 0) e
     cross join lateral (select x.account_id, x.name from apps x where x.id = m.app_id offset 0) a
     where m.id = ${id}`;
}

/** How long a message waits whose attempt could not be made, and for what: room at its endpoint, or the next probe of it. */
export interface Postponement {
  readonly waitMs: number;
  readonly until: 'room' | 'probe';
}

/**
 * Moves the next attempt at an open message. Its workflow waits as long; the relay starts it again if it was lost. Changes nothing
 * while another statement changes the message, such as one that ends its endpoint, and for a probe that need not be waited for any
 * more: another URL, or a person who sent a message again, made it due now. The relay then ends the wait.
 */
export async function postponeMessage(
  sql: Sql,
  id: WebhookMessageId,
  { waitMs, until }: Postponement,
): Promise<void> {
  await sql`
    update webhook_messages
       set next_attempt_at = now() + ${waitMs} * interval '1 millisecond',
           relay_at = now() + ${waitMs} * interval '1 millisecond' + interval '1 minute'
     where id = (select m.id from webhook_messages m
                  where m.id = ${id} and m.completed_at is null
                    and (${until}::text = 'room'
                         or exists (select from webhook_endpoints e
                                     where e.id = m.endpoint_id and e.failing_since is not null and e.next_probe_at > now()))
                    for update skip locked)`;
}

/** What a message may do whose endpoint fails. */
export interface Probe {
  /** Whether it makes the next attempt, or the endpoint has worked again meanwhile. */
  readonly isAllowed: boolean;
  /** How long until another one may, ms. */
  readonly waitMs: number;
  /** For how long the endpoint has failed, ms. */
  readonly failingMs: number;
}

/**
 * Lets one message try an endpoint that fails, if it is time. No other message of any process may do it for `claimMs`; the
 * result of the attempt then says when the next one may. It is not time while another statement changes the endpoint.
 */
export async function claimProbe(sql: Sql, id: WebhookEndpointId, claimMs: number): Promise<Probe> {
  return await sql.one<Probe>`
    with claimed as (
      update webhook_endpoints set next_probe_at = now() + ${claimMs} * interval '1 millisecond'
       where id = (select id from webhook_endpoints
                    where id = ${id} and failing_since is not null and coalesce(next_probe_at, now()) <= now()
                      for no key update skip locked)
      returning id
    )
    select exists (select from claimed) or failing_since is null as is_allowed,
           greatest(0, extract(epoch from next_probe_at - now()) * 1000)::float8 as wait_ms,
           greatest(0, extract(epoch from now() - failing_since) * 1000)::float8 as failing_ms
      from webhook_endpoints where id = ${id}`;
}

/** Ends a message whose endpoint is not active: nothing is sent. */
export async function failUnsentMessage(sql: Sql, id: WebhookMessageId, problem: string): Promise<void> {
  await sql`
    update webhook_messages
       set status = 'failed', completed_at = now(), next_attempt_at = null, relay_at = null, last_problem = ${problem}
     where id = ${id} and completed_at is null`;
}

/** An attempt that was made, and what follows. */
export interface MadeAttempt extends Omit<WebhookAttempt, 'number'> {
  /** Its number: one more than the attempts before. A second statement with the same number changes nothing. */
  readonly number: number;
  /** The URL that got it. */
  readonly url: string;
  /** The secret of the endpoint, which is the URL of Slack. */
  readonly secretId: SecretId;
  /** The attempts before a person sent the message again, as the attempt began with them. */
  readonly earlierAttempts: number;
  /** How long until the next attempt, ms. Null if none follows. */
  readonly nextInMs: number | null;
  /** Whether the response said that the endpoint is gone permanently. */
  readonly isGone: boolean;
  /** Whether it was the one attempt at an endpoint that fails. */
  readonly isProbe: boolean;
  /** The wait that the response asks for, ms. Null if it asks for none. */
  readonly retryAfterMs: number | null;
  /** The waits between attempts, ms. */
  readonly retryMs: readonly number[];
}

/**
 * Records an attempt, and what it says about the message and the endpoint, in one statement that is safe to send twice. An
 * endpoint is deactivated when it is gone; when the last attempt at a message fails and no attempt at any message has succeeded
 * since the first one at this message; and when all attempts have failed for as long, and as often, as a message is tried. A
 * failure moves the time at which one message may try the endpoint again. An attempt at a URL that the endpoint no longer has says
 * nothing about it. If a person sent the message again or changed the URL meanwhile, the next attempt is due now. Returns why the endpoint is not active afterwards, or null if it is.
 */
export async function recordWebhookAttempt(
  sql: Sql,
  id: WebhookMessageId,
  attempt: MadeAttempt,
): Promise<DeactivationReason | null> {
  const { number, startedAt, durationMs, statusCode, problem, response, nextInMs, isGone, isProbe } = attempt;
  const isDelivered = problem === null;
  const allMs = attempt.retryMs.reduce((sum, ms) => sum + ms, 0);
  const probeMs = attempt.retryMs.map((ms) => String(Math.min(ms, MAX_PROBE_MS)));
  const askedMs = Math.min(attempt.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  // The messages that wait fail with an endpoint that is deactivated, and they may be many.
  const mayDeactivate = !isDelivered && (nextInMs === null || isGone || isProbe);
  const patient = mayDeactivate ? sql.forManyRows() : sql;
  // The first attempt at a message has no attempts before it, so a changed URL shows only in the endpoint.
  const isSentAgain = sql.fragment`
    (m.earlier_attempts <> ${attempt.earlierAttempts}::int
     or exists (select from webhook_endpoints e
                 where e.id = m.endpoint_id and e.slot is not null
                   and (e.url <> ${attempt.url} or e.is_slack and e.secret_id <> ${attempt.secretId})))`;
  const isLast = sql.fragment`(${isDelivered}::boolean or ${nextInMs === null}::boolean and not ${isSentAgain})`;
  const waits = sql.fragment`
    case when ${isSentAgain} then interval '0' else ${nextInMs ?? 0} * interval '1 millisecond' end`;
  // The workflow may wait all the same: the relay ends its wait.
  const relayWaits = sql.fragment`case when ${isSentAgain} then interval '0' else interval '1 minute' end`;
  const row = await patient.maybe<{ reason: DeactivationReason | null }>`
    with locked as materialized (
      -- The row of an endpoint that changes is locked before that of the message, as by what ends the endpoint.
      select e.id from webhook_endpoints e
       where e.id = (select endpoint_id from webhook_messages where id = ${id})
         and (e.failing_since is not null or not ${isDelivered}::boolean)
         for no key update
    ), message as (
      update webhook_messages m
         set attempts = ${number}::int, last_problem = ${problem}::text,
             status = case when ${isDelivered}::boolean then 'delivered' when ${isLast} or m.completed_at is not null then 'failed' else 'pending' end,
             completed_at = case when ${isLast} then now() else m.completed_at end,
             next_attempt_at = case when m.completed_at is null and not ${isLast} then now() + ${waits} end,
             relay_at = case when m.completed_at is null and not ${isLast} then now() + ${waits} + ${relayWaits} end
       where m.id = ${id} and m.attempts = ${number - 1}::int and (select count(*) from locked) >= 0
      returning m.id, m.endpoint_id, m.status, m.earlier_attempts
    ), added as (
      insert into webhook_attempts (message_id, number, started_at, duration_ms, status_code, problem, response)
      select id, ${number}::int, ${instant(startedAt)}::timestamptz, ${durationMs}::int, ${statusCode}::int, ${problem}::text,
             ${response}::text
        from message
    ), first as (
      select least((select a.started_at from webhook_attempts a
                     where a.message_id = message.id and a.number = message.earlier_attempts + 1),
                   ${instant(startedAt)}::timestamptz) as started_at
        from message
    ), endpoint as (
      update webhook_endpoints e
         set failing_since = case when ${isDelivered}::boolean then null
                                  else coalesce(e.failing_since, ${instant(startedAt)}::timestamptz) end,
             failures = case when ${isDelivered}::boolean then 0 when counts then e.failures + 1 else e.failures end,
             next_probe_at = case when ${isDelivered}::boolean then null when not counts then e.next_probe_at
                                  else now() + interval '1 millisecond' * greatest(${askedMs}::float8,
                                    (${probeMs}::text[]::float8[])[least(e.failures + 1, ${probeMs.length}::int)]) end,
             deactivated_at = case when ${isGone}::boolean or is_given_up then coalesce(e.deactivated_at, now())
                                   else e.deactivated_at end,
             deactivated_reason = case when e.deactivated_at is not null then e.deactivated_reason
                                       when ${isGone}::boolean then 'gone'
                                       when is_given_up then 'failing' end
        from message, first
       cross join webhook_endpoints before
       cross join lateral (
         select ${isProbe}::boolean or before.failing_since is null as counts,
                not ${isDelivered}::boolean
                and (message.status = 'failed' and before.failing_since <= first.started_at
                     or before.failures >= ${attempt.retryMs.length}::int
                        and before.failing_since <= now() - ${allMs} * interval '1 millisecond') as is_given_up) says
       where before.id = e.id and e.id = message.endpoint_id and e.url = ${attempt.url} and (not e.is_slack or e.secret_id = ${attempt.secretId}) and ${acting(sql.actingAs({ kind: 'service' }))}
         -- The row changes rarely, so that messages that are delivered at the same time do not wait for each other.
         and (case when ${isDelivered}::boolean then e.failing_since is not null
                   else counts or ${isGone}::boolean or message.status = 'failed' end)
      returning e.deactivated_reason
    )
    select (select deactivated_reason from endpoint) as reason from message`;
  return row?.reason ?? null;
}
