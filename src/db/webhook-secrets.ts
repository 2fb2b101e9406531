import type { SecretBox } from '../config/secret-box.ts';
import type { Environment } from '../domain/events.ts';
import type { AppId, SecretId } from '../domain/ids.ts';
import { lockApp } from './app-lock.ts';
import { acting } from './audit.ts';
import { retryAfterConflict } from './conflict-retries.ts';
import type { ProcessingStatus } from '../domain/delivery.ts';
import { newId } from './new-id.ts';
import { instant } from './sql.ts';
import type { Sql, Statements } from './sql.ts';

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

/** A secret that is to become the current one. */
export interface NewWebhookSecret {
  readonly environment: Environment;
  /** True if it has a signing secret beside the token. */
  readonly signed: true | null;
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
}

/** Where a secret is put, and how long earlier ones stay valid. */
export interface SecretPlace {
  readonly appId: AppId;
  readonly provider: string;
  /** The current time, epoch ms. */
  readonly at: number;
  /** When earlier secrets of this app and provider expire, unless they expire earlier. */
  readonly previousEndsAt: number;
  /** The configured keys. An earlier secret that none of them decrypts is useless and expires at once. */
  readonly keyIds: readonly string[];
}

/** The most secrets of an app and provider that are valid at once, one per slot. Each costs every request one check. */
export const MAX_LIVE_SECRETS = 3;

/** A secret that has a slot. */
interface SlotRow extends WebhookSecretRow {
  readonly liveSlot: number;
  /** Epoch ms. Null for the current one. */
  readonly expiresAt: number | null;
}

/**
 * Stores the secret that `choose` makes from the current one (null for none) as the current one. The newest earlier ones stay
 * valid until `previousEndsAt`; those beyond `MAX_LIVE_SECRETS` expire at once. Calls for one app run one after the other, so
 * each chooses from the secret of the call before it. Returns what was chosen, and when the previous secret expires, or null if
 * there is none. Throws what `choose` throws.
 */
export async function putWebhookSecret<Secret extends NewWebhookSecret>(
  sql: Pick<Sql, 'transaction'>,
  place: SecretPlace,
  choose: (current: WebhookSecretRow | null) => Secret,
): Promise<{ readonly chosen: Secret; readonly previousExpiresAt: number | null }> {
  const { appId, provider, at, previousEndsAt, keyIds } = place;
  const id = newId('secret');
  /** What an earlier run of the transaction chose. It may have stored it without an answer to the commit. */
  let chosen: Secret | undefined;
  const put = async (tx: Statements) => {
    await lockApp(tx, appId);
    if (chosen === undefined || !(await isStored(tx, id))) {
      const stored = await tx<SlotRow>`
        select id, environment, ciphertext, encryption_key_id, signed, expires_at, expires_at is null as is_current, live_slot
          from webhook_secrets
         where app_id = ${appId} and provider = ${provider} and live_slot is not null
         order by expires_at is null desc, created_at desc, id desc`;
      chosen = choose(stored.find(({ isCurrent }) => isCurrent) ?? null);
      const kept = stored
        .filter(
          ({ expiresAt, encryptionKeyId }) =>
            (expiresAt ?? Infinity) > at && keyIds.includes(encryptionKeyId),
        )
        .slice(0, MAX_LIVE_SECRETS - 1);
      const slot = SLOTS.find((free) => kept.every(({ liveSlot }) => liveSlot !== free));
      const end = { ids: stored.map((row) => row.id), kept: new Set(kept.map((row) => row.id)) };
      await endSecrets(tx, place, end);
      await tx`
        insert into webhook_secrets (id, app_id, provider, environment, signed, ciphertext, encryption_key_id, live_slot, created_at)
        select ${id}::text, ${appId}::text, ${provider}::text, ${chosen.environment}::text, ${chosen.signed}::boolean,
               ${chosen.ciphertext}::bytea, ${chosen.encryptionKeyId}::text, ${slot}::int,
               greatest(now(), max(created_at) + interval '1 microsecond')
          from webhook_secrets where app_id = ${appId} and provider = ${provider} having ${acting(tx)}`;
      // The self-test that passed was one of another secret.
      await tx`update apps set self_test_passed_at = null where id = ${appId} and self_test_passed_at is not null`;
    }
    const { hadPrevious } = await tx.one<{ hadPrevious: boolean }>`
      select exists (select from webhook_secrets where app_id = ${appId} and provider = ${provider} and id <> ${id}) as had_previous`;
    return { chosen, previousExpiresAt: hadPrevious ? previousEndsAt : null };
  };
  // During an upgrade, a process of version 0.1.0 takes no lock.
  const constraints = ['webhook_secrets_one_current', 'webhook_secrets_live_slot'];
  return await retryAfterConflict(constraints, () => sql.transaction(put));
}

async function isStored(tx: Statements, id: SecretId): Promise<boolean> {
  return (await tx`select from webhook_secrets where id = ${id}`).length > 0;
}

const SLOTS = Array.from({ length: MAX_LIVE_SECRETS }, (_, index) => index + 1);

/** Lets the secrets of `kept` expire at `previousEndsAt`, and the others of `ids` now. Any other one stays, so that an insert conflicts with it. */
async function endSecrets(
  tx: Statements,
  { at, previousEndsAt }: SecretPlace,
  { ids, kept }: { readonly ids: readonly SecretId[]; readonly kept: ReadonlySet<SecretId> },
): Promise<void> {
  const isKept = tx.fragment`id = any(${[...kept]}::text[])`;
  await tx`
    update webhook_secrets
       set expires_at = least(expires_at, case when ${isKept} then ${instant(previousEndsAt)}::timestamptz else ${instant(at)}::timestamptz end),
           live_slot = case when ${isKept} then live_slot end
     where id = any(${[...ids]}::text[]) and live_slot is not null and ${acting(tx)}`;
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
  /** When the latest webhook arrived that was not refused, epoch ms. */
  readonly acceptedAt: number | null;
}

/** Returns the state of each of `providers` for an app, in the same order. Deliveries of self-tests do not count. */
export async function listWebhookStates(
  sql: Sql,
  appId: AppId,
  providers: readonly string[],
): Promise<WebhookState[]> {
  return await sql<WebhookState>`
    select p.name as provider, s.environment, s.signed, d.received_at, d.signature_valid,
           d.processing_status, a.received_at as accepted_at
      from unnest(${providers}::text[]) with ordinality p (name, position)
      left join webhook_secrets s on s.app_id = ${appId} and s.provider = p.name and s.expires_at is null
      left join lateral (
        select received_at, signature_valid, processing_status from deliveries
         where app_id = ${appId} and provider = p.name and signature_valid and not is_self_test
           and proof->>'kind' is distinct from 'reconciliation'
         order by received_at desc nulls last limit 1) a on true
      left join lateral (
        select received_at, signature_valid, processing_status
          from (select a.received_at, a.signature_valid, a.processing_status where a.received_at is not null
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
  /** Whether it encrypts the latest payee of a creator. */
  readonly payees: boolean;
  /** Whether it encrypts the files of payout runs. */
  readonly payoutFiles: boolean;
  /** Whether it encrypts a payee, perhaps not the latest, whom a run pays whose files are not written. */
  readonly openRuns: boolean;
}

/**
 * Returns how much each encryption key has encrypted that the service needs. Reads all secrets, so it is not for every
 * request. Of the deliveries without an outcome, it reads the oldest.
 */
export async function countSecretsByKey(sql: Sql): Promise<EncryptedByKey[]> {
  return await sql<EncryptedByKey>`
    with recursive payee_keys as (
      select min(encryption_key_id) as id from payees
      union all
      select (select min(encryption_key_id) from payees where encryption_key_id > k.id) from payee_keys k where k.id is not null
    ), file_keys as (
      select min(encryption_key_id) as id from payout_run_files
      union all
      select (select min(encryption_key_id) from payout_run_files where encryption_key_id > k.id) from file_keys k where k.id is not null
    )
    select encryption_key_id, count(*) filter (where kind = 'secret')::int as secrets,
           count(*) filter (where kind = 'erasure')::int as erasures, bool_or(kind = 'payee') as payees,
           bool_or(kind = 'payout_file') as payout_files, bool_or(kind = 'open_run') as open_runs
      from (select encryption_key_id, 'secret' as kind from webhook_secrets where expires_at is null or expires_at > now()
            union all select encryption_key_id, 'secret' from identity_secrets
            union all select previous_encryption_key_id, 'secret' from identity_secrets where previous_expires_at > now()
            union all select encryption_key_id, 'secret' from webhook_endpoints where slot is not null
            union all select previous_encryption_key_id, 'secret' from webhook_endpoints
              where slot is not null and previous_expires_at > now()
            union all select encryption_key_id, 'erasure' from erasure_key
            union all select encryption_key_id, 'erasure' from erasure_subjects
            union all select b.encryption_key_id, 'erasure'
              from (select id from deliveries where completed_at is null
                     order by coalesce(relayed_at, received_at) limit 1000) d
             cross join lateral (select * from delivery_bodies x where x.delivery_id = d.id offset 0) b
             where b.encryption_key_id is not null
            union all select k.id, 'payout_file' from file_keys k where k.id is not null
            union all select k.id, 'open_run' from payee_keys k
             where exists (select from payout_runs r
                             join payout_run_items i on i.run_id = r.id
                             join payees p on p.app_id = i.app_id and p.affiliate_id = i.affiliate_id and p.version = i.payee_version
                            where r.status = 'approved' and p.encryption_key_id = k.id)
            union all select k.id, 'payee' from payee_keys k
             where exists (select from payees p
                            where p.encryption_key_id = k.id and not exists (
                              select from payees n
                               where n.app_id = p.app_id and n.affiliate_id = p.affiliate_id and n.version = p.version + 1))) s
     group by 1 order by 1`;
}
