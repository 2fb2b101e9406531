import type { SecretBox } from '../config/secret-box.ts';
import type { Environment } from '../domain/events.ts';
import type { AppId, SecretId } from '../domain/ids.ts';
import { acting } from './audit.ts';
import type { ProcessingStatus } from '../domain/delivery.ts';
import { newId } from './new-id.ts';
import { retryAfterConflict } from './conflict-retries.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** Returns the encryption context of a secret, which binds the ciphertext to its app and provider. */
export function secretContext(appId: AppId, provider: string): string {
  return `${appId}:${provider}`;
}

/** Decrypts a secret of an app and provider. Throws `SecretUnreadable`. */
export function openWebhookSecret(
  secretBox: SecretBox,
  owner: { readonly appId: AppId; readonly provider: string },
  { ciphertext, encryptionKeyId }: Pick<WebhookSecretRow, 'ciphertext' | 'encryptionKeyId'>,
): string {
  return secretBox.decrypt(
    Buffer.from(ciphertext),
    encryptionKeyId,
    secretContext(owner.appId, owner.provider),
  );
}

export interface WebhookSecretRow {
  readonly id: SecretId;
  readonly environment: Environment;
  readonly ciphertext: Uint8Array;
  readonly encryptionKeyId: string;
  /** True if it has a signing secret beside the token. */
  readonly signed: true | null;
  /** Whether it is the latest one, which does not expire. */
  readonly isCurrent: boolean;
}

/**
 * Returns the secrets that are valid for requests to this app at `at`, newest first. Empty when the app has no secret
 * for the provider, null for an unknown app.
 */
export async function findActiveWebhookSecrets(
  sql: Sql,
  appId: AppId,
  provider: string,
  at: number,
): Promise<readonly WebhookSecretRow[] | null> {
  const rows = await sql<{ appId: string } & { [K in keyof WebhookSecretRow]: WebhookSecretRow[K] | null }>`
    select a.id as app_id, s.id, s.environment, s.ciphertext, s.encryption_key_id, s.signed, s.expires_at is null as is_current
      from apps a
      left join webhook_secrets s on s.app_id = a.id and s.provider = ${provider}
                                 and s.live_slot is not null
                                 and (s.expires_at is null or s.expires_at > ${instant(at)})
     where a.id = ${appId}
     order by s.created_at desc`;
  if (rows.length === 0) return null;
  return rows.filter((row): row is { appId: string } & WebhookSecretRow => row.id !== null);
}

export interface NewWebhookSecret {
  readonly appId: AppId;
  readonly provider: string;
  readonly environment: Environment;
  /** True if it has a signing secret beside the token. */
  readonly signed: true | null;
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
  /** The current time, epoch ms. */
  readonly at: number;
  /** When earlier secrets of this app and provider expire, unless they expire earlier. */
  readonly previousEndsAt: number;
  /** The current secret that this one was made from, null for none: if another one is current by now, nothing is stored. */
  readonly basedOn?: SecretId | null;
  /** The configured keys. An earlier secret that none of them decrypts is useless and expires at once. */
  readonly keyIds: readonly string[];
}

/** The most secrets of an app and provider that are valid at once, one per slot. Each costs every request one check. */
export const MAX_LIVE_SECRETS = 3;

/**
 * Inserts a secret as the current one. The newest earlier ones stay valid until `previousEndsAt`; those beyond
 * `MAX_LIVE_SECRETS` expire at once. Returns when the previous one expires, or null if there is none; `changed` if `basedOn` is
 * not current any more.
 */
export async function putWebhookSecret(
  sql: Sql,
  secret: NewWebhookSecret,
): Promise<number | null | 'changed'> {
  const {
    appId,
    provider,
    environment,
    signed,
    ciphertext,
    encryptionKeyId,
    at,
    previousEndsAt,
    keyIds,
    basedOn,
  } = secret;
  const id = newId('secret');
  const isBase =
    basedOn === undefined
      ? sql.fragment`true`
      : sql.fragment`(select c.id from webhook_secrets c where c.app_id = ${appId} and c.provider = ${provider} and c.expires_at is null)
                     is not distinct from ${basedOn}::text`;
  // The insert reads the result of the update, so it runs after it, when the previous secret is no longer current and the
  // slots of ended ones are free. Two calls at once conflict on the current one or on a slot, so the second runs again and
  // finds the secret of the first.
  const row = await retryAfterConflict(
    ['webhook_secrets_one_current', 'webhook_secrets_live_slot'],
    () => sql.one<{ hadPrevious: boolean; isStored: boolean }>`
      with kept as (
        select id, live_slot from webhook_secrets
         where app_id = ${appId} and provider = ${provider} and live_slot is not null
           and (expires_at is null or expires_at > ${instant(at)}) and encryption_key_id = any(${[...keyIds]}::text[])
         order by expires_at is null desc, created_at desc, id desc
         limit ${MAX_LIVE_SECRETS - 1}
      ), ended as (
        update webhook_secrets s
           set expires_at = case when exists (select from kept where kept.id = s.id)
                                 then least(s.expires_at, ${instant(previousEndsAt)}::timestamptz)
                                 else least(s.expires_at, ${instant(at)}::timestamptz) end,
               live_slot = case when exists (select from kept where kept.id = s.id) then s.live_slot end
         where s.app_id = ${appId} and s.provider = ${provider} and s.live_slot is not null
           and not exists (select from webhook_secrets where id = ${id}) and ${isBase}
        returning s.id
      ), added as (
        insert into webhook_secrets (id, app_id, provider, environment, signed, ciphertext, encryption_key_id, live_slot)
        select ${id}::text, ${appId}::text, ${provider}::text, ${environment}::text, ${signed}::boolean, ${ciphertext}::bytea,
               ${encryptionKeyId}::text,
               (select min(slot) from generate_series(1, ${MAX_LIVE_SECRETS}::int) slot
                 where slot not in (select live_slot from kept))
          from (select count(*) from ended) n where ${acting(sql)} and ${isBase}
        on conflict (id) do nothing
        returning id
      )
      select exists (select from webhook_secrets where app_id = ${appId} and provider = ${provider} and id <> ${id})
             as had_previous,
             exists (select from added) or exists (select from webhook_secrets where id = ${id}) as is_stored`,
  );
  if (!row.isStored) return 'changed';
  return row.hadPrevious ? previousEndsAt : null;
}

/** The state of a provider's webhooks, for display. */
export interface WebhookState {
  readonly provider: string;
  /** Null when no secret is set. */
  readonly environment: Environment | null;
  /** True if its webhooks need a signature beside the token. */
  readonly signed: true | null;
  readonly receivedAt: number | null;
  readonly signatureValid: boolean | null;
  readonly processingStatus: ProcessingStatus | null;
}

/** Returns the state of each of `providers` for an app, in the same order. Deliveries of self-tests do not count. */
export async function listWebhookStates(
  sql: Sql,
  appId: AppId,
  providers: readonly string[],
): Promise<WebhookState[]> {
  return await sql<WebhookState>`
    select p.name as provider, s.environment, s.signed, d.received_at, d.signature_valid,
           d.processing_status
      from unnest(${providers}::text[]) with ordinality p (name, position)
      left join webhook_secrets s on s.app_id = ${appId} and s.provider = p.name and s.expires_at is null
      left join lateral (
        select received_at, signature_valid, processing_status
          from ((select received_at, signature_valid, processing_status from deliveries
                  where app_id = ${appId} and provider = p.name and signature_valid and not is_self_test
                    and proof->>'kind' is distinct from 'reconciliation'
                  order by received_at desc nulls last limit 1)
                union all
                (select received_at, signature_valid, processing_status from deliveries
                  where app_id = ${appId} and provider = p.name and refused_hour is not null
                  order by refused_hour desc limit 1)) latest
         order by received_at desc limit 1) d on true
     order by p.position`;
}

/** What a key of SECRETS_KEY encrypts. */
export interface EncryptedByKey {
  readonly encryptionKeyId: string;
  /** Valid webhook and identity secrets. */
  readonly secrets: number;
  /** The key of the hashes of erased persons, open erasures, and bodies of erased persons that wait for their outcome. */
  readonly erasures: number;
}

/**
 * Returns how much each encryption key has encrypted that the service needs. Reads all secrets, so it is not for every
 * request. Of the deliveries without an outcome, it reads the oldest.
 */
export async function countSecretsByKey(sql: Sql): Promise<EncryptedByKey[]> {
  return await sql<EncryptedByKey>`
    select encryption_key_id, count(*) filter (where not is_erasure)::int as secrets, count(*) filter (where is_erasure)::int as erasures
      from (select encryption_key_id, false as is_erasure from webhook_secrets where expires_at is null or expires_at > now()
            union all select encryption_key_id, false from identity_secrets
            union all select previous_encryption_key_id, false from identity_secrets where previous_expires_at > now()
            union all select encryption_key_id, false from webhook_endpoints where slot is not null
            union all select previous_encryption_key_id, false from webhook_endpoints
              where slot is not null and previous_expires_at > now()
            union all select encryption_key_id, true from erasure_key
            union all select encryption_key_id, true from erasure_subjects
            union all select b.encryption_key_id, true
              from (select id from deliveries where completed_at is null
                     order by coalesce(relayed_at, received_at) limit 1000) d
             cross join lateral (select * from delivery_bodies x where x.delivery_id = d.id offset 0) b
             where b.encryption_key_id is not null) s
     group by 1 order by 1`;
}
