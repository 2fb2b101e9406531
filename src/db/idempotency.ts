import type { AccountId } from '../domain/ids.ts';
import { retryUntilVisible } from './conflict-retries.ts';
import { instant } from './sql.ts';
import type { Sql } from './sql.ts';

/** How long a call holds its key before another call may take it over, ms. Longer than any statement may run. */
const CLAIM_MS = 60_000;

/** Encrypted bytes and the id of the key that decrypts them. */
export interface Sealed {
  readonly ciphertext: Buffer;
  readonly encryptionKeyId: string;
}

export interface IdempotentRequest {
  readonly accountId: AccountId;
  readonly idempotencyKey: string;
  readonly requestSha256: Buffer;
}

export interface Claim {
  /** Identifies this attempt, so that a statement that is sent again after a broken connection finds its own claim. */
  readonly claimId: string;
  /** Epoch ms. Used unless there is an earlier attempt. */
  readonly requestedAt: number;
  /** How long the response is stored. */
  readonly days: number;
  /** Used unless there is an earlier attempt. */
  readonly seed: Sealed;
}

export type ClaimedKey =
  /** The caller runs the request now, with the time and seed of the first attempt. */
  | { readonly state: 'claimed'; readonly requestedAt: number; readonly seed: Sealed }
  | { readonly state: 'completed'; readonly response: Sealed }
  | { readonly state: 'in_use' }
  | { readonly state: 'reused' };

interface KeyRow {
  readonly mine: boolean;
  readonly isSame: boolean;
  readonly requestedAt: number;
  readonly seed: Buffer;
  readonly seedKeyId: string;
  readonly response: Buffer | null;
  readonly responseKeyId: string | null;
}

/**
 * Claims an idempotency key for a call, or returns the state of an earlier call with the key. A key whose
 * time is over counts as new. A claim that was never released is taken over when its time is up. Exports store their keys
 * permanently in `payout_requests`, so a key of an export counts as reused by any other call.
 */
export async function claimIdempotencyKey(
  sql: Sql,
  request: IdempotentRequest,
  claim: Claim,
): Promise<ClaimedKey> {
  const { accountId, idempotencyKey, requestSha256 } = request;
  const row = await retryUntilVisible(async () => {
    const found = await sql.maybe<KeyRow | { readonly mine: null }>`
      with of_export as (
        select 1 from payout_requests where account_id = ${accountId} and idempotency_key = ${idempotencyKey}
      ), claimed as (
        insert into idempotency_keys as k (account_id, idempotency_key, request_sha256, requested_at, seed, seed_key_id,
                                           claim_id, claimed_until, expires_at)
        select ${accountId}::text, ${idempotencyKey}::text, ${requestSha256}::bytea,
               ${instant(claim.requestedAt)}::timestamptz, ${claim.seed.ciphertext}::bytea,
               ${claim.seed.encryptionKeyId}::text, ${claim.claimId}::uuid,
               now() + ${CLAIM_MS} * interval '1 millisecond', now() + ${claim.days} * interval '24 hours'
         where not exists (select from of_export)
        on conflict (account_id, idempotency_key) do update set
          request_sha256 = excluded.request_sha256,
          requested_at = case when k.expires_at <= now() then excluded.requested_at else k.requested_at end,
          seed = case when k.expires_at <= now() then excluded.seed else k.seed end,
          seed_key_id = case when k.expires_at <= now() then excluded.seed_key_id else k.seed_key_id end,
          response = null, response_key_id = null,
          claim_id = excluded.claim_id, claimed_until = excluded.claimed_until,
          expires_at = case when k.expires_at <= now() then excluded.expires_at else k.expires_at end
         where k.expires_at <= now()
            or (k.response is null and k.request_sha256 = excluded.request_sha256
                and (k.claimed_until <= now() or k.claim_id = excluded.claim_id))
        returning *
      )
      select claim_id = ${claim.claimId}::uuid as mine, request_sha256 = ${requestSha256}::bytea as is_same,
             requested_at, seed, seed_key_id, response, response_key_id
        from claimed
      union all
      select false, request_sha256 = ${requestSha256}::bytea, requested_at, seed, seed_key_id, response, response_key_id
        from idempotency_keys
       where account_id = ${accountId} and idempotency_key = ${idempotencyKey} and expires_at > now()
         and not exists (select from claimed)
         and not exists (select from of_export)
      union all
      select null, false, null, null, null, null, null from of_export`;
    return found;
  });
  if (row.mine === null || !row.isSame) return { state: 'reused' };
  if (row.mine) {
    const seed = { ciphertext: row.seed, encryptionKeyId: row.seedKeyId };
    return { state: 'claimed', requestedAt: row.requestedAt, seed };
  }
  if (row.response === null || row.responseKeyId === null) return { state: 'in_use' };
  return { state: 'completed', response: { ciphertext: row.response, encryptionKeyId: row.responseKeyId } };
}

/**
 * Stores the response to a call. When two attempts ran at once, the first response stays: both have the same content.
 */
export async function storeResponse(sql: Sql, request: IdempotentRequest, response: Sealed): Promise<void> {
  await sql`
    update idempotency_keys set response = ${response.ciphertext}, response_key_id = ${response.encryptionKeyId}
     where account_id = ${request.accountId} and idempotency_key = ${request.idempotencyKey}
       and request_sha256 = ${request.requestSha256} and response is null`;
}

/** Forgets the key of a claim whose call has written nothing, so that another request may have it. */
export async function forgetKey(sql: Sql, request: IdempotentRequest, claimId: string): Promise<void> {
  await sql`
    delete from idempotency_keys
     where account_id = ${request.accountId} and idempotency_key = ${request.idempotencyKey}
       and claim_id = ${claimId}::uuid and response is null`;
}

/** Releases a claim after a failure, so that the next call with the key runs at once, with the same seed. */
export async function releaseClaim(sql: Sql, request: IdempotentRequest, claimId: string): Promise<void> {
  await sql`
    update idempotency_keys set claimed_until = now()
     where account_id = ${request.accountId} and idempotency_key = ${request.idempotencyKey}
       and claim_id = ${claimId}::uuid and response is null`;
}
