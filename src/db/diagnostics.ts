import type { LikelyCause } from '../domain/evaluate-payment.ts';
import type { EventKind } from '../domain/events.ts';
import type { AppId, DeliveryId, EventId } from '../domain/ids.ts';
import type { ProviderName } from '../providers/index.ts';
import type { ProcessingStatus } from './deliveries.ts';
import { pageOf } from './page.ts';
import type { Page, Position } from './page.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** How many user ids of each side are looked at, the latest ones. */
const IDENTITY_LOOKS = 1_000;

/** How the user ids of billing events and those that the app told of lie to each other. */
export interface IdentityOverlap {
  /** Whether a billing event names any user at all; `told` is the same of `identify`. */
  readonly billed: boolean;
  readonly told: boolean;
  /** User ids of both sides: all of them while `complete`, else at least so many. */
  readonly overlapCount: number;
  /** The latest ids of the one side that the other never named. One more than was asked for says that there are more. */
  readonly billingOnly: readonly string[];
  readonly toldOnly: readonly string[];
  /** Whether all ids of both sides were looked at. */
  readonly complete: boolean;
}

/**
 * Looks at the latest user ids of either side and asks of each whether the other side ever named it. Both environments
 * count, since a founder tries things out in the sandbox first; test events do not, since providers make their users up.
 * A user who paid and was attributed is on both sides by that, however long ago it was.
 *
 * The looks are scalar queries with a limit, which Postgres makes one by one; of `exists` it would make one join that
 * reads all user ids there are.
 */
export async function readIdentityOverlap(sql: Sql, appId: AppId, samples: number): Promise<IdentityOverlap> {
  return await sql.one<IdentityOverlap>`
    with events_seen as materialized (
      select e.customer_user_id, row_number() over () as rank
        from (select customer_user_id from events
               where app_id = ${appId} and customer_user_id is not null and kind <> 'test'
               order by id desc limit ${IDENTITY_LOOKS + 1}) e
    ), identities_seen as materialized (
      select i.customer_user_id, row_number() over () as rank
        from (select customer_user_id from identities where app_id = ${appId}
               order by created_at desc limit ${IDENTITY_LOOKS + 1}) i
    ), billing as materialized (
      select s.customer_user_id, s.rank,
             (select true from identities i
               where i.app_id = ${appId} and i.customer_user_id = s.customer_user_id limit 1) is not null as is_shared
        from (select customer_user_id, min(rank) as rank from events_seen group by 1) s
    ), told as materialized (
      select s.customer_user_id, s.rank,
             s.customer_user_id in (select customer_user_id from billing)
             or (select true from payment_users p
                  where p.app_id = ${appId} and p.customer_user_id = s.customer_user_id limit 1) is not null as is_shared
        from (select customer_user_id, min(rank) as rank from identities_seen group by 1) s
    ), shared as (
      select customer_user_id from billing where is_shared union select customer_user_id from told where is_shared
    ), paid as (
      select coalesce(sum(paid_users), 0)::bigint as users from rollups
       where app_id = ${appId} and scope = 'app' and scope_id = ${appId} and bucket_at = '-infinity'
    )
    select exists (select from billing) as billed, exists (select from told) as told,
           greatest((select count(*) from shared), paid.users) as overlap_count,
           array(select customer_user_id from billing where not is_shared order by rank limit ${samples + 1})
             as billing_only,
           array(select customer_user_id from told where not is_shared order by rank limit ${samples + 1}) as told_only,
           (select count(*) from events_seen) <= ${IDENTITY_LOOKS}
           and (select count(*) from identities_seen) <= ${IDENTITY_LOOKS} as complete
      from paid`;
}

export interface UnattributedEvent {
  readonly eventId: EventId;
  readonly source: ProviderName;
  readonly sourceEventId: string;
  readonly kind: EventKind;
  readonly customerUserId: string | null;
  readonly amountCents: number | null;
  readonly occurredAt: number;
  readonly receivedAt: number;
  readonly likelyCause: LikelyCause;
}

/** The paid events of an app that earned nothing, the latest first. Only production events are given a cause. */
export async function listUnattributedEvents(
  sql: Sql,
  appId: AppId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<UnattributedEvent, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (occurred_at, id) < (${instant(after.sortKey)}, ${after.id})`;
  const rows = await sql<UnattributedEvent & Position<number>>`
    select id, id as event_id, source, source_event_id, kind, customer_user_id,
           amount_cents, occurred_at, received_at,
           likely_cause, epoch_ms(occurred_at) as sort_key
      from events
     where app_id = ${appId} and likely_cause is not null ${from}
     order by occurred_at desc, id desc limit ${limit + 1}`;
  return pageOf(rows, limit);
}

export interface WebhookDelivery {
  readonly id: DeliveryId;
  readonly source: ProviderName;
  readonly sourceEventId: string | null;
  /** What the webhook was answered with, and what explains it; also where the body could not be read. */
  readonly eventId: EventId;
  readonly receivedAt: number;
  readonly signatureValid: boolean;
  readonly processingStatus: ProcessingStatus;
  readonly lastError: string | null;
  readonly eventCount: number;
  /** Whether this service sent it to itself. */
  readonly selfTest: boolean;
}

/** The deliveries of an app's billing providers, the latest first. Refused ones are one row for each provider and hour. */
export async function listWebhookDeliveries(
  sql: Sql,
  appId: AppId,
  after: Position<number> | null,
  limit: number,
): Promise<Page<WebhookDelivery, number>> {
  const from =
    after === null
      ? sql.fragment``
      : sql.fragment`and (received_at, id) < (${instant(after.sortKey)}, ${after.id})`;
  const rows = await sql<WebhookDelivery & Position<number>>`
    select id, provider as source, source_event_id, event_id, received_at,
           signature_valid, processing_status, last_error,
           event_count, is_self_test as self_test, epoch_ms(received_at) as sort_key
      from deliveries
     where app_id = ${appId} ${from}
     order by received_at desc, id desc limit ${limit + 1}`;
  return pageOf(rows, limit);
}
