import type { AppId, CommissionId, DeliveryId, EventId, SecretId } from '../domain/ids.ts';
import type { DeliveryKeys, ProcessingStatus } from '../domain/delivery.ts';
import type { Environment } from '../domain/events.ts';
import type { Proof } from '../providers/proof.ts';
import type { SecretBox } from '../config/secret-box.ts';
import { ANY_KIND, isErased } from './erased-identifiers.ts';
import { decryptUnlessLost } from './reencryption.ts';
import { instant } from './sql.ts';
import type { Fragment, Sql, Statements } from './sql.ts';
import type { WebhookSecretRow } from './webhook-secrets.ts';

export interface AcceptedDelivery {
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly appId: AppId;
  readonly provider: string;
  readonly receivedAt: number;
  readonly secretId: SecretId;
  readonly proof: Proof;
  readonly bodySha256: Buffer;
  readonly body: Buffer;
  /** The key that the body is encrypted with, because it names an erased person. Null for the body as it was received. */
  readonly bodyKeyId?: string | null;
  /** The keyed hashes of the texts in the body. Null if they were not computed: then no identifier of the app may be erased. */
  readonly bodyHashes?: readonly Buffer[] | null;
  /** The current secret when the secrets were read. Null if there was none. */
  readonly currentSecretId: SecretId | null;
}

/** Whether a delivery was stored. */
export interface Acceptance {
  /** False if the secrets have changed since they were read, or with `namesErased`: nothing was stored. */
  readonly isAccepted: boolean;
  /** Whether the body has to be encrypted, because it names an erased person or was not compared with them. */
  readonly namesErased: boolean;
  /** Whether this service sent the request to itself. Null if the delivery was not stored now. */
  readonly isSelfTest: boolean | null;
  /** The app's current setting, as in `StoredDelivery`. */
  readonly stripeAccounts: readonly string[];
}

/**
 * Stores a verified delivery with its bytes, if the secret that verified it is still valid and no newer one was set. After
 * that it cannot be lost. Storing it twice changes nothing.
 */
export async function acceptDelivery(sql: Sql, d: AcceptedDelivery): Promise<Acceptance> {
  const { bodyKeyId = null, bodyHashes = null } = d;
  const namesErased =
    bodyKeyId !== null
      ? sql.fragment`false`
      : bodyHashes === null
        ? sql.fragment`exists (select from erased_identifiers x where x.app_id = ${d.appId})`
        : isErased(sql, d.appId, bodyHashes, ANY_KIND);
  return await sql.one<Acceptance>`
    with erased as materialized (
      select ${namesErased} as is_named
    ), valid as (
      select s.id from webhook_secrets s
       where not (select is_named from erased) and s.id = ${d.secretId} and s.live_slot is not null and (s.expires_at is null or s.expires_at > ${instant(d.receivedAt)})
         and (${d.currentSecretId}::text is null
              or (select num_nulls(c.expires_at) = 1 from webhook_secrets c where c.id = ${d.currentSecretId}))
    ), row as (
      insert into deliveries (id, app_id, provider, received_at, signature_valid, processing_status, secret_id, proof,
                              body_sha256, event_id, relayed_at)
      select ${d.deliveryId}::text, ${d.appId}::text, ${d.provider}::text, ${instant(d.receivedAt)}::timestamptz, true, 'received',
             valid.id, ${sql.json(d.proof)}::jsonb, ${d.bodySha256}::bytea, ${d.eventId}::text,
             -- The turn in the outbox follows the clock of the database (docs/reliability.md, "Clocks").
             case when ${instant(d.receivedAt)}::timestamptz > now() then now() end
        from valid
      on conflict (id) do nothing
      returning id, is_self_test
    ), bodies as (
      insert into delivery_bodies (delivery_id, body, encryption_key_id) select id, ${d.body}::bytea, ${bodyKeyId}::text from row
    )
    select exists (select from valid) as is_accepted, (select is_named from erased) as names_erased, (select is_self_test from row) as is_self_test,
           (select stripe_accounts from apps where id = ${d.appId}) as stripe_accounts`;
}

/** Refused requests of one app and provider with one body, all in one hour. */
export interface RefusedRequests {
  /** The ids of the row that counts them, if there is none for the hour yet. */
  readonly deliveryId: DeliveryId;
  readonly eventId: EventId;
  readonly appId: AppId;
  readonly provider: string;
  /** When the latest one arrived, epoch ms. */
  readonly receivedAt: number;
  readonly bodySha256: Buffer;
  readonly reason: string;
  readonly count: number;
}

/** A request that a self-test announced. */
export interface SelfTestRequest {
  readonly appId: AppId;
  readonly provider: string;
  readonly bodySha256: Uint8Array;
}

/**
 * Records refused requests without their bodies: one row per app, provider and hour, with a count and the latest request.
 * Returns those that a self-test announced: they were sent to be refused, and are recorded only there. Rows are written in
 * one order, so that two processes cannot block each other.
 */
export async function recordRefusedRequests(
  sql: Sql,
  refused: readonly RefusedRequests[],
): Promise<SelfTestRequest[]> {
  const rows = refused.map(({ receivedAt, bodySha256, ...row }) => ({
    ...row,
    receivedAt: new Date(receivedAt).toISOString(),
    bodySha256: bodySha256.toString('hex'),
  }));
  return await sql<SelfTestRequest>`
    with refused as (
      select "deliveryId" as id, "eventId" as event_id, "appId" as app_id, provider, "receivedAt" as received_at,
             decode("bodySha256", 'hex') as body_sha256, reason, count, date_trunc('hour', "receivedAt", 'UTC') as hour
        from jsonb_to_recordset(${sql.json(rows)})
             as r ("deliveryId" text, "eventId" text, "appId" text, provider text, "receivedAt" timestamptz,
                   "bodySha256" text, reason text, count integer)
    ), announced as (
      update self_test_requests s set refused_at = r.received_at
        from refused r
       where s.app_id = r.app_id and s.provider = r.provider and s.body_sha256 = r.body_sha256
      returning s.app_id, s.provider, s.body_sha256
    ), real as (
      select *, row_number() over (partition by app_id, provider, hour order by received_at desc, id) as nth,
             sum(count) over (partition by app_id, provider, hour) as total
        from refused r
       where not exists (select from announced a where a.app_id = r.app_id and a.provider = r.provider
                                                   and a.body_sha256 = r.body_sha256)
    ), counted as (
      insert into deliveries as old (id, app_id, provider, received_at, signature_valid, processing_status, body_sha256,
                                     event_id, last_error, completed_at, refused_count, refused_hour)
      select id, app_id, provider, received_at, false, 'rejected', body_sha256, event_id, reason,
             received_at, total, hour
        from real where nth = 1 order by app_id, provider, hour
      on conflict (app_id, provider, refused_hour) where refused_hour is not null
        do update set refused_count = old.refused_count + excluded.refused_count, received_at = excluded.received_at,
                      completed_at = excluded.completed_at, body_sha256 = excluded.body_sha256,
                      last_error = excluded.last_error
    )
    select app_id, provider, body_sha256 from announced`;
}

export interface StoredDelivery {
  readonly id: DeliveryId;
  readonly appId: AppId;
  readonly provider: string;
  readonly receivedAt: number;
  readonly processingStatus: ProcessingStatus;
  readonly lastError: string | null;
  readonly eventId: EventId;
  readonly commissionId: CommissionId | null;
  readonly proof: Proof;
  readonly bodySha256: Uint8Array;
  readonly body: Uint8Array;
  /** Whether the body can be read. Retention and erasure remove it from a delivery that has its outcome. */
  readonly hasBody: boolean;
  /** Whether the body is stored, and its encryption key is lost permanently. */
  readonly isBodyLost: boolean;
  /** Whether the body is stored encrypted, because it names an erased person. It is removed with the outcome. */
  readonly namesErased: boolean;
  /** Whether this service sent it to itself. It then counts as sandbox, whatever its body states. */
  readonly isSelfTest: boolean;
  /** The app's current setting: the connected accounts of Stripe whose events count as its own. */
  readonly stripeAccounts: readonly string[];
  readonly secret: Omit<WebhookSecretRow, 'isCurrent' | 'signed'>;
}

/** Returns the encryption context of a stored body, which binds it to its delivery. */
function bodyContext(deliveryId: DeliveryId): string {
  return `body:${deliveryId}`;
}

/**
 * Returns a delivery with its bytes and the secret that verified it. Undefined for an unknown or refused one. Throws `SecretUnreadable` if
 * this process lacks the key of its body, and another one may have it.
 */
export async function loadDelivery(
  sql: Sql,
  secretBox: SecretBox,
  deliveryId: DeliveryId,
): Promise<StoredDelivery | undefined> {
  const row = await sql.maybe<
    Omit<StoredDelivery, 'secret' | 'body' | 'hasBody' | 'isBodyLost' | 'namesErased'> & {
      body: Uint8Array | null;
      bodyKeyId: string | null;
      secretId: SecretId;
      environment: Environment;
      ciphertext: Uint8Array;
      encryptionKeyId: string;
    }
  >`
    select d.id, d.app_id, d.provider, d.received_at, d.processing_status,
           d.last_error, d.event_id, d.commission_id, d.proof,
           d.body_sha256, b.body, b.encryption_key_id as body_key_id, d.is_self_test, s.id as secret_id, s.environment,
           s.ciphertext, s.encryption_key_id, a.stripe_accounts
      from deliveries d
     cross join lateral (select * from apps x where x.id = d.app_id offset 0) a
      left join lateral (select * from delivery_bodies x where x.delivery_id = d.id offset 0) b on true
     cross join lateral (select * from webhook_secrets x where x.id = d.secret_id offset 0) s
     where d.id = ${deliveryId}`;
  if (row === undefined) return undefined;
  const { secretId, environment, ciphertext, encryptionKeyId, body, bodyKeyId, ...delivery } = row;
  const read = body === null || bodyKeyId === null ? body : openBody(secretBox, deliveryId, body, bodyKeyId);
  return {
    ...delivery,
    body: read ?? new Uint8Array(),
    hasBody: read !== null,
    isBodyLost: body !== null && read === null,
    namesErased: bodyKeyId !== null,
    secret: { id: secretId, environment, ciphertext, encryptionKeyId },
  };
}

/** Decrypts a stored body. Returns null if its key is lost permanently. Throws `SecretUnreadable` if only this process lacks it. */
function openBody(
  secretBox: SecretBox,
  deliveryId: DeliveryId,
  ciphertext: Uint8Array,
  encryptionKeyId: string,
): Uint8Array | null {
  const text = decryptUnlessLost(secretBox, { ciphertext, encryptionKeyId }, bodyContext(deliveryId));
  return text === null ? null : Buffer.from(text, 'base64');
}

/**
 * Completes a delivery that moves no money. The first outcome stays. A failed one keeps an encrypted body: a version that can read
 * it may reprocess it. As a count of nulls, the condition cannot lead to the
 * index of unfinished deliveries, which may be long.
 */
export async function finishDelivery(
  sql: Sql,
  deliveryId: DeliveryId,
  outcome: {
    status: 'processed' | 'duplicate' | 'ignored' | 'failed';
    reason: string | null;
    sourceEventId: string | null;
    eventCount: 0 | 1;
  },
): Promise<void> {
  await sql`
    with done as (
      update deliveries
         set processing_status = ${outcome.status}, last_error = ${outcome.reason}, completed_at = now(),
             source_event_id = coalesce(${outcome.sourceEventId}::text, source_event_id), event_count = ${outcome.eventCount}
       where id = ${deliveryId} and num_nulls(completed_at) = 1
      returning id
    )
    ${outcome.status === 'failed' ? sql.fragment`select from done` : removeEncryptedBody(sql)}`;
}

/** Encrypts a body that names an erased person. The outcome of its delivery then removes it. */
export function sealBody(
  secretBox: SecretBox,
  deliveryId: DeliveryId,
  body: Uint8Array,
): Required<Pick<AcceptedDelivery, 'body' | 'bodyKeyId'>> {
  const text = Buffer.from(body).toString('base64');
  const { ciphertext, encryptionKeyId } = secretBox.encrypt(text, bodyContext(deliveryId));
  return { body: ciphertext, bodyKeyId: encryptionKeyId };
}

/** Encrypts the stored body of a delivery (`sealBody`), unless it is encrypted. */
export async function encryptBody(
  sql: Sql,
  secretBox: SecretBox,
  { id, body }: Pick<StoredDelivery, 'id' | 'body'>,
): Promise<void> {
  const sealed = sealBody(secretBox, id, body);
  await sql`
    update delivery_bodies set body = ${sealed.body}, encryption_key_id = ${sealed.bodyKeyId}
     where delivery_id = ${id} and encryption_key_id is null`;
}

/** A statement that removes the body of the delivery `done` if it is encrypted: it names an erased person. */
export function removeEncryptedBody(sql: Statements): Fragment {
  return sql.fragment`
    delete from delivery_bodies b using done where b.delivery_id = done.id and b.encryption_key_id is not null`;
}

/** Records that a delivery is being processed, and why its last attempt failed. */
export async function markDeliveryProcessing(
  sql: Sql,
  deliveryId: DeliveryId,
  lastError: string,
): Promise<void> {
  await sql`
    update deliveries set processing_status = 'processing', last_error = ${lastError}
     where id = ${deliveryId} and num_nulls(completed_at) = 1`;
}

/**
 * Claims accepted deliveries that have no outcome and were not claimed for `olderThanMs`, oldest first. A claimed
 * delivery moves to the end of the queue, so that a stuck one cannot starve the others.
 */
export async function claimUnfinishedDeliveries(
  sql: Sql,
  olderThanMs: number,
  limit: number,
): Promise<DeliveryKeys[]> {
  return await sql<DeliveryKeys>`
    with page as materialized (
      select id from deliveries
       where completed_at is null and coalesce(relayed_at, received_at) < now() - ${olderThanMs} * interval '1 millisecond'
       order by coalesce(relayed_at, received_at)
       limit ${limit}
       for update skip locked
    )
    update deliveries d set relayed_at = now()
      from page
     where d.id = page.id and d.completed_at is null
    returning d.id as delivery_id, d.app_id, d.provider, d.event_id`;
}
